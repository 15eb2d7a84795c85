//! The messages of a daemon to a client, and their bytes.

use bytes::Bytes;

use super::bits::{
    CAUSED_BY_DISCONNECT, CAUSED_BY_JOIN, CAUSED_BY_LEAVE, CAUSED_BY_NETWORK, REGULAR_MEMBERSHIP,
    REJECT, SELF_DISCARD, TRANSITION,
};
use super::view::number;
use super::{
    ByteOrder, Cause, EncodeError, GroupId, GroupName, HEADER_BYTES, Hint, MAX_GROUPS, NAME_BYTES,
    Name, Service, View,
};

/// A message of a daemon to a connected client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outgoing {
    /// A message of an application.
    Message(Message),
    /// A new view of a group the client is in. For sessions with membership only, as the next two.
    View(View),
    /// A transitional signal: events until the next view come with the guarantees of the smaller membership.
    Transition {
        /// The group.
        group: GroupName,
        /// The view that ends.
        old: GroupId,
    },
    /// The client has left the group as it asked.
    SelfLeave(GroupName),
    /// A request of the client was rejected.
    Rejected(Rejection),
}

/// A message of an application, as every receiver gets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its sender's private group.
    pub sender: Name,
    /// The guarantee its sender asked for.
    pub service: Service,
    /// Its sender did not want it back.
    pub self_discard: bool,
    /// All its destinations, in its sender's order.
    pub groups: Vec<Name>,
    /// The hint of its sender, untouched.
    pub hint: Hint,
    /// The application's bytes.
    pub data: Bytes,
}

/// A request that is sent back to the client it came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// The rejected request.
    pub what: Rejected,
    /// The destinations of the request.
    pub groups: Vec<Name>,
    /// The hint of the request.
    pub hint: Hint,
    /// The data of the request.
    pub data: Bytes,
}

/// The kind of a request that is sent back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejected {
    /// A message.
    Message {
        /// Its service.
        service: Service,
        /// Its sender did not want it back.
        self_discard: bool,
    },
    /// A join.
    Join,
    /// A leave.
    Leave,
}

impl Rejected {
    const fn bits(self) -> (u32, u32) {
        match self {
            Self::Message {
                service,
                self_discard,
            } => (service.bit(), discard_bit(self_discard)),
            Self::Join => (CAUSED_BY_JOIN, 0),
            Self::Leave => (CAUSED_BY_LEAVE, 0),
        }
    }
}

const fn discard_bit(self_discard: bool) -> u32 {
    if self_discard { SELF_DISCARD } else { 0 }
}

/// The start of a message before its data.
struct Head<'a> {
    order: ByteOrder,
    bits: u32,
    sender: &'a Name,
    hint: Hint,
    /// Follows the header where a request is sent back.
    old: Option<u32>,
    groups: &'a [Name],
}

impl Head<'_> {
    /// Header and groups of a message with so much data.
    fn bytes(&self, data: usize) -> Result<Bytes, EncodeError> {
        let order = self.order;
        let room = HEADER_BYTES + 4 + self.groups.len() * NAME_BYTES;
        let mut out = Vec::with_capacity(room);
        out.extend_from_slice(&order.put_marked(self.bits));
        out.extend_from_slice(self.sender.slot());
        out.extend_from_slice(&order.put(number(self.groups.len())?));
        out.extend_from_slice(&self.hint.bytes());
        out.extend_from_slice(&order.put(number(data)?));
        if let Some(old) = self.old {
            out.extend_from_slice(&order.put_marked(old));
        }
        for group in self.groups {
            out.extend_from_slice(group.slot());
        }
        Ok(out.into())
    }
}

impl Outgoing {
    /// True for messages that only sessions with membership get.
    pub const fn is_membership(&self) -> bool {
        matches!(
            self,
            Self::View(_) | Self::Transition { .. } | Self::SelfLeave(_)
        )
    }

    /// The bytes for the client whose private group is `own`: the part before the data, and the data. Views and
    /// rejections differ between receivers; all else is the same for all.
    pub fn encode(&self, order: ByteOrder, own: &Name) -> Result<[Bytes; 2], EncodeError> {
        match self {
            Self::Message(message) => message.encode(order),
            Self::View(view) => encode_view(view, order, own),
            Self::Transition { group, old } => {
                membership(order, TRANSITION, group, &[], old.bytes(order).into())
            }
            Self::SelfLeave(group) => membership(order, CAUSED_BY_LEAVE, group, &[], Bytes::new()),
            Self::Rejected(rejection) => rejection.encode(order, own),
        }
    }
}

/// The part of [`Outgoing::encode`] that is the same for all receivers with one byte order; the first call fills it.
#[derive(Debug, Default)]
pub struct Common(Option<Bytes>);

impl Outgoing {
    /// The same as [`Self::encode`], for one of many receivers: they share the part before the data, which names all
    /// members of a view.
    pub fn encode_for(
        &self,
        order: ByteOrder,
        own: &Name,
        common: &mut Common,
    ) -> Result<[Bytes; 2], EncodeError> {
        let data = match self {
            Self::Message(message) => Some(message.data.clone()),
            Self::View(view) => Some(view.data(order, own)?.into()),
            _ => None,
        };
        if let (Some(head), Some(data)) = (&common.0, data) {
            return Ok([head.clone(), data]);
        }
        let chunks = self.encode(order, own)?;
        common.0 = Some(chunks[0].clone());
        Ok(chunks)
    }
}

impl Message {
    fn encode(&self, order: ByteOrder) -> Result<[Bytes; 2], EncodeError> {
        let head = Head {
            order,
            bits: self.service.bit() | discard_bit(self.self_discard),
            sender: &self.sender,
            hint: self.hint,
            old: None,
            groups: &self.groups,
        };
        Ok([head.bytes(self.data.len())?, self.data.clone()])
    }
}

impl Rejection {
    fn encode(&self, order: ByteOrder, own: &Name) -> Result<[Bytes; 2], EncodeError> {
        let (old, discard) = self.what.bits();
        let mut groups = self.groups.clone();
        if groups.len() < MAX_GROUPS {
            groups.push(*own);
        }
        let head = Head {
            order,
            bits: REJECT | discard,
            sender: own,
            hint: self.hint,
            old: Some(old),
            groups: &groups,
        };
        Ok([head.bytes(self.data.len())?, self.data.clone()])
    }
}

fn encode_view(view: &View, order: ByteOrder, own: &Name) -> Result<[Bytes; 2], EncodeError> {
    let cause = match view.cause {
        Cause::Join(_) => CAUSED_BY_JOIN,
        Cause::Leave(_) => CAUSED_BY_LEAVE,
        Cause::Disconnect(_) => CAUSED_BY_DISCONNECT,
        Cause::Network(_) => CAUSED_BY_NETWORK,
    };
    let data = view.data(order, own)?.into();
    let bits = REGULAR_MEMBERSHIP | cause;
    membership(order, bits, &view.group, &view.members, data)
}

/// A message whose sender is a group.
fn membership(
    order: ByteOrder,
    bits: u32,
    group: &GroupName,
    members: &[Name],
    data: Bytes,
) -> Result<[Bytes; 2], EncodeError> {
    let head = Head {
        order,
        bits,
        sender: group.name(),
        hint: Hint::new(order, 0),
        old: None,
        groups: members,
    };
    Ok([head.bytes(data.len())?, data])
}
