//! What came from a client and is not handled yet.

use rota_core::contract::Time;
use rota_core::groups::Hold;

use super::outcome::{Done, Standing};
use crate::lag::HeldFor;
use crate::speech::Ask;

/// The request that waits, and the bytes behind it.
#[derive(Debug)]
pub(super) struct Inbound {
    /// The request that has to be tried again, before anything else of this client.
    waiting: Option<Ask>,
    /// Bytes that were read behind it.
    rest: Vec<u8>,
    /// The hold by which a message of the client waits for a slower one.
    held_for: Option<HeldFor>,
}

impl Inbound {
    pub const fn new() -> Self {
        Self {
            waiting: None,
            rest: Vec::new(),
            held_for: None,
        }
    }

    /// The request that waits, to be tried again.
    pub const fn take_waiting(&mut self) -> Option<Ask> {
        self.waiting.take()
    }

    /// The bytes behind that.
    pub fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest)
    }

    /// Keeps a request that was not done.
    pub fn put_off(&mut self, done: Done) -> Option<Standing> {
        let (ask, standing) = match done {
            Done::Yes => return None,
            Done::Later(ask) => (ask, Standing::Stalled),
            Done::Soon(ask) => (ask, Standing::Asks),
            Done::Change(ask) => (ask, Standing::Changes),
            Done::Held(ask) => (ask, Standing::Held),
        };
        self.waiting = Some(ask);
        Some(standing)
    }

    /// Keeps the bytes behind a request that was put off.
    pub fn keep(&mut self, rest: &[u8]) {
        self.rest = rest.to_vec();
    }

    /// The bytes that are kept.
    pub const fn bytes(&self) -> usize {
        self.rest.len()
    }

    /// A question waits to be answered.
    pub const fn is_asking(&self) -> bool {
        matches!(self.waiting, Some(Ask::List(..)))
    }

    /// A request waits for room.
    pub const fn is_stalled(&self) -> bool {
        self.waiting.is_some() && self.held_for.is_none()
    }

    /// The hold that a message waits for.
    pub const fn held_for(&self) -> Option<HeldFor> {
        self.held_for
    }

    /// A message waits for this hold. Whether it begins to wait now.
    pub fn wait_for_slow(&mut self, hold: Hold, now: Time) -> bool {
        let since = self.held_for.map(|held| held.since);
        self.held_for = Some(HeldFor {
            hold,
            since: since.unwrap_or(now),
        });
        since.is_none()
    }

    /// Lets a message of the client go on. Returns the time for which it has waited for another client, in nanoseconds.
    pub fn let_go(&mut self, now: Time) -> Option<u64> {
        let HeldFor { since, .. } = self.held_for.take()?;
        Some(now.since(since))
    }

    /// Bytes are kept only behind a request that waits: all others have been handled.
    pub fn check(&self) {
        debug_assert!(self.rest.is_empty() || self.waiting.is_some());
    }
}

#[cfg(test)]
mod tests {
    use rota_core::contract::{Incarnation, NodeId, Process};
    use rota_core::groups::{ClientName, Destination, GroupName};

    use super::*;

    #[test]
    fn a_message_that_is_held_waits_since_its_first_try_and_does_not_count_as_stalled() {
        let group = GroupName::new("g").expect("a name");
        let hold = Hold {
            to: Destination::Group(group),
            client: ClientName::new("slow").expect("a name"),
            daemon: Process {
                node: NodeId::new(1).expect("not 0"),
                incarnation: Incarnation(1),
            },
        };
        let mut inbound = Inbound::new();
        assert!(inbound.wait_for_slow(hold, Time(5)));
        assert!(!inbound.wait_for_slow(hold, Time(7)));
        let standing = inbound.put_off(Done::Held(Ask::Join(group, 1)));
        assert_eq!(standing, Some(Standing::Held));
        assert!(!inbound.is_stalled());
        assert_eq!(inbound.let_go(Time(9)), Some(4));
        assert!(inbound.is_stalled());
        assert_eq!(inbound.let_go(Time(9)), None);
    }
}
