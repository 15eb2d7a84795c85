//! The plan that a seed decides: the ring, the machines, the network, the load and the faults.
//!
//! Everything that a run depends on is in the [`Plan`], so a plan that was made smaller runs as well
//! as one that was drawn, and a failure can be shrunk.

mod apart;
mod disks;
mod draw;
mod draw_faults;
mod fault;
mod groups;
mod profile;
mod stories;
mod uring;
mod views;
mod wide;

use rota_core::contract::{NodeId, Service};
use rota_ring::RingConfig;

pub use apart::Apart;
pub use disks::{DiskMode, DisksPlan, Power};
pub use fault::{DiskLoss, Fault, FaultKind, Loss, Matrix};
pub use groups::GroupsPlan;
pub use profile::{Abilities, Profile};
pub use uring::{Dissemination, ServicePlan, URingPlan};
pub use views::{LinksPlan, ViewsPlan};

use crate::rng::Ppm;

/// Nanoseconds in a microsecond.
pub const MICROS: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLIS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECONDS: u64 = 1_000_000_000;

/// One world, and what happens to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The number that the plan was drawn from; also seeds the draws of a run.
    pub seed: u64,
    /// The ring that the nodes are configured for.
    pub ring: RingConfig,
    /// The machines, one for each member of the ring.
    pub hosts: Vec<HostPlan>,
    /// The cost of the nodes' work.
    pub cost: Cost,
    /// The network between them.
    pub net: Net,
    /// The layer over the ring, if there is one.
    pub primary: Option<PrimaryLayer>,
    /// The settings and ills that are not the same for all nodes.
    pub apart: Apart,
    /// Clients and their groups over it, if there are any.
    pub groups: Option<GroupsPlan>,
    /// The settings of a data path beside the ring, if one orders the messages.
    pub views: Option<ViewsPlan>,
    /// The settings of U-Ring Paxos, if it orders the messages.
    pub uring: Option<URingPlan>,
    /// Reliable links, if there are any.
    pub links: Option<LinksPlan>,
    /// The disks, where engines keep logs on them.
    pub disks: Option<DisksPlan>,
    /// The time that it takes to make something durable, in nanoseconds: at least, and at most.
    pub disk_latency: (u64, u64),
    /// The faults, by ascending time, those of a story last.
    pub faults: Vec<Fault>,
    /// The time at which the faults and the load end and the world heals.
    pub horizon: u64,
}

/// The layer that says which configurations are primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrimaryLayer {
    /// Those with a majority of all nodes.
    Static,
    /// By dynamic linear voting, begun by the first nodes; the others come to it.
    Dynamic {
        /// The number of these first nodes, at least one.
        founders: usize,
    },
}

/// A machine and its application.
#[derive(Clone, PartialEq, Debug)]
pub struct HostPlan {
    /// The time at which its process is started for the first time.
    pub start: u64,
    /// Its clock.
    pub clock: Clock,
    /// The load of its application.
    pub source: Source,
    /// The pace at which its application takes deliveries.
    pub appetite: Appetite,
    /// The ring that it is configured for, where that is not the plan's.
    pub own: Option<RingConfig>,
}

/// A monotonic clock that is not quite right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The time that it shows when the world begins.
    pub offset: u64,
    /// The part of its speed that is too much, in thousandths; negative when the clock is slow.
    pub drift: i64,
    /// Its timers fire at multiples of this only.
    pub coarse: u64,
}

impl Clock {
    /// The time that it shows at `now`.
    pub const fn at(&self, now: u64) -> u64 {
        self.offset + (now as u128 * (1000 + self.drift) as u128 / 1000) as u64
    }

    /// The first moment at which it shows `local` or more and its timers may fire.
    pub const fn when(&self, local: u64) -> u64 {
        let elapsed = local.saturating_sub(self.offset) as u128;
        let exact = (elapsed * 1000).div_ceil((1000 + self.drift) as u128);
        let exact = if exact > (u64::MAX / 2) as u128 {
            u64::MAX / 2
        } else {
            exact as u64
        };
        exact.next_multiple_of(self.coarse)
    }
}

/// The load of an application: `batch` messages each `every` nanoseconds, `budget` in all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Nanoseconds between two batches; half of it to one and a half, drawn.
    pub every: u64,
    /// Messages in a batch.
    pub batch: u32,
    /// Messages in all.
    pub budget: u32,
    /// The largest of most messages.
    pub small_bytes: u64,
    /// The largest of the others.
    pub large_bytes: u64,
    /// The share of the others.
    pub large: Ppm,
    /// The guarantees they ask for, in equal shares.
    pub services: Vec<Service>,
}

/// The pace of an application: it takes up to `take` deliveries, then nothing for `pause` nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appetite {
    /// Deliveries at a time.
    pub take: u32,
    /// The time for which it digests them.
    pub pause: u64,
}

/// The cost of a node's work, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Receiving a burst.
    pub receive: u64,
    /// Each datagram of it.
    pub receive_datagram: u64,
    /// Sending a burst.
    pub send: u64,
    /// Each datagram of it.
    pub send_datagram: u64,
    /// A delivery, a submission, or any other turn of its loop.
    pub turn: u64,
    /// The share of outputs that do not fit their socket at once.
    pub stuck: Ppm,
    /// The longest time that such an output waits, in nanoseconds.
    pub stuck_for: u64,
}

/// The class of a datagram in the network: all datagrams of a lane are lost and delayed alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Payload.
    Data = 0,
    /// Tokens of a running ring.
    Token = 1,
    /// Everything that forms rings.
    Control = 2,
}

/// The network's treatment of the datagrams of one lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LanePlan {
    /// The share that is lost.
    pub loss: Ppm,
    /// The share that arrives twice.
    pub duplicate: Ppm,
    /// The share that is damaged: a bit turned, or the end cut off.
    pub damage: Ppm,
    /// The time that a datagram takes at least.
    pub delay: u64,
    /// The most that is usually added to it.
    pub jitter: u64,
    /// The share that takes much longer.
    pub spike: Ppm,
    /// The most that is added to the time of those.
    pub spike_for: u64,
}

/// One direction between two hosts that loses more than the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossyLink {
    /// Sending host.
    pub from: usize,
    /// Receiving host.
    pub to: usize,
    /// The share of each lane that it loses.
    pub loss: [Ppm; 3],
}

/// The network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Net {
    /// By [`Lane`].
    pub lanes: [LanePlan; 3],
    /// Links that are worse.
    pub lossy: Vec<LossyLink>,
    /// Nothing overtakes anything on its link.
    pub fifo: bool,
    /// The share of bursts that arrive as one; the others arrive datagram by datagram.
    pub whole: Ppm,
    /// Bytes that wait in a socket at most.
    pub socket_bytes: usize,
    /// The share of sends after which some old datagram comes again.
    pub replay: Ppm,
    /// The share of sends after which a datagram arrives that is nonsense or of another cluster.
    pub garbage: Ppm,
    /// There is no multicast: data is sent to each, and each may answer that nobody listens.
    pub unicast: bool,
}

impl Plan {
    /// The disk of a host, where engines keep logs.
    pub fn disk_of(&self, host: usize) -> Option<DisksPlan> {
        let disks = self.disks?;
        let modes = self.uring.as_ref().map(|uring| &uring.modes);
        let mode = modes.and_then(|modes| modes.get(host).copied());
        Some(DisksPlan {
            mode: mode.unwrap_or(disks.mode),
            ..disks
        })
    }

    /// The configuration of a node's ring in one of its lives.
    ///
    /// # Panics
    /// If it has no host.
    pub fn ring_of(&self, node: NodeId, life: u32) -> RingConfig {
        let at = self.ring.members.iter().position(|member| *member == node);
        let own = &self.hosts[at.expect("a host's node")].own;
        let mut ring = own.as_ref().unwrap_or(&self.ring).clone();
        if let Some(electorate) = self.apart.electorate(self.seed, node, life) {
            ring.electorate.clone_from(electorate);
        }
        ring
    }

    /// The number of nodes.
    pub const fn nodes(&self) -> usize {
        self.hosts.len()
    }

    /// The time for which a ring waits for agreement on its members (membership A4).
    pub const fn consensus(&self) -> u64 {
        self.ring.timers.token_loss / 4 * 5
    }

    /// Time from healing until everybody shares one configuration, at most.
    pub const fn converges_within(&self) -> u64 {
        // Before a view begins, its members may have thousands of packets to tell each other over a slow ring.
        let exchange = if self.is_uniform() { 10 * SECONDS } else { 0 };
        // Three rounds of waiting and agreeing; a slow clock, coarse timers and the joins of many
        // nodes come on top.
        5 * (self.ring.timers.token_loss + self.consensus()) + SECONDS + exchange
    }

    /// The time after that in which nothing may change.
    pub const fn quiet_for(&self) -> u64 {
        10 * self.ring.timers.token_loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_never_fires_before_its_clock_shows_the_time() {
        for drift in [-100, -1, 0, 37, 100] {
            for coarse in [1, 7, MILLIS] {
                let clock = Clock {
                    offset: 12_345,
                    drift,
                    coarse,
                };
                for local in [12_345, 12_346, 999_999, 10 * SECONDS] {
                    let when = clock.when(local);
                    assert!(clock.at(when) >= local && when.is_multiple_of(coarse));
                    let coarse_before = when.saturating_sub(coarse);
                    assert!(when == 0 || clock.at(coarse_before) < local || coarse_before == 0);
                }
            }
        }
    }
}
