//! The views of a group.

use bytes::Bytes;
use rota_core::groups::{GroupName, ViewId};

use super::bytes::{Reader, number, put_frame, put_name, put_private, put_u32, put_view_id};
use super::reply::VIEW;
use super::{DecodeError, EncodeError, PrivateName};

const JOIN: u8 = 1;
const LEAVE: u8 = 2;
const DISCONNECT: u8 = 3;
const NETWORK: u8 = 4;

/// The fewest bytes of a member: its length and `#a#b`.
const LEAST_MEMBER: usize = 5;
/// The fewest bytes of a set: its length and one index.
const LEAST_SET: usize = 8;

/// Why there is a new view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The client that joined.
    Join(PrivateName),
    /// The client that left.
    Leave(PrivateName),
    /// The client that is not connected any more.
    Disconnect(PrivateName),
    /// Daemons have come or gone. The members, as indices, by who came together: two of one set had the
    /// same view before this one and have got the same messages in it. Each member is in one set.
    Network(Vec<Vec<u32>>),
}

/// The members of a group from here on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The group.
    pub group: GroupName,
    /// Names the view: equal ids are equal views, and those that a client gets ascend.
    pub id: ViewId,
    /// The change that made the view.
    pub cause: Cause,
    /// The members, in an order that is the same for all of them.
    pub members: Vec<PrivateName>,
    /// The index of the receiver in `members`.
    pub own: u32,
}

impl View {
    /// The receiver itself.
    pub fn me(&self) -> Option<&PrivateName> {
        self.members.get(self.own as usize)
    }

    /// The members that came here from the receiver's last view with the same messages in it, the receiver included.
    /// After a join these are the members from before, or the receiver alone if it is the one that joined.
    pub fn came_with_me(&self) -> Vec<&PrivateName> {
        match &self.cause {
            Cause::Network(sets) => {
                let own = sets.iter().find(|set| set.contains(&self.own));
                let members = own.into_iter().flatten();
                let members = members.map(|index| self.members.get(*index as usize));
                members.flatten().collect()
            }
            Cause::Join(new) if self.me() == Some(new) => self.me().into_iter().collect(),
            Cause::Join(new) => self.members.iter().filter(|name| *name != new).collect(),
            Cause::Leave(_) | Cause::Disconnect(_) => self.members.iter().collect(),
        }
    }

    /// All of the frame but its last four bytes, which are [`own_index`]. Members of one view get frames
    /// that differ only there, so one daemon encodes a view once for all its clients.
    pub fn encode_shared(&self) -> Result<Bytes, EncodeError> {
        let mut out = Vec::new();
        put_frame(&mut out, VIEW, 4, |out| self.put_shared(out))?;
        Ok(out.into())
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if self.me().is_none() {
            return Err(EncodeError::OwnIndex);
        }
        self.put_shared(out)?;
        out.extend(own_index(self.own));
        Ok(())
    }

    fn put_shared(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        put_name(out, &self.group);
        put_view_id(out, &self.id);
        let (cause, changed, sets): (_, _, &[_]) = match &self.cause {
            Cause::Join(name) => (JOIN, Some(name), &[]),
            Cause::Leave(name) => (LEAVE, Some(name), &[]),
            Cause::Disconnect(name) => (DISCONNECT, Some(name), &[]),
            Cause::Network(sets) if are_sets(sets, self.members.len()) => (NETWORK, None, sets),
            Cause::Network(_) => return Err(EncodeError::Sets),
        };
        out.push(cause);
        match changed {
            Some(name) => put_private(out, name),
            None => out.push(0),
        }
        put_u32(out, number(self.members.len())?);
        for member in &self.members {
            put_private(out, member);
        }
        put_u32(out, number(sets.len())?);
        for set in sets {
            put_u32(out, number(set.len())?);
            set.iter().for_each(|index| put_u32(out, *index));
        }
        Ok(())
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        let (group, id) = (reader.group()?, reader.view_id()?);
        let cause = reader.u8()?;
        let changed = reader.optional_private()?;
        let members = reader.list(LEAST_MEMBER, Reader::private)?;
        let sets = reader.list(LEAST_SET, |reader| reader.list(4, Reader::u32))?;
        let own = reader.u32()?;
        let cause = match (cause, changed) {
            (JOIN..=DISCONNECT, _) if !sets.is_empty() => return Err(DecodeError::Sets),
            (JOIN, Some(name)) => Cause::Join(name),
            (LEAVE, Some(name)) => Cause::Leave(name),
            (DISCONNECT, Some(name)) => Cause::Disconnect(name),
            (NETWORK, None) if are_sets(&sets, members.len()) => Cause::Network(sets),
            (NETWORK, None) => return Err(DecodeError::Sets),
            (JOIN..=NETWORK, _) => return Err(DecodeError::Changed),
            (other, _) => return Err(DecodeError::Cause(other)),
        };
        let view = Self {
            group,
            id,
            cause,
            members,
            own,
        };
        view.me().ok_or(DecodeError::OwnIndex(own))?;
        Ok(view)
    }
}

/// The bytes behind [`View::encode_shared`] for the member with this index.
pub const fn own_index(index: u32) -> [u8; 4] {
    index.to_le_bytes()
}

/// Whether each of the members, `members` in number, is in one set, and no set is empty.
fn are_sets(sets: &[Vec<u32>], members: usize) -> bool {
    let mut seen = vec![false; members];
    let indices = || sets.iter().flatten();
    !sets.iter().any(Vec::is_empty)
        && indices().count() == members
        && indices().all(|&index| {
            let seen = seen.get_mut(index as usize);
            seen.is_some_and(|seen| !std::mem::replace(seen, true))
        })
}
