//! When what was answered may be told: signals between partitions (Benz et al. 2014, §6.1, leaves them out; without them the store is not even
//! sequentially consistent, `docs/protocols/kv.md`).
//!
//! A command of several partitions is *stable* in one of them when all of them have delivered it, and whatever such commands they had delivered
//! before that concern others, too, was stable there. Nothing that stands behind a command is told before that is stable: so when somebody hears an
//! answer, everything that the order of some partition puts before it has been delivered, and hence been asked for. Only what is told waits, and
//! nothing that is done.

use std::collections::{BTreeMap, VecDeque};

use rota_core::contract::NodeId;
use rota_multiring::Place;

use crate::map::{Partition, Partitions};
use crate::mutants::{self, Mutant};

/// So many commands are looked at when it is asked which one stands before another. Of older ones all are taken to.
const MOST_RECENT: usize = 4_096;

/// How far a replica is among the commands of several partitions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Signal {
    /// The last that it has delivered, or has seen come by.
    pub delivered: Option<Place>,
    /// All up to this one that are of its partition are stable there.
    pub stable: Option<Place>,
}

impl Signal {
    /// The further of both, of either kind: a replica goes back when it begins anew, and what was said holds.
    fn join(&mut self, other: Self) {
        self.delivered = self.delivered.max(other.delivered);
        self.stable = self.stable.max(other.stable);
    }
}

/// A command that is delivered and not stable here.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pending {
    place: Place,
    /// Of each other partition: which command has to be stable there before this one counts as delivered.
    of: Vec<(Partition, Option<Place>)>,
}

impl Pending {
    /// Both as one: it is stable when both are.
    fn join(&mut self, place: Place, of: Vec<(Partition, Option<Place>)>) {
        self.place = place;
        for (partition, before) in of {
            let known = self.of.iter_mut().find(|(known, _)| *known == partition);
            match known {
                Some((_, known)) => *known = (*known).max(before),
                None => self.of.push((partition, before)),
            }
        }
    }
}

/// See the module's page.
#[derive(Debug)]
pub struct Outlook {
    me: Partition,
    all: Partitions,
    signals: BTreeMap<NodeId, (Partition, Signal)>,
    own: Signal,
    pending: VecDeque<Pending>,
    /// Commands that may not be stable everywhere.
    recent: VecDeque<(Place, Partitions)>,
    /// The last that is not among them any more, of each partition.
    floor: BTreeMap<Partition, Place>,
}

impl Outlook {
    /// Of a replica that has delivered nothing. `all`: the partitions.
    pub const fn new(me: Partition, all: Partitions) -> Self {
        Self {
            me,
            all,
            signals: BTreeMap::new(),
            own: Signal {
                delivered: None,
                stable: None,
            },
            pending: VecDeque::new(),
            recent: VecDeque::new(),
            floor: BTreeMap::new(),
        }
    }

    /// The replica begins with a state in which these commands were delivered. None of them is known to be stable; what others have said holds.
    pub fn begin(&mut self, delivered: Option<Place>) {
        self.own = Signal {
            delivered,
            stable: None,
        };
        self.pending.clear();
        self.recent.clear();
        self.floor.clear();
        if let Some(place) = delivered
            && !mutants::on(Mutant::T03)
        {
            // Of which partitions the last ones were is not known. When all have delivered this one, they have all that stands before it.
            let all = self.all.clone();
            self.wait(place, &all);
        }
        self.advance();
    }

    /// What other partitions are to know.
    pub const fn own(&self) -> Signal {
        self.own
    }

    /// Up to here all are stable.
    pub const fn stable(&self) -> Option<Place> {
        self.own.stable
    }

    /// Whether what stands behind a command may be told.
    pub fn may_tell(&self, behind: Option<Place>) -> bool {
        behind <= self.own.stable || mutants::on(Mutant::T01)
    }

    /// The partitions for which the first command that is not stable waits.
    pub fn waits_for(&self) -> Partitions {
        let first = self.pending.front();
        let of = first.map_or(&[][..], |first| &first.of);
        let lacking = of.iter().filter(|(partition, before)| {
            first.is_some_and(|first| !self.has(*partition, first.place, *before))
        });
        lacking.map(|(partition, _)| *partition).collect()
    }

    /// A command of several partitions is delivered here.
    pub fn on_delivered(&mut self, place: Place, of: &Partitions) {
        debug_assert!(
            self.own.delivered < Some(place),
            "commands come in their order"
        );
        self.own.delivered = Some(place);
        if of.contains(&self.me) {
            self.wait(place, of);
        }
        self.recent.push_back((place, of.clone()));
        self.forget();
        self.advance();
    }

    /// What another replica says. What is stable at one of the own partition is so here, as far as it is delivered: that is said of the partition.
    pub fn on_signal(&mut self, node: NodeId, partition: Partition, signal: Signal) {
        let (known, last) = self
            .signals
            .entry(node)
            .or_insert((partition, Signal::default()));
        *known = partition;
        last.join(signal);
        if partition == self.me {
            let stable = signal.stable.min(self.own.delivered);
            self.pending.retain(|pending| Some(pending.place) > stable);
            self.own.stable = self.own.stable.max(stable);
        }
        self.advance();
    }

    fn wait(&mut self, place: Place, of: &Partitions) {
        let others = of.iter().filter(|partition| **partition != self.me);
        let of = others.map(|partition| (*partition, self.before(*partition, of)));
        let of: Vec<_> = of.collect();
        let is_full = self.pending.len() >= MOST_RECENT;
        match self.pending.back_mut().filter(|_| is_full) {
            Some(last) => last.join(place, of),
            None => self.pending.push_back(Pending { place, of }),
        }
    }

    /// The last command of a partition that concerns others than these, too.
    fn before(&self, partition: Partition, of: &Partitions) -> Option<Place> {
        if mutants::on(Mutant::T02) {
            return None;
        }
        let concerns =
            |(_, other): &&(Place, Partitions)| other.contains(&partition) && !other.is_subset(of);
        let recent = self.recent.iter().rev().find(concerns);
        let recent = recent.map(|(place, _)| *place);
        recent.max(self.floor.get(&partition).copied())
    }

    /// Whether some replica of a partition has delivered a command, and what stands before it is stable there.
    fn has(&self, partition: Partition, place: Place, before: Option<Place>) -> bool {
        let mut of = self.signals.values().filter(|(of, _)| *of == partition);
        of.any(|(_, signal)| signal.delivered >= Some(place) && signal.stable >= before)
    }

    fn is_stable(&self, pending: &Pending) -> bool {
        let mut of = pending.of.iter();
        of.all(|(partition, before)| self.has(*partition, pending.place, *before))
    }

    fn advance(&mut self) {
        while let Some(first) = self.pending.front()
            && self.is_stable(first)
        {
            self.own.stable = Some(first.place);
            self.pending.pop_front();
        }
        if self.pending.is_empty() {
            // What was not of this partition keeps nothing here.
            self.own.stable = self.own.delivered;
        }
    }

    /// Commands that are stable in all of their partitions stand before nothing, and of too many the first ones are taken to stand before all.
    fn forget(&mut self) {
        let everywhere = |(place, of): &(Place, Partitions)| {
            of.iter().all(|partition| match *partition == self.me {
                true => self.own.stable >= Some(*place),
                false => {
                    let mut signals = self.signals.values();
                    signals.any(|(of, signal)| of == partition && signal.stable >= Some(*place))
                }
            })
        };
        while self.recent.front().is_some_and(everywhere) {
            self.recent.pop_front();
        }
        while self.recent.len() > MOST_RECENT {
            if let Some((place, of)) = self.recent.pop_front() {
                of.into_iter().for_each(|partition| {
                    self.floor.insert(partition, place);
                });
            }
        }
    }
}
