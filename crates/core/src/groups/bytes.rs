//! Reading and writing what the messages consist of. Reading is total.

use alloc::vec::Vec;

use super::event::{Connection, Member};
use super::name::{ClientName, Destination, GroupName, Name};
use crate::contract::{Incarnation, NodeId, Process, RingId, Service};

pub(super) fn put_name<const MOST: usize>(bytes: &mut Vec<u8>, name: &Name<MOST>) {
    bytes.push(name.as_bytes().len() as u8);
    bytes.extend_from_slice(name.as_bytes());
}

pub(crate) fn put_process(bytes: &mut Vec<u8>, process: Process) {
    bytes.extend(process.node.get().to_le_bytes());
    bytes.extend(process.incarnation.0.to_le_bytes());
}

pub(crate) fn ring_bytes(ring: RingId) -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..8].copy_from_slice(&ring.ring_seq.to_le_bytes());
    bytes[8..10].copy_from_slice(&ring.rep.get().to_le_bytes());
    bytes[10..].copy_from_slice(&ring.incarnation.0.to_le_bytes());
    bytes
}

pub(crate) fn put_ring(bytes: &mut Vec<u8>, ring: RingId) {
    bytes.extend(ring_bytes(ring));
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

/// A client without its daemon.
pub(super) fn put_client(bytes: &mut Vec<u8>, member: &Member) {
    bytes.extend(member.connection.0.to_le_bytes());
    put_name(bytes, &member.name);
}

pub(crate) const fn service_byte(service: Service) -> u8 {
    match service {
        Service::Reliable => 1,
        Service::Fifo => 2,
        Service::Causal => 3,
        Service::Agreed => 4,
        Service::Safe => 5,
    }
}

/// What is left to read.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub fn name<const MOST: usize>(&mut self) -> Option<Name<MOST>> {
        let len = usize::from(self.byte()?);
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Name::from_bytes(text).ok()
    }

    pub fn node(&mut self) -> Option<NodeId> {
        NodeId::new(self.u16()?)
    }

    pub fn process(&mut self) -> Option<Process> {
        let node = self.node()?;
        let incarnation = Incarnation(self.u64()?);
        (incarnation.0 <= Incarnation::MAX).then_some(Process { node, incarnation })
    }

    pub fn ring(&mut self) -> Option<RingId> {
        let ring_seq = self.u64()?;
        let Process { node, incarnation } = self.process()?;
        Some(RingId {
            ring_seq,
            rep: node,
            incarnation,
        })
    }

    pub fn destination(&mut self) -> Option<Destination> {
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

    pub fn client(&mut self, daemon: Process) -> Option<Member> {
        let connection = Connection(self.u64()?);
        let name = self.name()?;
        Some(Member {
            daemon,
            name,
            connection,
        })
    }

    pub fn service(&mut self) -> Option<Service> {
        Some(match self.byte()? {
            1 => Service::Reliable,
            2 => Service::Fifo,
            3 => Service::Causal,
            4 => Service::Agreed,
            5 => Service::Safe,
            _ => return None,
        })
    }
}
