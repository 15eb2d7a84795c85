//! The help texts of counters.

use rota_net::NetStats;
use rota_paxos::uring::URingCounters;
use rota_ring as ring;
use rota_views::fastcast::FastCounters;

/// The help texts of the daemon's own counters.
const HELP: &[(&str, &str)] = &[
    (
        "log_lines_lost",
        "Lines of the log that were dropped because nobody took them.",
    ),
    (
        "coordination_requests",
        "How often the coordination service was asked which configuration follows.",
    ),
    (
        "coordination_failures",
        "How often the coordination service had no answer.",
    ),
    (
        "vote_groups",
        "Groups of votes that were made as durable as the mode wants, each together.",
    ),
    (
        "vote_groups_slow",
        "Groups of votes that took the disk longer than half a second.",
    ),
    ("clients_connected", "Clients let in."),
    (
        "clients_with_memory",
        "Clients let in that are told things through memory of their own.",
    ),
    (
        "clients_refused",
        "Clients not let in, for their name or for want of room.",
    ),
    (
        "clients_silent",
        "Clients that did not say in time who they are.",
    ),
    ("clients_garbled", "Clients that sent what is no request."),
    (
        "clients_slow",
        "Clients disconnected because they did not read.",
    ),
    (
        "clients_lagging",
        "Clients warned because they did not read.",
    ),
    (
        "clients_skipped",
        "Times that a client was not told what it did not read.",
    ),
    (
        "clients_throttling",
        "Times that senders were made to wait for a client that reads too slowly.",
    ),
    (
        "clients_throttling_us",
        "Time that senders were made to wait for clients, in microseconds, where that is over.",
    ),
    (
        "clients_throttled_long",
        "Clients that had not caught up when senders had waited for as long as they do.",
    ),
    (
        "messages_held",
        "Messages of clients that waited for a client that reads too slowly.",
    ),
    (
        "messages_held_us",
        "Time that these messages waited, in microseconds.",
    ),
    (
        "groups_holds_expired",
        "Times that clients had waited as long as they do, and nobody had said that they may go on.",
    ),
    (
        "groups_missed",
        "Times that this daemon came back after views of the others that it was not in.",
    ),
    (
        "groups_elsewhere",
        "Requests of clients that the others delivered while this daemon was in no view.",
    ),
    (
        "clients_turned_away",
        "Clients turned away for where they came from.",
    ),
    (
        "clients_crowded",
        "Clients turned away because their address has as many connections as it may.",
    ),
    (
        "clients_not_allowed",
        "Clients that may not connect, by the access list.",
    ),
    (
        "requests_not_allowed",
        "Requests that their clients may not make, by the access list.",
    ),
    (
        "admins_not_allowed",
        "Connections to the admin socket of those who may not know.",
    ),
    (
        "tls_shown",
        "Clients of other hosts that have shown who they are.",
    ),
    (
        "tls_refused",
        "Clients of other hosts that TLS has refused.",
    ),
    (
        "tls_silent",
        "Clients of other hosts that did not shake hands in time.",
    ),
    (
        "tls_revoked",
        "Clients whose certificate was revoked, refused or disconnected.",
    ),
    (
        "clients_dismissed",
        "Clients disconnected because new rules do not let them connect.",
    ),
    (
        "memberships_ended",
        "Memberships of clients ended because new rules do not let them be in the group.",
    ),
    (
        "reloads",
        "Times that the configuration was read again, or was to be.",
    ),
    (
        "reloads_failed",
        "Of these, times that nothing was changed, since something was wrong with it.",
    ),
    (
        "members_malformed",
        "Messages and notices about the list of nodes that made no sense.",
    ),
    (
        "groups_malformed",
        "Messages of other daemons that are none of theirs.",
    ),
    (
        "groups_late",
        "Requests ordered too late for their configuration, which are sent again.",
    ),
    (
        "groups_exchanges",
        "Times the daemons told each other which groups they know.",
    ),
    ("groups_refused", "Requests that the ring will never take."),
    ("groups_parts", "Parts of large messages delivered."),
    (
        "primary_attempts",
        "Attempts to make a configuration primary.",
    ),
    (
        "primary_refused",
        "Configurations that could not become primary.",
    ),
    ("primary_formed", "Primaries formed."),
    (
        "primary_forgotten",
        "Times that this node turned out to have been in a primary that it does not know: its disk was lost.",
    ),
    ("primary_reported", "Primaries reported to the application."),
    (
        "primary_malformed",
        "Messages about primaries that are none.",
    ),
    (
        "views_exchanges",
        "Times that members of a configuration began to tell each other what they hold.",
    ),
    ("views_installed", "Views that have begun."),
    (
        "views_tentative",
        "Changes of a view of which it was not known whether anybody had finished them.",
    ),
    (
        "views_forced_packets",
        "Packets that were delivered because their view had ended.",
    ),
    (
        "views_excluded",
        "Times that this node was in no primary configuration.",
    ),
    (
        "views_forgotten",
        "Configurations in which too few remembered the last view.",
    ),
    ("views_malformed", "Messages about views that are none."),
    (
        "views_incomplete",
        "Changes of a view for which packets were missing.",
    ),
    (
        "views_packets_malformed",
        "Packets whose sender breaks the rules.",
    ),
    (
        "views_duplicates",
        "Messages that had been delivered in an earlier view.",
    ),
    ("lcr_batches_sent", "Messages to the successor."),
    ("lcr_batch_bytes_sent", "Bytes of these."),
    ("lcr_packets_delivered", "Packets delivered."),
    (
        "lcr_hellos_received",
        "Times that the predecessor asked where to go on.",
    ),
    ("lcr_packets_duplicate", "Packets that came again."),
    (
        "lcr_messages_refused",
        "Messages of neighbours that are none, or that nobody may send.",
    ),
    (
        "lcr_messages_stale",
        "Messages of neighbours that are of another view.",
    ),
    (
        "lcr_datagrams_ignored",
        "Datagrams for a data path that this one is not.",
    ),
];

/// The values among the counters that may become less, or are a largest value.
pub(super) const GAUGES: &[(&str, &str)] = &[
    (
        "members_list",
        "How often the list of nodes has changed since the configuration, as `rota member list` says it.",
    ),
    (
        "members_unkept",
        "1 while the list of nodes could not be stored on disk: it would be forgotten.",
    ),
    ("clients_now", "Clients that are connected."),
    (
        "coordination_away",
        "1 while the coordination service has no answer, 0 otherwise.",
    ),
    (
        "votes_waiting_bytes",
        "Bytes of votes and promises for which the log has no answer yet.",
    ),
    (
        "votes_waiting_ms",
        "How long the oldest of them waits, in milliseconds.",
    ),
    (
        "votes_syncing_ms",
        "How long the sync that no vote waits for (storage async) has been under way, in milliseconds.",
    ),
    (
        "votes_failed",
        "1 while the acceptor's log has failed, or is being opened again: the node votes for nothing.",
    ),
    (
        "tls_certificate_expires",
        "When the daemon's certificate for TLS, or one between it and its root, expires, in seconds since 1970.",
    ),
    (
        "tls_crl_expires",
        "When the lists of revoked certificates expire, in seconds since 1970; 0 without lists.",
    ),
    (
        "groups_unfinished_bytes",
        "Bytes kept of large messages of which parts are still to come.",
    ),
    (
        "fast_link_kbps",
        "What this node's link takes in, in kbit/s of UDP payload; 0 while nobody knows.",
    ),
    (
        "fast_slowest_link_kbps",
        "What the slowest link takes in, by which all go, in kbit/s of UDP payload; 0 while nobody knows.",
    ),
    (
        "fast_rate_kbps",
        "What this node may send now, in kbit/s of UDP payload; 0 while there is no view.",
    ),
    (
        "uring_configuration",
        "The number of the newest configuration that this node knows.",
    ),
    (
        "uring_needed_bytes",
        "What acceptors keep for replicas whose checkpoints are behind, in bytes.",
    ),
    (
        "uring_memory_bytes",
        "What this acceptor has of votes in memory, in bytes.",
    ),
    (
        "uring_votes_in_log",
        "Votes for decided values that this acceptor's log alone has.",
    ),
    (
        "uring_rate_kbps",
        "What this node may multicast now, in kbit/s of UDP payload, where link_mbps is set.",
    ),
    (
        "rotation_longest_us",
        "Longest time between two visits of the token, in microseconds, unless it was held.",
    ),
];

/// The help text of a counter.
pub(super) fn help(name: &str) -> Option<&'static str> {
    let own = || HELP.iter().find(|(own, _)| *own == name);
    ring::Counters::help(name)
        .or_else(|| FastCounters::help(name))
        .or_else(|| URingCounters::help(name))
        .or_else(|| NetStats::help(name))
        .or_else(|| own().map(|(_, help)| *help))
        .map(|help| help.trim().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::{Engine, NodeId};
    use rota_core::timing::{Timers, Timing};
    use rota_paxos::uring::{URing, URingConfig};

    #[test]
    fn counters_of_all_rooms_have_words() {
        for name in [
            "retransmissions",
            "net_kernel_drops",
            "clients_slow",
            "coordination_failures",
            "vote_groups",
            "vote_groups_slow",
            "groups_late",
            "fast_packets_sent",
            "lcr_batches_sent",
            "views_installed",
        ] {
            let help = help(name).unwrap_or_default();
            assert!(help.len() > 5 && !help.ends_with('.'), "{name}: {help}");
        }
        assert_eq!(help("nonsense"), None);
    }

    #[test]
    fn all_that_the_engine_of_votes_counts_has_words() {
        let ring = vec![NodeId::new(1).unwrap()];
        let timers = Timers::derive(Timing::Default, 1);
        let engine = URing::new(URingConfig::new(ring, &timers));
        for name in engine.status().counters.keys() {
            let is_gauge = GAUGES.iter().any(|(gauge, _)| gauge == name);
            assert!(is_gauge || help(name).is_some(), "{name}");
        }
    }
}
