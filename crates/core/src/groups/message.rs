//! The messages between daemons. Decoding is total: there is an answer for all bytes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::bytes::{put_client, put_destination, put_name};
use super::event::{Member, Received};
use super::hold::{self, Holding};
use super::name::{Destination, GroupName};
use crate::bytes::{Reader, put_ring, ring_bytes, service_byte};
use crate::contract::{Process, RingId};

/// The layout of everything here.
pub(super) const VERSION: u8 = 1;

/// The most destinations of one message.
pub const MOST_DESTINATIONS: usize = 100;

/// The most bytes that a message of a client grows by: version, kind, ring, client, service, flags,
/// number, kind, count, destinations.
pub const OVERHEAD_BYTES: usize =
    2 + 18 + 8 + 11 + 1 + 1 + 8 + 2 + 1 + MOST_DESTINATIONS * (1 + 1 + 31);

/// The most bytes of a piece of a daemon's knowledge of groups.
pub const PIECE_BYTES: usize = 16 << 10;

/// The most bytes of a part of a large message.
pub(super) const MOST_PART_BYTES: usize = PIECE_BYTES;

/// The largest payload of a client's message.
pub const MOST_PAYLOAD_BYTES: usize = 64 << 20;

/// The most pieces.
pub(super) const MOST_PIECES: u32 = 1 << 14;

const DATA: u8 = 1;
const JOIN: u8 = 2;
const LEAVE: u8 = 3;
const DISCONNECT: u8 = 4;
const STATE: u8 = 5;
const PART: u8 = 6;
pub(super) const HOLD: u8 = 7;

/// A request that a daemon orders for a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Request {
    /// A message, and whether its sender does without it.
    Data(Received, bool),
    Join(Member, GroupName),
    Leave(Member, GroupName),
    Disconnect(Member),
}

/// A piece of the knowledge of the sender's set of daemons of groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub index: u32,
    pub count: u32,
    pub bytes: Bytes,
}

/// A part of a message that is too large to be sent at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    /// Bytes of the message before it.
    pub offset: usize,
    /// Bytes of the whole message.
    pub total: usize,
    /// Never empty, and no more than the message has.
    pub bytes: Bytes,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Told {
    Request(Request),
    Piece(Piece),
    Part(Part),
    Holding(Holding),
}

/// The content of a message, and the configuration that it was sent for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stamped {
    pub ring: RingId,
    pub told: Told,
}

/// The place in a message of the ring that it is for.
pub(super) const RING: core::ops::Range<usize> = 2..20;

impl Request {
    /// The message, for a ring that [`stamp`] puts in.
    pub fn message(&self) -> Vec<u8> {
        let (head, payload) = self.divided();
        let mut bytes = head;
        bytes.extend_from_slice(&payload);
        bytes
    }

    /// The message without its payload, with room for that if it is small; and the payload.
    pub fn divided(&self) -> (Vec<u8>, Bytes) {
        let mut bytes = Vec::with_capacity(match self {
            Self::Data(data, _) => 72 + 34 * data.to.len() + data.payload.len().min(PIECE_BYTES),
            _ => 96,
        });
        bytes.extend([VERSION, self.kind()]);
        bytes.resize(RING.end, 0);
        match self {
            Self::Data(data, discard) => put_data(&mut bytes, data, *discard),
            Self::Join(member, group) | Self::Leave(member, group) => {
                put_client(&mut bytes, member);
                put_name(&mut bytes, group);
            }
            Self::Disconnect(member) => put_client(&mut bytes, member),
        }
        let payload = match self {
            Self::Data(data, _) => data.payload.clone(),
            _ => Bytes::new(),
        };
        (bytes, payload)
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Data(..) => DATA,
            Self::Join(..) => JOIN,
            Self::Leave(..) => LEAVE,
            Self::Disconnect(_) => DISCONNECT,
        }
    }
}

/// Puts the ring into a message that it is for.
pub(super) fn stamp(message: &mut [u8], ring: RingId) {
    message[RING].copy_from_slice(&ring_bytes(ring));
}

fn put_data(bytes: &mut Vec<u8>, data: &Received, discard: bool) {
    put_client(bytes, &data.sender);
    let flags =
        u8::from(discard) | u8::from(data.big_endian) << 1 | u8::from(data.number.is_some()) << 2;
    bytes.extend([service_byte(data.service), flags]);
    if let Some(number) = data.number {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(data.kind.to_le_bytes());
    bytes.push(data.to.len() as u8);
    for destination in data.to.iter() {
        put_destination(bytes, destination);
    }
}

/// The beginning of a part of a large message: its bytes follow.
pub(super) fn part(ring: RingId, offset: usize, total: usize, message: &mut Vec<u8>) {
    message.clear();
    message.extend([VERSION, PART]);
    put_ring(message, ring);
    message.extend((offset as u32).to_le_bytes());
    message.extend((total as u32).to_le_bytes());
}

/// The knowledge of groups as messages, with `most` bytes of it in each at most: all but the last may come in any
/// order.
pub(super) fn pieces(ring: RingId, state: &[u8], most: usize) -> Vec<Vec<u8>> {
    let chunks: Vec<&[u8]> = state.chunks(most).collect();
    let count = chunks.len() as u32;
    let messages = (0_u32..).zip(chunks).map(|(index, chunk)| {
        let mut message = Vec::with_capacity(RING.end + 8 + chunk.len());
        message.extend([VERSION, STATE]);
        put_ring(&mut message, ring);
        message.extend(index.to_le_bytes());
        message.extend(count.to_le_bytes());
        message.extend_from_slice(chunk);
        message
    });
    messages.collect()
}

/// The ring that a message of an application is for; `None` if it is something else.
pub(super) fn ring_of_data(message: &[u8]) -> Option<RingId> {
    message.starts_with(&[VERSION, DATA]).then_some(())?;
    Reader(message.get(RING)?).ring()
}

/// Reads a message of a daemon.
pub(super) fn parse(from: Process, payload: &Bytes) -> Option<Stamped> {
    let mut reader = Reader(payload);
    (reader.byte()? == VERSION).then_some(())?;
    let kind = reader.byte()?;
    let ring = reader.ring()?;
    let rest = |reader: &Reader<'_>| payload.slice(payload.len() - reader.0.len()..);
    let told = match kind {
        DATA => Told::Request(data(from, &mut reader, rest)?),
        STATE => Told::Piece(piece(&mut reader, rest)?),
        PART => Told::Part(read_part(&mut reader, rest)?),
        HOLD => Told::Holding(hold::read(from, &mut reader)?),
        JOIN | LEAVE | DISCONNECT => Told::Request(change(from, kind, &mut reader)?),
        _ => return None,
    };
    Some(Stamped { ring, told })
}

fn change(from: Process, kind: u8, reader: &mut Reader<'_>) -> Option<Request> {
    let member = reader.client(from)?;
    let request = match kind {
        JOIN => Request::Join(member, reader.name()?),
        LEAVE => Request::Leave(member, reader.name()?),
        _ => Request::Disconnect(member),
    };
    reader.0.is_empty().then_some(request)
}

fn data<'a>(
    from: Process,
    reader: &mut Reader<'a>,
    rest: impl Fn(&Reader<'a>) -> Bytes,
) -> Option<Request> {
    let sender = reader.client(from)?;
    let service = reader.service()?;
    let flags = reader.byte()?;
    (flags < 8).then_some(())?;
    let (discard, big_endian) = (flags & 1 != 0, flags & 2 != 0);
    let number = match flags & 4 {
        0 => None,
        _ => Some(reader.u64()?),
    };
    let kind = reader.u16()?;
    let count = usize::from(reader.byte()?);
    (1..=MOST_DESTINATIONS).contains(&count).then_some(())?;
    let to: Option<Arc<[Destination]>> = (0..count).map(|_| reader.destination()).collect();
    let received = Received {
        sender,
        to: to?,
        service,
        self_discard: discard,
        kind,
        big_endian,
        number,
        payload: rest(reader),
    };
    Some(Request::Data(received, discard))
}

fn read_part<'a>(reader: &mut Reader<'a>, rest: impl Fn(&Reader<'a>) -> Bytes) -> Option<Part> {
    let (offset, total) = (reader.u32()? as usize, reader.u32()? as usize);
    let bytes = rest(reader);
    let sized = !bytes.is_empty() && bytes.len() <= MOST_PART_BYTES;
    let fits = offset + bytes.len() <= total && total <= OVERHEAD_BYTES + MOST_PAYLOAD_BYTES;
    (sized && fits).then_some(Part {
        offset,
        total,
        bytes,
    })
}

fn piece<'a>(reader: &mut Reader<'a>, rest: impl Fn(&Reader<'a>) -> Bytes) -> Option<Piece> {
    let (index, count) = (reader.u32()?, reader.u32()?);
    let bytes = rest(reader);
    let fits = index < count && count <= MOST_PIECES;
    let sized = !bytes.is_empty() && bytes.len() <= PIECE_BYTES;
    (fits && sized).then_some(Piece {
        index,
        count,
        bytes,
    })
}
