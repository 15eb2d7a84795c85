//! The judge: properties that must hold, whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, MessageId, NodeId, Process, position,
};
use rota_paxos::Config;

/// What one process has been handed since it began, or had missed something.
#[derive(Default)]
struct Reader {
    /// Everything before this position.
    upto: u64,
    /// The last message of each process.
    last: BTreeMap<Process, u64>,
}

/// The one order, and where everybody is in it.
#[derive(Default)]
pub struct Judge {
    /// Messages by position.
    pub order: BTreeMap<u64, MessageId>,
    /// Somebody has been handed nothing between these positions.
    empty: BTreeMap<u64, u64>,
    last: BTreeMap<Process, u64>,
    /// What somebody was handed without a gap, from the first of these positions up to the second.
    read: BTreeMap<u64, u64>,
    /// Up to where each process was told that its own messages are delivered, past what it has missed.
    owned: BTreeMap<Process, u64>,
    places: BTreeMap<MessageId, u64>,
    readers: BTreeMap<Process, Reader>,
    /// Processes get only what is ordered while they are members.
    pub only_as_member: bool,
    /// Whom each process has been told of as the members last.
    members: BTreeMap<Process, Configuration>,
    /// Who has been told that it is none.
    outside: BTreeMap<Process, bool>,
    pub excluded: u64,
    /// Where it was clear that somebody had missed something.
    pub missed: u64,
    /// Whether it was judged what processes were told of their own messages.
    pub judged_own: u64,
    /// Configurations by number.
    configs: BTreeMap<u64, Arc<Config>>,
    pub wrong: Option<String>,
    /// The first instance that nobody has learnt.
    most_learnt: u64,
    /// So many instances every acceptor keeps, at least.
    pub keeps: u64,
}

impl Judge {
    pub fn found(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    /// There is one configuration with each number.
    pub fn on_config(&mut self, me: Process, config: &Arc<Config>) {
        let other = self
            .configs
            .values()
            .find(|other| other.founded != config.founded);
        if let Some(other) = other.cloned() {
            self.found(format!(
                "foundation: {me:?} has {config:?}, others {other:?}"
            ));
        }
        self.judge_step(config);
        let known = self.configs.entry(config.number);
        let known = known.or_insert_with(|| config.clone()).clone();
        if known != *config {
            self.found(format!(
                "configuration: {me:?} has {config:?}, others {known:?}"
            ));
        }
    }

    /// From one configuration to the next one acceptor comes at most, and one goes; and only from one that is complete.
    fn judge_step(&mut self, config: &Arc<Config>) {
        let nodes = |config: &Config| -> BTreeSet<NodeId> {
            config.acceptors.iter().map(|who| who.node).collect()
        };
        let numbers = config.number.saturating_sub(1)..=config.number;
        for number in numbers {
            let two = [number, number + 1].map(|number| match number == config.number {
                true => Some(config.clone()),
                false => self.configs.get(&number).cloned(),
            });
            let [Some(before), Some(next)] = two else {
                continue;
            };
            let (old, new) = (nodes(&before), nodes(&next));
            let (come, go) = (new.difference(&old).count(), old.difference(&new).count());
            let is_step = come <= 1 && go <= 1;
            let is_whole = next.prior.len() == 1 && next.prior[0].acceptors == before.acceptors;
            if !is_step || come + go > 0 && !is_whole {
                self.found(format!("step: from {before:?} to {next:?}"));
            }
        }
    }

    pub fn on_learnt(&mut self, next: u64) {
        self.most_learnt = self.most_learnt.max(next);
    }

    /// Nobody has to miss what every acceptor keeps. One instance alone may be missed later, where its message began long before.
    fn on_missed(&mut self, me: Process, from: u64, count: u64) {
        let behind = match count {
            1 => self.most_learnt,
            _ => self.most_learnt.saturating_sub(from),
        };
        if !self.only_as_member && behind < self.keeps {
            self.found(format!(
                "missed: {me:?} misses {count} from {from}, {behind} behind"
            ));
        }
    }

    pub fn on_delivery(&mut self, me: Process, delivery: &Delivery) {
        match delivery {
            Delivery::Message(message) => {
                if *message.payload != *payload(message.id) {
                    self.found(format!("contents: {:?}", message.id));
                }
                let at = position(message.seq, message.index);
                self.on_message(me, at, message.id);
            }
            Delivery::Missed { seq, count, own } => {
                self.missed += 1;
                self.on_missed(me, *seq, *count);
                let upto = position(seq + count, 0);
                self.begin(me, upto);
                self.on_own(me, *own);
            }
            Delivery::Configuration(config) => self.on_configuration(me, config),
            Delivery::Excluded(_) => {
                self.excluded += 1;
                if !self.only_as_member || self.outside.insert(me, true) == Some(true) {
                    self.found(format!("excluded: {me:?} twice"));
                }
            }
            other => self.found(format!("delivery: {other:?}")),
        }
    }

    /// The first instance that nobody has learnt.
    pub const fn most_learnt(&self) -> u64 {
        self.most_learnt
    }

    /// The newest configuration, and the one before.
    pub fn newest(&self) -> [Option<&Arc<Config>>; 2] {
        let mut newest = self.configs.values().rev();
        [newest.next(), newest.next()]
    }

    /// The foundation of the configurations so far.
    pub fn founded(&self) -> Option<u64> {
        let newest = self.configs.last_key_value();
        newest.map(|(_, config)| config.founded)
    }

    /// An application has a state with everything before this instance.
    pub fn resume(&mut self, me: Process, next: u64) {
        self.begin(me, position(next, 0));
    }

    fn begin(&mut self, me: Process, upto: u64) {
        let last = BTreeMap::new();
        self.readers.insert(me, Reader { upto, last });
        self.outside.insert(me, false);
    }

    fn on_configuration(&mut self, me: Process, config: &Configuration) {
        self.members.insert(me, config.clone());
        if !self.only_as_member {
            return;
        }
        if !config.members.contains(&me) {
            self.found(format!("members: {me:?} is none of {config:?}"));
        }
        if let ConfigurationKind::Regular(ring) = config.kind
            && !self.readers.contains_key(&me)
        {
            self.begin(me, position(ring.ring_seq, 0));
        }
    }

    /// A process is told that its messages up to this one are delivered.
    fn on_own(&mut self, me: Process, own: u64) {
        let last = self.last.entry(me).or_default();
        *last = own.max(*last);
        let owned = self.owned.entry(me).or_default();
        *owned = own.max(*owned);
    }

    /// Somebody was handed what there is between these positions.
    fn on_read(&mut self, mut from: u64, mut upto: u64) {
        while let Some((&other, &end)) = self.read.range(..=upto).next_back()
            && end >= from
        {
            self.read.remove(&other);
            (from, upto) = (from.min(other), upto.max(end));
        }
        self.read.insert(from, upto);
    }

    /// Who was told that its messages are delivered was told the truth: where nothing of the order is missing here, all of them
    /// are in it.
    pub fn judge_own(&mut self) {
        let has_all = self.read.len() == 1
            && self
                .read
                .first_key_value()
                .is_some_and(|(from, _)| *from == 0);
        if !has_all {
            return;
        }
        self.judged_own += 1;
        for (process, own) in std::mem::take(&mut self.owned) {
            let lost = (1..=own).find(|counter| {
                let (process, counter) = (process, *counter);
                !self.places.contains_key(&MessageId { process, counter })
            });
            if let Some(counter) = lost {
                self.found(format!(
                    "own: {process:?} was told of {own}, {counter} is not there"
                ));
            }
        }
    }

    fn on_message(&mut self, me: Process, at: u64, id: MessageId) {
        let outside = self.outside.get(&me).copied();
        if outside.unwrap_or(self.only_as_member) {
            self.found(format!("excluded: {me:?} has {id:?}"));
        }
        let reader = self.readers.entry(me).or_default();
        let from = std::mem::replace(&mut reader.upto, at + 1);
        let before = reader.last.insert(id.process, id.counter);
        if before.is_some_and(|before| before + 1 != id.counter) {
            self.found(format!("fifo: {me:?} has {id:?} after {before:?}"));
        }
        if from > at {
            self.found(format!("order: {me:?} has {id:?} at {at}, behind {from}"));
            return;
        }
        if let Some((known, other)) = self.order.range(from..at).next() {
            self.found(format!("order: {me:?} lacks {other:?} at {known}"));
        }
        if let Some((lo, hi)) = self.empty.range(..=at).next_back()
            && *hi > at
        {
            self.found(format!(
                "order: {me:?} has {id:?} at {at}, others nothing in {lo}..{hi}"
            ));
        }
        if *self.order.entry(at).or_insert(id) != id {
            let other = self.order[&at];
            self.found(format!(
                "order: {me:?} has {id:?} at {at}, others {other:?}"
            ));
        }
        if *self.places.entry(id).or_insert(at) != at {
            let other = self.places[&id];
            self.found(format!("once: {id:?} at {at} and at {other}"));
        }
        self.leave_empty(from, at);
        self.on_read(from, at + 1);
        let last = self.last.entry(id.process).or_default();
        *last = id.counter.max(*last);
    }

    fn leave_empty(&mut self, from: u64, upto: u64) {
        if from < upto {
            let until = self.empty.entry(from).or_default();
            *until = upto.max(*until);
        }
    }

    /// Whether a process has been handed everything.
    pub fn is_at_end(&self, me: Process) -> bool {
        let upto = self.readers.get(&me).map_or(0, |reader| reader.upto);
        let outside = self.outside.get(&me).copied();
        !outside.unwrap_or(self.only_as_member) && self.order.range(upto..).next().is_none()
    }

    /// Whether these know of the same members.
    pub fn agree(&self, all: impl Iterator<Item = Process>) -> bool {
        let mut last = all.map(|me| self.members.get(&me));
        let first = last.next().flatten();
        first.is_some() && last.all(|members| members == first)
    }

    /// The counter of a process's last message that is known to be in the order.
    pub fn last(&self, me: Process) -> u64 {
        self.last.get(&me).copied().unwrap_or(0)
    }
}

/// What a message says: its name, as often as its size wants it.
pub fn payload(id: MessageId) -> Vec<u8> {
    let size = match id.counter % 11 {
        // The largest.
        0 if id.counter.is_multiple_of(7) => 2000,
        0 => 900,
        1 => 150,
        _ => 12,
    };
    let name = [
        u64::from(id.process.node.get()),
        id.process.incarnation.0,
        id.counter,
    ];
    let name: Vec<u8> = name
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    name.iter().copied().cycle().take(size).collect()
}
