//! Messages of applications, on their way to the daemon and from it.

use std::sync::Arc;

use bytes::Bytes;
use rota_core::contract::Service;

use super::bytes::{Reader, put_destinations, put_frame, put_private, put_u16, service_byte};
use super::request::SEND;
use super::{DecodeError, Destination, EncodeError, PrivateName};

const SELF_DISCARD: u8 = 1;

/// A message that a client sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Send {
    /// The guarantee that the message asks for.
    pub service: Service,
    /// The sender does not want its own copy.
    pub self_discard: bool,
    /// The application's number for this kind of message.
    pub kind: u16,
    /// The destinations: from 1 to 100. A receiver that matches several gets the message once.
    pub to: Vec<Destination>,
    /// The application's bytes.
    pub payload: Bytes,
}

/// A message that a client sends, without its payload, for callers that do not own the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendHead<'a> {
    /// The guarantee that the message asks for.
    pub service: Service,
    /// The sender does not want its own copy.
    pub self_discard: bool,
    /// The application's number for this kind of message.
    pub kind: u16,
    /// The destinations: from 1 to 100.
    pub to: &'a [Destination],
}

impl SendHead<'_> {
    /// Appends the whole frame with this payload. After an error `out` is as it was.
    pub fn encode(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        put_frame(out, SEND, payload.len(), |out| self.put(out))?;
        out.extend_from_slice(payload);
        Ok(())
    }

    /// The bytes of the frame: its cost in credit of the client.
    pub fn frame_bytes(&self, payload: usize) -> usize {
        let text = |to: &Destination| match to {
            Destination::Group(name) => name.as_bytes().len(),
            Destination::Client(name) => {
                2 + name.client.as_bytes().len() + name.daemon.as_bytes().len()
            }
        };
        let destinations: usize = self.to.iter().map(|to| 1 + text(to)).sum();
        super::HEAD_BYTES + 5 + destinations + payload
    }

    fn put(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.push(service_byte(self.service));
        out.push(if self.self_discard { SELF_DISCARD } else { 0 });
        put_u16(out, self.kind);
        put_destinations(out, self.to)
    }
}

impl Send {
    /// All but the payload.
    pub fn head(&self) -> SendHead<'_> {
        SendHead {
            service: self.service,
            self_discard: self.self_discard,
            kind: self.kind,
            to: &self.to,
        }
    }

    /// The bytes of the frame: its cost in the client's [`super::Credit`].
    pub fn frame_bytes(&self) -> usize {
        self.head().frame_bytes(self.payload.len())
    }

    pub(super) fn read(mut reader: Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            service: reader.service()?,
            self_discard: reader.flags(SELF_DISCARD)? != 0,
            kind: reader.u16()?,
            to: reader.destinations()?,
            payload: reader.rest(),
        })
    }
}

/// A message as its receivers get it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The sender; not necessarily a member of any group.
    pub sender: PrivateName,
    /// The guarantee it was sent with.
    pub service: Service,
    /// The sender did not want its own copy.
    pub self_discard: bool,
    /// The application's number for this kind of message.
    pub kind: u16,
    /// All the destinations that it was sent to.
    pub to: Arc<[Destination]>,
    /// The application's bytes.
    pub payload: Bytes,
}

impl Message {
    pub(super) fn put_head(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        put_private(out, &self.sender);
        let head = SendHead {
            service: self.service,
            self_discard: self.self_discard,
            kind: self.kind,
            to: &self.to,
        };
        head.put(out)
    }

    pub(super) fn read(mut reader: Reader) -> Result<Self, DecodeError> {
        let sender = reader.private()?;
        let Send {
            service,
            self_discard,
            kind,
            to,
            payload,
        } = Send::read(reader)?;
        Ok(Self {
            sender,
            service,
            self_discard,
            kind,
            to: to.into(),
            payload,
        })
    }
}
