//! The cost of sealing for each datagram, without sockets: `cargo run --release -p rota-net --example seal_cost`.

use std::hint::black_box;
use std::time::Instant;

use rota_core::contract::{Class, NodeId, Target, Time};
use rota_net::KeyRing;
use rota_net::seal::{Life, Opener, SEALED_BYTES, Sealer, Senders, checksum};

/// Datagrams in a burst, and bursts for each figure.
const BURST: usize = 40;
const BURSTS: usize = 2000;
/// Of so many rounds the median is shown.
const ROUNDS: usize = 9;

/// Nanoseconds for each datagram of `work`, which does a burst.
fn cost(mut work: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..BURSTS).for_each(|_| work());
            start.elapsed().as_nanos() as f64 / (BURST * BURSTS) as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = KeyRing::generate()?;
    let [one, two] = [1, 2].map(NodeId::new).map(Option::unwrap);
    println!("bytes   seal ns   open ns   checksum ns");
    for bytes in [150, 500, 1472, 9000] {
        let mut sealer = Sealer::new(7, keys.clone(), one, Life::begin()?)?;
        let me = (two, Life::begin()?);
        let mut opener = Opener::new(7, keys.clone(), me, Senders::Any);
        let mut burst = vec![3; BURST * (bytes + SEALED_BYTES)];
        let segment = bytes + SEALED_BYTES;
        let seal = cost(|| {
            for datagram in burst.chunks_mut(segment) {
                sealer.seal(Class::Data, Target::Others, datagram);
            }
            black_box(&burst);
        });
        // A datagram opens once only, so each burst is sealed and opened; the sealing is taken off.
        let both = cost(|| {
            for datagram in burst.chunks_mut(segment) {
                sealer.seal(Class::Data, Target::Others, datagram);
                let opened = opener.open(Time(1), Class::Data, datagram);
                assert!(opened.is_ok(), "{opened:?}");
            }
        });
        let sum = cost(|| burst.chunks_mut(segment).for_each(checksum::seal));
        println!("{bytes:5} {seal:9.0} {:9.0} {sum:13.0}", both - seal);
    }
    Ok(())
}
