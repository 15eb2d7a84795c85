//! The 36 bytes at the start of every datagram, and the room at its end.

use alloc::vec::Vec;
use bytes::{Buf, Bytes};

use super::DecodeError;
use crate::contract::{Incarnation, NodeId, RingId, Service};

/// Version of the format. Its high half, `0xA`, stays the same in all versions, so that a node can tell one of another
/// version from garbage.
pub const VERSION: u8 = 0xA3;
/// Size of the common header.
pub const HEADER_BYTES: usize = 36;
/// The size of the room at the end of every datagram where nothing else is said: room for a checksum of the owner of
/// the sockets.
pub const SEAL_BYTES: usize = 4;
/// The most room that the owner of the sockets may ask for to seal datagrams.
pub const MAX_SEAL_BYTES: usize = 64;

/// The kind of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A packet of messages of a ring.
    Data = 0,
    /// The token.
    Token = 1,
    /// Wakes the holder of an idle ring's token.
    Hurry = 2,
    /// A join: the processes that its sender wants a ring with, and those it has given up.
    Join = 3,
    /// The token that forms a ring.
    Commit = 4,
    /// A merge-detect message: shows a ring to processes that are not on it.
    MergeDetect = 5,
    /// A data packet that carries a packet of an old ring.
    Recovered = 6,
    /// A packet of messages that FastCast orders.
    FastData = 8,
    /// Acknowledgements, places and requests of a member of a FastCast view.
    FastControl = 9,
    /// A packet of FastCast itself, without messages of the application.
    FastOwn = 10,
    /// A packet of messages of the leader, with its place.
    FastPlaced = 11,
    /// A part of a value of Ring Paxos.
    Part = 12,
}

/// The fields of the first 36 bytes: see [`super`].
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// The kind of the datagram.
    pub kind: Kind,
    /// The code of the service of a data packet, else 0.
    pub service: u8,
    /// Low bits of the `token_seq` of a data packet's sender's visit; of a part its index.
    pub round: u16,
    /// The cluster that the datagram belongs to.
    pub cluster: u32,
    /// The ring's number; of a part the size of its value.
    pub ring_seq: u64,
    /// The incarnation of the ring's representative; of a part that of its proposer.
    pub incarnation: u64,
    /// `seq` or `token_seq`; of a part the counter of its value.
    pub seq: u64,
    /// The sender; of a part the node of its proposer.
    pub sender: NodeId,
    /// The ring's representative, or 0; of a part the number of parts.
    pub rep: u16,
}

/// Whether a datagram is for the data path of a view, and not for the ring beside it: its kind is one of
/// those from 8 up.
pub fn is_for_data_path(datagram: &[u8]) -> bool {
    datagram.get(1).is_some_and(|kind| kind & 0x0f >= 8)
}

/// The header of a datagram, and the bytes between it and the last `seal_bytes` bytes.
#[inline(always)]
pub fn read_header(mut bytes: Bytes, seal_bytes: usize) -> Result<(Header, Bytes), DecodeError> {
    let (header, body) = split_header(&bytes, seal_bytes)?;
    let end = HEADER_BYTES + body.len();
    bytes.truncate(end);
    bytes.advance(HEADER_BYTES);
    Ok((header, bytes))
}

/// The same parts of a datagram that is only lent.
#[inline(always)]
pub fn split_header(bytes: &[u8], seal_bytes: usize) -> Result<(Header, &[u8]), DecodeError> {
    let sealed_at = bytes.len().checked_sub(seal_bytes);
    let bytes = &bytes[..sealed_at.ok_or(DecodeError::Short)?];
    let header = Header::read(bytes)?;
    Ok((header, &bytes[HEADER_BYTES..]))
}

/// The next eight bytes, as an incarnation.
pub fn read_incarnation(body: &mut &[u8]) -> Result<Incarnation, DecodeError> {
    let value = body.try_get_u64_le().map_err(|_| DecodeError::Short)?;
    if value > Incarnation::MAX {
        Err(DecodeError::Incarnation)
    } else {
        Ok(Incarnation(value))
    }
}

/// Refuses bytes that are left behind the last field.
pub fn expect_empty(body: &[u8]) -> Result<(), DecodeError> {
    if body.is_empty() {
        Ok(())
    } else {
        Err(DecodeError::Trailing)
    }
}

impl Header {
    /// The header of a datagram of a ring.
    pub fn of_ring(kind: Kind, cluster: u32, ring: RingId, sender: NodeId) -> Self {
        let mut header = Self::without_ring(kind, cluster, sender);
        header.ring_seq = ring.ring_seq;
        header.incarnation = ring.incarnation.0;
        header.rep = ring.rep.get();
        header
    }

    /// The header of a datagram that belongs to no ring.
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

    /// Reads the first 36 bytes.
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

    /// Appends the 36 bytes.
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

    /// The ring.
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

    /// The service of a data packet.
    #[inline(always)]
    pub const fn service(&self) -> Result<Service, DecodeError> {
        service_of(self.service)
    }
}

/// The service of this code.
pub const fn service_of(code: u8) -> Result<Service, DecodeError> {
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
        5 => Ok(Kind::MergeDetect),
        6 => Ok(Kind::Recovered),
        8 => Ok(Kind::FastData),
        9 => Ok(Kind::FastControl),
        10 => Ok(Kind::FastOwn),
        11 => Ok(Kind::FastPlaced),
        12 => Ok(Kind::Part),
        other => Err(DecodeError::Kind(other)),
    }
}

/// The code of a service in a header.
pub const fn service_code(service: Service) -> u8 {
    match service {
        Service::Reliable => 0,
        Service::Fifo => 1,
        Service::Causal => 2,
        Service::Agreed => 3,
        Service::Safe => 4,
    }
}
