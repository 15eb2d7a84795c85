//! Mutants of groups over primary views, as the simulator finds them out.

use rota_core::mutants::Mutant;
use rota_core::mutants::Mutant::*;
use rota_sim::campaign::EngineName;

use super::table::{Known, known};

/// Both engines that have views, in turns.
pub const fn engine(_: Mutant, seed: u64) -> EngineName {
    if seed % 2 == 1 {
        EngineName::Lcr
    } else {
        EngineName::FastCast
    }
}

/// The mutants that must be found out, of exclusion and of other steps that differ where there are no transitional
/// configurations. The others, of [`TABLE`](super::table::TABLE), are about these.
#[rustfmt::skip]
pub const TABLE: &[Known] = &[
    known(G03, &["K5"], "a message comes once for each destination that matches"),
    known(G04, &["K4", "K9"], "all who meet are said to have come together"),
    known(G07, &["K1", "K2", "K3", "K5", "K9", "groups"], "who leaves stays a member"),
    known(G09, &["K8", "K10"], "events of one delivery are told the last one first"),
    known(G10, &["K1", "K2", "K4", "K9", "groups"], "what was told before an exchange was cut off is kept for the next"),
    known(G11, &["K5", "K7", "groups"], "requests that were ordered too late are not sent again"),
    known(G14, &["K1", "K4", "K9", "groups"], "who went before an exchange is not told with it"),
    known(G17, &["K7", "groups"], "a large message that was cut by the end of a view goes on in the next"),
    known(G18, &["K4", "K7", "K9", "groups"], "parts of large messages are kept when a view ends"),
    known(M34, &["K1", "K2", "K4", "K5", "K7", "K9", "groups"], "what clients ask for counts whatever view it was sent for, also during an exchange"),
    known(G23, &["K5"], "messages that the others delivered while a daemon was in no view are sent again"),
    known(G25, &["K10"], "who was in no view is not told who is there"),
    known(G27, &["K6", "K7", "K10"], "clients are not told that views were missed if nobody had said that the daemon was in none"),
    known(G29, &["K10"], "who connects to a daemon in no view is not told so"),
    known(G31, &["K5", "groups"], "joins and leaves that ended with a missed view are not asked for again"),
];

/// The mutants that the simulator does not have to find, over views either, with the reasons.
pub const SURVIVORS: &[(Mutant, &str)] = &[
    (
        G24,
        "takes two that were left out of one view after different messages, and come back in one: crates/core/tests/groups_model.rs notices",
    ),
    (
        G26,
        "shows when a client's room is full of what was delivered elsewhere: the same model notices",
    ),
    (
        G28,
        "takes the last part of a large message just before its daemon is left out: the same model notices",
    ),
    (
        G32,
        "takes a daemon that dies when a view has begun and it has not told what it knows, and a group shared with one other alone: seeds that had brought it about do not any more; crates/core/src/groups/tests/exclusion.rs notices",
    ),
    (
        G30,
        "takes a disconnect just before its daemon is left out: the same model notices",
    ),
];
