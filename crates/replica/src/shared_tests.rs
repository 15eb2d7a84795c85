//! Two partitions with rings of their own and one in common: a command of both counts in both, or in none.

use std::io;

use rota_multiring::{Constants, Place, Rank};

use crate::command::Ordered;
use crate::machine::{Command, Machine};
use crate::sessions::{MOST_BYTES, Sessions};
use crate::shared::Shared;

const COMMON: Rank = Rank(9);

/// The commands that were applied, by the number that each has in its bytes, and the ring.
#[derive(Default)]
struct Applied(Vec<(Rank, u64)>);

impl Machine for Applied {
    type Frozen = Vec<u8>;

    /// The answer is as long as the command says.
    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        let number = |at: usize| {
            let bytes = command.bytes[at..at + 8].try_into().expect("8 bytes");
            u64::from_le_bytes(bytes)
        };
        self.0.push((command.place.rank, number(0)));
        vec![0; number(8) as usize]
    }

    fn freeze(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn install(&mut self, _: &mut dyn io::Read) -> io::Result<()> {
        Ok(())
    }
}

/// The partitions 1 and 2, each with the ring of its number and the common one.
struct Both {
    partitions: [Shared<Applied>; 2],
    instance: u64,
}

impl Both {
    fn with_room(most: usize, most_bytes: usize) -> Self {
        let shared = || {
            let sessions = Sessions::with_room(most, most_bytes);
            Shared::new(Applied::default(), sessions, Some(COMMON))
        };
        Self {
            partitions: [shared(), shared()],
            instance: 0,
        }
    }

    /// A ring orders this: who has the ring applies it.
    fn order(&mut self, ring: u16, ordered: &Ordered<'_>) {
        self.instance += 1;
        let place: Place = Constants::new(Rank(ring)).place(self.instance);
        for (partition, shared) in [1, 2].into_iter().zip(&self.partitions) {
            if Rank(ring) == COMMON || ring == partition {
                shared.apply(place, &ordered.encode());
            }
        }
    }

    fn open(&mut self, clients: impl IntoIterator<Item = u64>) {
        for client in clients {
            self.order(COMMON.0, &Ordered::Open(client));
        }
    }

    /// A ring orders a command of a session, whose answer has this many bytes.
    fn apply(&mut self, ring: u16, (client, sequence): (u64, u64), answer: u64) {
        let number = client << 32 | sequence;
        let bytes = [number.to_le_bytes(), answer.to_le_bytes()].concat();
        self.order(ring, &Ordered::Apply(client, sequence, &bytes));
    }

    /// The commands of the common ring that each partition has applied.
    fn common(&self) -> [Vec<u64>; 2] {
        self.partitions.each_ref().map(|shared| {
            let state = shared.state();
            let applied = state.machine.0.iter();
            let common = applied.filter(|(ring, _)| *ring == COMMON);
            common.map(|(_, number)| *number).collect()
        })
    }

    fn assert_same(&self) -> usize {
        let [one, two] = self.common();
        assert_eq!(one, two, "what counts in one partition counts in the other");
        one.len()
    }
}

/// A session that works in one partition only was used last there, and longest ago in the other one.
#[test]
fn a_session_is_given_up_by_all_partitions_or_by_none() {
    for renews in [false, true] {
        let mut both = Both::with_room(2, MOST_BYTES);
        both.open([7, 8]);
        both.apply(1, (8, 1), 1);
        both.apply(2, (7, 1), 1);
        if renews {
            both.order(COMMON.0, &Ordered::Renew(7));
        }
        both.open([10]);
        both.apply(COMMON.0, (7, 2), 1);
        both.apply(COMMON.0, (8, 2), 1);
        assert_eq!(both.assert_same(), 1);
        let alive = if renews { 7 } else { 8 };
        assert_eq!(both.common()[0], [alive << 32 | 2]);
    }
}

/// One partition has heard of many later commands before the ring of both orders an early one.
#[test]
fn a_command_is_too_old_for_all_partitions_or_for_none() {
    let mut both = Both::with_room(10, MOST_BYTES);
    both.open([7]);
    for sequence in 2..100 {
        both.apply(2, (7, sequence), 1);
    }
    both.apply(COMMON.0, (7, 1), 1);
    assert_eq!(both.assert_same(), 1);
    for sequence in 100..200 {
        both.apply(COMMON.0, (7, sequence), 1);
    }
    both.apply(COMMON.0, (7, 101), 1);
    both.apply(COMMON.0, (7, 99), 1);
    assert_eq!(both.assert_same(), 101);
}

/// Answers of one partition are large, and those that make way for them were answers to nothing of the other's.
#[test]
fn answers_that_make_way_in_one_partition_take_no_session_with_them() {
    let mut both = Both::with_room(10, 300);
    both.open([7, 8]);
    both.apply(COMMON.0, (7, 1), 10);
    both.apply(2, (8, 1), 250);
    both.apply(COMMON.0, (7, 2), 10);
    both.apply(2, (8, 2), 299);
    // Its answers are let go in the second partition, and it counts in none once more.
    both.apply(COMMON.0, (7, 1), 10);
    assert_eq!(both.assert_same(), 2);
}

/// Only the common ring says which sessions there are.
#[test]
fn sessions_begin_and_end_in_the_common_ring() {
    let mut both = Both::with_room(2, MOST_BYTES);
    both.order(1, &Ordered::Open(7));
    both.apply(COMMON.0, (7, 1), 1);
    both.open([8]);
    both.order(2, &Ordered::Close(8));
    both.order(2, &Ordered::Renew(8));
    both.apply(COMMON.0, (8, 1), 1);
    assert_eq!(both.assert_same(), 1);
    let foreign = [0, 1].map(|at| both.partitions[at].state().counts.foreign);
    assert_eq!(foreign, [1, 2]);
}

/// Whatever is ordered, in whichever ring, however often.
#[test]
fn what_both_partitions_order_counts_in_both_or_in_none() {
    let mut counted = [0; 2];
    for seed in 1..400_u64 {
        let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |end: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            dice % end
        };
        let mut both = Both::with_room(4, 2000);
        both.open(1..5);
        for at in 0..400 {
            let client = 1 + below(6);
            match below(20) {
                0 => both.open([client]),
                1 => both.order(COMMON.0, &Ordered::Close(client)),
                2 => both.order(COMMON.0, &Ordered::Renew(client)),
                _ => {
                    let sequence = 1 + (at / 2_u64).saturating_sub(below(90));
                    // A command that is given again goes to the same ring.
                    let ring = [1, 2, COMMON.0][(sequence / 8 + sequence * client) as usize % 3];
                    both.apply(ring, (client, sequence), below(200));
                }
            }
        }
        counted[0] += both.assert_same();
        let states = both
            .partitions
            .each_ref()
            .map(|shared| shared.state().sessions.len());
        assert_eq!(states[0], states[1], "seed {seed}");
        counted[1] += states[0];
    }
    assert!(counted[0] > 10_000 && counted[1] > 400, "{counted:?}");
}
