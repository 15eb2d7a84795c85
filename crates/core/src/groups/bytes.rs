//! Reading and writing of the fields of the layer's messages. Reading is total.

use alloc::vec::Vec;

use super::event::{Connection, Member};
use super::name::{ClientName, Destination, GroupName, Name};
use crate::bytes::Reader;
use crate::contract::Process;

pub(super) fn put_name<const MOST: usize>(bytes: &mut Vec<u8>, name: &Name<MOST>) {
    bytes.push(name.as_bytes().len() as u8);
    bytes.extend_from_slice(name.as_bytes());
}

pub(super) fn put_destination(bytes: &mut Vec<u8>, destination: &Destination) {
    match destination {
        Destination::Group(name) => {
            bytes.push(0);
            put_name(bytes, name);
        }
        Destination::Client(name, node) => {
            bytes.push(1);
            bytes.extend(node.get().to_le_bytes());
            put_name(bytes, name);
        }
    }
}

/// Appends a client without its daemon.
pub(super) fn put_client(bytes: &mut Vec<u8>, member: &Member) {
    bytes.extend(member.connection.0.to_le_bytes());
    put_name(bytes, &member.name);
}

impl Reader<'_> {
    /// A name, as [`put_name`] writes it.
    pub(super) fn name<const MOST: usize>(&mut self) -> Option<Name<MOST>> {
        let len = usize::from(self.byte()?);
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Name::from_bytes(text).ok()
    }

    /// A destination, as [`put_destination`] writes it.
    pub(super) fn destination(&mut self) -> Option<Destination> {
        match self.byte()? {
            0 => self.name::<{ GroupName::MOST }>().map(Destination::Group),
            1 => {
                let node = self.node()?;
                let name = self.name::<{ ClientName::MOST }>()?;
                Some(Destination::Client(name, node))
            }
            _ => None,
        }
    }

    /// A client of this daemon, as [`put_client`] writes it.
    pub(super) fn client(&mut self, daemon: Process) -> Option<Member> {
        let connection = Connection(self.u64()?);
        let name = self.name()?;
        Some(Member {
            daemon,
            name,
            connection,
        })
    }
}
