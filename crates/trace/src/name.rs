//! The names of traces: `1.7` is a process, `1.7.42` a message, `12.1.7` a ring and
//! `12.1.7>16.2.3` the transitional configuration between two. `12.1.7/3` is a view of a group: the third
//! that was made in that configuration.

use std::fmt;

use rota_core::contract::{ConfigurationKind, Process};

use crate::event::Gid;

/// Writes a name as traces do.
#[derive(Clone, Copy, Debug)]
pub struct Name<T>(pub T);

impl fmt::Display for Name<Process> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.node, self.0.incarnation.0)
    }
}

impl fmt::Display for Name<ConfigurationKind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ConfigurationKind::Regular(ring) => ring.fmt(f),
            ConfigurationKind::Transitional { old, new } => write!(f, "{old}>{new}"),
        }
    }
}

impl fmt::Display for Name<Gid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Name(self.0.conf), self.0.index)
    }
}

impl fmt::Display for Name<&[Process]> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (place, process) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}{}", Name(*process))?;
        }
        f.write_str("}")
    }
}
