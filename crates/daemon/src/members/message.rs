//! The messages about the list of nodes, in the total order. Decoding is total: there is an answer for all bytes.
//!
//! A message is the mark (1), the format (1), its kind (1), and the ring that it is for (18). Then a tell (1) has a version,
//! the checksum of the list (4), and whether its daemon keeps lists on disk (1); a give (2) has a list; a change (3) has its
//! number at its daemon (8), the version of the list that it changes, whether it is forced (1), its kind (1), and a node, or the
//! id of one (2). `testdata/golden/members.txt` has one of each, field by field.

use rota_core::bytes::{Reader, put_ring};
use rota_core::contract::RingId;
use rota_node::MemberList;
use rota_node::members::bytes::{put_node, put_version, read_node, read_version};
use rota_node::members::{Change, Version};

/// The first byte: no message about groups begins with it.
const MARK: u8 = 0x4D;
/// The layout of everything behind it.
const FORMAT: u8 = 1;

/// Mark, format, kind and ring.
const GIVE_HEAD_BYTES: usize = 3 + 18;

const TELL: u8 = 1;
const GIVE: u8 = 2;
const CHANGE: u8 = 3;

const ADD: u8 = 1;
const REMOVE: u8 = 2;
const REPLACE: u8 = 3;

/// The word of a daemon on its own list, once on each ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tell {
    /// The version of the list.
    pub version: Version,
    /// The checksum of the list: hosts may begin with different files.
    pub checksum: u32,
    /// It keeps lists on disk.
    pub keeps: bool,
}

/// A change that a daemon asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// Its number at its daemon.
    pub number: u64,
    /// The list that it changes: it counts for no other.
    pub base: Version,
    /// It is made also where it may take something from somebody.
    pub force: bool,
    /// What is to become of the list.
    pub change: Change,
}

/// What is said in a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// Which list a daemon has.
    Tell(Tell),
    /// The list that a daemon has, for those with older ones.
    Give(MemberList),
    /// A change that an operator wants.
    Change(Proposal),
}

/// Whether this is a message about the list of nodes.
pub fn is_one(message: &[u8]) -> bool {
    message.first() == Some(&MARK)
}

/// The bytes of a message with a list.
pub(super) fn bytes_of_give(list: &MemberList) -> usize {
    GIVE_HEAD_BYTES + list.encode().len()
}

/// A message for this ring.
pub fn encode(ring: RingId, told: &Told) -> Vec<u8> {
    let kind = match told {
        Told::Tell(_) => TELL,
        Told::Give(_) => GIVE,
        Told::Change(_) => CHANGE,
    };
    let mut bytes = vec![MARK, FORMAT, kind];
    put_ring(&mut bytes, ring);
    match told {
        Told::Tell(tell) => {
            put_version(&mut bytes, tell.version);
            bytes.extend(tell.checksum.to_le_bytes());
            bytes.push(u8::from(tell.keeps));
        }
        Told::Give(list) => bytes.extend(list.encode()),
        Told::Change(proposal) => put_proposal(&mut bytes, proposal),
    }
    bytes
}

fn put_proposal(bytes: &mut Vec<u8>, proposal: &Proposal) {
    bytes.extend(proposal.number.to_le_bytes());
    put_version(bytes, proposal.base);
    bytes.push(u8::from(proposal.force));
    match &proposal.change {
        Change::Add(node) => {
            bytes.push(ADD);
            put_node(bytes, node);
        }
        Change::Remove(id) => {
            bytes.push(REMOVE);
            bytes.extend(id.get().to_le_bytes());
        }
        Change::Replace(node) => {
            bytes.push(REPLACE);
            put_node(bytes, node);
        }
    }
}

/// Reads a message, and the ring that it is for.
pub fn decode(message: &[u8]) -> Option<(RingId, Told)> {
    let mut reader = Reader(message);
    (reader.take()? == [MARK, FORMAT]).then_some(())?;
    let kind = reader.byte()?;
    let ring = reader.ring()?;
    let told = match kind {
        TELL => Told::Tell(Tell {
            version: read_version(&mut reader)?,
            checksum: reader.u32()?,
            keeps: reader.flag()?,
        }),
        GIVE => Told::Give(MemberList::decode(std::mem::take(&mut reader.0))?),
        CHANGE => Told::Change(proposal(&mut reader)?),
        _ => return None,
    };
    reader.0.is_empty().then_some((ring, told))
}

fn proposal(reader: &mut Reader<'_>) -> Option<Proposal> {
    let number = reader.u64()?;
    let base = read_version(reader)?;
    let force = reader.flag()?;
    let change = match reader.byte()? {
        ADD => Change::Add(read_node(reader)?),
        REMOVE => Change::Remove(reader.node()?),
        REPLACE => Change::Replace(read_node(reader)?),
        _ => return None,
    };
    Some(Proposal {
        number,
        base,
        force,
        change,
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use rota_core::contract::{Incarnation, NodeId};
    use rota_net::NodeAddress;
    use rota_node::NodeConfig;

    use super::*;

    fn id(node: u16) -> NodeId {
        NodeId::new(node).expect("not 0")
    }

    fn ring() -> RingId {
        RingId {
            ring_seq: 12,
            rep: id(1),
            incarnation: Incarnation(7),
        }
    }

    /// One message of each kind.
    fn messages() -> Vec<Vec<u8>> {
        let base = Version {
            number: 3,
            made: Some(ring()),
        };
        let list = MemberList::of(&NodeConfig::loopback(3, 27_000));
        let mut node = NodeAddress::at(4, "rota-4.example", (7701, 7702));
        node.name = Some("four".to_owned());
        let changes = [
            Change::Add(node.clone()),
            Change::Remove(id(2)),
            Change::Replace(node),
        ];
        let tell = |version, keeps| {
            Told::Tell(Tell {
                version,
                checksum: 77,
                keeps,
            })
        };
        let mut all = vec![
            tell(base, true),
            tell(Version::FIRST, false),
            Told::Give(list),
        ];
        all.extend(changes.map(|change| {
            Told::Change(Proposal {
                number: 9,
                base,
                force: true,
                change,
            })
        }));
        let encoded = all.iter().map(|told| {
            let message = encode(ring(), told);
            assert_eq!(decode(&message), Some((ring(), told.clone())));
            if let Told::Give(list) = told {
                assert_eq!(bytes_of_give(list), message.len());
            }
            message
        });
        encoded.collect()
    }

    #[test]
    fn messages_are_read_as_they_were_written_and_no_part_of_one_is_one() {
        for message in messages() {
            assert!(is_one(&message));
            for len in 0..message.len() {
                assert_eq!(decode(&message[..len]), None, "{len} of {message:?}");
            }
            let longer = [&message[..], &[0]].concat();
            assert_eq!(decode(&longer), None);
        }
    }

    proptest! {
        /// There is an answer for all bytes, and what is read is written as it came.
        #[test]
        fn any_bytes_are_a_message_or_none(bytes in vec(any::<u8>(), 0..400)) {
            if let Some((ring, told)) = decode(&bytes) {
                prop_assert_eq!(encode(ring, &told), bytes);
            }
        }

        /// The same of messages in which bytes were changed, which come further.
        #[test]
        fn damaged_messages_are_others_or_none(
            at in 0_usize..6,
            changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut message = messages().swap_remove(at);
            for (place, byte) in changes {
                let place = place.index(message.len());
                message[place] = byte;
            }
            if let Some((ring, told)) = decode(&message) {
                prop_assert_eq!(encode(ring, &told), message);
            }
        }
    }
}
