//! The counts and the outcome of a run.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{Input, RingId};

use super::cells::CellCounts;
use super::links::LinkTally;
use super::network::NetTally;
use super::{Cells, System};
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
}

/// The counts of a run that goes on.
#[derive(Default, Debug)]
pub(super) struct Counts {
    tally: Tally,
    cells: CellCounts,
    rings: BTreeSet<RingId>,
}

impl Counts {
    /// Counts from 0 the events that the plan sets out to cause: each has to happen in some run.
    pub fn of(plan: &Plan) -> Self {
        let mut counts = Self::default();
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
                    counts.expect(what);
                }
            }
        }
        if let Some(links) = plan.links {
            counts.expect("link_sessions");
            if links.breaks > 0 {
                for what in ["link_breaks", "link_messages_lost"] {
                    counts.expect(what);
                }
            }
        }
        if plan.groups.is_some() {
            counts.expect_clients(plan);
        }
        for what in settings(plan).chain(plan.apart.has.iter().copied()) {
            counts.cover(what);
        }
        for fault in &plan.faults {
            let what = effect(&fault.kind, plan.uring.is_some());
            counts.expect(what);
            if matches!(fault.kind, FaultKind::Kill { .. }) {
                counts.expect("restarts");
            }
            let cuts_off = plan.disks.is_none()
                && matches!(fault.kind, FaultKind::Kill { .. } | FaultKind::Rush { .. });
            if cuts_off && plan.views.is_none() {
                let delivered = "transitional_deliveries";
                counts.expect(delivered);
            }
        }
        counts
    }

    /// Something has happened in the world. Returns the number of such things.
    pub const fn on_event(&mut self) -> u64 {
        self.tally.events += 1;
        self.tally.events
    }

    /// An input is about to be handed in.
    pub fn on_input<S: System>(&mut self, system: &S, engine: &S::Engine, input: &Input) {
        self.cells.count(system, engine, input);
    }

    /// A regular configuration was delivered.
    pub fn on_ring(&mut self, ring: RingId) {
        self.rings.insert(ring);
    }

    /// A message was delivered.
    pub const fn on_delivery(&mut self) {
        self.tally.deliveries += 1;
    }

    fn expect_clients(&mut self, plan: &Plan) {
        let others: &[_] = match (plan.views.is_some(), plan.faults.is_empty()) {
            (false, false) => &OF_TRANSITIONS,
            // An exchange that is cut off, or a process that is kept out of a view, takes a fault in time.
            (false, true) => &OF_TRANSITIONS[..1],
            (true, true) => &[],
            (true, false) => &OF_EXCLUSION,
        };
        for what in OF_CLIENTS.iter().chain(others) {
            self.expect(what);
        }
    }

    /// Counts an event from 0.
    fn expect(&mut self, what: &'static str) {
        self.tally.coverage.entry(what).or_default();
    }

    /// An event that a campaign is about has happened.
    pub fn cover(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    /// So many have.
    pub fn add(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            *self.tally.coverage.entry(what).or_default() += count;
        }
    }

    pub fn add_links(&mut self, links: &LinkTally) {
        self.add("link_sessions", links.sessions);
        self.add("link_breaks", links.breaks);
        self.add("link_messages_lost", links.lost);
    }

    pub fn add_network(&mut self, network: &NetTally) {
        for (what, count) in [
            ("datagrams_cut", network.cut),
            ("datagrams_lost", network.lost),
            ("datagrams_duplicated", network.duplicated),
            ("datagrams_damaged", network.damaged),
            ("datagrams_late", network.late),
            ("datagrams_replayed", network.replayed),
            ("datagrams_garbage", network.garbage),
        ] {
            if let Some(covered) = self.tally.coverage.get_mut(what) {
                *covered += count;
            } else if count > 0 {
                self.tally.coverage.insert(what, count);
            }
        }
    }

    /// Adds the counts and the notes of an engine at its end.
    ///
    /// # Errors
    /// Some counters say that another process broke the rules.
    pub fn add_engine(
        &mut self,
        counters: &BTreeMap<&'static str, u64>,
        notes: Vec<String>,
    ) -> Result<(), Finding> {
        self.tally.notes.extend(notes);
        for (&name, &count) in counters {
            let of_clients = [&OF_CLIENTS[..], &OF_TRANSITIONS, &OF_EXCLUSION];
            if of_clients.iter().any(|names| names.contains(&name)) {
                self.add(name, count);
            }
            *self.tally.counters.entry(name).or_default() += count;
        }
        let mut wrong = counters
            .iter()
            .filter(|(name, count)| STAND_STILL.contains(name) && **count > 0);
        if let Some((name, count)) = wrong.next() {
            return Err(Finding::new("counters", format!("{name} is {count}")));
        }
        match counters.get("groups_malformed") {
            Some(1..) => Err(Finding::new(
                "groups",
                "a daemon said what made no sense to another",
            )),
            _ => Ok(()),
        }
    }

    /// The counts of the whole run.
    pub fn end(self) -> Tally {
        Tally {
            cells: self.cells.named(),
            configurations: self.rings.len() as u64,
            ..self.tally
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
