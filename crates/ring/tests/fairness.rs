//! The shares of the members when all together want to send more than the global window admits.

mod lockstep;

use lockstep::Ring;
use rota_core::contract::{Checked, Engine, Service};
use rota_ring::RingEngine;

/// A round in which all nodes have more to send than they may.
fn saturated_round(ring: &mut Ring) {
    for engine in &mut ring.engines {
        while engine.get().backlog() < 100 {
            engine
                .submit(ring.now, Service::Agreed, &[0; 1300])
                .expect("there is room");
        }
    }
    ring.round(100_000);
}

/// A ring of four, all together.
fn formed(global: u32) -> Ring {
    formed_of(4, 10, global)
}

/// A ring of so many, all together.
fn formed_of(nodes: u16, personal: u32, global: u32) -> Ring {
    let mut ring = Ring::new(nodes, personal, global);
    for _ in 0..2000 {
        if is_whole(&ring) {
            return ring;
        }
        ring.round(1_000_000);
    }
    panic!("no ring of {nodes}");
}

/// Whether each has all on its ring.
fn is_whole(ring: &Ring) -> bool {
    let members = |engine: &Checked<RingEngine>| {
        let ordering = engine.get().ordering();
        ordering.map_or(0, |ordering| ordering.members().len())
    };
    let engines = &ring.engines;
    engines
        .iter()
        .all(|engine| members(engine) == engines.len())
}

fn sent_since(ring: &Ring, before: &[u64]) -> Vec<u64> {
    let pairs = sent(ring).into_iter().zip(before);
    pairs.map(|(now, before)| now - before).collect()
}

fn sent(ring: &Ring) -> Vec<u64> {
    let engines = ring.engines.iter();
    engines
        .map(|engine| engine.get().counters().packets_sent)
        .collect()
}

#[test]
fn who_fits_the_global_window_gets_the_personal_window_each_rotation() {
    let mut ring = formed(40);
    let before = sent(&ring);
    (0..1000).for_each(|_| saturated_round(&mut ring));
    let sent = sent_since(&ring, &before);
    let (least, most) = (
        sent.iter().min().expect("four"),
        sent.iter().max().expect("four"),
    );
    assert!(*least > 1000 && most - least <= 20, "{sent:?}");
}

#[test]
fn nobody_starves_when_the_global_window_is_smaller_than_all_want() {
    let mut ring = formed(20);
    let before = sent(&ring);
    (0..1000).for_each(|_| saturated_round(&mut ring));
    let sent = sent_since(&ring, &before);
    assert!(
        sent.iter().all(|&packets| packets > 100),
        "somebody starves: {sent:?}"
    );
}

/// How much the least-served member has of the mean, and the most-served, in percent, when all have more to send than they may.
fn served(nodes: u16, personal: u32, global: u32) -> (u64, u64) {
    let mut ring = formed_of(nodes, personal, global);
    // In the first rotation nobody knows what the others want.
    (0..5).for_each(|_| saturated_round(&mut ring));
    let before = sent(&ring);
    (0..100).for_each(|_| saturated_round(&mut ring));
    let sent = sent_since(&ring, &before);
    let of_mean = |packets: Option<&u64>| {
        let packets = packets.copied().unwrap_or(0);
        packets * 100 * u64::from(nodes) / sent.iter().sum::<u64>()
    };
    (of_mean(sent.iter().min()), of_mean(sent.iter().max()))
}

#[test]
fn whatever_the_shares_are_nobody_gets_less_than_the_others() {
    let cases = [
        (21, 40, 320),
        (24, 40, 320),
        (30, 11, 320),
        (64, 40, 320),
        (100, 40, 320),
        (128, 3, 320),
        (4, 10, 5),
        (8, 40, 41),
        (3, 40, 4),
    ];
    for (nodes, personal, global) in cases {
        let (least, most) = served(nodes, personal, global);
        assert!(
            least >= 90 && most <= 110,
            "{nodes} nodes, {personal} of {global}: {least} to {most} % of the mean"
        );
    }
    rounded_up();
}

/// Rounded up, as they were, the shares of 21 members are more than the window: the last one sends nothing. Behind the others,
/// as mutants are in force for all threads.
fn rounded_up() {
    #[cfg(feature = "mutants")]
    {
        use rota_core::mutants::{self, Mutant};

        mutants::set(Some(Mutant::M41));
        let (least, _) = served(21, 40, 320);
        mutants::set(None);
        assert_eq!(least, 0, "the 21st has its share all the same");
    }
}
