//! Bytes and typed packets of the ring: the one door for untrusted bytes.
//!
//! [`decode`] is total: any bytes give a [`Packet`] or a [`DecodeError`], and a `Packet` needs no
//! further validity check. `rota_core::wire` has the header that each datagram begins with.

mod commit;
mod electorates;
mod join;
mod token;

use alloc::vec::Vec;
use bytes::Bytes;
use rota_core::burst::BurstBuilder;
use rota_core::contract::{NodeId, RingId, Seq, Service};
use rota_core::wire::{
    DecodeError, Frame, HEADER_BYTES, Header, Kind, SEAL_BYTES, WHOLE_RECORD_BYTES, expect_empty,
    read_header, service_code,
};

pub use commit::{Commit, MAX_HAVE_RANGES, OldRing, Settings, have_ranges_for};
pub use electorates::{Counts, Electorate, MOST_ELECTORATES, read_electorates, write_electorates};
pub use join::{Join, MAX_JOIN_PROCESSES, MergeDetect};
pub use token::{MAX_REQUEST_RANGES, Token, request_ranges_in};

/// The bytes that a data packet with a checksum has beside its frame.
pub const DATA_OVERHEAD_BYTES: usize = HEADER_BYTES + SEAL_BYTES;

/// The bytes that the wrapping of a packet of an old ring adds to its frame: the counter and the record of the frame
/// around it, and service, `seq` and sender of the packet inside.
pub const WRAPPER_BYTES: usize = 1 + WHOLE_RECORD_BYTES + 1 + 8 + 2;

/// Whether a datagram claims to be a token, for measurements of tokens.
pub fn is_token(datagram: &[u8]) -> bool {
    datagram
        .get(1)
        .is_some_and(|kind| kind & 0x0f == Kind::Token as u8)
}

/// Whether a datagram claims to be a packet of a ring.
pub fn is_data(datagram: &[u8]) -> bool {
    const DATA: u8 = Kind::Data as u8;
    const RECOVERED: u8 = Kind::Recovered as u8;
    let kind = datagram.get(1).map(|kind| kind & 0x0f);
    matches!(kind, Some(DATA | RECOVERED))
}

/// A datagram, decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet {
    /// An ordered packet of the application's messages.
    Data(Data),
    /// The token of a ring.
    Token(Token),
    /// "I have something to send": wakes the holder of an idle ring's token.
    Hurry(Hurry),
    /// "These are the processes I want a ring with": sent while gathering.
    Join(Join),
    /// The token that forms a ring.
    Commit(Commit),
    /// "I am here, in this ring."
    MergeDetect(MergeDetect),
}

/// An ordered packet (thesis §3.1.1.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// The cluster that the packet belongs to.
    pub cluster: u32,
    /// The ring that numbered it.
    pub ring: RingId,
    /// Its place in the order, from 1.
    pub seq: Seq,
    /// The member that initiated it, also when another member repeats it.
    pub sender: NodeId,
    /// Stamp of the sender's visit: see `ring::priority`.
    pub round: u16,
    /// The guarantee its messages ask for.
    pub service: Service,
    /// Whether it carries a packet of an old ring during recovery (membership A8).
    pub encapsulated: bool,
    /// Its messages; or, as the one message, the packet of an old ring.
    pub frame: Frame,
}

/// Wakes the holder of an idle ring's token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hurry {
    /// The cluster that the packet belongs to.
    pub cluster: u32,
    /// The ring whose token is wanted.
    pub ring: RingId,
    /// The member that has something to send.
    pub sender: NodeId,
}

/// Reads one datagram that ends with a checksum.
pub fn decode(bytes: Bytes) -> Result<Packet, DecodeError> {
    decode_sealed(bytes, SEAL_BYTES)
}

/// Reads one datagram whose last `seal_bytes` bytes are for the owner of the sockets.
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
        Kind::MergeDetect => MergeDetect::read(&header, &bytes).map(Packet::MergeDetect),
        // For the data path of a view, and for Ring Paxos: see `fast` and `part`.
        kind @ (Kind::FastData
        | Kind::FastControl
        | Kind::FastOwn
        | Kind::FastPlaced
        | Kind::Part) => Err(DecodeError::Kind(kind as u8)),
    }
}

impl Packet {
    /// The cluster that the packet belongs to.
    pub const fn cluster(&self) -> u32 {
        match self {
            Self::Data(data) => data.cluster,
            Self::Token(token) => token.cluster,
            Self::Hurry(hurry) => hurry.cluster,
            Self::Join(join) => join.cluster,
            Self::Commit(commit) => commit.cluster,
            Self::MergeDetect(presence) => presence.cluster,
        }
    }

    /// The datagram, its checksum left 0.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_sealed(SEAL_BYTES)
    }

    /// The datagram, with `seal_bytes` at its end left 0 for the owner of the sockets.
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
            Self::MergeDetect(presence) => presence.encode_into(out),
        }
    }
}

impl Data {
    /// Reads a datagram that [`is_data`], whose last `seal_bytes` bytes are for the owner of the sockets: the
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

    /// Appends the datagram to `out`, with `seal_bytes` at its end left 0 for the owner of the sockets.
    pub fn encode_into(&self, out: &mut Vec<u8>, seal_bytes: usize) {
        self.encode_body(out);
        out.resize(out.len() + seal_bytes, 0);
    }

    /// Lays the packet out behind others; `expected` says how many more of its size may follow.
    pub(crate) fn append_to(&self, bursts: &mut BurstBuilder, expected: usize, seal_bytes: usize) {
        let len = self.encoded_len(seal_bytes);
        bursts.push_with(len, expected, |out| self.encode_into(out, seal_bytes));
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

    /// Size of the datagram, in bytes, of which the last `seal_bytes` are for the owner of the sockets.
    pub fn encoded_len(&self, seal_bytes: usize) -> usize {
        HEADER_BYTES + self.frame.bytes().len() + seal_bytes
    }
}
