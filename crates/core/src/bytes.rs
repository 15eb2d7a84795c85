//! Reading and writing of the fields of messages and records. Reading is total.

use alloc::vec::Vec;

use crate::contract::{Incarnation, NodeId, Process, RingId, Service};

/// A process: its node and its incarnation, 10 bytes.
pub fn put_process(bytes: &mut Vec<u8>, process: Process) {
    bytes.extend(process.node.get().to_le_bytes());
    bytes.extend(process.incarnation.0.to_le_bytes());
}

/// A ring's name.
pub fn ring_bytes(ring: RingId) -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..8].copy_from_slice(&ring.ring_seq.to_le_bytes());
    bytes[8..10].copy_from_slice(&ring.rep.get().to_le_bytes());
    bytes[10..].copy_from_slice(&ring.incarnation.0.to_le_bytes());
    bytes
}

/// A ring's name, 18 bytes.
pub fn put_ring(bytes: &mut Vec<u8>, ring: RingId) {
    bytes.extend(ring_bytes(ring));
}

/// The byte of a service on disks and between daemons.
pub const fn service_byte(service: Service) -> u8 {
    match service {
        Service::Reliable => 1,
        Service::Fifo => 2,
        Service::Causal => 3,
        Service::Agreed => 4,
        Service::Safe => 5,
    }
}

/// The bytes that are left to read.
pub struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    /// The next `N` bytes. `None` where there are fewer.
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next byte. `None` where there is none.
    pub fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    /// A number of two bytes. `None` where there is none.
    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    /// A number of four bytes. `None` where there is none.
    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    /// A number of eight bytes. `None` where there is none.
    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// A byte that is 0 or 1. `None` where there is none.
    pub fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// A node. `None` where there is none.
    pub fn node(&mut self) -> Option<NodeId> {
        NodeId::new(self.u16()?)
    }

    /// A process, as [`put_process`] writes it. `None` where there is none.
    pub fn process(&mut self) -> Option<Process> {
        let node = self.node()?;
        let incarnation = Incarnation(self.u64()?);
        (incarnation.0 <= Incarnation::MAX).then_some(Process { node, incarnation })
    }

    /// A ring's name, as [`put_ring`] writes it. `None` where there is none.
    pub fn ring(&mut self) -> Option<RingId> {
        let ring_seq = self.u64()?;
        let Process { node, incarnation } = self.process()?;
        Some(RingId {
            ring_seq,
            rep: node,
            incarnation,
        })
    }

    /// A service, as [`service_byte`] writes it. `None` where there is none.
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

/// Appends bytes behind their number.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Reads bytes as [`put_bytes`] writes them. `None` where they are not there.
pub fn take_bytes<'a>(bytes: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = bytes.u32()? as usize;
    let (taken, rest) = bytes.0.split_at_checked(length)?;
    bytes.0 = rest;
    Some(taken)
}

/// Appends bytes, or the sign that there are none.
pub fn put_some(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    out.push(u8::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        put_bytes(out, bytes);
    }
}

/// Reads bytes or none as [`put_some`] writes them. `None` where they are not there.
pub fn take_some<'a>(bytes: &mut Reader<'a>) -> Option<Option<&'a [u8]>> {
    Some(match bytes.flag()? {
        true => Some(take_bytes(bytes)?),
        false => None,
    })
}

/// Reads a list. `None` where one of its items is not there. Memory for the list is taken as its items come in.
pub fn take_list<'a, T>(
    bytes: &mut Reader<'a>,
    mut item: impl FnMut(&mut Reader<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = bytes.u32()?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(item(bytes)?);
    }
    Some(list)
}
