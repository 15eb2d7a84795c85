//! Broken versions of the protocol, which have to be noticed.

use rota_core::mutants::{self, Mutant};

use super::plan::Plan;
use super::runs::{even_where_slow, run};

#[test]
fn each_broken_version_is_found_out() {
    let found = |mutant: Mutant, signs: &[&str]| {
        mutants::set(Some(mutant));
        let first = (0..400).find_map(|seed| run(Plan::draw(seed)).err().map(|sign| (seed, sign)));
        mutants::set(None);
        let (seed, sign) = first.unwrap_or_else(|| panic!("{mutant} is not found"));
        println!("{mutant}, seed {seed}: {sign}");
        assert!(
            signs.iter().any(|known| sign.starts_with(known)),
            "{mutant}: {sign}"
        );
    };
    found(Mutant::L01, &["complete"]);
    found(Mutant::L02, &["order"]);
    found(Mutant::L03, &["order", "uniform"]);
    found(
        Mutant::L04,
        &["complete", "lcr_messages_refused", "silence"],
    );
    found(
        Mutant::L05,
        &["complete", "lcr_messages_refused", "silence"],
    );
    found(Mutant::L06, &["order", "uniform"]);
    found(Mutant::L07, &["order", "silence"]);
    found(Mutant::L08, &["memory", "silence"]);
    found(
        Mutant::L09,
        &["order", "content", "complete", "lcr_messages_refused"],
    );

    mutants::set(Some(Mutant::L10));
    let unfair = (0..5).find_map(|slow| even_where_slow(slow).err());
    mutants::set(None);
    let unfair = unfair.expect("L10 is not found");
    println!("L10: {unfair}");
    assert!(unfair.starts_with("shares"), "L10: {unfair}");
}
