//! The setting of a demo.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;

use rota_node::EngineName;

/// Several rings in each process, instead of a daemon and a client.
pub const MULTI_RING: &str = "multi-ring";

/// The engines that may order the messages.
pub fn engines() -> impl Iterator<Item = &'static str> {
    EngineName::ALL
        .into_iter()
        .map(EngineName::name)
        .chain([MULTI_RING])
}

/// The sections of a file for its rings.
pub fn sections(nodes: u16, rings: u16) -> String {
    let mut text = String::new();
    for ring in 1..=rings {
        let offset = (ring - 1) * (2 * nodes + 1);
        // Writing to a string cannot fail.
        let _ = write!(text, "\n[[ring]]\nid = {ring}\nport_offset = {offset}\n");
    }
    text
}

fn count(number: u16, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// The setting of a demo, for its report.
#[derive(Clone, Debug)]
pub struct Setting {
    pub nodes: u16,
    pub engine: String,
    pub rings: Option<u16>,
    pub service: String,
    pub size: Option<usize>,
    pub group: Option<SocketAddr>,
}

impl Setting {
    /// The way that the messages take.
    pub const fn mode(&self) -> &'static str {
        match self.rings {
            Some(_) => "library",
            None => "daemon",
        }
    }

    /// The guarantee: several rings have one only.
    pub fn service(&self) -> &str {
        match self.rings {
            Some(_) => "safe",
            None => &self.service,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            nodes,
            engine,
            service,
            group,
            rings,
            ..
        } = self;
        if let Some(rings) = rings {
            let (nodes, rings) = (
                count(*nodes, "process", "processes"),
                count(*rings, "ring", "rings"),
            );
            return write!(
                f,
                "{nodes} with {rings} each on 127.0.0.1, {engine}, one order of all rings"
            );
        }
        let each = if *nodes == 1 {
            "daemon with a client"
        } else {
            "daemons with a client each"
        };
        write!(f, "{nodes} {each} on 127.0.0.1, {engine}, {service}, ")?;
        match group {
            Some(group) => write!(f, "IP multicast {group}"),
            None => f.write_str("unicast"),
        }
    }
}
