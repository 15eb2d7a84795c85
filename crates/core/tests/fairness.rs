//! Who gets to send when all want to, and more than the global window admits.

mod lockstep;

use lockstep::Ring;
use rota_core::contract::{Engine, Service};

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
    let mut ring = Ring::new(4, 10, global);
    (0..200).for_each(|_| drop(ring.round(1_000_000)));
    let members = |at: usize| {
        let ordering = ring.engines[at].get().ordering();
        ordering.map_or(0, |ordering| ordering.members().len())
    };
    assert!((0..4).all(|at| members(at) == 4));
    ring
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
