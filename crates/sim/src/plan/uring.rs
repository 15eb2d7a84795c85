//! What a seed has of U-Ring Paxos and Ring Paxos: who votes, the order of the ring, sizes; and the disks and links it works on.

use rota_core::contract::NodeId;
use rota_core::fastcast::shares::Capacity;
use rota_core::uring::{Multicast, URingConfig};

use super::draw_faults::shuffled;
use super::views::LinksPlan;
use super::{FaultKind, Plan, Power};
use crate::rng::Rng;

/// What the engine is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct URingPlan {
    /// The first so many hosts vote.
    pub voters: usize,
    /// Hosts in the order of the ring.
    pub order: Vec<usize>,
    /// The largest own value, in bytes.
    pub frame_bytes: usize,
    /// Bytes of own values that a process may have under way.
    pub window_bytes: usize,
    /// Where a message to the successor ends.
    pub batch_bytes: usize,
    /// Where other messages with values end.
    pub word_bytes: usize,
    /// Instances that an acceptor keeps.
    pub kept_instances: u64,
    /// Values are multicast.
    pub multicast: bool,
    /// What they take a link to take in, in bits per second, if they do.
    pub capacity: Option<u64>,
}

impl URingPlan {
    fn drawn(rng: &mut Rng, nodes: usize) -> Self {
        let few = [1, 3, 3, 3, 5, 5, 7];
        let voters = rng.pick(&few).min(nodes);
        let frame_bytes = rng.pick(&[300, 1400, 16_000]);
        Self {
            voters: if rng.percent(20) { nodes } else { voters },
            order: shuffled(nodes, rng),
            frame_bytes,
            window_bytes: rng.pick(&[1 << 10, 16 << 10, 1 << 20]).max(frame_bytes),
            batch_bytes: rng.pick(&[1 << 10, 8 << 10, 64 << 10]),
            word_bytes: rng.pick(&[4 << 10, 128 << 10]),
            kept_instances: rng.pick(&[200, 15_000, 15_000]),
            multicast: false,
            capacity: None,
        }
    }

    /// As the engine is told.
    pub fn config(&self, plan: &Plan) -> URingConfig {
        let members = &plan.ring.members;
        let ring: Vec<NodeId> = self.order.iter().map(|host| members[*host]).collect();
        URingConfig {
            acceptors: members[..self.voters].to_vec(),
            frame_bytes: self.frame_bytes,
            message_bytes: plan.ring.message_bytes,
            backlog_bytes: plan.ring.backlog_bytes,
            window_bytes: self.window_bytes,
            batch_bytes: self.batch_bytes,
            word_bytes: self.word_bytes,
            kept_instances: self.kept_instances,
            multicast: self.multicast.then_some(Multicast {
                cluster: plan.ring.cluster,
                datagram_bytes: plan.ring.datagram_bytes,
                seal_bytes: plan.ring.seal_bytes,
                capacity: self.capacity.map(Capacity::new),
            }),
            ..URingConfig::new(ring, &plan.ring.timers)
        }
    }
}

impl Plan {
    /// The same world for U-Ring Paxos, or, with `multicast`, for Ring Paxos.
    pub fn set_uring(&mut self, power: Power, multicast: bool) {
        let mut rng = Rng::split(self.seed, 15);
        let mut uring = URingPlan::drawn(&mut rng, self.nodes());
        uring.multicast = multicast;
        let capacities = [None, None, Some(20_000_000), Some(1_000_000_000)];
        uring.capacity = Rng::split(self.seed, 16).pick(&capacities);
        let links = LinksPlan::drawn(&mut rng, self.ring.timers.token_loss);
        // A link with nothing to do has room for half of its queue, and for no more as far as anybody is told.
        uring.word_bytes = uring.word_bytes.min(links.queue_bytes / 2);
        self.links = Some(links);
        (self.primary, self.groups, self.views) = (None, None, None);
        // There are no moments at which a ring or a view is installed.
        let is_of_others = |kind: &FaultKind| match kind {
            FaultKind::Snipe | FaultKind::Mute => true,
            FaultKind::Replay { .. } => !multicast,
            _ => false,
        };
        self.faults.retain(|fault| !is_of_others(&fault.kind));
        self.set_disks(uring.voters, power);
        self.uring = Some(uring);
    }

    /// Whether others give messages their places, in one order.
    pub const fn is_uniform(&self) -> bool {
        self.views.is_some() || self.uring.is_some()
    }
}
