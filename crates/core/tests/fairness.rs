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

fn sent(ring: &Ring) -> Vec<u64> {
    let engines = ring.engines.iter();
    engines
        .map(|engine| engine.get().counters().packets_sent)
        .collect()
}

#[test]
fn who_fits_the_global_window_gets_the_personal_window_each_rotation() {
    let mut ring = Ring::new(4, 10, 40);
    (0..1000).for_each(|_| saturated_round(&mut ring));
    let sent = sent(&ring);
    let (least, most) = (
        sent.iter().min().expect("four"),
        sent.iter().max().expect("four"),
    );
    assert!(*least > 1000 && most - least <= 20, "{sent:?}");
}

#[test]
fn nobody_starves_when_the_global_window_is_smaller_than_all_want() {
    let mut ring = Ring::new(4, 10, 20);
    (0..1000).for_each(|_| saturated_round(&mut ring));
    let sent = sent(&ring);
    assert!(
        sent.iter().all(|&packets| packets > 100),
        "somebody starves: {sent:?}"
    );
}
