//! Broken versions are found.

use rota_kv::mutants::{Mutant, set};

use super::world::run;

#[test]
fn each_broken_version_is_found_out() {
    for mutant in [Mutant::T01, Mutant::T02, Mutant::T03] {
        set(Some(mutant));
        let found = (0..3_000).find(|seed| run(*seed).1.is_some());
        set(None);
        println!("{mutant:?}: seed {found:?}");
        assert!(found.is_some(), "{mutant:?}");
    }
}
