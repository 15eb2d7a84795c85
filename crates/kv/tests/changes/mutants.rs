//! Broken versions are found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rota_kv::mutants::{Mutant, set};

use super::world::run;

#[test]
fn each_broken_version_is_found_out() {
    let all = [
        Mutant::T14,
        Mutant::T15,
        Mutant::T16,
        Mutant::T17,
        Mutant::T18,
    ];
    for mutant in all {
        set(Some(mutant));
        let is_wrong = |seed: &u64| {
            let found = catch_unwind(AssertUnwindSafe(|| run(*seed).1));
            found.map_or(true, |wrong| wrong.is_some())
        };
        let found = (0..200).find(is_wrong);
        set(None);
        println!("{mutant:?}: seed {found:?}");
        assert!(found.is_some(), "{mutant:?}");
    }
    assert_eq!(run(0).1, None);
}
