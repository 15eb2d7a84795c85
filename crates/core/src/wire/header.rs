//! The 36 bytes at the start of every datagram, and the room at its end.

use alloc::vec::Vec;

use super::DecodeError;
use crate::contract::{Incarnation, NodeId, RingId, Service};

/// Version of the format.
pub const VERSION: u8 = 0xA3;
/// Size of the common header.
pub const HEADER_BYTES: usize = 36;
/// Size of what every datagram ends with where nothing else is said: room for the checksum of whoever
/// owns the sockets.
pub const SEAL_BYTES: usize = 4;
/// The most room that whoever owns the sockets may ask for to seal datagrams.
pub const MAX_SEAL_BYTES: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Data = 0,
    Token = 1,
    Hurry = 2,
    Join = 3,
    Commit = 4,
    Presence = 5,
    /// A data packet that carries a packet of an old ring.
    Recovered = 6,
    /// A packet of messages that FastCast orders.
    FastData = 8,
    /// What a member of a FastCast view tells the others.
    FastControl = 9,
    /// A packet of FastCast's own.
    FastOwn = 10,
    /// A packet of messages of the leader, with its place.
    FastPlaced = 11,
    /// A part of a value of Ring Paxos.
    Part = 12,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub kind: Kind,
    pub service: u8,
    pub round: u16,
    pub cluster: u32,
    pub ring_seq: u64,
    pub incarnation: u64,
    pub seq: u64,
    pub sender: NodeId,
    pub rep: u16,
}

/// Whether a datagram claims to be a token, for whoever measures how long it takes.
pub fn is_token(datagram: &[u8]) -> bool {
    datagram
        .get(1)
        .is_some_and(|kind| kind & 0x0f == Kind::Token as u8)
}

/// Whether a datagram claims to be a packet of a ring.
pub(crate) fn is_data(datagram: &[u8]) -> bool {
    const DATA: u8 = Kind::Data as u8;
    const RECOVERED: u8 = Kind::Recovered as u8;
    let kind = datagram.get(1).map(|kind| kind & 0x0f);
    matches!(kind, Some(DATA | RECOVERED))
}

/// Whether a datagram is for the data path of a view, and not for the ring beside it: its kind is one of
/// those from 8 up.
pub fn is_for_data_path(datagram: &[u8]) -> bool {
    datagram.get(1).is_some_and(|kind| kind & 0x0f >= 8)
}

impl Header {
    pub fn of_ring(kind: Kind, cluster: u32, ring: RingId, sender: NodeId) -> Self {
        let mut header = Self::without_ring(kind, cluster, sender);
        header.ring_seq = ring.ring_seq;
        header.incarnation = ring.incarnation.0;
        header.rep = ring.rep.get();
        header
    }

    pub const fn without_ring(kind: Kind, cluster: u32, sender: NodeId) -> Self {
        Self {
            kind,
            service: 0,
            round: 0,
            cluster,
            ring_seq: 0,
            incarnation: 0,
            seq: 0,
            sender,
            rep: 0,
        }
    }

    #[inline(always)]
    pub fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(DecodeError::Short)?;
        if bytes[0] != VERSION {
            return Err(DecodeError::Version(bytes[0]));
        }
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Ok(Self {
            kind: kind(bytes[1] & 0x0f)?,
            service: bytes[1] >> 4,
            round: u16_at(2),
            cluster: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            ring_seq: u64_at(8),
            incarnation: u64_at(16),
            seq: u64_at(24),
            sender: NodeId::new(u16_at(32)).ok_or(DecodeError::ZeroNode)?,
            rep: u16_at(34),
        })
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.kind as u8 | (self.service << 4);
        bytes[2..4].copy_from_slice(&self.round.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.cluster.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.ring_seq.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.seq.to_le_bytes());
        bytes[32..34].copy_from_slice(&self.sender.get().to_le_bytes());
        bytes[34..36].copy_from_slice(&self.rep.to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    #[inline(always)]
    pub fn ring(&self) -> Result<RingId, DecodeError> {
        if self.incarnation > Incarnation::MAX {
            return Err(DecodeError::Incarnation);
        }
        Ok(RingId {
            ring_seq: self.ring_seq,
            rep: NodeId::new(self.rep).ok_or(DecodeError::ZeroNode)?,
            incarnation: Incarnation(self.incarnation),
        })
    }

    #[inline(always)]
    pub const fn service(&self) -> Result<Service, DecodeError> {
        service_of(self.service)
    }
}

pub(crate) const fn service_of(code: u8) -> Result<Service, DecodeError> {
    match code {
        0 => Ok(Service::Reliable),
        1 => Ok(Service::Fifo),
        2 => Ok(Service::Causal),
        3 => Ok(Service::Agreed),
        4 => Ok(Service::Safe),
        other => Err(DecodeError::Service(other)),
    }
}

#[inline(always)]
const fn kind(code: u8) -> Result<Kind, DecodeError> {
    match code {
        0 => Ok(Kind::Data),
        1 => Ok(Kind::Token),
        2 => Ok(Kind::Hurry),
        3 => Ok(Kind::Join),
        4 => Ok(Kind::Commit),
        5 => Ok(Kind::Presence),
        6 => Ok(Kind::Recovered),
        8 => Ok(Kind::FastData),
        9 => Ok(Kind::FastControl),
        10 => Ok(Kind::FastOwn),
        11 => Ok(Kind::FastPlaced),
        12 => Ok(Kind::Part),
        other => Err(DecodeError::Kind(other)),
    }
}

pub(crate) const fn service_code(service: Service) -> u8 {
    match service {
        Service::Reliable => 0,
        Service::Fifo => 1,
        Service::Causal => 2,
        Service::Agreed => 3,
        Service::Safe => 4,
    }
}
