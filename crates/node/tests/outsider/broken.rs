//! Sockets that are broken on purpose: an outsider has to change something then, or the tests beside prove nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rota_net::Transport;
use rota_net::mutants::{self, Mutant};
use rota_node::EngineName;

use super::namespace::in_namespace;
use super::{LOOPBACK, an_outsider_changes_nothing};

fn is_found_out(mutant: Mutant, port: u16) {
    in_namespace(&LOOPBACK, || {
        // All tests of this program that open sockets take turns: the bug is in none but this one.
        mutants::set(Some(mutant));
        let attacked =
            || an_outsider_changes_nothing(EngineName::AcceleratedRing, Transport::Unicast, port);
        let found = catch_unwind(AssertUnwindSafe(attacked)).is_err();
        mutants::set(None);
        assert!(found, "{mutant:?} is not noticed");
    });
}

#[test]
#[ignore = "needs root, for a network namespace and raw sockets"]
fn refusals_that_are_believed_are_found_out() {
    is_found_out(Mutant::O01, 25_800);
}

#[test]
#[ignore = "needs root, for a network namespace and raw sockets"]
fn path_mtus_that_are_believed_are_found_out() {
    is_found_out(Mutant::O02, 25_820);
}
