//! The settings of U-Ring Paxos and Ring Paxos that a seed draws: voters, the order of the ring, sizes; and the disks
//! and links below.

use rota_core::contract::NodeId;
use rota_core::shares::Capacity;
use rota_paxos::uring::{
    AcceptorConfig, Arbiter, LearnerConfig, Multicast, ProposerConfig, Timeouts, URingConfig,
};

use super::draw_faults::shuffled;
use super::views::LinksPlan;
use super::{DiskMode, DisksPlan, FaultKind, MILLIS, Plan, Power};
use crate::rng::{Ppm, Rng};

/// The settings of the engines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct URingPlan {
    /// The number of hosts that vote, the first ones.
    pub voters: usize,
    /// The places of hosts.
    pub places: Places,
    /// The largest own value, in bytes.
    pub frame_bytes: usize,
    /// Bytes of own values that a process may have under way.
    pub window_bytes: usize,
    /// The size, in bytes, at which a message to the successor ends.
    pub batch_bytes: usize,
    /// The size, in bytes, at which other messages with values end.
    pub word_bytes: usize,
    /// What acceptors keep.
    pub kept: Kept,
    /// By host, where not all have the same: the mode of its disk.
    pub modes: Vec<DiskMode>,
    /// Acceptors write nothing where nothing outlives the process.
    pub forgets: bool,
    /// A process delivers nothing of what is ordered while it is no member.
    pub only_as_member: bool,
    /// The service that chooses configurations, if acceptors do not.
    pub service: Option<ServicePlan>,
    /// The share of wake-ups to submit at which the host also orders skips, if it can.
    pub skips: Ppm,
    /// The time for which a disk may answer nothing, in nanoseconds, if that is not derived.
    pub disk_patience: Option<u64>,
    /// The plan has traits that plans did not always have: see `wide`.
    pub is_wide: bool,
    /// The way of values.
    pub dissemination: Dissemination,
}

/// The places of hosts: in the ring, or beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    /// Hosts in the order of the ring.
    pub order: Vec<usize>,
    /// The number of hosts that observe, the last ones.
    pub observers: usize,
}

/// What acceptors keep of what is decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// By host: the number of instances.
    pub instances: Vec<u64>,
    /// The most bytes of values in memory, if it is not the default.
    pub memory_bytes: Option<usize>,
}

/// The way of values to all processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dissemination {
    /// From one process to the next: U-Ring Paxos.
    AlongRing,
    /// To all at once: Ring Paxos.
    ByMulticast {
        /// The capacity of a link that the engines are told, in bits per second, if they are.
        capacity: Option<u64>,
    },
}

impl Dissemination {
    /// Whether values are multicast.
    pub const fn is_multicast(&self) -> bool {
        matches!(self, Self::ByMulticast { .. })
    }

    /// Whether senders of datagrams know no capacity to keep to.
    pub const fn is_unpaced(&self) -> bool {
        matches!(self, Self::ByMulticast { capacity: None })
    }

    /// Tells the engines a capacity, in bits per second, if they need one and know none.
    pub const fn pace(&mut self, bits: u64) {
        if let Self::ByMulticast { capacity } = self
            && capacity.is_none()
        {
            *capacity = Some(bits);
        }
    }
}

/// A coordination service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServicePlan {
    /// The longest time of an answer, in nanoseconds.
    pub latency: u64,
    /// The share of answers that never come.
    pub lost: Ppm,
}

impl URingPlan {
    /// The number of instances that every acceptor keeps at least.
    pub fn keeps(&self) -> u64 {
        let kept = self.kept.instances[..self.voters].iter().min();
        kept.copied().unwrap_or(0)
    }

    fn drawn(rng: &mut Rng, nodes: usize) -> Self {
        let few = [1, 3, 3, 3, 5, 5, 7];
        let voters = rng.pick(&few).min(nodes);
        let frame_bytes = rng.pick(&[300, 1400, 16_000]);
        Self {
            voters: if rng.percent(20) { nodes } else { voters },
            places: Places {
                order: shuffled(nodes, rng),
                observers: 0,
            },
            frame_bytes,
            window_bytes: rng.pick(&[1 << 10, 16 << 10, 1 << 20]).max(frame_bytes),
            batch_bytes: rng.pick(&[1 << 10, 8 << 10, 64 << 10]),
            word_bytes: rng.pick(&[4 << 10, 128 << 10]),
            kept: Kept {
                instances: vec![rng.pick(&[200, 15_000, 15_000]); nodes],
                memory_bytes: None,
            },
            modes: Vec::new(),
            forgets: false,
            only_as_member: false,
            service: None,
            skips: 0,
            disk_patience: None,
            is_wide: false,
            dissemination: Dissemination::AlongRing,
        }
    }

    /// The configuration of the engine of a host.
    pub fn config(&self, plan: &Plan, host: usize) -> URingConfig {
        let patience = Timeouts::derive(&plan.ring.timers);
        let is_memory = plan
            .disk_of(host)
            .is_some_and(|disk| disk.mode == DiskMode::Memory);
        let members = &plan.ring.members;
        let ring: Vec<NodeId> = self
            .places
            .order
            .iter()
            .map(|host| members[*host])
            .collect();
        let base = URingConfig::new(ring, &plan.ring.timers);
        URingConfig {
            acceptors: members[..self.voters].to_vec(),
            observers: members[members.len() - self.places.observers..].to_vec(),
            proposer: ProposerConfig {
                frame_bytes: self.frame_bytes,
                message_bytes: plan.ring.message_bytes,
                backlog_bytes: plan.ring.backlog_bytes,
                window_bytes: self.window_bytes,
                ..base.proposer
            },
            acceptor: AcceptorConfig {
                kept_instances: self.kept.instances[host],
                forgets: self.forgets && is_memory,
                memory_bytes: self.kept.memory_bytes.unwrap_or(base.acceptor.memory_bytes),
                ..base.acceptor
            },
            learner: LearnerConfig {
                only_as_member: self.only_as_member,
                ..base.learner
            },
            batch_bytes: self.batch_bytes,
            word_bytes: self.word_bytes,
            arbiter: match self.service {
                Some(_) => Arbiter::Service,
                None => Arbiter::Embedded,
            },
            patience: Timeouts {
                disk: self.disk_patience.unwrap_or(patience.disk),
                ..patience
            },
            multicast: match self.dissemination {
                Dissemination::AlongRing => None,
                Dissemination::ByMulticast { capacity } => Some(Multicast {
                    cluster: plan.ring.cluster,
                    datagram_bytes: plan.ring.datagram_bytes,
                    seal_bytes: plan.ring.seal_bytes,
                    capacity: capacity.map(Capacity::new),
                }),
            },
            ..base
        }
    }
}

impl Plan {
    /// The longest time, in nanoseconds, that disks like these take for all writes that an engine has under way there.
    /// An engine asks for no more than its disks take in a part of their time-out.
    pub fn writes_full(&self, disks: DisksPlan) -> u64 {
        let Some(config) = self.uring.as_ref().map(|uring| uring.config(self, 0)) else {
            return 0;
        };
        let takes = (config.acceptor.disk_bytes as u64 * MILLIS).checked_div(disks.per_milli);
        takes.unwrap_or(0).min(config.patience.disk)
    }

    /// The same world for U-Ring Paxos, or, with `multicast`, for Ring Paxos.
    pub fn set_uring(&mut self, power: Power, multicast: bool) {
        let mut rng = Rng::split(self.seed, 15);
        let mut uring = URingPlan::drawn(&mut rng, self.nodes());
        if multicast {
            let capacities = [None, None, Some(20_000_000), Some(1_000_000_000)];
            let capacity = Rng::split(self.seed, 16).pick(&capacities);
            uring.dissemination = Dissemination::ByMulticast { capacity };
        }
        let links = LinksPlan::drawn(&mut rng, self.ring.timers.token_loss);
        // The engines may count on room for half of an idle link's queue, and on no more.
        uring.word_bytes = uring.word_bytes.min(links.queue_bytes / 2);
        self.links = Some(links);
        (self.primary, self.groups, self.views) = (None, None, None);
        // Engines that vote have no moments at which a ring or a view is installed.
        let is_of_others = |kind: &FaultKind| match kind {
            FaultKind::Snipe | FaultKind::Mute => true,
            FaultKind::Replay { .. } => !multicast,
            _ => false,
        };
        self.faults.retain(|fault| !is_of_others(&fault.kind));
        self.set_disks(uring.voters, power);
        self.uring = Some(uring);
    }

    /// Whether a host observes, and is in no ring.
    pub fn observes(&self, host: usize) -> bool {
        let observers = self
            .uring
            .as_ref()
            .map_or(0, |uring| uring.places.observers);
        host >= self.nodes() - observers
    }

    /// Whether other processes give messages their places, in one order.
    pub const fn is_uniform(&self) -> bool {
        self.views.is_some() || self.uring.is_some()
    }
}
