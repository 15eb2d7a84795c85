//! Property tests that draw the same values in every run.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Runs `check` on `cases` values of `strategy`. `ROTA_PROPERTY_SEED` draws others.
pub fn check<S: Strategy>(
    cases: u32,
    strategy: S,
    check: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let seed: u64 = match std::env::var("ROTA_PROPERTY_SEED") {
        Ok(text) => text.parse().expect("ROTA_PROPERTY_SEED is a number"),
        Err(_) => 0,
    };
    let mut bytes = [0x5a; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    println!("repeat with ROTA_PROPERTY_SEED={seed}");
    if let Err(error) = TestRunner::new_with_rng(config, rng).run(&strategy, check) {
        panic!("ROTA_PROPERTY_SEED={seed}: {error}");
    }
}
