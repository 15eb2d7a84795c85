//! The charter of a ring that is founded while processes run: all that its processes have to agree on.
//!
//! A ring that some process of the cluster wants to found is ordered in the *control ring*, as an entry of the table
//! that each process of that has ([`rota_paxos::uring::charters`]). Where the ring begins follows from the place of its
//! charter in the control ring, so all processes know it by the same constants, whoever proposed it and however often.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::{Buf as _, Bytes};
use core::num::NonZeroU32;
use rota_core::contract::NodeId;
use rota_paxos::uring::charters::{Chartered, MOST_CHARTER};

use crate::level::Mode;
use crate::mutants::{self, Mutant};
use crate::order::{Constants, Rank, Round};

const VERSION: u8 = 1;
const PULL: u8 = 0;
const PAPER: u8 = 1;
const HORIZON: u8 = 2;

/// In nanoseconds.
const MILLISECOND: u64 = 1_000_000;
/// The acceptors of a ring, at most, where nothing is said.
const FEW_ACCEPTORS: usize = 5;
/// A ring begins at most so many rounds behind its charter's place. Whoever subscribes to it waits until its other rings
/// have come there, each by one skip.
const MOST_AHEAD: Round = 1 << 20;

/// See the module's page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Charter {
    /// Its number, from 1, and its rank in each round.
    pub rank: Rank,
    /// Values are multicast (`ring-paxos`); otherwise they go along the ring (`u-ring-paxos`).
    pub is_multicast: bool,
    /// Instances in each round (`M`).
    pub per_round: NonZeroU32,
    /// The way in which it keeps up with the others: `delta` in whole milliseconds.
    pub mode: Mode,
    /// Its ports are those of the nodes plus this number.
    pub port_offset: u16,
    /// The nodes that are on it.
    pub nodes: BTreeSet<NodeId>,
    /// The nodes of these that vote.
    pub acceptors: BTreeSet<NodeId>,
}

impl Charter {
    /// A ring of these nodes, as most rings are: `u-ring-paxos` with one instance in each round, of which the first five
    /// nodes vote, and which skips when a merge waits for it.
    pub fn new(rank: Rank, port_offset: u16, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        let nodes: BTreeSet<NodeId> = nodes.into_iter().collect();
        Self {
            rank,
            is_multicast: false,
            per_round: NonZeroU32::MIN,
            mode: Mode::Pull,
            port_offset,
            acceptors: nodes.iter().copied().take(FEW_ACCEPTORS).collect(),
            nodes,
        }
    }

    /// Whether a ring can be so: it has nodes and acceptors among them, a number, and a rate that is one. More than
    /// about 180 nodes are too many.
    pub fn is_sound(&self) -> bool {
        let has_rate = match self.mode {
            Mode::Paper { delta, lambda } => {
                delta > 0 && delta.is_multiple_of(MILLISECOND) && lambda > 0
            }
            Mode::Pull | Mode::Horizon => true,
        };
        self.rank.0 > 0
            && has_rate
            && !self.acceptors.is_empty()
            && self.acceptors.is_subset(&self.nodes)
            && self.encode().len() <= MOST_CHARTER
    }

    /// As bytes, to be ordered.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::from([VERSION]);
        out.extend(self.rank.0.to_le_bytes());
        out.push(u8::from(self.is_multicast));
        out.extend(self.per_round.get().to_le_bytes());
        match self.mode {
            Mode::Pull => out.push(PULL),
            Mode::Paper { delta, lambda } => {
                out.push(PAPER);
                out.extend(delta.to_le_bytes());
                out.extend(lambda.to_le_bytes());
            }
            Mode::Horizon => out.push(HORIZON),
        }
        out.extend(self.port_offset.to_le_bytes());
        for nodes in [&self.nodes, &self.acceptors] {
            out.extend((nodes.len() as u16).to_le_bytes());
            nodes
                .iter()
                .for_each(|node| out.extend(node.get().to_le_bytes()));
        }
        out.into()
    }

    /// Reads the bytes of [`Self::encode`]; `None` for anything else, and for a charter of a ring that cannot be.
    pub fn decode(mut bytes: Bytes) -> Option<Self> {
        let version = bytes.try_get_u8().ok()?;
        let charter = Self {
            rank: Rank(bytes.try_get_u16_le().ok()?),
            is_multicast: match bytes.try_get_u8().ok()? {
                0 => false,
                1 => true,
                _ => return None,
            },
            per_round: NonZeroU32::new(bytes.try_get_u32_le().ok()?)?,
            mode: mode(&mut bytes)?,
            port_offset: bytes.try_get_u16_le().ok()?,
            nodes: nodes(&mut bytes)?,
            acceptors: nodes(&mut bytes)?,
        };
        let is_whole = version == VERSION && bytes.is_empty();
        (is_whole && charter.is_sound()).then_some(charter)
    }

    /// The constants of the ring, which follow from the place of its charter in the control ring. It begins behind that
    /// place, and where its proposer knew that others had come to, unless that is far: of all rounds before that there
    /// is nothing to skip. (A ring that begins too early skips what is needed of it; nobody delivers anything of it
    /// before the round of the own subscription.)
    pub fn constants(&self, control: &Constants, of: &Chartered) -> Constants {
        let behind = control.round_of(of.at) + 1;
        let from = match mutants::on(Mutant::A42) {
            true => of.from,
            false => of.from.min(behind + MOST_AHEAD),
        };
        let origin = match mutants::on(Mutant::A43) {
            true => behind,
            false => behind.max(from),
        };
        Constants {
            rank: self.rank,
            per_round: self.per_round,
            origin,
        }
    }
}

fn mode(bytes: &mut Bytes) -> Option<Mode> {
    Some(match bytes.try_get_u8().ok()? {
        PULL => Mode::Pull,
        PAPER => Mode::Paper {
            delta: bytes.try_get_u64_le().ok()?,
            lambda: bytes.try_get_u64_le().ok()?,
        },
        HORIZON => Mode::Horizon,
        _ => return None,
    })
}

/// A set of nodes, which has one form.
fn nodes(bytes: &mut Bytes) -> Option<BTreeSet<NodeId>> {
    let count = bytes.try_get_u16_le().ok()?;
    let node = |_| NodeId::new(bytes.try_get_u16_le().ok()?);
    let nodes: Vec<NodeId> = (0..count).map(node).collect::<Option<_>>()?;
    let is_set = nodes.is_sorted_by(|one, next| one < next);
    is_set.then(|| nodes.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u16) -> NodeId {
        NodeId::new(id).expect("not 0")
    }

    fn charters() -> [Charter; 3] {
        let plain = Charter::new(Rank(7), 40, [3, 1, 2].map(node));
        let paper = Charter {
            is_multicast: true,
            per_round: NonZeroU32::new(3).expect("not 0"),
            mode: Mode::Paper {
                delta: 5_000_000,
                lambda: 9000,
            },
            ..plain.clone()
        };
        let many = Charter {
            mode: Mode::Horizon,
            ..Charter::new(Rank(u16::MAX), 0, (1..150).map(node))
        };
        [plain, paper, many]
    }

    #[test]
    fn it_is_read_as_it_was_written_and_nothing_else_is() {
        for charter in charters() {
            let bytes = charter.encode();
            assert_eq!(Charter::decode(bytes.clone()), Some(charter));
            for end in 0..bytes.len() {
                assert_eq!(Charter::decode(bytes.slice(..end)), None, "{end}");
            }
            let more = [&bytes[..], &[0]].concat();
            assert_eq!(Charter::decode(more.into()), None);
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut other = bytes.to_vec();
                    other[at] ^= 1 << bit;
                    if let Some(charter) = Charter::decode(other.clone().into()) {
                        assert_eq!(charter.encode(), other, "{at}: it has one form");
                    }
                }
            }
        }
    }

    #[test]
    fn what_no_ring_can_be_is_refused() {
        let [plain, paper, _] = charters();
        let rate = |delta, lambda| Charter {
            mode: Mode::Paper { delta, lambda },
            ..paper.clone()
        };
        let with_acceptors = |acceptors: &[u16]| Charter {
            acceptors: acceptors.iter().copied().map(node).collect(),
            ..plain.clone()
        };
        let wrong = [
            Charter {
                rank: Rank(0),
                ..plain.clone()
            },
            Charter::new(Rank(7), 40, []),
            Charter::new(Rank(7), 40, (1..400).map(node)),
            with_acceptors(&[]),
            with_acceptors(&[1, 4]),
            rate(0, 9000),
            rate(5_000_001, 9000),
            rate(5_000_000, 0),
        ];
        for charter in wrong {
            assert!(!charter.is_sound(), "{charter:?}");
            assert_eq!(Charter::decode(charter.encode()), None, "{charter:?}");
        }
    }
}
