//! Broken versions are found out.

use std::panic::catch_unwind;

use rota_log::mutants::{Mutant, set};

use crate::replicas;

#[test]
fn each_broken_version_is_found_out() {
    // One after the other: a broken version is the one of the whole process.
    for mutant in [
        Mutant::D01,
        Mutant::D02,
        Mutant::D03,
        Mutant::D04,
        Mutant::D05,
        Mutant::D07,
        Mutant::D09,
        Mutant::D11,
        Mutant::D12,
    ] {
        set(Some(mutant));
        let found = (0..200).find(|seed| {
            let seed = *seed;
            catch_unwind(move || replicas::run(seed)).is_err()
        });
        set(None);
        println!("{mutant:?}: seed {found:?}");
        assert!(found.is_some(), "{mutant:?} is not found out");
    }
}
