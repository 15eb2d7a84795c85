//! Three replicas of logs over one order, with disks that forget and processes that stop, next to a model that meets no
//! fault.

// The directory that fails takes the numbers of errors from `libc`, of which this needs these.
extern crate self as libc;

mod model;
#[cfg(feature = "mutants")]
mod mutants;
mod replicas;
#[path = "../../../storage/tests/sim/mod.rs"]
mod sim;
mod writers;

pub(crate) const EIO: i32 = 5;
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EROFS: i32 = 30;

/// Seeds of a run: `SEEDS` says how many, `SEED` which one.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let of = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    match of("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..of("SEEDS").unwrap_or(usual),
    }
}

#[test]
fn all_replicas_have_what_the_model_has_whatever_happens_to_them() {
    let mut all = replicas::Counts::default();
    for seed in seeds(200) {
        all += replicas::run(seed);
    }
    println!("{all:?}");
    if std::env::var("SEED").is_err() {
        // What never happens shows nothing.
        assert!(all.restarts > 1_000 && all.losses > 100 && all.states_of_others > 100);
        assert!(all.checkpoints > 500 && all.refused > 300 && all.again > 100);
        assert!(all.deleted > 100 && all.trimmed > 300 && all.sealed > 50 && all.read > 10_000);
    }
}
