//! The frames from a client to its daemon.

use bytes::Bytes;
use rota_core::groups::GroupName;

use super::bytes::{Reader, put_frame, put_name, put_u32};
use super::frame::sealed::Read;
use super::{DecodeError, EncodeError, Frame, Hello, Send};

const HELLO: u8 = 1;
const JOIN: u8 = 2;
const LEAVE: u8 = 3;
pub(super) const SEND: u8 = 4;
const LIST: u8 = 5;
const BYE: u8 = 6;

/// A frame from a client to its daemon. `request` numbers are the client's own: the answer repeats them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// The hello of the client: its first frame, and never again.
    Hello(Hello),
    /// Take the client into a group. Nothing changes if it is in the group already.
    Join {
        /// Comes back with the answer.
        request: u32,
        /// The group to join.
        group: GroupName,
    },
    /// Take the client out of a group. Nothing changes if it is not in the group.
    Leave {
        /// Comes back with the answer.
        request: u32,
        /// The group to leave.
        group: GroupName,
    },
    /// Send a message. The only answer is [`super::Reply::Credit`].
    Send(Send),
    /// List all groups, or the members of one.
    List {
        /// Comes back with the answer.
        request: u32,
        /// The group whose members are listed; without one all groups are.
        group: Option<GroupName>,
    },
    /// The client goes. Closing the socket says the same.
    Bye,
}

impl Request {
    /// Appends the frame. After an error `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let kind = match self {
            Self::Hello(_) => HELLO,
            Self::Join { .. } => JOIN,
            Self::Leave { .. } => LEAVE,
            Self::Send(send) => return send.head().encode(&send.payload, out),
            Self::List { .. } => LIST,
            Self::Bye => BYE,
        };
        put_frame(out, kind, 0, |out| {
            match self {
                Self::Hello(hello) => hello.put(out),
                Self::Join { request, group } | Self::Leave { request, group } => {
                    put_group(out, *request, Some(group));
                }
                Self::List { request, group } => put_group(out, *request, group.as_ref()),
                Self::Send(_) | Self::Bye => {}
            }
            Ok(())
        })
    }
}

fn put_group(out: &mut Vec<u8>, request: u32, group: Option<&GroupName>) {
    put_u32(out, request);
    match group {
        Some(group) => put_name(out, group),
        None => out.push(0),
    }
}

impl Frame for Request {}

impl Read for Request {
    type Known = ();

    fn has(kind: u8) -> bool {
        (HELLO..=BYE).contains(&kind)
    }

    fn read(kind: u8, body: Bytes, (): &mut ()) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let request = match kind {
            HELLO => return Ok(Self::Hello(Hello::read(&mut reader)?)),
            SEND => return Ok(Self::Send(Send::read(reader)?)),
            JOIN => Self::Join {
                request: reader.u32()?,
                group: reader.group()?,
            },
            LEAVE => Self::Leave {
                request: reader.u32()?,
                group: reader.group()?,
            },
            LIST => Self::List {
                request: reader.u32()?,
                group: reader.optional_name()?,
            },
            BYE => Self::Bye,
            other => return Err(DecodeError::Kind(other)),
        };
        reader.end()?;
        Ok(request)
    }
}
