//! The electorates of the members of a ring to be: a table in the commit token, and the word of each member on it.

use alloc::vec::Vec;
use bytes::Buf;

use rota_core::contract::NodeId;
use rota_core::wire::{DecodeError, MAX_MEMBERS};

/// The nodes that count in primaries, by ascending id.
pub type Electorate = Vec<NodeId>;

/// Different electorates that a commit token has room for.
pub const MOST_ELECTORATES: usize = 8;

/// Bytes of the fullest table.
pub(super) const TABLE_BYTES: usize = 1 + MOST_ELECTORATES * (2 + 2 * MAX_MEMBERS);

const NO_OWN: u8 = u8::MAX;

/// The word of a member on the table of electorates in the commit token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Counts {
    /// The place of the electorate that it is configured with. `None`: it knows no primaries.
    pub own: Option<u8>,
    /// Bit `i`: the member has met electorate `i` at others, or was configured with it before, and has not heard that a
    /// majority of those nodes have another one.
    pub met: u8,
    /// Whether the member has met more electorates than there is room for.
    pub more: bool,
}

impl Counts {
    pub(super) const BYTES: usize = 1 + 1;

    /// Whether electorate `index` is one that this member says anything of.
    pub fn names(self, index: usize) -> bool {
        self.own.map(usize::from) == Some(index) || self.met & 1 << index != 0
    }

    pub(super) fn read(body: &mut &[u8], table: usize, more: bool) -> Result<Self, DecodeError> {
        let mut next = || body.try_get_u8().map_err(|_| DecodeError::Short);
        let (own, met) = (next()?, next()?);
        let own = (own != NO_OWN).then_some(own);
        let own_is_there = own.is_none_or(|own| usize::from(own) < table);
        if !own_is_there || u32::from(met) >> table != 0 {
            return Err(DecodeError::Commit("no such electorate"));
        }
        Ok(Self { own, met, more })
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.own.unwrap_or(NO_OWN), self.met]);
    }
}

/// Reads a table.
pub fn read_electorates(body: &mut &[u8]) -> Result<Vec<Electorate>, DecodeError> {
    let count = body.try_get_u8().map_err(|_| DecodeError::Short)?;
    if usize::from(count) > MOST_ELECTORATES {
        return Err(DecodeError::Commit("too many electorates"));
    }
    (0..count).map(|_| read_electorate(body)).collect()
}

fn read_electorate(body: &mut &[u8]) -> Result<Electorate, DecodeError> {
    let count = body.try_get_u16_le().map_err(|_| DecodeError::Short)?;
    if count == 0 || usize::from(count) > MAX_MEMBERS {
        return Err(DecodeError::Commit("an electorate has 1 to 128 nodes"));
    }
    let mut nodes: Electorate = Vec::new();
    for _ in 0..count {
        let node = body.try_get_u16_le().map_err(|_| DecodeError::Short)?;
        let node = NodeId::new(node).ok_or(DecodeError::ZeroNode)?;
        if nodes.last().is_some_and(|last| *last >= node) {
            return Err(DecodeError::Commit("an electorate is not ascending"));
        }
        nodes.push(node);
    }
    Ok(nodes)
}

/// Writes a table of at most [`MOST_ELECTORATES`].
pub fn write_electorates(table: &[Electorate], out: &mut Vec<u8>) {
    out.push(u8::try_from(table.len()).expect("a table has at most 8 electorates"));
    for electorate in table {
        let count = u16::try_from(electorate.len()).expect("an electorate has at most 128 nodes");
        out.extend_from_slice(&count.to_le_bytes());
        for node in electorate {
            out.extend_from_slice(&node.get().to_le_bytes());
        }
    }
}
