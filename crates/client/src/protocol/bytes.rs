//! The fields of frames, read and written. Reading is total.

use bytes::{Buf, Bytes};
use rota_core::contract::{Incarnation, NodeId, RingId, Service};
use rota_core::groups::{GroupName, Name, ViewId};

use super::{DecodeError, Destination, EncodeError, MAX_DESTINATIONS, MAX_TEXT_BYTES, PrivateName};

/// The fewest bytes of a name: its length and a character.
const LEAST_NAME: usize = 2;

/// The most groups that a client has missed messages of: all clients of a daemon together are in no more. A name in
/// memory takes many times the bytes of a short one in a frame.
const MOST_SKIPPED_GROUPS: u32 = 16_384;

/// Appends one frame. `payload` is how many bytes of it the caller sends behind `out`. After an error
/// `out` is as it was.
pub(super) fn put_frame(
    out: &mut Vec<u8>,
    kind: u8,
    payload: usize,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.extend([0, 0, 0, 0, kind]);
    let written = body(out).and_then(|()| number(out.len() - start - 4 + payload));
    match written {
        Ok(length) => out[start..start + 4].copy_from_slice(&length.to_le_bytes()),
        Err(_) => out.truncate(start),
    }
    written.map(|_| ())
}

/// Makes a frame without its payload the head of one that differs in that only, and whose payload has so
/// many bytes. After an error `head` is as it was.
pub fn set_payload_bytes(head: &mut [u8], payload: usize) -> Result<(), EncodeError> {
    let length = number((head.len() + payload).saturating_sub(4))?;
    if let Some(first) = head.first_chunk_mut() {
        *first = length.to_le_bytes();
    }
    Ok(())
}

/// A length or count as frames say it.
pub(super) fn number(count: usize) -> Result<u32, EncodeError> {
    u32::try_from(count).map_err(|_| EncodeError::TooLong)
}

pub(super) fn put_u16(out: &mut Vec<u8>, number: u16) {
    out.extend(number.to_le_bytes());
}

pub(super) fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend(number.to_le_bytes());
}

pub(super) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

/// A text and its length; cut at 255 bytes, or before, where a character ends.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    out.push(text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn put_name<const MOST: usize>(out: &mut Vec<u8>, name: &Name<MOST>) {
    out.push(name.as_bytes().len() as u8);
    out.extend_from_slice(name.as_bytes());
}

pub(super) fn put_private(out: &mut Vec<u8>, name: &PrivateName) {
    let (client, daemon) = (name.client.as_bytes(), name.daemon.as_bytes());
    out.push((2 + client.len() + daemon.len()) as u8);
    out.push(b'#');
    out.extend_from_slice(client);
    out.push(b'#');
    out.extend_from_slice(daemon);
}

pub(super) fn put_destinations(
    out: &mut Vec<u8>,
    destinations: &[Destination],
) -> Result<(), EncodeError> {
    if !(1..=MAX_DESTINATIONS).contains(&destinations.len()) {
        return Err(EncodeError::Destinations);
    }
    out.push(destinations.len() as u8);
    for destination in destinations {
        put_destination(out, destination);
    }
    Ok(())
}

pub(super) fn put_destination(out: &mut Vec<u8>, destination: &Destination) {
    match destination {
        Destination::Group(name) => put_name(out, name),
        Destination::Client(name) => put_private(out, name),
    }
}

pub(super) const fn service_byte(service: Service) -> u8 {
    match service {
        Service::Reliable => 1,
        Service::Fifo => 2,
        Service::Causal => 3,
        Service::Agreed => 4,
        Service::Safe => 5,
    }
}

pub(super) fn put_view_id(out: &mut Vec<u8>, id: &ViewId) {
    put_ring(out, &id.ring);
    out.push(u8::from(id.next.is_some()));
    if let Some(next) = &id.next {
        put_ring(out, next);
    }
    put_u64(out, id.index);
}

fn put_ring(out: &mut Vec<u8>, ring: &RingId) {
    put_u64(out, ring.ring_seq);
    put_u16(out, ring.rep.get());
    put_u64(out, ring.incarnation.0);
}

/// The rest of a frame, still to be read.
pub(super) struct Reader(Bytes);

impl Reader {
    pub const fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let first = self.0.first_chunk().copied();
        let first = first.ok_or(DecodeError::Short)?;
        self.0.advance(N);
        Ok(first)
    }

    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.take().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.take().map(u32::from_le_bytes)
    }

    /// A number that is not written where it is 0.
    pub fn optional_u32(&mut self) -> Result<u32, DecodeError> {
        match self.0.first_chunk() {
            Some([0, 0, 0, 0]) | None => Ok(0),
            Some(_) => self.u32(),
        }
    }

    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn magic<const N: usize>(&mut self, magic: [u8; N]) -> Result<(), DecodeError> {
        let found = self.take()?;
        if found == magic {
            Ok(())
        } else {
            Err(DecodeError::Magic)
        }
    }

    /// Bits of which only `known` may be set.
    pub fn flags(&mut self, known: u8) -> Result<u8, DecodeError> {
        let flags = self.u8()?;
        if flags & !known == 0 {
            Ok(flags)
        } else {
            Err(DecodeError::Flags(flags))
        }
    }

    /// A list of things that have at least `least` bytes each. Its room is for those that can have
    /// arrived, whatever their number is said to be.
    pub fn list<T>(
        &mut self,
        least: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.u32()? as usize;
        if count > self.0.len() / least {
            return Err(DecodeError::Short);
        }
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }

    /// The groups of which a client has missed messages.
    pub fn skipped_groups(&mut self) -> Result<Vec<GroupName>, DecodeError> {
        match self.0.first_chunk().copied().map(u32::from_le_bytes) {
            Some(count) if count > MOST_SKIPPED_GROUPS => Err(DecodeError::Groups(count)),
            _ => self.list(LEAST_NAME, Self::group),
        }
    }

    /// A length and so many bytes, as `read` understands them.
    fn counted<T>(
        &mut self,
        read: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let length = usize::from(self.u8()?);
        let value = read(self.0.get(..length).ok_or(DecodeError::Short)?)?;
        self.0.advance(length);
        Ok(value)
    }

    pub fn text(&mut self) -> Result<String, DecodeError> {
        self.counted(|bytes| {
            let text = str::from_utf8(bytes).map_err(|_| DecodeError::Text)?;
            Ok(text.to_owned())
        })
    }

    pub fn name<const MOST: usize>(&mut self) -> Result<Name<MOST>, DecodeError> {
        self.counted(|bytes| Ok(Name::from_bytes(bytes)?))
    }

    /// A name, or nothing where it is empty.
    pub fn optional_name<const MOST: usize>(&mut self) -> Result<Option<Name<MOST>>, DecodeError> {
        self.counted(|bytes| match bytes {
            [] => Ok(None),
            bytes => Ok(Some(Name::from_bytes(bytes)?)),
        })
    }

    pub fn group(&mut self) -> Result<GroupName, DecodeError> {
        self.name()
    }

    pub fn private(&mut self) -> Result<PrivateName, DecodeError> {
        self.counted(|bytes| Ok(PrivateName::from_bytes(bytes)?))
    }

    /// A private name, or nothing where it is empty.
    pub fn optional_private(&mut self) -> Result<Option<PrivateName>, DecodeError> {
        self.counted(|bytes| match bytes {
            [] => Ok(None),
            bytes => Ok(Some(PrivateName::from_bytes(bytes)?)),
        })
    }

    pub fn destinations(&mut self) -> Result<Vec<Destination>, DecodeError> {
        let count = self.u8()?;
        if !(1..=MAX_DESTINATIONS).contains(&usize::from(count)) {
            return Err(DecodeError::Destinations(count));
        }
        let mut destinations = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            destinations.push(self.destination()?);
        }
        Ok(destinations)
    }

    pub fn destination(&mut self) -> Result<Destination, DecodeError> {
        self.counted(|bytes| Ok(Destination::from_bytes(bytes)?))
    }

    pub fn service(&mut self) -> Result<Service, DecodeError> {
        match self.u8()? {
            1 => Ok(Service::Reliable),
            2 => Ok(Service::Fifo),
            3 => Ok(Service::Causal),
            4 => Ok(Service::Agreed),
            5 => Ok(Service::Safe),
            other => Err(DecodeError::Service(other)),
        }
    }

    pub fn view_id(&mut self) -> Result<ViewId, DecodeError> {
        let ring = self.ring()?;
        let next = match self.flags(1)? {
            0 => None,
            _ => Some(self.ring()?),
        };
        let index = self.u64()?;
        Ok(ViewId { ring, next, index })
    }

    fn ring(&mut self) -> Result<RingId, DecodeError> {
        Ok(RingId {
            ring_seq: self.u64()?,
            rep: NodeId::new(self.u16()?).ok_or(DecodeError::Node)?,
            incarnation: Incarnation(self.u64()?),
        })
    }

    /// All that is left, without copying it.
    pub fn rest(self) -> Bytes {
        self.0
    }

    /// Nothing may be left.
    pub fn end(&self) -> Result<(), DecodeError> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}
