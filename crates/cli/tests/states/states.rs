//! The states, and what is said of each.

use crate::ills;
use crate::table::{ALL, Cell, Is, RINGS, Say, State, VIEWS, VOTES};
use Is::{Never, Said, Well};
use Say::{Nothing, Words};
use rota_node::EngineName::{self, FastCast, Lcr, RingPaxos, URingPaxos};

const RINGS_AND_VIEWS: &[EngineName] = &[
    EngineName::AcceleratedRing,
    EngineName::TotemRing,
    FastCast,
    Lcr,
];
/// Their messages go along links, and nothing but those that form a view or a ring of their own.
const BY_LINKS: &[EngineName] = &[Lcr, URingPaxos];

const NO_MULTICAST: &str = "messages go along links; LCR multicasts only what forms a view, and then the state is that of the rings";
const NO_VOTES: &str =
    "no votes are kept; the few numbers that are written wait beside the ring's work";

const fn cell(engines: &'static [EngineName], is: Is) -> Cell {
    Cell { engines, is }
}

/// Where the ill one is missing from the ring.
const MISSING: Is = Said([
    Words("node 3 is not on the ring"),
    Words("missing  node 3"),
    Words("node 3 is not on the ring"),
    Words("rota_ring_members < 3"),
]);

pub const STATES: &[State] = &[
    State {
        name: "A member is dead",
        made: "The third daemon is killed (`kill -9`)",
        make: ills::kill_one,
        end: ills::restart,
        cells: &[cell(ALL, MISSING)],
    },
    State {
        name: "A majority is dead",
        made: "Two daemons are killed at once",
        make: ills::kill_two,
        end: ills::restart_two,
        cells: &[
            cell(
                RINGS,
                Said([
                    Words("nodes 2, 3 are not on the ring"),
                    Words("missing  node 2, node 3"),
                    Words("node 2 is not on the ring"),
                    Words("rota_ring_members < 3"),
                ]),
            ),
            cell(
                VIEWS,
                Said([
                    Words("nodes 2, 3 are not on the ring"),
                    Words("in no view"),
                    Words("not with it: node 2, 3"),
                    Words("rota_excluded > 0"),
                ]),
            ),
            cell(
                VOTES,
                Said([
                    Words("these are not there: 2, 3"),
                    Words("these are not there: 2, 3"),
                    Words("node 1 is in no majority"),
                    Words("rota_ring_operational < 1"),
                ]),
            ),
        ],
    },
    State {
        name: "A member's multicast reaches nobody",
        made: "What the third host sends to the group goes nowhere; all else passes",
        make: ills::mute,
        end: ills::hears_again,
        cells: &[
            cell(
                RINGS,
                Said([
                    Words("nobody receives what this node sends"),
                    Words("self_mute"),
                    Words("what node 3 multicasts reaches nobody"),
                    Words("increase(rota_self_mute_total) > 0"),
                ]),
            ),
            cell(
                &[FastCast],
                Said([
                    Nothing("the others get all they ask for, and the view lasts"),
                    Nothing("as in the log"),
                    Words("what node 3 multicasts reaches nobody"),
                    Words("increase(rota_fast_packets_resent_total) > 0"),
                ]),
            ),
            cell(BY_LINKS, Well(NO_MULTICAST)),
            cell(
                &[RingPaxos],
                Said([
                    Nothing("its values go to the coordinator by its link, and are in time"),
                    Nothing("as in the log"),
                    Words("what node 3 multicasts reaches nobody"),
                    Words("increase(rota_uring_values_sent_again_total) > 0"),
                ]),
            ),
        ],
    },
    State {
        name: "A member is deaf",
        made: "What comes for the group does not get into the third host; all else passes",
        make: ills::deaf,
        end: ills::hears_again,
        cells: &[
            cell(
                RINGS,
                Said([
                    Words("a member that hears tokens but misses packets was excluded"),
                    Words("members_deaf"),
                    Words("node 3 gets none of the packets that others send"),
                    Words("increase(rota_members_deaf_total) > 0"),
                ]),
            ),
            cell(
                &[FastCast],
                Said([
                    Nothing("it gets all it asks for, and the view lasts"),
                    Nothing("as in the log"),
                    Words("node 3 gets none of the packets that others send"),
                    Words("increase(rota_fast_packets_repaired_total) > 0"),
                ]),
            ),
            cell(BY_LINKS, Well(NO_MULTICAST)),
            cell(
                &[RingPaxos],
                Said([
                    Nothing("it gets all it asks for by links"),
                    Nothing("as in the log"),
                    Words("node 3 gets none of the packets that others send"),
                    Words("increase(rota_uring_values_asked_for_total) > 0"),
                ]),
            ),
        ],
    },
    State {
        name: "Multicast does not pass at all",
        made: "What any host sends to the group goes nowhere, from one moment on; all else passes",
        make: ills::no_multicast,
        end: ills::multicast_again,
        cells: &[
            cell(
                RINGS,
                Said([
                    Words("nobody receives what this node sends"),
                    Words("self_mute"),
                    Words("with multicast at IGMP in the switches"),
                    Words("increase(rota_self_mute_total) > 0"),
                ]),
            ),
            cell(
                &[FastCast],
                Said([
                    Words("nobody receives what this node sends"),
                    Words("self_mute"),
                    Words("with multicast at IGMP in the switches"),
                    Words("increase(rota_self_mute_total) > 0"),
                ]),
            ),
            cell(BY_LINKS, Well(NO_MULTICAST)),
            cell(
                &[RingPaxos],
                Said([
                    Nothing("all goes by links instead, and is in time"),
                    Nothing("as in the log"),
                    Words("with multicast at IGMP in the switches"),
                    Words("increase(rota_uring_values_sent_again_total) > 0"),
                ]),
            ),
        ],
    },
    State {
        name: "Multicast has never passed",
        made: "The same, and all daemons are started anew",
        make: ills::never_multicast,
        end: ills::multicast_again,
        cells: &[
            cell(
                RINGS,
                Said([
                    Words("nobody receives what this node sends"),
                    Words("missing  node"),
                    Words("with multicast at IGMP in the switches"),
                    Words("rota_ring_members < 3"),
                ]),
            ),
            cell(
                VIEWS,
                Said([
                    Words("the ring: changing the view"),
                    Words("changing the view"),
                    Words("is on no ring: changing the view"),
                    Words("rota_ring_operational < 1"),
                ]),
            ),
            cell(
                &[RingPaxos],
                Said([
                    Nothing("links are enough to form a ring, and to order"),
                    Nothing("as in the log"),
                    Words("with multicast at IGMP in the switches"),
                    Words("increase(rota_uring_values_sent_again_total) > 0"),
                ]),
            ),
            cell(&[URingPaxos], Well("links are all it uses")),
        ],
    },
    State {
        name: "One direction is cut",
        made: "Nothing of the second gets into the third host; all else passes",
        make: ills::one_way,
        end: ills::hears_again,
        cells: &[
            cell(
                RINGS_AND_VIEWS,
                Said([
                    Words("is left alone for a while: it is heard, and no ring with it holds"),
                    Words("is left alone for a while: it is heard, and no ring with it holds"),
                    Words("is left alone for a while: it is heard, and no ring with it holds"),
                    Words("increase(rota_back_offs_total) > 0"),
                ]),
            ),
            cell(
                VOTES,
                Said([
                    Words("outside the ring of configuration"),
                    Words("outside the ring of configuration"),
                    Words("is not on the ring"),
                    Words("rota_ring_operational < 1"),
                ]),
            ),
        ],
    },
    State {
        name: "A member is slow",
        made: "The third daemon is stopped for 50 ms, and runs for 10 ms, again and again",
        make: ills::slow,
        end: ills::fast_again,
        cells: &[
            cell(
                RINGS,
                Said([
                    Nothing(
                        "the token is late, and far from lost; `rotations_slow` says where it is near that",
                    ),
                    Nothing("it says no times, but with `--json`"),
                    Words("node 3 is slow"),
                    Words("rate(rota_token_waited_seconds_total) > 0.2"),
                ]),
            ),
            cell(
                VIEWS,
                Said([
                    Nothing(
                        "the token is late, and far from lost; `rotations_slow` says where it is near that",
                    ),
                    Nothing("it says no times, but with `--json`"),
                    Words("node 3 is slow"),
                    Words("rate(rota_token_waited_seconds_total) > 0.05"),
                ]),
            ),
            cell(
                VOTES,
                Said([
                    Nothing("no token tells whose time it is; messages take longer"),
                    Nothing("as in the log"),
                    Nothing("as in the log"),
                    Nothing(
                        "`rota_message_latency_seconds` of all nodes grows, and no number says for whom",
                    ),
                ]),
            ),
        ],
    },
    State {
        name: "A member stands still",
        made: "The third daemon is stopped (`kill -STOP`)",
        make: ills::pause,
        end: ills::go_on,
        cells: &[cell(
            ALL,
            Said([
                Words("node 3 is not on the ring"),
                Words("missing  node 3"),
                Words("it does not answer within 3 s: it is stopped"),
                Words("rota_ring_members < 3"),
            ]),
        )],
    },
    State {
        name: "A disk hangs",
        made: "The disk with the votes of the third does not answer any more",
        make: ills::disk_hangs,
        end: ills::disk_well,
        cells: &[
            cell(RINGS_AND_VIEWS, Never(NO_VOTES)),
            cell(
                VOTES,
                Said([
                    Words("its disk has had votes for"),
                    Words("its disk has had votes for"),
                    Words("node 3: its disk has had votes for"),
                    Words("rota_votes_waiting_ms > 500"),
                ]),
            ),
        ],
    },
    State {
        name: "A disk fails",
        made: "Each write to the log of votes of the third is an error",
        make: ills::disk_fails,
        end: ills::disk_well,
        cells: &[
            cell(RINGS_AND_VIEWS, Never(NO_VOTES)),
            cell(
                VOTES,
                Said([
                    Words("the acceptor's log has failed"),
                    Words("it votes for nothing"),
                    Words("node 3: the log of its votes has failed"),
                    Words("rota_votes_failed > 0"),
                ]),
            ),
        ],
    },
    State {
        name: "A disk is full",
        made: "The third is started anew with a full disk as its `state_dir`, and so does not run",
        make: ills::disk_full,
        end: ills::disk_has_room,
        cells: &[cell(
            ALL,
            Said([
                Words("No space left on device"),
                Words("missing  node 3"),
                Words("node 3 is not on the ring"),
                Words("rota_ring_members < 3"),
            ]),
        )],
    },
    State {
        name: "A disk is forgotten",
        made: "The third is killed, its `state_dir` is emptied, and it is started anew",
        make: ills::disk_forgotten,
        end: ills::nothing,
        cells: &[
            cell(
                RINGS_AND_VIEWS,
                Well("what was kept is the number of the last ring, which the others know"),
            ),
            cell(
                VOTES,
                Well("it comes back as another acceptor, and gets from the others what it lacks"),
            ),
        ],
    },
    State {
        name: "A wrong key",
        made: "The third is started anew with a key of its own, of the same number",
        make: ills::wrong_key,
        end: ills::restart,
        cells: &[
            cell(
                RINGS_AND_VIEWS,
                Said([
                    Words("datagrams are not authentic"),
                    Words("net_seal_forged"),
                    Words("compare the key files (net_seal_forged)"),
                    Words("increase(rota_net_seal_forged_total) > 0"),
                ]),
            ),
            cell(
                VOTES,
                Said([
                    Words("connections for links were not authentic"),
                    Words("net_link_forged"),
                    Words("compare the key files (net_link_forged)"),
                    Words("increase(rota_net_link_forged_total) > 0"),
                ]),
            ),
        ],
    },
    State {
        name: "Another cluster",
        made: "The third is started anew with another number of its `cluster`",
        make: ills::other_cluster,
        end: ills::restart,
        cells: &[
            cell(
                RINGS_AND_VIEWS,
                Said([
                    Words("a node has a wrong key or another `cluster`"),
                    Words("net_seal_forged"),
                    Words("another key of the same number, or another `cluster`"),
                    Words("increase(rota_net_seal_forged_total) > 0"),
                ]),
            ),
            cell(
                VOTES,
                Said([
                    Words("connections for links were refused"),
                    Words("net_link_refused"),
                    Words("a node has another `cluster`"),
                    Words("increase(rota_net_link_refused_total) > 0"),
                ]),
            ),
        ],
    },
    State {
        name: "Two nodes of one number",
        made: "At the third's address a daemon is started that calls itself the second",
        make: ills::double,
        end: ills::single,
        cells: &[
            cell(
                RINGS_AND_VIEWS,
                Said([
                    Words("two processes use one number"),
                    Words("net_seal_old_life"),
                    Words("two processes use one number"),
                    Words("increase(rota_net_seal_old_life_total) > 0"),
                ]),
            ),
            cell(
                VOTES,
                Said([
                    Words("connections for links were refused"),
                    Words("missing  node 3"),
                    Words("two processes use one number"),
                    Words("increase(rota_net_link_refused_total) > 0"),
                ]),
            ),
        ],
    },
    State {
        name: "Settings differ",
        made: "The third is started anew with other values of `timing` and `global_window`",
        make: ills::other_settings,
        end: ills::restart,
        cells: &[
            cell(
                RINGS_AND_VIEWS,
                Said([
                    Words("node 3 has global_window = 20, this node 320: the smallest is in force"),
                    Words("node 3 has global_window = 20, this node 320: the smallest is in force"),
                    Words("node 3 has global_window = 20, this node 320: the smallest is in force"),
                    Nothing("no number says which"),
                ]),
            ),
            cell(VOTES, Well("these settings are each node's own")),
        ],
    },
    State {
        name: "The kernel refuses what a member sends",
        made: "A route of the third host prohibits all to the first",
        make: ills::refused,
        end: ills::refused_no_more,
        cells: &[
            cell(
                RINGS_AND_VIEWS,
                Said([
                    Words("Permission denied (os error 13): look at the routes of that host"),
                    Words("Permission denied (os error 13): look at the routes of that host"),
                    Words("seen by node 3: the kernel of its host refuses what it sends to"),
                    Words("increase(rota_net_send_errors_total) > 0"),
                ]),
            ),
            cell(
                VOTES,
                Well("it sends no datagrams to a single node; its links find another way or break"),
            ),
        ],
    },
    State {
        name: "A client does not read",
        made: "A client of the second daemon is stopped, and is sent four megabytes",
        make: ills::client_reads_nothing,
        end: ills::end_helpers,
        cells: &[cell(
            ALL,
            Said([
                Nothing(
                    "only what is done about it is said there: `client_queue_bytes` is not reached",
                ),
                Words("#sleeper#n2 (native): … not read for"),
                Words("client #sleeper#n2 of node 2 is stuck"),
                Words("rota_client_waiting_bytes > 1000000"),
            ]),
        )],
    },
    State {
        name: "An application hangs",
        made: "A program with the library that takes no deliveries",
        make: ills::nothing,
        end: ills::nothing,
        cells: &[cell(
            ALL,
            Never(
                "a daemon takes what is delivered, whatever its clients do; a program with the library finds `self_hung` in its \
                 counters, and a note in its status and its log",
            ),
        )],
    },
    State {
        name: "A clock is set back while its daemon runs",
        made: "The time of day of the third goes an hour back",
        make: ills::clock_back,
        end: ills::clock_right,
        cells: &[cell(ALL, Well("a daemon that runs goes by no time of day"))],
    },
    State {
        name: "A clock was set back before its daemon started",
        made: "The third is killed, its time of day goes an hour back, and it is started anew",
        make: ills::starts_in_the_past,
        end: ills::starts_now,
        cells: &[
            cell(
                &[
                    EngineName::AcceleratedRing,
                    EngineName::TotemRing,
                    FastCast,
                    Lcr,
                    RingPaxos,
                ],
                Said([
                    Words("datagrams are from an earlier life of their sender"),
                    Words("net_seal_old_life"),
                    Words("datagrams are from an earlier life of their sender"),
                    Words("increase(rota_net_seal_old_life_total) > 0"),
                ]),
            ),
            cell(
                &[URingPaxos],
                Well(
                    "links are all it uses, and a link begins with a handshake that goes by no clock",
                ),
            ),
        ],
    },
];
