//! The views of a group.

use super::{ByteOrder, EncodeError, GroupName, NAME_BYTES, Name};

/// The identifier of a view of a group: equal at all members that get the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId {
    /// The daemon that leads the membership of daemons.
    pub leader: u32,
    /// The time at which that membership began.
    pub time: u32,
    /// The number of changes of the group in that membership.
    pub index: u32,
}

impl GroupId {
    pub(super) fn bytes(self, order: ByteOrder) -> Vec<u8> {
        [self.leader, self.time, self.index]
            .map(|number| order.put(number))
            .concat()
    }
}

/// A new membership of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The group.
    pub group: GroupName,
    /// The identifier.
    pub id: GroupId,
    /// All members' private groups: in the order of daemons, then of names.
    pub members: Vec<Name>,
    /// The change that made the view.
    pub cause: Cause,
}

/// The change that made a view. From its set, clients compute the members that came with them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The client that joined.
    Join(Name),
    /// The client that left.
    Leave(Name),
    /// The client whose session ended.
    Disconnect(Name),
    /// Daemons met or were parted: the members, in sets of those that came together.
    Network(Vec<Vec<Name>>),
}

impl Cause {
    /// Number of sets, where the receiver's starts among them, and the sets.
    fn sets(&self, order: ByteOrder, own: &Name) -> Result<(u32, u32, Vec<u8>), EncodeError> {
        let mut sets = Vec::new();
        let sets_of_network = match self {
            Self::Join(name) | Self::Leave(name) | Self::Disconnect(name) => {
                push_set(&mut sets, order, &[*name])?;
                return Ok((1, 0, sets));
            }
            Self::Network(sets) => sets,
        };
        let mut offset = None;
        for set in sets_of_network {
            if offset.is_none() && set.contains(own) {
                offset = Some(number(sets.len())?);
            }
            push_set(&mut sets, order, set)?;
        }
        let offset = offset.ok_or(EncodeError::NotInView)?;
        Ok((number(sets_of_network.len())?, offset, sets))
    }
}

fn push_set(out: &mut Vec<u8>, order: ByteOrder, set: &[Name]) -> Result<(), EncodeError> {
    out.reserve(4 + set.len() * NAME_BYTES);
    out.extend_from_slice(&order.put(number(set.len())?));
    for name in set {
        out.extend_from_slice(name.slot());
    }
    Ok(())
}

impl View {
    /// The data of its message for the member whose private group is `own`.
    pub(super) fn data(&self, order: ByteOrder, own: &Name) -> Result<Vec<u8>, EncodeError> {
        let (count, offset, sets) = self.cause.sets(order, own)?;
        let mut data = self.id.bytes(order);
        data.extend_from_slice(&order.put(count));
        data.extend_from_slice(&order.put(offset));
        data.extend_from_slice(&sets);
        Ok(data)
    }
}

/// A count or length as headers say it: it may not look negative to a client.
pub(super) fn number(count: usize) -> Result<u32, EncodeError> {
    let number = i32::try_from(count).map_err(|_| EncodeError::TooLong)?;
    Ok(number.unsigned_abs())
}
