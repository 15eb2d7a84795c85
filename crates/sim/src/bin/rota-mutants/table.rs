//! The effect of each mutant, and the properties that have to notice it.

use rota_core::mutants::Mutant;
use rota_core::mutants::Mutant::*;

/// A mutant that must be found out.
pub struct Known {
    pub mutant: Mutant,
    /// Properties that speak of what it breaks.
    pub kinds: &'static [&'static str],
    pub what: &'static str,
}

impl Known {
    /// Whether it takes clients to notice.
    pub fn is_of_groups(&self) -> bool {
        let of_clients = |kind: &&str| kind.starts_with('K') || *kind == "groups";
        self.kinds.iter().any(of_clients)
    }
}

pub const fn known(mutant: Mutant, kinds: &'static [&'static str], what: &'static str) -> Known {
    Known {
        mutant,
        kinds,
        what,
    }
}

/// All of them. `R..` are this project's own.
#[rustfmt::skip]
pub const TABLE: &[Known] = &[
    known(M01, &["F3", "F1"], "the safe line is the received aru, not the lower of the last two sent"),
    known(M02, &["F3", "F1"], "the safe line is the aru sent in this rotation only"),
    known(M03, &["F3", "F1", "V1", "S1"], "anybody raises the aru, not only who lowered it"),
    known(M04, &["F3", "F1", "V1", "S1"], "the aru rises with seq though somebody misses something"),
    known(M05, &["O4"], "the token's seq counts only what left before the token"),
    known(M06, &["prefix", "O2", "O3", "fifo", "V1"], "a missing packet is passed over"),
    known(M07, &["spurious"], "what may not have been sent yet is asked for"),
    known(M08, &["V1", "S1", "C8"], "packets are discarded when delivered, not when safe"),
    known(M09, &["O4", "O1", "C8"], "repeated tokens, and tokens while gathering, are accepted"),
    known(M10, &["O4", "O1", "F3", "F1", "V1", "S1", "C8"], "tokens of any ring are accepted by their number alone"),
    known(M11, &["C8"], "a repeated token, sent or received, puts off the loss"),
    known(M12, &["C7", "C1"], "a ring number is used before it is durable"),
    known(M13, &["C7", "C1", "E1"], "a restarted process begins with number 0 again"),
    known(M14, &["V1", "C5", "C4", "C3", "C1"], "who comes along is told by membership alone, not by the old ring"),
    known(M15, &["V1", "C5", "C4", "C3", "C1"], "the old ring is overwritten by one that was never installed"),
    known(M16, &["V1"], "the cut is the own safe line, not the highest"),
    known(M17, &["F1", "F2"], "safe messages above the line are delivered in the regular configuration"),
    known(M18, &["O2"], "everything is delivered behind a hole"),
    known(M19, &["S1", "F1"], "nothing is delivered behind a hole"),
    known(M20, &["F1"], "obligations are forgotten when a recovery fails"),
    known(M21, &["O2", "V1", "E1"], "obligations are kept when a ring is installed"),
    known(M22, &["F1", "V1"], "a ring is installed one rotation early"),
    known(M23, &["V1", "O2", "S1"], "what belongs to the recovery is settled one rotation early"),
    known(M24, &["V1"], "anybody clears the recovery flag"),
    known(M25, &["C8"], "wrapped packets of other old rings are dropped"),
    known(M26, &["C8", "C1"], "who has given this process up passes on its opinions"),
    known(M28, &["C1", "C4", "C8"], "agreement looks at the processes only, not at those given up"),
    known(M30, &["C8"], "who was given up stays so when a ring is installed"),
    known(M31, &["C8"], "rings do not look for each other"),
    known(M33, &["E1", "E3", "O4"], "messages are originated before the application has seen the ring"),
    known(R01, &["S1", "E1"], "a message that was cut by the end of a ring is not sent again whole"),
    known(R03, &["E1", "V1", "O1"], "wrapped packets are taken whatever ring they are of"),
    known(R05, &["V1", "E1", "E3"], "repeated wrapped packets lose their mark"),
    known(R07, &["V1"], "only what the best informed lacks is sent again"),
    known(R08, &["V1"], "the end of the old ring is what this process has, not what anybody has"),
    known(R09, &["S1", "F1"], "the obligation is to the neighbour's messages, not to the own"),
    known(M34, &["K1", "K2", "K4", "K5", "K7", "K9", "groups"], "what clients ask for counts whatever configuration it was sent for, also during an exchange"),
    known(G01, &["K6"], "a group is signaled as often as daemons go"),
    known(G02, &["K1", "K2"], "views between two configurations are numbered like those before"),
    known(G03, &["K5"], "a message comes once for each destination that matches"),
    known(G04, &["K4", "K9"], "all who meet are said to have come together"),
    known(G05, &["K3"], "the set of a view is its first member, not the one it is about"),
    known(G06, &["K6"], "groups are not signaled when daemons go"),
    known(G07, &["K1", "K2", "K3", "K5", "K9", "groups"], "who leaves stays a member"),
    known(G08, &["K7"], "senders get what they want no copy of"),
    known(G09, &["K6", "K8"], "events of one delivery are told the last one first"),
    known(G10, &["K1", "K2", "K4", "K9", "groups"], "what was told before an exchange was cut off is kept for the next"),
    known(G11, &["K5", "K7", "groups"], "requests that were ordered too late are not sent again"),
    known(G12, &["K1", "K3", "K9", "groups"], "joins at daemons that go count where others go on"),
    known(G13, &["K1", "K2", "K4", "K9", "groups"], "who was not heard when an exchange was cut off forgets what it knew"),
    known(G14, &["K6"], "who went before an exchange is not told with it"),
    known(G15, &["K2", "K3", "K9", "groups"], "who is made to skip joins again without having disconnected"),
    known(G16, &["K7"], "what is for who was made to skip still goes to what it was before"),
    known(G17, &["K7", "groups"], "a large message that was cut by the end of a configuration goes on in the next"),
    known(G18, &["K4", "K7", "K9", "groups"], "parts of large messages are kept when a configuration ends"),
    known(G22, &["K4", "K7"], "who gets messages with a head that is known is not looked up again when somebody comes or goes"),
    known(R10, &["S1", "E1"], "the parts of a message that is sent again are in the wrong order"),
];

/// Mutants that this simulation does not have to find, and why.
pub const SURVIVORS: &[(Mutant, &str)] = &[
    (
        M27,
        "costs one re-formation for each such join, which ends: who_has_given_a_process_up_leaves_its_ring_alone notices",
    ),
    (
        M29,
        "the ring that is agreed to this way is still one that all its members agree to",
    ),
    (
        R02,
        "hardly ever harms: a second first token is mostly a repeated one. p_21_the_commit_token_is_lost_at_each_hop notices",
    ),
    (
        R04,
        "costs one re-formation for each old join, which ends: p_11_old_joins_do_not_move_a_ring_in_service notices",
    ),
    (
        R06,
        "no seed has shown harm: what comes after a process has told is mostly sent again by who has it as well",
    ),
    (
        G19,
        "what is held is let go after its time, whatever a daemon hears: crates/core/tests/groups_model.rs, where time stands still, notices",
    ),
    (G20, "the same"),
];
