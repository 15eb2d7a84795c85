//! Bytes and typed packets: the one door for untrusted bytes.
//!
//! [`decode`] is total: any bytes give a [`Packet`] or a [`DecodeError`], and a `Packet` needs no
//! further validity check. All numbers are little-endian. Every datagram starts with the same
//! 36 bytes and ends with room to seal it:
//!
//! | bytes | field |
//! |---|---|
//! | 0 | version, [`VERSION`] |
//! | 1 | kind (low four bits), service of a data packet (high four bits) |
//! | 2..4 | round of a data packet: low bits of the `token_seq` of its sender's visit |
//! | 4..8 | cluster |
//! | 8..16 | ring id: `ring_seq`; of a join, the largest its sender knows of |
//! | 16..24 | ring id: incarnation of the representative |
//! | 24..32 | `seq` of a data packet, `token_seq` of a token or commit token, else 0 |
//! | 32..34 | sender |
//! | 34..36 | ring id: representative; 0 where there is no ring yet |
//! | last | left 0 here, filled in and checked by whoever owns the sockets, who says how many they are; a
//! |  | checksum's [`SEAL_BYTES`] if he says nothing |

mod commit;
mod electorates;
mod error;
mod fast;
mod frame;
mod header;
mod join;
mod part;
mod token;

use alloc::vec::Vec;
use bytes::{Buf, Bytes};

use crate::contract::{Incarnation, NodeId, RingId, Seq, Service};
pub use commit::{Commit, MAX_HAVE_RANGES, MAX_MEMBERS, OldRing, Settings, have_ranges_for};
pub use electorates::{Counts, Electorate, MOST_ELECTORATES, read_electorates, write_electorates};
pub use error::DecodeError;
pub use fast::{FastControl, FastData, FastHead, FastPacket, FastPlaces, FastRequest, FastRun};
pub use frame::{
    FIRST_RECORD_BYTES, Frame, FrameCursor, MAX_FRAGMENTS, NEXT_RECORD_BYTES, Record, RecordKind,
    Records, WHOLE_RECORD_BYTES, push_first, push_next, push_whole, start_frame,
};
pub(crate) use frame::{put_varint, read_varint};
pub(crate) use header::is_data;
pub use header::{HEADER_BYTES, MAX_SEAL_BYTES, SEAL_BYTES, VERSION, is_for_data_path, is_token};
use header::{Header, Kind};
pub(crate) use header::{service_code, service_of};
pub use join::{Join, MAX_JOIN_PROCESSES, Presence};
pub use part::{Part, PartHead, part_bytes};
pub use token::{MAX_REQUEST_RANGES, RequestRange, Token, request_ranges_in};

/// What a data packet with a checksum adds to its frame, in bytes.
pub const DATA_OVERHEAD_BYTES: usize = HEADER_BYTES + SEAL_BYTES;

/// What wrapping a packet of an old ring adds to its frame, in bytes: the counter and the record of
/// the frame around it, and service, `seq` and sender of the packet inside.
pub const WRAPPER_BYTES: usize = 1 + WHOLE_RECORD_BYTES + 1 + 8 + 2;

/// A datagram, decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet {
    /// An ordered packet of the application's messages.
    Data(Data),
    /// The token of a ring.
    Token(Token),
    /// "I have something to send": wakes the holder of an idle ring's token.
    Hurry(Hurry),
    /// Who wants a ring with whom.
    Join(Join),
    /// The token that forms a ring.
    Commit(Commit),
    /// "I am here, in this ring."
    Presence(Presence),
}

/// An ordered packet (thesis §3.1.1.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// Which cluster it belongs to.
    pub cluster: u32,
    /// Which ring numbered it.
    pub ring: RingId,
    /// Its place in the order, from 1.
    pub seq: Seq,
    /// The member that initiated it, also when another member repeats it.
    pub sender: NodeId,
    /// Stamp of the sender's visit: see `ring::priority`.
    pub round: u16,
    /// The guarantee its messages ask for.
    pub service: Service,
    /// It carries a packet of an old ring during recovery (membership A8).
    pub encapsulated: bool,
    /// Its messages; or, as the one message, the packet of an old ring.
    pub frame: Frame,
}

/// Wakes the holder of an idle ring's token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hurry {
    /// Which cluster it belongs to.
    pub cluster: u32,
    /// Which ring.
    pub ring: RingId,
    /// Who has something to send.
    pub sender: NodeId,
}

/// Reads one datagram that ends with a checksum.
pub fn decode(bytes: Bytes) -> Result<Packet, DecodeError> {
    decode_sealed(bytes, SEAL_BYTES)
}

/// Reads one datagram whose last `seal_bytes` bytes are for whoever owns the sockets.
pub fn decode_sealed(bytes: Bytes, seal_bytes: usize) -> Result<Packet, DecodeError> {
    let (header, bytes) = read_header(bytes, seal_bytes)?;
    match header.kind {
        Kind::Data | Kind::Recovered => Data::read(&header, bytes).map(Packet::Data),
        Kind::Token => Token::read(&header, &bytes).map(Packet::Token),
        Kind::Hurry => {
            expect_empty(&bytes)?;
            let ring = header.ring()?;
            Ok(Packet::Hurry(Hurry {
                cluster: header.cluster,
                ring,
                sender: header.sender,
            }))
        }
        Kind::Join => Join::read(&header, &bytes).map(Packet::Join),
        Kind::Commit => Commit::read(&header, &bytes).map(Packet::Commit),
        Kind::Presence => Presence::read(&header, &bytes).map(Packet::Presence),
        // For the data path of a view, and for Ring Paxos: see `fast` and `part`.
        kind @ (Kind::FastData
        | Kind::FastControl
        | Kind::FastOwn
        | Kind::FastPlaced
        | Kind::Part) => Err(DecodeError::Kind(kind as u8)),
    }
}

/// The header of a datagram, and what is between it and the last `seal_bytes` bytes.
#[inline(always)]
fn read_header(mut bytes: Bytes, seal_bytes: usize) -> Result<(Header, Bytes), DecodeError> {
    let (header, body) = split_header(&bytes, seal_bytes)?;
    let end = HEADER_BYTES + body.len();
    bytes.truncate(end);
    bytes.advance(HEADER_BYTES);
    Ok((header, bytes))
}

/// The same, where what is between them is only looked at.
#[inline(always)]
fn split_header(bytes: &[u8], seal_bytes: usize) -> Result<(Header, &[u8]), DecodeError> {
    let sealed_at = bytes.len().checked_sub(seal_bytes);
    let bytes = &bytes[..sealed_at.ok_or(DecodeError::Short)?];
    let header = Header::read(bytes)?;
    Ok((header, &bytes[HEADER_BYTES..]))
}

fn read_incarnation(body: &mut &[u8]) -> Result<Incarnation, DecodeError> {
    let value = body.try_get_u64_le().map_err(|_| DecodeError::Short)?;
    if value > Incarnation::MAX {
        Err(DecodeError::Incarnation)
    } else {
        Ok(Incarnation(value))
    }
}

fn expect_empty(body: &[u8]) -> Result<(), DecodeError> {
    if body.is_empty() {
        Ok(())
    } else {
        Err(DecodeError::Trailing)
    }
}

impl Packet {
    /// Which cluster it belongs to.
    pub const fn cluster(&self) -> u32 {
        match self {
            Self::Data(data) => data.cluster,
            Self::Token(token) => token.cluster,
            Self::Hurry(hurry) => hurry.cluster,
            Self::Join(join) => join.cluster,
            Self::Commit(commit) => commit.cluster,
            Self::Presence(presence) => presence.cluster,
        }
    }

    /// The datagram, its checksum left 0.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_sealed(SEAL_BYTES)
    }

    /// The datagram, with `seal_bytes` at its end left 0 for whoever owns the sockets.
    pub fn encode_sealed(&self, seal_bytes: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + 64 + seal_bytes);
        self.encode_body(&mut out);
        out.resize(out.len() + seal_bytes, 0);
        out
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Data(data) => data.encode_body(out),
            Self::Token(token) => token.encode_into(out),
            Self::Hurry(hurry) => {
                Header::of_ring(Kind::Hurry, hurry.cluster, hurry.ring, hurry.sender).write(out);
            }
            Self::Join(join) => join.encode_into(out),
            Self::Commit(commit) => commit.encode_into(out),
            Self::Presence(presence) => presence.encode_into(out),
        }
    }
}

impl Data {
    /// Reads a datagram that [`is_data`], whose last `seal_bytes` bytes are for whoever owns the sockets: the
    /// short way for the most frequent kind.
    #[inline(always)]
    pub(crate) fn decode(bytes: Bytes, seal_bytes: usize) -> Result<Self, DecodeError> {
        let (header, bytes) = read_header(bytes, seal_bytes)?;
        Self::read(&header, bytes)
    }

    #[inline(always)]
    fn read(header: &Header, body: Bytes) -> Result<Self, DecodeError> {
        if header.seq == 0 {
            return Err(DecodeError::ZeroSeq);
        }
        Ok(Self {
            cluster: header.cluster,
            ring: header.ring()?,
            seq: header.seq,
            sender: header.sender,
            round: header.round,
            service: header.service()?,
            encapsulated: header.kind == Kind::Recovered,
            frame: Frame::parse(body)?,
        })
    }

    /// Appends the datagram to `out`, with `seal_bytes` at its end left 0 for whoever owns the sockets.
    pub fn encode_into(&self, out: &mut Vec<u8>, seal_bytes: usize) {
        self.encode_body(out);
        out.resize(out.len() + seal_bytes, 0);
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        let kind = if self.encapsulated {
            Kind::Recovered
        } else {
            Kind::Data
        };
        let mut header = Header::of_ring(kind, self.cluster, self.ring, self.sender);
        header.service = service_code(self.service);
        header.round = self.round;
        header.seq = self.seq;
        header.write(out);
        out.extend_from_slice(self.frame.bytes());
    }

    /// Size of the datagram, in bytes, of which the last `seal_bytes` are for whoever owns the sockets.
    pub fn encoded_len(&self, seal_bytes: usize) -> usize {
        HEADER_BYTES + self.frame.bytes().len() + seal_bytes
    }
}
