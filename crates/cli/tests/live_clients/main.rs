//! Real daemons in network namespaces with real clients, killed, restarted, cut off and brought together under load.
//! The daemons' traces of their clients have to hold K1 to K9 and all properties of the ring; the events that the
//! clients' own processes saw have to hold K1 to K9, too, and to be those that the daemons wrote.

mod client;
mod daemons;
mod judge;
#[path = "../live/lives.rs"]
mod lives;
mod log;
mod schedule;
mod spread;

use std::time::{Duration, Instant};

use daemons::{Daemons, between};
use judge::Seen;
use schedule::Schedule;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    let number = |text: String| text.parse().expect("a number");
    text.map_or(default, number)
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn clients_of_killed_daemons_and_of_halves_that_meet_again() {
    let mut daemons = Daemons::start(4, 7);
    daemons.expect_whole();
    daemons.sleep(1000);
    daemons.kill(3);
    daemons.expect_rings(&[&[1, 2, 4]]);
    daemons.sleep(500);
    daemons.run(3);
    daemons.expect_whole();
    // Which groups have members on both sides then is up to the clients: one time has few merges, now and then.
    for (some, others) in [([1, 4], [2, 3]), ([1, 2], [3, 4])] {
        let wall = between(&some, &others);
        daemons.cut(&wall);
        daemons.expect_rings(&[&some, &others]);
        daemons.sleep(1000);
        daemons.mend(&wall);
        daemons.expect_whole();
    }
    daemons.sleep(500);
    let seen = daemons.check();
    seen.assert_not_idle(&Seen {
        views: 50,
        merges: 4,
        transitions: 10,
        deliveries: 2000,
        exchanges: 1,
        ring_merges: 2,
    });
}

/// `ROTA_SEED` and `ROTA_SECONDS` make a campaign of it: a round for each seed from there on, for so long.
#[test]
#[ignore = "needs root, for network namespaces"]
fn a_seeded_schedule_of_kills_and_cuts() {
    let first = setting("ROTA_SEED", 1);
    let until = Instant::now() + Duration::from_secs(setting("ROTA_SECONDS", 0));
    for seed in first.. {
        let command = "cargo test --release -p rota --test live_clients -- --include-ignored --nocapture seeded";
        println!("seed {seed}: ROTA_SEED={seed} {command}");
        let seen = Schedule::new(seed).run();
        println!("seed {seed}: {seen:?}");
        seen.assert_not_idle(&Seen {
            views: 100,
            merges: 10,
            transitions: 20,
            deliveries: 5000,
            exchanges: 1,
            ring_merges: 3,
        });
        if Instant::now() >= until {
            return;
        }
    }
}
