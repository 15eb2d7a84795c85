//! The least counts of rare cases with which a campaign without a violation says something about them.

use super::{EngineName, Report};
use crate::plan::{Plan, Profile};
use crate::world::reached;

/// Campaigns of fewer token rounds may miss rare cases by chance.
const SMALLEST: u64 = 1_000_000;

/// Token rounds for which the floors are named.
const ROUNDS: u64 = 100_000_000;

/// The least counts of rare cases in that many rounds.
const FLOORS: [(&str, u64); 5] = [
    ("transitional_safe_deliveries", 100_000),
    ("post_hole", 10_000),
    ("post_hole_left_out", 10_000),
    ("merges_of_groups", 10_000),
    ("obligations_kept", 1_000),
];

/// The least count, in as many rounds, of each cell of the table of events and states that can be reached.
const CELL: u64 = 100;

/// Campaigns of fewer views, each counted by each of its members, may miss rare cases of engines with views by chance.
const SMALLEST_VIEWS: u64 = 10_000;

/// The least counts of rare cases in that many views.
const OF_VIEWS: [(&str, u64); 9] = [
    ("views_forced_packets", 10_000),
    ("views_tentative", 100),
    ("views_forgotten", 50),
    ("views_excluded", 1_000),
    ("leaders_killed", 20),
    ("senders_killed", 50),
    ("killed_in_a_change", 20),
    ("snipes", 50),
    ("stalls", 100),
];

/// The counters of U-Ring Paxos.
const OF_URING: [&str; 6] = [
    "uring_candidacies",
    "uring_configurations",
    "uring_suspicions",
    "uring_values_late",
    "uring_values_uncounted",
    "uring_votes_fetched",
];

/// The counters of Ring Paxos. No value is late there: the coordinator takes those that are next.
const OF_RING_PAXOS: [&str; 7] = [
    "uring_candidacies",
    "uring_configurations",
    "uring_suspicions",
    "uring_values_asked_for",
    "uring_values_sent_again",
    "uring_values_uncounted",
    "uring_votes_fetched",
];

/// The counters of acceptors that keep little in memory.
const OF_ARCHIVE: [&str; 3] = [
    "uring_instances_lost",
    "uring_reads_failed",
    "uring_votes_read_back",
];

/// Campaigns of fewer seeds of engines that vote may miss rare cases by chance.
const SMALLEST_VOTES: u64 = 300;

/// The least counts of rare cases in that many seeds.
const OF_VOTES: [(&str, u64); 31] = [
    ("crashes", 1_000),
    ("devices_broken_for_good", 2),
    ("devices_hung_for_good", 2),
    ("disk_hangs", 30),
    ("excluded", 10),
    ("foundations", 5),
    ("logs_given_up", 30),
    ("logs_opened_again", 20),
    ("losses_of_power", 50),
    ("many_lives", 2),
    ("messages_of_megabytes", 30),
    ("missed", 300),
    ("nodes_gone", 2),
    ("persist_failures", 50),
    ("questions_answered", 100),
    ("questions_lost", 10),
    ("restarts_of_all", 15),
    ("restarts_without_one", 5),
    ("service_stops", 5),
    ("skips", 100),
    ("stores_lost_with_power", 10),
    ("stores_put_back", 5),
    ("stores_replaced", 30),
    ("with_a_service", 10),
    ("with_different_disks", 20),
    ("with_large_messages", 5),
    ("with_little_kept", 20),
    ("with_members_only", 10),
    ("with_narrow_disks", 20),
    ("with_slow_disks", 10),
    ("with_slow_links", 10),
];

/// Seeds of rings and of engines with views for which the next list has the least numbers of plans with each trait.
const SMALLEST_APART: u64 = 300;
const OF_APART: [(&str, u64); 9] = [
    ("ill_deaf", 2),
    ("ill_direction", 2),
    ("ill_disk", 2),
    ("ill_hung", 2),
    ("ill_mute", 2),
    ("ill_port", 2),
    ("ill_unsteady", 4),
    ("with_different_lists", 5),
    ("with_different_settings", 30),
];

/// Exchanges of daemons about their groups, which count where engines with views have clients: fewer may miss rare
/// cases.
const SMALLEST_EXCHANGES: u64 = 10_000;

/// The least counts of rare cases in that many exchanges.
const OF_EXCHANGES: [(&str, u64); 9] = [
    ("clients_excluded", 1_000),
    ("clients_included", 500),
    ("clients_missed", 100),
    ("clients_greeted", 500),
    ("asked_while_excluded", 5_000),
    ("views_of_several_sets", 500),
    ("groups_again", 1_000),
    ("groups_elsewhere", 50),
    ("groups_interrupted", 200),
];

/// The counters that are shown beside where acceptors keep little in memory, or some nodes observe.
pub(super) fn beside(plan: &Plan) -> &'static [&'static str] {
    let Some(uring) = &plan.uring else {
        return &[];
    };
    match (uring.kept.memory_bytes, uring.places.observers) {
        (Some(_), _) => &OF_ARCHIVE,
        (None, 0) => &[],
        (None, _) => &["uring_observers_told"],
    }
}

/// The counters of the engines of a plan that count as coverage.
pub(super) const fn counters(plan: &Plan) -> &'static [&'static str] {
    match &plan.uring {
        Some(uring) if uring.dissemination.is_multicast() => return &OF_RING_PAXOS,
        Some(_) => return &OF_URING,
        None => {}
    }
    match (plan.views.is_some(), plan.links.is_some()) {
        (false, _) => &["obligations_kept", "members_deaf", "back_offs"],
        (true, false) => &[
            "views_installed",
            "views_tentative",
            "views_forced_packets",
            "views_forgotten",
            "views_excluded",
            "fast_packets_resent",
            "fast_packets_repeated",
            "fast_places_requested",
        ],
        (true, true) => &[
            "views_installed",
            "views_tentative",
            "views_forced_packets",
            "views_forgotten",
            "views_excluded",
            "lcr_hellos_received",
            "lcr_messages_stale",
        ],
    }
}

/// Whether a campaign is so long that nothing may have been missed.
pub(super) fn is_long(report: &Report) -> bool {
    let of_clients = views(report) > 0 && exchanges(report) >= SMALLEST_EXCHANGES;
    let of_votes = votes(report) >= SMALLEST_VOTES;
    of_clients || of_votes || views(report) >= SMALLEST_VIEWS || report.token_rounds >= SMALLEST
}

fn views(report: &Report) -> u64 {
    report.coverage.get("views_installed").copied().unwrap_or(0)
}

/// The number of seeds of an engine that votes.
fn votes(report: &Report) -> u64 {
    let engine = report.engine.parse::<EngineName>();
    let has_votes = engine.is_ok_and(EngineName::has_votes);
    if has_votes { report.seeds } else { 0 }
}

fn exchanges(report: &Report) -> u64 {
    let exchanges = report.coverage.get("groups_exchanges");
    exchanges.copied().unwrap_or(0)
}

/// The cases that happened less often than their floors: these are for `smallest` things, and there were `all` of them.
fn below(report: &Report, floors: &[(&str, u64)], (all, smallest): (u64, u64)) -> Vec<String> {
    if all < smallest {
        return Vec::new();
    }
    let counts = floors.iter().map(|&(name, floor)| {
        let count = report.coverage.get(name).copied().unwrap_or(0);
        (name, count, (floor * all).div_ceil(smallest))
    });
    counts
        .filter(|(_, count, floor)| count < floor)
        .map(|(name, count, floor)| format!("{name} ({count}, at least {floor})"))
        .collect()
}

fn missed_of_views(report: &Report, views: u64) -> Vec<String> {
    let mut missed = below(report, &OF_VIEWS, (views, SMALLEST_VIEWS));
    let exchanges = (exchanges(report), SMALLEST_EXCHANGES);
    let clients = below(report, &OF_EXCHANGES, exchanges);
    missed.extend(clients);
    missed.extend(missed_apart(report));
    missed
}

fn missed_apart(report: &Report) -> Vec<String> {
    let seeds = (report.seeds, SMALLEST_APART);
    let mut missed = below(report, &OF_APART, seeds);
    // Engines with views only.
    if views(report) > 0 {
        let forgetful = [("with_emptied_disks", 2), ("without_disks", 2)];
        missed.extend(below(report, &forgetful, seeds));
    }
    // Links lose no class of what they carry.
    if report.engine != EngineName::Lcr.name() {
        missed.extend(below(report, &[("ill_class", 2)], seeds));
    }
    missed
}

/// The cases that happened too rarely, each with its count and its floor. Only campaigns with all faults have floors:
/// others leave out faults that the cases take.
pub(super) fn missed(report: &Report, profile: Profile) -> Vec<String> {
    let (rounds, views) = (report.token_rounds, views(report));
    if profile == Profile::All && votes(report) > 0 {
        return below(report, &OF_VOTES, (votes(report), SMALLEST_VOTES));
    }
    if profile == Profile::All && views > 0 {
        return missed_of_views(report, views);
    }
    if views > 0 || profile != Profile::All || rounds < SMALLEST {
        return Vec::new();
    }
    let apart = missed_apart(report);
    let scaled = |floor: u64| (floor * rounds).div_ceil(ROUNDS);
    let counts = FLOORS.iter().map(|&(name, floor)| {
        let count = report.coverage.get(name).copied().unwrap_or(0);
        (name.to_owned(), count, scaled(floor))
    });
    let cells = reached().map(|(state, event)| {
        let name = format!("{state}: {event}");
        let count = report.cells.get(&name).copied().unwrap_or(0);
        (name, count, scaled(CELL))
    });
    counts
        .chain(cells)
        .filter(|(_, count, floor)| count < floor)
        .map(|(name, count, floor)| format!("{name} ({count}, at least {floor})"))
        .chain(apart)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    fn report(rounds: u64, count: u64) -> Report {
        let mut report = Report::new(&Options::new(EngineName::TotemRing, 0..1));
        report.token_rounds = rounds;
        for (name, _) in FLOORS {
            report.coverage.insert(name, count);
        }
        for (state, event) in reached() {
            report.cells.insert(format!("{state}: {event}"), 20);
        }
        report
    }

    #[test]
    fn floors_grow_with_the_rounds() {
        assert_eq!(missed(&report(20_000_000, 20_000), Profile::All), [""; 0]);
        let rare = missed(&report(20_000_000, 1999), Profile::All);
        assert_eq!(rare.len(), 4);
        assert_eq!(rare[1], "post_hole (1999, at least 2000)");
        let cells = missed(&report(20_000_001, 30_000), Profile::All);
        assert!(cells.contains(&"recovering: token loss (20, at least 21)".to_owned()));
    }

    #[test]
    fn floors_of_views_grow_with_the_views() {
        let mut report = Report::new(&Options::new(EngineName::Lcr, 0..1));
        for (name, floor) in OF_VIEWS {
            report.coverage.insert(name, 2 * floor);
        }
        for (views, rare) in [(SMALLEST_VIEWS - 1, 0), (2 * SMALLEST_VIEWS, 0)] {
            report.coverage.insert("views_installed", views);
            assert_eq!(missed(&report, Profile::All).len(), rare);
        }
        report
            .coverage
            .insert("views_installed", 2 * SMALLEST_VIEWS + 1);
        assert_eq!(missed(&report, Profile::All).len(), OF_VIEWS.len());
        report.judge(&Options::new(EngineName::Lcr, 0..1));
        assert!(!report.holds());
    }

    #[test]
    fn floors_of_clients_over_views_grow_with_the_exchanges() {
        let mut report = Report::new(&Options::new(EngineName::Lcr, 0..1));
        report.coverage.insert("views_installed", 1);
        for (name, floor) in OF_EXCHANGES {
            report.coverage.insert(name, floor);
        }
        for (exchanges, rare) in [
            (SMALLEST_EXCHANGES - 1, 0),
            (SMALLEST_EXCHANGES, 0),
            (SMALLEST_EXCHANGES + 1, OF_EXCHANGES.len()),
        ] {
            report.coverage.insert("groups_exchanges", exchanges);
            assert_eq!(missed(&report, Profile::All).len(), rare);
            // They bind, however few views there were.
            report.judge(&Options::new(EngineName::Lcr, 0..1));
            assert_eq!(report.holds(), rare == 0);
        }
        assert_eq!(missed(&report, Profile::Loss), [""; 0]);
    }

    #[test]
    fn floors_of_engines_that_vote_grow_with_the_seeds() {
        let mut report = Report::new(&Options::new(EngineName::RingPaxos, 0..1));
        for (name, floor) in OF_VOTES {
            report.coverage.insert(name, 2 * floor);
        }
        for (seeds, rare) in [
            (SMALLEST_VOTES - 1, 0),
            (2 * SMALLEST_VOTES, 0),
            (2 * SMALLEST_VOTES + 1, OF_VOTES.len()),
        ] {
            report.seeds = seeds;
            assert_eq!(missed(&report, Profile::All).len(), rare);
            report.judge(&Options::new(EngineName::RingPaxos, 0..1));
            assert_eq!(report.holds(), rare == 0);
        }
        assert_eq!(missed(&report, Profile::Loss), [""; 0]);
    }

    #[test]
    fn a_campaign_that_missed_something_fails_if_it_is_long() {
        for (rounds, holds) in [(SMALLEST - 1, true), (SMALLEST, false)] {
            let mut report = report(rounds, 0);
            report.judge(&Options::new(EngineName::TotemRing, 0..1));
            assert_eq!(report.holds(), holds);
        }
        assert_eq!(missed(&report(20_000_000, 0), Profile::Loss), [""; 0]);
    }
}
