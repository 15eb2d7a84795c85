//! What is simulated of several rings. All times are nanoseconds, all rates bits per second.

use rota_core::timing::Timing;
use rota_multiring::Rank;
use rota_multiring::level::Mode;

use crate::setup::{Costs, DiskPlan, LinkPlan, Load, Span, WirePlan};

/// A run of several rings: everything that its figures depend on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RingsSetup {
    /// The number of hosts.
    pub hosts: usize,
    /// The network between them.
    pub wire: WirePlan,
    /// The time that a host's work takes, whichever ring it is for.
    pub costs: Costs,
    /// The reliable links of each ring.
    pub links: LinkPlan,
    /// The disk that each ring has at each host.
    pub disk: DiskPlan,
    /// The rings.
    pub rings: Vec<OneRing>,
    /// What is measured.
    pub span: Span,
    /// Decides the phases of the senders.
    pub seed: u64,
}

/// One of several rings.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OneRing {
    /// Its rank in each round.
    pub rank: Rank,
    /// The hosts that are on it, in the order of the ring.
    pub hosts: Vec<usize>,
    /// Those of them that vote. The first one coordinates.
    pub acceptors: Vec<usize>,
    /// Those of them whose applications deliver it.
    pub subscribers: Vec<usize>,
    /// Those of them that submit to it; with [`Load::UnderWay`] they have to deliver it as well.
    pub senders: Vec<usize>,
    /// The way in which it keeps up with the others.
    pub mode: Mode,
    /// The family of its time-outs.
    pub timing: Timing,
    /// The times at which messages are submitted.
    pub load: Load,
    /// Bytes of a message: payload, at least 8.
    pub message_bytes: usize,
}

impl OneRing {
    /// A ring of these hosts, all of which vote, deliver and send, with one instance in each round.
    pub fn new(rank: u16, hosts: Vec<usize>, load: Load, message_bytes: usize) -> Self {
        Self {
            rank: Rank(rank),
            acceptors: hosts.clone(),
            subscribers: hosts.clone(),
            senders: hosts.clone(),
            hosts,
            mode: Mode::Pull,
            timing: Timing::Default,
            load,
            message_bytes,
        }
    }
}

impl RingsSetup {
    /// The rings that the application of a host delivers, by their places here.
    pub(super) fn subscriptions(&self, host: usize) -> impl Iterator<Item = usize> {
        let rings = self.rings.iter().enumerate();
        let rings = rings.filter(move |(_, ring)| ring.subscribers.contains(&host));
        rings.map(|(ring, _)| ring)
    }
}
