//! The condition under which an answer may be told: signals between partitions (Benz et al. 2014, §6.1, leaves them
//! out; without them the store is not even sequentially consistent, `docs/protocols/kv.md`).
//!
//! A command of several partitions is *stable* in one of them when all of them have delivered it, and all earlier such
//! commands there that concern other partitions, too, were stable there. An answer is not told before the command that
//! it stands behind is stable: so when a client hears an answer, every command that the order of some partition puts
//! before it has been delivered, and hence been given before. Only answers wait; commands are applied at once.

mod past;

use std::collections::{BTreeMap, VecDeque};

use rota_core::contract::NodeId;
use rota_multiring::Place;

use crate::map::{Partition, Partitions};
use crate::mutants::{self, Mutant};

pub use past::Past;

/// The number of commands, at most, that are compared with a new one to find those before it. All older ones count as
/// before it.
const MOST_RECENT: usize = 4_096;

/// The place of a replica among the commands of several partitions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Signal {
    /// The last such command that it has delivered, also if it was of other partitions only.
    pub delivered: Option<Place>,
    /// The last such command up to which all of its partition are stable there.
    pub stable: Option<Place>,
}

impl Signal {
    /// Joins two signals, of each field the further one: a replica goes back when it begins anew, and its earlier
    /// signals hold.
    fn join(&mut self, other: Self) {
        self.delivered = self.delivered.max(other.delivered);
        self.stable = self.stable.max(other.stable);
    }
}

/// A command that was delivered here, and is not stable yet.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pending {
    place: Place,
    /// For each other partition, the command that has to be stable there before this one counts as delivered.
    of: Vec<(Partition, Option<Place>)>,
}

impl Pending {
    /// Joins another command, so that both are stable together.
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

/// The commands of several partitions that a replica knows of, and the signals of all replicas.
#[derive(Debug)]
pub struct Outlook {
    me: Partition,
    signals: BTreeMap<NodeId, (Partition, Signal)>,
    own: Signal,
    pending: VecDeque<Pending>,
    /// The commands that may not be stable everywhere.
    recent: VecDeque<(Place, Partitions)>,
    /// For each partition, the last command that is not in `recent` any more.
    floor: BTreeMap<Partition, Place>,
}

impl Outlook {
    /// The outlook of a replica that has delivered nothing.
    pub const fn new(me: Partition) -> Self {
        Self {
            me,
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

    /// Begins anew with a state in which these commands were delivered. None of them is known to be stable; the signals
    /// of other replicas hold. It waits until the partitions that have had commands together with this one, and those
    /// that have had some with them, have delivered what it has: others may be away. It must not wait for anything to be
    /// *stable* there: they may begin anew as well, and each would wait for the other one for ever.
    pub fn begin(&mut self, delivered: Option<Place>, past: &Past) {
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
            self.recent.extend(past.commands());
            // When these partitions have delivered the last command, they have all that were before it, which concern no
            // other ones.
            let of = past.together(self.me);
            if of.len() > 1 {
                self.wait(place, &of);
            }
        }
        self.advance();
    }

    /// The signal for other partitions.
    pub const fn own(&self) -> Signal {
        self.own
    }

    /// The last command up to which all are stable.
    pub const fn stable(&self) -> Option<Place> {
        self.own.stable
    }

    /// Whether an answer that stands behind a command may be told.
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

    /// Takes in a command of several partitions that is delivered here.
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

    /// Takes in the signal of another replica. A command that is stable at a replica of the own partition is stable
    /// here, once it is delivered: a signal is about the partition.
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

    /// Whether some replica of a partition has delivered a command, and the command before it is stable there.
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
            // Commands of other partitions only hold up nothing here.
            self.own.stable = self.own.delivered;
        }
    }

    /// Forgets commands that are stable in all of their partitions: they stand before nothing. If there are too many,
    /// the first ones count as before all others.
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
