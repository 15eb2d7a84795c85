//! Own values beside those of others: the share of the link, and what may be under way.

use bytes::Bytes;
use rota_core::contract::{Service, Time};
use rota_core::wire::{Part, push_whole, service_code, start_frame};
use rota_paxos::ValueId;
use rota_paxos::uring::{Record, ResumeFrom, URingConfig, Word};

use super::alone::{Alone, FOUNDED, process, settings};
use super::datagrams::SETTINGS;
use super::rules::{batch_by, batch_of, follow};

/// The bytes of each message: a value takes one.
const BYTES: usize = 1000;

fn value(counter: u64) -> Bytes {
    let mut bytes = vec![service_code(Service::Agreed)];
    start_frame(&mut bytes, counter);
    push_whole(&mut bytes, &[7; BYTES]);
    bytes.into()
}

const fn id(node: u16, counter: u64) -> ValueId {
    let process = process(node, 1);
    ValueId { process, counter }
}

/// Values of the second and of the third wait at the third, whose successor takes none for a while.
#[test]
fn own_values_and_those_of_others_share_the_link() {
    let mut settings = URingConfig {
        batch_bytes: 3 * BYTES,
        ..settings()
    };
    settings.proposer.frame_bytes = BYTES + 100;
    let mut third = Alone::with(settings, process(3, 1), Vec::new());
    third.join();
    let (round, epoch, next) = (1, 1, 0);
    let resume = ResumeFrom { round, epoch, next };
    third.hear(1, Word::ResumeFrom(resume, Vec::new()).encode(FOUNDED));
    let room = |third: &mut Alone, bytes| {
        let (peer, session) = (process(1, 1).node, rota_core::contract::Session(1));
        third.tell(rota_core::contract::Input::Writable {
            peer,
            session,
            bytes,
        });
    };
    room(&mut third, 0);
    for _ in 0..20 {
        third.submit(&[7; BYTES]);
    }
    let epoch = third.follow().epoch;
    batch_by(&mut third, 2, (epoch, 1), |batch| {
        for counter in 1..=9 {
            batch.value(Some(1), id(2, counter), &value(counter));
        }
    });
    third.batches.clear();
    while third.batches.iter().flatten().count() < 18 {
        let before = third.batches.len();
        room(&mut third, 4 * BYTES);
        assert!(third.batches.len() > before, "it sends what it has");
    }
    let values = third
        .batches
        .iter()
        .flatten()
        .filter_map(|record| match record {
            Record::Value(id, _) => Some(id.process.node.get()),
            _ => None,
        });
    let order: Vec<u16> = values.collect();
    // Whatever part of the time is looked at, neither has more than two values more than the other.
    let mut ahead = 0_i32;
    for (at, node) in order[..18].iter().enumerate() {
        ahead += if *node == 3 { 1 } else { -1 };
        assert!(ahead.abs() <= 2, "{at}: {order:?}");
    }
}

/// The counters of the own values in datagrams.
fn counters(sent: &[Bytes]) -> Vec<u64> {
    let mut counters: Vec<u64> = sent
        .iter()
        .map(|datagram| Part::decode(datagram, SETTINGS.seal_bytes).expect("a part"))
        .map(|part| part.head.counter)
        .collect();
    counters.dedup();
    counters
}

/// The number of own values that leave in each of some rounds; in each all that have left count. A member had to ask for
/// values before the second.
fn leave(has_lost: bool) -> Vec<usize> {
    let heartbeat = settings().patience.heartbeat;
    let mut settings = URingConfig {
        multicast: Some(SETTINGS),
        ..settings()
    };
    settings.proposer.frame_bytes = BYTES + 100;
    settings.proposer.window_bytes = 16 * BYTES;
    let mut second = Alone::with(settings, process(2, 1), Vec::new());
    second.join();
    follow(&mut second, 1, 0);
    // At the very beginning a loss may be one of before.
    second.now = second.now.after(heartbeat);
    for _ in 0..150 {
        second.submit(&[7; BYTES]);
    }
    let (epoch, mut next, mut rounds) = (second.follow().epoch, 1, Vec::new());
    for round in 0..12 {
        let left = counters(&std::mem::take(&mut second.sent));
        rounds.push(left.len());
        batch_of(&mut second, epoch, next, |batch| {
            if round == 0 {
                batch.members(1, &[1, 2, 3].map(|node| process(node, 1)));
                next += 1;
            }
            if round == 0 && has_lost {
                batch.lost(2, 1);
            }
            for counter in &left {
                batch.proposal(Some(1), id(2, *counter));
            }
            next += left.len() as u64;
            batch.voted(0, next);
            batch.voted(2, next);
        });
        second.write_all();
        second.now = Time(second.now.0 + 1_000_000);
        second.tell(rota_core::contract::Input::Timer);
    }
    rounds
}

#[test]
fn losses_halve_what_is_under_way_and_counted_values_let_it_grow() {
    let (calm, lost) = (leave(false), leave(true));
    let full = calm[0];
    assert!(full > 10, "{calm:?}");
    assert!(
        calm[1..8].iter().all(|count| *count >= full - 1),
        "{calm:?}"
    );
    assert!((full / 2 - 1..=full / 2 + 2).contains(&lost[1]), "{lost:?}");
    assert!(lost[2..6].is_sorted() && lost[5] > lost[1], "{lost:?}");
}
