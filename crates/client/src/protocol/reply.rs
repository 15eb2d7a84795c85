//! The frames from a daemon to its client.

use bytes::Bytes;
use rota_core::groups::{GroupName, ViewId};

use super::bytes::{
    Reader, number, put_destination, put_frame, put_name, put_private, put_text, put_u16, put_u32,
    put_u64, put_view_id,
};
use super::frame::sealed::Read;
use super::heads::Heads;
use super::{
    Code, DecodeError, Destination, EncodeError, Frame, Message, PrivateName, View, Welcome,
};

const WELCOME: u8 = 0x81;
const REFUSED: u8 = 0x82;
const DONE: u8 = 0x83;
const FAILED: u8 = 0x84;
pub(super) const MESSAGE: u8 = 0x85;
pub(super) const VIEW: u8 = 0x86;
pub(super) const TRANSITIONAL: u8 = 0x87;
const SELF_LEAVE: u8 = 0x88;
const CREDIT: u8 = 0x89;
const GROUPS: u8 = 0x8a;
const MEMBERS: u8 = 0x8b;
const LAGGING: u8 = 0x8c;
const GOODBYE: u8 = 0x8d;
const NOT_SENT: u8 = 0x8e;
const SKIPPED: u8 = 0x8f;
const EXCLUDED: u8 = 0x90;
const INCLUDED: u8 = 0x91;

/// The fewest bytes of a group and how many members it has.
const LEAST_GROUP: usize = 6;
/// The fewest bytes of a member: its length and `#a#b`.
const LEAST_MEMBER: usize = 5;

/// A frame from a daemon to its client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The client is taken: the first frame, and never again.
    Welcome(Welcome),
    /// The client is not taken: the only frame.
    Refused {
        /// Why.
        code: Code,
        /// Why, for people.
        text: String,
    },
    /// A join or leave has taken effect, here in the order.
    Done {
        /// The client's number.
        request: u32,
    },
    /// A request was not taken, and nothing has changed.
    Failed {
        /// The client's number.
        request: u32,
        /// Why.
        code: Code,
        /// Why, for people.
        text: String,
    },
    /// A message, once, however many of its destinations the client matches.
    Message(Message),
    /// A new view of a group that the client is in. For clients with membership only, as the next two.
    View(Box<View>),
    /// Until the next view of the group, delivery is only with respect to those who stay with this
    /// daemon.
    Transitional {
        /// The group.
        group: GroupName,
        /// The view that ends.
        view: ViewId,
    },
    /// The client has left the group: it gets nothing more of it.
    SelfLeave {
        /// The group.
        group: GroupName,
    },
    /// Bytes of the client, in this number, are in the daemon's queue for the ring, or were refused.
    Credit {
        /// Bytes of whole frames.
        bytes: u32,
    },
    /// All groups that the daemon knows of.
    Groups {
        /// The client's number.
        request: u32,
        /// Their names, and how many members each has.
        groups: Vec<(GroupName, u32)>,
    },
    /// The members of a group, as far as the daemon knows.
    Members {
        /// The client's number.
        request: u32,
        /// None of them if there is no such group.
        members: Vec<PrivateName>,
    },
    /// A warning: the client takes its frames more slowly than they come.
    Lagging {
        /// Bytes that wait for this client.
        waiting: u64,
        /// The limit, in bytes, at which the daemon closes, or skips.
        limit: u64,
    },
    /// The client has missed something, because too much waited for it. It counts as having disconnected and
    /// joined its groups again, here in the order. Since version 2.
    Skipped {
        /// The number of missed messages.
        messages: u64,
        /// Bytes of their payloads.
        bytes: u64,
        /// Those of the client's groups that they went to, ascending.
        groups: Vec<GroupName>,
    },
    /// The daemon is in no view of the daemons: until it is, the client is told of no message and no view. Since
    /// version 3, as the next.
    Excluded,
    /// The daemon is in a view again.
    Included {
        /// The client has missed what was delivered meanwhile; with membership there is a view of each of its
        /// groups. Otherwise everything goes on where it stopped.
        missed: bool,
    },
    /// The daemon closes: the last frame.
    Goodbye {
        /// Why.
        code: Code,
        /// Why, for people.
        text: String,
    },
    /// A message of this client goes to no receiver. Its credit comes back as ever.
    NotSent {
        /// The number that the application gave it.
        kind: u16,
        /// The first of its destinations that it may not go to.
        to: Destination,
        /// Why.
        code: Code,
        /// Why, for people.
        text: String,
    },
}

impl Reply {
    /// True for replies that only clients with membership get.
    pub const fn is_membership(&self) -> bool {
        matches!(
            self,
            Self::View(_) | Self::Transitional { .. } | Self::SelfLeave { .. }
        )
    }

    /// Appends the frame. After an error `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.encode_head(out)?;
        out.extend_from_slice(self.payload());
        Ok(())
    }

    /// The bytes of the frame: all before the payload of a message, and that payload, shared and not copied. All
    /// receivers of a message get the same.
    pub fn chunks(&self) -> Result<[Bytes; 2], EncodeError> {
        let payload = match self {
            Self::Message(message) => message.payload.clone(),
            _ => Bytes::new(),
        };
        let mut head = Vec::new();
        self.encode_head(&mut head)?;
        Ok([head.into(), payload])
    }

    /// Appends the frame without the payload of a message. After an error `out` is as it was.
    pub fn encode_head(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let payload = self.payload().len();
        put_frame(out, self.kind(), payload, |out| self.put(out))
    }

    fn payload(&self) -> &[u8] {
        match self {
            Self::Message(message) => &message.payload,
            _ => &[],
        }
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Welcome(_) => WELCOME,
            Self::Refused { .. } => REFUSED,
            Self::Done { .. } => DONE,
            Self::Failed { .. } => FAILED,
            Self::Message(_) => MESSAGE,
            Self::View(_) => VIEW,
            Self::Transitional { .. } => TRANSITIONAL,
            Self::SelfLeave { .. } => SELF_LEAVE,
            Self::Credit { .. } => CREDIT,
            Self::Groups { .. } => GROUPS,
            Self::Members { .. } => MEMBERS,
            Self::Lagging { .. } => LAGGING,
            Self::Goodbye { .. } => GOODBYE,
            Self::NotSent { .. } => NOT_SENT,
            Self::Skipped { .. } => SKIPPED,
            Self::Excluded => EXCLUDED,
            Self::Included { .. } => INCLUDED,
        }
    }

    /// All but a payload.
    fn put(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Welcome(welcome) => welcome.put(out),
            Self::Refused { code, text } | Self::Goodbye { code, text } => {
                put_reason(out, *code, text);
            }
            Self::Done { request } => put_u32(out, *request),
            Self::Failed {
                request,
                code,
                text,
            } => {
                put_u32(out, *request);
                put_reason(out, *code, text);
            }
            Self::Message(message) => message.put_head(out)?,
            Self::View(view) => view.put(out)?,
            Self::Transitional { group, view } => {
                put_name(out, group);
                put_view_id(out, view);
            }
            Self::SelfLeave { group } => put_name(out, group),
            Self::Credit { bytes } => put_u32(out, *bytes),
            Self::Groups { request, groups } => {
                put_u32(out, *request);
                put_list(out, groups, |out, (name, members)| {
                    put_name(out, name);
                    put_u32(out, *members);
                })?;
            }
            Self::Members { request, members } => {
                put_u32(out, *request);
                put_list(out, members, put_private)?;
            }
            Self::Excluded => {}
            Self::Included { missed } => out.push(u8::from(*missed)),
            Self::Lagging { waiting, limit } => {
                put_u64(out, *waiting);
                put_u64(out, *limit);
            }
            Self::NotSent {
                kind,
                to,
                code,
                text,
            } => {
                put_u16(out, *kind);
                put_destination(out, to);
                put_reason(out, *code, text);
            }
            Self::Skipped {
                messages,
                bytes,
                groups,
            } => {
                put_skipped(out, (*messages, *bytes), groups)?;
            }
        }
        Ok(())
    }
}

fn put_list<T>(
    out: &mut Vec<u8>,
    list: &[T],
    put: impl Fn(&mut Vec<u8>, &T),
) -> Result<(), EncodeError> {
    put_u32(out, number(list.len())?);
    list.iter().for_each(|each| put(out, each));
    Ok(())
}

fn put_skipped(
    out: &mut Vec<u8>,
    (messages, bytes): (u64, u64),
    groups: &[GroupName],
) -> Result<(), EncodeError> {
    put_u64(out, messages);
    put_u64(out, bytes);
    put_list(out, groups, put_name)
}

fn put_reason(out: &mut Vec<u8>, code: Code, text: &str) {
    put_u16(out, code.number());
    put_text(out, text);
}

fn read_reason(reader: &mut Reader) -> Result<(Code, String), DecodeError> {
    Ok((Code::from_number(reader.u16()?), reader.text()?))
}

impl Frame for Reply {}

impl Read for Reply {
    type Known = Heads;

    fn has(kind: u8) -> bool {
        (WELCOME..=INCLUDED).contains(&kind)
    }

    fn read(kind: u8, body: Bytes, known: &mut Heads) -> Result<Self, DecodeError> {
        if kind == MESSAGE {
            return known.read(body).map(Self::Message);
        }
        let mut reader = Reader::new(body);
        let reply = match kind {
            REFUSED => {
                // Bytes behind the reason are a later version's: every client has to understand a refusal.
                let (code, text) = read_reason(&mut reader)?;
                return Ok(Self::Refused { code, text });
            }
            VIEW => Self::View(Box::new(View::read(&mut reader)?)),
            WELCOME => Self::Welcome(Welcome::read(&mut reader)?),
            TRANSITIONAL => Self::Transitional {
                group: reader.group()?,
                view: reader.view_id()?,
            },
            SELF_LEAVE => Self::SelfLeave {
                group: reader.group()?,
            },
            CREDIT => Self::Credit {
                bytes: reader.u32()?,
            },
            LAGGING => Self::Lagging {
                waiting: reader.u64()?,
                limit: reader.u64()?,
            },
            GOODBYE => {
                let (code, text) = read_reason(&mut reader)?;
                Self::Goodbye { code, text }
            }
            NOT_SENT => {
                let (kind, to) = (reader.u16()?, reader.destination()?);
                let (code, text) = read_reason(&mut reader)?;
                Self::NotSent {
                    kind,
                    to,
                    code,
                    text,
                }
            }
            SKIPPED => Self::Skipped {
                messages: reader.u64()?,
                bytes: reader.u64()?,
                groups: reader.skipped_groups()?,
            },
            EXCLUDED => Self::Excluded,
            INCLUDED => Self::Included {
                missed: match reader.u8()? {
                    0 => false,
                    1 => true,
                    other => return Err(DecodeError::Flags(other)),
                },
            },
            DONE..=MEMBERS => read_answer(kind, &mut reader)?,
            other => return Err(DecodeError::Kind(other)),
        };
        reader.end()?;
        Ok(reply)
    }
}

/// Those that begin with the number of a request.
fn read_answer(kind: u8, reader: &mut Reader) -> Result<Reply, DecodeError> {
    let request = reader.u32()?;
    match kind {
        DONE => Ok(Reply::Done { request }),
        FAILED => {
            let (code, text) = read_reason(reader)?;
            Ok(Reply::Failed {
                request,
                code,
                text,
            })
        }
        GROUPS => {
            let group = |reader: &mut Reader| Ok((reader.group()?, reader.u32()?));
            let groups = reader.list(LEAST_GROUP, group)?;
            Ok(Reply::Groups { request, groups })
        }
        MEMBERS => {
            let members = reader.list(LEAST_MEMBER, Reader::private)?;
            Ok(Reply::Members { request, members })
        }
        other => Err(DecodeError::Kind(other)),
    }
}
