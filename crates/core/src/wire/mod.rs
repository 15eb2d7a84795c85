//! Bytes and typed packets: the one door for untrusted bytes.
//!
//! [`decode`] is total: any bytes give a [`Packet`] or a [`DecodeError`], and a `Packet` needs no
//! further validity check. All numbers are little-endian. Every datagram starts with the same
//! 36 bytes and ends with the same 4:
//!
//! | bytes | field |
//! |---|---|
//! | 0 | version, [`VERSION`] |
//! | 1 | kind (low four bits), service of a data packet (high four bits) |
//! | 2..4 | round of a data packet: low bits of the `token_seq` of its sender's visit |
//! | 4..8 | cluster |
//! | 8..16 | ring id: `ring_seq` |
//! | 16..24 | ring id: incarnation of the representative |
//! | 24..32 | `seq` of a data packet, `token_seq` of a token, else 0 |
//! | 32..34 | sender |
//! | 34..36 | ring id: representative; 0 where there is no ring yet |
//! | last 4 | checksum: left 0 here, filled in and checked by whoever owns the sockets |

mod error;
mod frame;
mod header;
mod token;

use alloc::vec::Vec;
use bytes::{Buf, Bytes};

use crate::contract::{Incarnation, NodeId, Process, RingId, Seq, Service};
pub use error::DecodeError;
pub use frame::{
    FIRST_RECORD_BYTES, Frame, FrameCursor, MAX_FRAGMENTS, NEXT_RECORD_BYTES, Record, RecordKind,
    Records, WHOLE_RECORD_BYTES, push_first, push_next, push_whole, start_frame,
};
pub use header::{HEADER_BYTES, SEAL_BYTES, VERSION};
use header::{Header, Kind};
pub use token::{MAX_REQUEST_RANGES, RequestRange, Token, request_ranges_in};

/// What a data packet adds to its frame, in bytes.
pub const DATA_OVERHEAD_BYTES: usize = HEADER_BYTES + SEAL_BYTES;

/// A datagram, decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet {
    /// An ordered packet of the application's messages.
    Data(Data),
    /// The token of a ring.
    Token(Token),
    /// "I have something to send": wakes the holder of an idle ring's token.
    Hurry(Hurry),
    /// "Here I am": sent by a starting node until its ring runs.
    Hello(Hello),
    /// The representative's announcement of a formed ring.
    Form(Form),
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
    /// Its messages.
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

/// A starting node's message to the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Which cluster it belongs to.
    pub cluster: u32,
    /// Who is starting.
    pub process: Process,
    /// The ring it has installed, once it has one.
    pub installed: Option<RingId>,
}

/// A ring and all its members, from its representative.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    /// Which cluster it belongs to.
    pub cluster: u32,
    /// The ring.
    pub ring: RingId,
    /// Its members, by ascending id.
    pub members: Vec<Process>,
}

/// Reads one datagram.
pub fn decode(mut bytes: Bytes) -> Result<Packet, DecodeError> {
    let sealed_at = bytes.len().checked_sub(SEAL_BYTES);
    bytes.truncate(sealed_at.ok_or(DecodeError::Short)?);
    let header = Header::read(&bytes)?;
    bytes.advance(HEADER_BYTES);
    match header.kind {
        Kind::Data => decode_data(&header, bytes),
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
        Kind::Hello => decode_hello(&header, &bytes),
        Kind::Form => decode_form(&header, &bytes),
    }
}

fn decode_data(header: &Header, body: Bytes) -> Result<Packet, DecodeError> {
    if header.seq == 0 {
        return Err(DecodeError::ZeroSeq);
    }
    Ok(Packet::Data(Data {
        cluster: header.cluster,
        ring: header.ring()?,
        seq: header.seq,
        sender: header.sender,
        round: header.round,
        service: header.service()?,
        frame: Frame::parse(body)?,
    }))
}

fn decode_hello(header: &Header, mut body: &[u8]) -> Result<Packet, DecodeError> {
    let incarnation = read_incarnation(&mut body)?;
    expect_empty(body)?;
    let installed = if header.rep == 0 {
        None
    } else {
        Some(header.ring()?)
    };
    let process = Process {
        node: header.sender,
        incarnation,
    };
    Ok(Packet::Hello(Hello {
        cluster: header.cluster,
        process,
        installed,
    }))
}

fn decode_form(header: &Header, mut body: &[u8]) -> Result<Packet, DecodeError> {
    let count = body.try_get_u16_le().map_err(|_| DecodeError::Short)?;
    let mut members: Vec<Process> = Vec::new();
    for _ in 0..count {
        let node = body.try_get_u16_le().map_err(|_| DecodeError::Short)?;
        let node = NodeId::new(node).ok_or(DecodeError::ZeroNode)?;
        if members.last().is_some_and(|last| last.node >= node) {
            return Err(DecodeError::MembersNotAscending);
        }
        members.push(Process {
            node,
            incarnation: read_incarnation(&mut body)?,
        });
    }
    expect_empty(body)?;
    Ok(Packet::Form(Form {
        cluster: header.cluster,
        ring: header.ring()?,
        members,
    }))
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
    /// The datagram, its checksum left 0.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + 64);
        self.encode_body(&mut out);
        out.extend_from_slice(&[0; SEAL_BYTES]);
        out
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Data(data) => data.encode_body(out),
            Self::Token(token) => token.encode_into(out),
            Self::Hurry(hurry) => {
                Header::of_ring(Kind::Hurry, hurry.cluster, hurry.ring, hurry.sender).write(out);
            }
            Self::Hello(hello) => hello.encode_into(out),
            Self::Form(form) => form.encode_into(out),
        }
    }
}

impl Data {
    /// Appends the datagram to `out`, its checksum left 0.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        self.encode_body(out);
        out.extend_from_slice(&[0; SEAL_BYTES]);
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        let mut header = Header::of_ring(Kind::Data, self.cluster, self.ring, self.sender);
        header.service = header::service_code(self.service);
        header.round = self.round;
        header.seq = self.seq;
        header.write(out);
        out.extend_from_slice(self.frame.bytes());
    }

    /// Size of the datagram, in bytes.
    pub fn encoded_len(&self) -> usize {
        DATA_OVERHEAD_BYTES + self.frame.bytes().len()
    }
}

impl Hello {
    fn encode_into(&self, out: &mut Vec<u8>) {
        let header = match self.installed {
            Some(ring) => Header::of_ring(Kind::Hello, self.cluster, ring, self.process.node),
            None => Header::without_ring(Kind::Hello, self.cluster, self.process.node),
        };
        header.write(out);
        out.extend_from_slice(&self.process.incarnation.0.to_le_bytes());
    }
}

impl Form {
    fn encode_into(&self, out: &mut Vec<u8>) {
        Header::of_ring(Kind::Form, self.cluster, self.ring, self.ring.rep).write(out);
        let count = u16::try_from(self.members.len()).expect("a ring has at most 128 members");
        out.extend_from_slice(&count.to_le_bytes());
        for member in &self.members {
            out.extend_from_slice(&member.node.get().to_le_bytes());
            out.extend_from_slice(&member.incarnation.0.to_le_bytes());
        }
    }
}
