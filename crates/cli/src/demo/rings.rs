//! A node of the demo with several rings: the rings are in its own process, and its messages go to them in turns.

use std::collections::BTreeMap;
use std::path::Path;

use rota_core::contract::{Delivery, NodeId, Service, SubmitError, Time};
use rota_multiring::Rank;
use rota_node::rings::{RingsApp, RingsConfig, RingsDelivery, RingsDriver};
use rota_node::{App, Submitter};

use super::app::DemoApp;

/// The number of messages that go to a ring before the next one has its turn: a ring packs messages that come together.
const IN_A_ROW: u64 = 16;
/// The longest rest: then orders are looked at again, in nanoseconds.
const LOOK_NANOS: u64 = 5_000_000;

/// The demo's application above several rings.
struct Above {
    app: DemoApp,
    me: NodeId,
    rings: Vec<Rank>,
    /// The rings of which all nodes are members.
    formed: Vec<Rank>,
    /// Messages that were submitted.
    sent: u64,
    /// Own messages that are on their way, by what their ring calls them: which of this node's they are.
    own: BTreeMap<(Rank, u64), u64>,
    /// The turn has passed to a ring that was not asked since.
    is_over: bool,
    nodes: usize,
}

/// Rings in this process, and what is above them.
pub struct DemoRings {
    driver: RingsDriver<Above>,
}

impl DemoRings {
    /// Opens the rings that a file tells of.
    pub fn open(file: &Path, me: NodeId, app: DemoApp) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        let config = RingsConfig::from_toml(&text).map_err(|error| error.to_string())?;
        let above = Above {
            app,
            me,
            rings: config.rings.iter().map(|ring| Rank(ring.id)).collect(),
            formed: Vec::new(),
            sent: 0,
            own: BTreeMap::new(),
            is_over: false,
            nodes: config.common.nodes.len(),
        };
        let driver = RingsDriver::open(&config, me, None, above);
        let driver = driver.map_err(|error| error.to_string())?;
        Ok(Self { driver })
    }

    /// Submits what may be submitted, and takes what has come, or waits for it a little.
    pub fn turn(&mut self) -> Result<(), String> {
        let turned = self.driver.turn(Some(LOOK_NANOS));
        turned.map_err(|error| error.to_string())
    }

    /// Tells the other nodes that this one goes.
    pub fn leave(&mut self) -> Result<(), String> {
        self.driver.leave().map_err(|error| error.to_string())
    }

    /// The application, for a look or a change.
    pub fn with<T>(&mut self, look: impl FnOnce(&mut DemoApp) -> T) -> T {
        look(&mut self.driver.app_mut().app)
    }
}

impl Above {
    fn turn(&self) -> Rank {
        let at = (self.sent / IN_A_ROW) as usize % self.rings.len();
        self.rings[at]
    }
}

/// Takes messages for one ring, while it has its turn.
struct InTurn<'a> {
    submitter: &'a mut dyn Submitter,
    rings: &'a [Rank],
    ring: Rank,
    sent: &'a mut u64,
    own: &'a mut BTreeMap<(Rank, u64), u64>,
    /// Another one has the turn now.
    is_over: bool,
}

impl Submitter for InTurn<'_> {
    fn submit(&mut self, now: Time, _: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        let at = (*self.sent / IN_A_ROW) as usize % self.rings.len();
        if self.rings[at] != self.ring {
            self.is_over = true;
            return Err(SubmitError::Full);
        }
        let counter = self.submitter.submit(now, Service::Safe, payload)?;
        *self.sent += 1;
        self.own.insert((self.ring, counter), *self.sent);
        Ok(*self.sent)
    }
}

impl RingsApp for Above {
    fn deliver(&mut self, delivery: RingsDelivery) {
        match delivery {
            RingsDelivery::Message(place, mut message) => {
                if message.id.process.node == self.me {
                    let key = (place.rank, message.id.counter);
                    message.id.counter = self.own.remove(&key).unwrap_or(0);
                }
                self.app.deliver(Delivery::Message(message));
            }
            RingsDelivery::Configuration(ring, now) => {
                if now.members.len() == self.nodes && !self.formed.contains(&ring) {
                    self.formed.push(ring);
                }
                if self.formed.len() == self.rings.len() {
                    self.app.deliver(Delivery::Configuration(now));
                }
            }
            RingsDelivery::Trimmed(ring, _) => {
                self.app.fail(format!(
                    "ring {ring} forgot what this node had not delivered"
                ));
            }
            RingsDelivery::Contradicted(ring) => {
                self.app.fail(format!("ring {ring} contradicts itself"));
            }
            RingsDelivery::Refounded(ring) => {
                self.app.fail(format!("ring {ring} was founded anew"));
            }
            RingsDelivery::Unreachable(ring) => {
                self.app.fail(format!("this node is not on ring {ring}"));
            }
            // Its subscriptions never change.
            RingsDelivery::Point(_)
            | RingsDelivery::Subscribed(..)
            | RingsDelivery::Left(..)
            | RingsDelivery::LastRing(_)
            | RingsDelivery::NotHeld(_) => {}
        }
    }

    fn flush(&mut self) {
        self.app.flush();
    }

    fn fill(&mut self, now: Time, ring: Rank, submitter: &mut dyn Submitter) {
        if self.turn() != ring {
            return;
        }
        let mut in_turn = InTurn {
            submitter,
            rings: &self.rings,
            ring,
            sent: &mut self.sent,
            own: &mut self.own,
            is_over: false,
        };
        self.app.fill(now, &mut in_turn);
        self.is_over = in_turn.is_over;
    }

    fn next_wake(&self, ring: Rank) -> Option<Time> {
        let has_turn = self.turn() == ring;
        self.app.next_wake().filter(|_| has_turn)
    }

    fn may_sleep(&mut self, ring: Rank) -> bool {
        let has_more = self.is_over || !self.app.may_sleep();
        !(has_more && self.turn() == ring)
    }
}
