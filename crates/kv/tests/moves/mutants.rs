//! Broken versions are found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rota_kv::mutants::{Mutant, set};

use super::ends;
use super::world::run;

#[test]
fn each_broken_version_is_found_out() {
    let all = [
        Mutant::T05,
        Mutant::T06,
        Mutant::T07,
        Mutant::T08,
        Mutant::T09,
        Mutant::T11,
        Mutant::T12,
        Mutant::T13,
    ];
    for mutant in all {
        set(Some(mutant));
        let is_wrong = |seed: &u64| {
            // A state that is not as it should be panics.
            let found = catch_unwind(AssertUnwindSafe(|| run(*seed).1));
            found.map_or(true, |wrong| wrong.is_some())
        };
        let found = (0..500).find(is_wrong);
        set(None);
        println!("{mutant:?}: seed {found:?}");
        assert!(found.is_some(), "{mutant:?}");
    }
    set(Some(Mutant::T10));
    let is_found = ends::ends_in_one_partition_only();
    set(None);
    assert!(is_found && !ends::ends_in_one_partition_only());
    set(Some(Mutant::T19));
    let is_found = ends::begin_with_other_slots();
    set(None);
    assert!(is_found && !ends::begin_with_other_slots());
}
