//! The simulator's own quick checks: what holds of every ordering engine, whatever its guarantees.

use std::collections::{BTreeMap, BTreeSet};

use rota_check::event::{Conf, Event, EventKind, Placed, Sent, regular_of};
use rota_core::contract::{ConfigurationKind, MessageId, Process, RingId, Service, Time};

use crate::observe::{Coverage, Finding, Observer};

/// Places looked through before all others.
const RECENT: usize = 512;

/// Checks a run as it happens.
#[derive(Default, Debug)]
pub struct Basics {
    /// What was sent, by process: its messages by counter.
    sent: BTreeMap<Process, Vec<(Service, u64)>>,
    /// Which message has a place in a ring.
    places: BTreeMap<RingId, Vec<(u64, MessageId)>>,
    confs: BTreeMap<ConfigurationKind, Vec<Process>>,
    seen: BTreeMap<Process, Seen>,
    safe: u64,
}

/// What one process has seen.
#[derive(Default, Debug)]
struct Seen {
    confs: BTreeSet<ConfigurationKind>,
    current: Option<ConfigurationKind>,
    /// By sender: which counters were delivered.
    messages: BTreeMap<Process, Counters>,
    /// The last place of the total order, in the current regular configuration.
    last: u64,
}

/// A set of counters that fills up from below.
#[derive(Default, Debug)]
struct Counters {
    below: u64,
    beyond: BTreeSet<u64>,
}

impl Counters {
    /// False if it was there already.
    fn insert(&mut self, counter: u64) -> bool {
        if counter <= self.below || !self.beyond.insert(counter) {
            return false;
        }
        while self.beyond.remove(&(self.below + 1)) {
            self.below += 1;
        }
        true
    }
}

impl Observer for Basics {
    fn observe(&mut self, event: &Event) -> Result<(), Finding> {
        let me = event.process;
        match &event.kind {
            EventKind::Start => {
                self.seen.insert(me, Seen::default());
                Ok(())
            }
            EventKind::Configuration(conf) => self.configured(me, conf),
            EventKind::Send(sent) => {
                self.sent(sent);
                Ok(())
            }
            EventKind::Originated(placed) => self.placed(placed),
            EventKind::Delivered(placed) => self.delivered(me, placed),
            EventKind::Primary(_) | EventKind::Crash | EventKind::Leave => Ok(()),
        }
    }

    fn quiesce(&mut self, _: Time) -> Result<(), Finding> {
        Ok(())
    }

    fn coverage(&self, coverage: &mut Coverage) {
        *coverage.entry("safe_deliveries").or_default() += self.safe;
    }
}

impl Basics {
    fn sent(&mut self, sent: &Sent) {
        let list = self.sent.entry(sent.message.process).or_default();
        list.push((sent.service, sent.hash));
    }

    fn configured(&mut self, me: Process, conf: &Conf) -> Result<(), Finding> {
        let known = self
            .confs
            .entry(conf.id)
            .or_insert_with(|| conf.members.clone());
        if *known != conf.members || !conf.members.contains(&me) {
            let what = format!("{:?} at {me:?} and {known:?} elsewhere", conf.members);
            return Err(Finding::new("C1", what));
        }
        let seen = self.seen.entry(me).or_default();
        if !seen.confs.insert(conf.id) {
            let what = format!("{:?} twice at {me:?}", conf.id);
            return Err(Finding::new("C2", what));
        }
        if seen.current.map(regular_of) != Some(regular_of(conf.id)) {
            seen.last = 0;
        }
        seen.current = Some(conf.id);
        Ok(())
    }

    fn placed(&mut self, placed: &Placed) -> Result<(), Finding> {
        let places = self.places.entry(regular_of(placed.conf)).or_default();
        // Nearly always among the last.
        let last = places.len().saturating_sub(RECENT);
        let recent = places
            .get(last)
            .is_some_and(|place| place.0 < placed.position);
        let from = if recent { last } else { 0 };
        let after = from + places[from..].partition_point(|place| place.0 < placed.position);
        match places.get(after) {
            Some((position, message)) if *position == placed.position => {
                if *message == placed.message {
                    return Ok(());
                }
                let (one, other) = (message, placed.message);
                let what = format!("{one} and {other} are both at {position}");
                Err(Finding::new("O4", what))
            }
            _ => {
                places.insert(after, (placed.position, placed.message));
                Ok(())
            }
        }
    }

    fn delivered(&mut self, me: Process, placed: &Placed) -> Result<(), Finding> {
        let Placed {
            message, service, ..
        } = *placed;
        let list = self.sent.get(&message.process);
        let sent = message
            .counter
            .checked_sub(1)
            .and_then(|before| list?.get(usize::try_from(before).ok()?));
        if sent != Some(&(service, placed.hash)) {
            let what = format!("{message} at {me:?} is not what was sent");
            return Err(Finding::new("E1", what));
        }
        let seen = self.seen.entry(me).or_default();
        let counters = seen.messages.entry(message.process).or_default();
        if !counters.insert(message.counter) {
            let what = format!("{message} twice at {me:?}");
            return Err(Finding::new("E2", what));
        }
        let ordered = !matches!(service, Service::Reliable | Service::Fifo);
        if ordered {
            if placed.position <= seen.last {
                let what = format!("{message} after {} at {me:?}", seen.last);
                return Err(Finding::new("O1", what));
            }
            seen.last = placed.position;
        }
        self.safe += u64::from(service == Service::Safe);
        self.placed(placed)
    }
}
