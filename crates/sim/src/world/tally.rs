//! The counts and the outcome of a run.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::Engine;

use super::links::LinkTally;
use super::network::NetTally;
use super::{Cells, System, World};
use crate::observe::{Coverage, Finding};
use crate::plan::{DiskMode, FaultKind, Loss, MILLIS, Plan};

/// The name under which a loss for good is counted.
pub(super) const fn lost(what: Loss) -> &'static str {
    match what {
        Loss::Disk => "stores_replaced",
        Loss::Newest => "stores_put_back",
        Loss::Power => "stores_lost_with_power",
        Loss::Node => "nodes_gone",
        Loss::Device { hangs: true } => "devices_hung_for_good",
        Loss::Device { hangs: false } => "devices_broken_for_good",
    }
}

/// Events that have to happen where there are clients.
const OF_CLIENTS: [&str; 17] = [
    "views_by_join",
    "views_by_leave",
    "views_by_disconnect",
    "views_by_network",
    "views_of_several_sets",
    "self_leaves",
    "private_messages",
    "messages_to_several_groups",
    "clients_too_slow",
    "clients_skipped",
    "clients_throttling",
    "messages_held",
    "groups_exchanges",
    "groups_late",
    "groups_again",
    "groups_pieces",
    "groups_parts",
];

/// The same over engines with transitional configurations.
const OF_TRANSITIONS: [&str; 2] = ["transitional_signals", "groups_interrupted"];

/// The same over engines with primary views alone.
const OF_EXCLUSION: [&str; 8] = [
    "clients_excluded",
    "clients_included",
    "clients_missed",
    "clients_greeted",
    "asked_while_excluded",
    "groups_missed",
    "groups_elsewhere",
    "groups_interrupted",
];

/// Counters of engines that only a mistake in an engine makes grow.
const STAND_STILL: [&str; 10] = [
    "views_malformed",
    "views_incomplete",
    "views_packets_malformed",
    "views_duplicates",
    "fast_words_malformed",
    "fast_controls_invalid",
    "fast_places_contradicted",
    "lcr_packets_duplicate",
    "lcr_messages_refused",
    "uring_messages_malformed",
];

/// The outcome of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The seed of the run.
    pub seed: u64,
    /// The time that the run took, in the world's own nanoseconds.
    pub virtual_nanos: u64,
    /// The same for the same plan, always.
    pub trace_hash: u64,
    /// The counts of the run.
    pub tally: Tally,
    /// The violation that was found, if one was.
    pub finding: Option<Finding>,
}

/// The counts of a run.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Things that happened in the world.
    pub events: u64,
    /// Messages delivered.
    pub deliveries: u64,
    /// Different regular configurations.
    pub configurations: u64,
    /// The engines' counters, over all processes.
    pub counters: BTreeMap<&'static str, u64>,
    /// The counts of the events that a campaign is about.
    pub coverage: Coverage,
    /// The counts of events by the state of the process that each came to.
    pub cells: Cells,
    /// Notes of engines, at their end, for an operator.
    pub notes: BTreeSet<String>,
}

impl Tally {
    /// One of the engines' counters; 0 if they have none of that name.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    pub(super) fn cover(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    pub(super) fn add(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            *self.coverage.entry(what).or_default() += count;
        }
    }

    pub(super) fn add_links(&mut self, links: &LinkTally) {
        self.add("link_sessions", links.sessions);
        self.add("link_breaks", links.breaks);
        self.add("link_messages_lost", links.lost);
    }

    pub(super) fn add_network(&mut self, network: &NetTally) {
        for (what, count) in [
            ("datagrams_cut", network.cut),
            ("datagrams_lost", network.lost),
            ("datagrams_duplicated", network.duplicated),
            ("datagrams_damaged", network.damaged),
            ("datagrams_late", network.late),
            ("datagrams_replayed", network.replayed),
            ("datagrams_garbage", network.garbage),
        ] {
            if let Some(covered) = self.coverage.get_mut(what) {
                *covered += count;
            } else if count > 0 {
                self.coverage.insert(what, count);
            }
        }
    }
}

/// The settings of a plan, where engines vote, that not all plans have.
fn settings(plan: &Plan) -> impl Iterator<Item = &'static str> {
    let uring = plan.uring.as_ref().filter(|uring| uring.is_wide);
    let disks = plan.disks.filter(|disks| disks.mode != DiskMode::Memory);
    let settings = uring.zip(plan.links).map(|(uring, links)| {
        [
            ("with_slow_links", links.byte_nanos > 100),
            (
                "with_slow_disks",
                disks.is_some_and(|disks| disks.latency.0 > 5 * MILLIS),
            ),
            (
                "with_narrow_disks",
                disks.is_some_and(|disks| disks.per_milli > 0),
            ),
            ("with_different_disks", !uring.modes.is_empty()),
            ("with_a_service", uring.service.is_some()),
            ("with_members_only", uring.only_as_member),
            ("with_little_kept", uring.keeps() < 100),
            ("with_large_messages", plan.ring.message_bytes > 1 << 20),
        ]
    });
    let settings = settings.into_iter().flatten();
    settings.filter_map(|(name, has)| has.then_some(name))
}

/// The name under which a fault of this kind is counted. `has_links`: links break where others lose datagrams.
const fn effect(kind: &FaultKind, has_links: bool) -> &'static str {
    match *kind {
        FaultKind::Cut { .. } | FaultKind::Flap { .. } if has_links => "link_breaks",
        FaultKind::Cut { .. } | FaultKind::Flap { .. } => "datagrams_cut",
        FaultKind::Pause { .. } => "pauses",
        FaultKind::Stall { .. } => "stalls",
        FaultKind::Kill { .. } => "crashes",
        FaultKind::PowerLoss { .. } => "losses_of_power",
        FaultKind::DiskFails { .. } => "persist_failures",
        FaultKind::DiskHangs { .. } => "disk_hangs",
        FaultKind::ServiceStops => "service_stops",
        FaultKind::Loses { what, .. } => lost(what),
        FaultKind::LoseAll => "foundations",
        FaultKind::RestartAll { dead: Some(_), .. } => "restarts_without_one",
        FaultKind::RestartAll { .. } => "restarts_of_all",
        FaultKind::Churn { .. } => "many_lives",
        FaultKind::Storm { .. } => "storms",
        FaultKind::Replay { .. } => "datagrams_replayed",
        FaultKind::Snipe => "snipes",
        FaultKind::Mute => "mutes",
        FaultKind::Rush { .. } => "rushes",
    }
}

impl<S: System> World<'_, S> {
    /// Counts the events that the plan sets out to cause from 0: each has to happen in some run.
    pub(super) fn expect(&mut self) {
        let plan = self.plan;
        // Datagrams are nobody's where all messages go over links.
        let lanes = if plan.uring.is_some() {
            &[][..]
        } else {
            &plan.net.lanes[..]
        };
        for lane in lanes {
            for (what, planned) in [
                ("datagrams_lost", lane.loss),
                ("datagrams_duplicated", lane.duplicate),
                ("datagrams_damaged", lane.damage),
                ("datagrams_late", lane.spike),
            ] {
                if planned > 0 {
                    self.tally.coverage.entry(what).or_default();
                }
            }
        }
        if let Some(links) = plan.links {
            self.tally.coverage.entry("link_sessions").or_default();
            if links.breaks > 0 {
                for what in ["link_breaks", "link_messages_lost"] {
                    self.tally.coverage.entry(what).or_default();
                }
            }
        }
        if plan.groups.is_some() {
            self.expect_clients();
        }
        for what in settings(plan).chain(plan.apart.has.iter().copied()) {
            self.tally.cover(what);
        }
        for fault in &plan.faults {
            let what = effect(&fault.kind, plan.uring.is_some());
            self.tally.coverage.entry(what).or_default();
            if matches!(fault.kind, FaultKind::Kill { .. }) {
                self.tally.coverage.entry("restarts").or_default();
            }
            let cuts_off = plan.disks.is_none()
                && matches!(fault.kind, FaultKind::Kill { .. } | FaultKind::Rush { .. });
            if cuts_off && plan.views.is_none() {
                let delivered = "transitional_deliveries";
                self.tally.coverage.entry(delivered).or_default();
            }
        }
    }

    fn expect_clients(&mut self) {
        let others: &[_] = match (self.plan.views.is_some(), self.plan.faults.is_empty()) {
            (false, false) => &OF_TRANSITIONS,
            // An exchange that is cut off, or a process that is kept out of a view, takes a fault in time.
            (false, true) => &OF_TRANSITIONS[..1],
            (true, true) => &[],
            (true, false) => &OF_EXCLUSION,
        };
        for what in OF_CLIENTS.iter().chain(others) {
            self.tally.coverage.entry(what).or_default();
        }
    }

    /// Some counters say that another process broke the rules.
    fn look_at_counters(&mut self, counters: &BTreeMap<&'static str, u64>) {
        let mut wrong = counters
            .iter()
            .filter(|(name, count)| STAND_STILL.contains(name) && **count > 0);
        if let Some((name, count)) = wrong.next() {
            self.found("counters", format!("{name} is {count}"));
        }
    }

    /// Adds up the counts of the process on a host.
    pub(super) fn count_life(&mut self, at: usize) {
        let Some(life) = &self.hosts[at].life else {
            return;
        };
        let status = life.engine.status();
        let counters = status.counters;
        self.tally.notes.extend(status.notes);
        self.look_at_counters(&counters);
        let senseless = counters.get("groups_malformed").copied();
        for (name, count) in counters {
            let of_clients = [&OF_CLIENTS[..], &OF_TRANSITIONS, &OF_EXCLUSION];
            if of_clients.iter().any(|names| names.contains(&name)) {
                self.tally.add(name, count);
            }
            *self.tally.counters.entry(name).or_default() += count;
        }
        if senseless.is_some_and(|count| count > 0) {
            self.found("groups", "a daemon said what made no sense to another");
        }
    }
}
