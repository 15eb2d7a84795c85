//! The requests of a client, read from bytes.

use bytes::Bytes;

use super::bits::{DISCONNECT, GROUPS, JOIN, KINDS, LEAVE, SELF_DISCARD};
use super::order::MARK;
use super::{
    ByteOrder, GroupName, HEADER_BYTES, Hint, MAX_GROUPS, MAX_MESSAGE_BYTES, NAME_BYTES, Name,
    RequestError, Service,
};

/// A request of a connected client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Send a message.
    Multicast(Multicast),
    /// Take the client into a group. Nothing changes if it is in the group already.
    Join(GroupName),
    /// Take the client out of a group. Nothing changes if it is not in the group.
    Leave(GroupName),
    /// The client goes. Closing the socket says the same.
    Disconnect,
}

/// A message to groups and to single clients, mixed as its sender likes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Multicast {
    /// The guarantee asked for.
    pub service: Service,
    /// The message is not to come back to this session.
    pub self_discard: bool,
    /// The destinations; a receiver that matches several gets the message once. Names without an owner have no
    /// receiver.
    pub groups: Vec<Name>,
    /// The application's type, in the sender's byte order.
    pub hint: Hint,
    /// The application's bytes.
    pub data: Bytes,
}

/// The result of reading one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A request, and the number of its bytes.
    Request(Request, usize),
    /// The start of a request of this many bytes; while its header is incomplete, the bytes of a header.
    Needs(usize),
}

/// Reads one request of the session whose private group is `own` from the start of `bytes`.
///
/// The header is checked as soon as it is there, so no reader waits for the bytes of a wrong request.
pub fn decode(bytes: &Bytes, own: &Name) -> Result<Decoded, RequestError> {
    let length = length(bytes, own)?;
    if bytes.len() < length {
        return Ok(Decoded::Needs(length));
    }
    Ok(Decoded::Request(read(&bytes.slice(..length), own)?, length))
}

/// The length of the request that begins with these bytes; of its header, if the header is not whole yet.
pub(super) fn length(bytes: &[u8], own: &Name) -> Result<usize, RequestError> {
    match bytes.first_chunk() {
        None => Ok(HEADER_BYTES),
        Some(header) => Ok(Header::read(header, own)?.length()),
    }
}

/// Reads a request that has exactly the bytes of its [`length`].
pub(super) fn read(bytes: &Bytes, own: &Name) -> Result<Request, RequestError> {
    let header = bytes.first_chunk().ok_or(RequestError::Length(0))?;
    let header = Header::read(header, own)?;
    let data_at = HEADER_BYTES + header.groups * NAME_BYTES;
    let (slots, _) = bytes[HEADER_BYTES..data_at].as_chunks::<NAME_BYTES>();
    let groups: Result<Vec<Name>, _> = slots.iter().map(Name::from_slot).collect();
    let groups = groups?;
    match header.kind {
        Kind::Multicast(service) => Ok(Request::Multicast(Multicast {
            service,
            self_discard: header.self_discard,
            groups,
            hint: header.hint,
            data: bytes.slice(data_at..),
        })),
        Kind::Join => Ok(Request::Join(only(&groups)?.try_into()?)),
        Kind::Leave => Ok(Request::Leave(only(&groups)?.try_into()?)),
        Kind::Disconnect if only(&groups)? == *own => Ok(Request::Disconnect),
        Kind::Disconnect => Err(RequestError::Target),
    }
}

fn only(groups: &[Name]) -> Result<Name, RequestError> {
    match groups {
        [group] => Ok(*group),
        _ => Err(RequestError::Target),
    }
}

enum Kind {
    Multicast(Service),
    Join,
    Leave,
    Disconnect,
}

impl Kind {
    /// The request that the type asks for. Bits between kinds are those of daemons and libraries: the one that could do
    /// harm is an error, the others are ignored.
    fn of(bits: u32) -> Result<Self, RequestError> {
        if bits & GROUPS != 0 {
            return Err(RequestError::DaemonsOnly(bits));
        }
        match bits & KINDS {
            JOIN => Ok(Self::Join),
            LEAVE => Ok(Self::Leave),
            DISCONNECT => Ok(Self::Disconnect),
            bit => match Service::of_bit(bit) {
                Some(service) => Ok(Self::Multicast(service)),
                None => Err(RequestError::Kind(bits)),
            },
        }
    }
}

/// The header of a request, judged.
struct Header {
    kind: Kind,
    self_discard: bool,
    groups: usize,
    hint: Hint,
    data: usize,
}

impl Header {
    /// Bytes of the whole request.
    const fn length(&self) -> usize {
        HEADER_BYTES + self.groups * NAME_BYTES + self.data
    }

    fn read(bytes: &[u8; HEADER_BYTES], own: &Name) -> Result<Self, RequestError> {
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let marked = word(0);
        let order = ByteOrder::marked(marked);
        let order = order.ok_or(RequestError::Mark(u32::from_le_bytes(marked)))?;
        let bits = order.get(marked) & !MARK;
        let kind = Kind::of(bits)?;
        let mut sender = [0; NAME_BYTES];
        sender.copy_from_slice(&bytes[4..4 + NAME_BYTES]);
        if Name::from_slot(&sender) != Ok(*own) {
            return Err(RequestError::Sender);
        }
        let (groups, data) = lengths(order.get(word(36)), order.get(word(44)))?;
        Ok(Self {
            kind,
            self_discard: bits & SELF_DISCARD != 0,
            groups,
            hint: Hint::read(word(40)).ok_or(RequestError::Hint(word(40)))?,
            data,
        })
    }
}

/// The number of groups and the bytes of data, checked against their limits. Negative numbers are beyond them.
fn lengths(groups: u32, data: u32) -> Result<(usize, usize), RequestError> {
    let count = usize::try_from(groups).unwrap_or(usize::MAX);
    let bytes = usize::try_from(data).unwrap_or(usize::MAX);
    if count > MAX_GROUPS {
        return Err(RequestError::Groups(groups));
    }
    if bytes > MAX_MESSAGE_BYTES - HEADER_BYTES - count * NAME_BYTES {
        return Err(RequestError::Length(data));
    }
    Ok((count, bytes))
}
