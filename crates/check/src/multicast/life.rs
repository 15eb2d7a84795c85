//! The lives of learners, from traces.

use std::collections::BTreeMap;

use super::event::{Delivered, Event, Instance, Line, Point, Ring, Round};
use super::{Messages, MulticastCounters, Sent};

/// A process: node and life.
pub type Who = (u16, u64);

/// The numbers that a ring is founded with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Founded {
    /// Its rank in a round.
    pub rank: u32,
    /// Instances in a round.
    pub m: u64,
    /// The round of its first instance.
    pub origin: Round,
    /// The number of the foundation.
    pub founded: u64,
}

impl Founded {
    /// The round of an instance.
    pub const fn round(&self, instance: Instance) -> Round {
        self.origin + (instance - 1) / self.m
    }

    /// The place of an instance: round, rank, instance.
    pub const fn place(&self, instance: Instance) -> Place {
        (self.round(instance), self.rank, instance, 0)
    }
}

/// Round, rank, instance, index.
pub type Place = (Round, u32, Instance, u32);

/// One life of a learner of a partition.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// The process.
    pub who: Who,
    /// The partition.
    pub part: String,
    /// The point that it went on from, if it did not begin at the beginning.
    pub installed: Option<Point>,
    /// The rings, each with its first round, and the first round without it.
    pub rings: Vec<(Ring, Round, Option<Round>)>,
    /// The deliveries, in order.
    pub delivered: Vec<Delivered>,
    /// By ring: the instance before which all were delivered, or carry nothing for it.
    pub passed: BTreeMap<Ring, Instance>,
    /// The process lives at the end.
    pub lives: bool,
}

impl Life {
    /// Whether it has a ring in a round.
    pub fn has(&self, ring: Ring, round: Round) -> bool {
        let mut rings = self.rings.iter();
        rings.any(|(of, from, until)| {
            *of == ring && *from <= round && until.is_none_or(|until| round < until)
        })
    }

    /// The first instance of a ring that the life was to deliver itself.
    pub fn begins(&self, ring: Ring) -> Instance {
        let installed = self.installed.as_ref();
        let next = installed.and_then(|point| point.next.get(&ring).copied());
        next.unwrap_or(1)
    }

    /// The name in details.
    pub fn name(&self) -> String {
        let (node, life) = self.who;
        format!("node {node}.{life}, of {}", self.part)
    }
}

/// All lives of a run, and what they have in common.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    pub founded: BTreeMap<Ring, Founded>,
    /// Rings that were founded in two ways.
    pub twice: Vec<(Ring, Founded, Founded)>,
    pub messages: Messages,
    /// Messages that were sent twice.
    pub sent_twice: Vec<String>,
    pub lives: Vec<Life>,
    /// Instances that were decided to carry nothing.
    pub skips: Vec<(Ring, Instance, Instance)>,
    /// The run is at rest: nothing more is to happen.
    pub is_at_rest: bool,
    pub counters: MulticastCounters,
}

impl Lives {
    pub fn of(lines: &[Line]) -> Self {
        let mut all = Self::default();
        let mut at: BTreeMap<(Who, String), usize> = BTreeMap::new();
        for line in lines {
            let who = (line.node, line.inc);
            match &line.event {
                Event::Crash | Event::Leave => {
                    for life in all.lives.iter_mut().filter(|life| life.who == who) {
                        life.lives = false;
                    }
                }
                Event::Quiesce => all.is_at_rest = true,
                Event::Genesis { .. } | Event::Send { .. } | Event::Skip { .. } => {
                    all.take(who, &line.event);
                }
                event => {
                    let Some(part) = part_of(event) else { continue };
                    let next = all.lives.len();
                    let at = *at.entry((who, part.to_owned())).or_insert(next);
                    if at == next {
                        all.lives.push(Life {
                            who,
                            part: part.to_owned(),
                            lives: true,
                            ..Life::default()
                        });
                    }
                    all.see(at, event);
                }
            }
        }
        all.counters.rings = all.founded.len() as u64;
        all.counters.learners = all.lives.len() as u64;
        all
    }

    fn take(&mut self, who: Who, event: &Event) {
        match event {
            Event::Genesis {
                ring,
                rank,
                m,
                origin,
                founded,
            } => {
                let new = Founded {
                    rank: *rank,
                    m: (*m).max(1),
                    origin: *origin,
                    founded: *founded,
                };
                let before = *self.founded.entry(*ring).or_insert(new);
                if before != new {
                    self.twice.push((*ring, before, new));
                }
            }
            Event::Send { msg, to, hash } => {
                let sent = Sent {
                    by: who,
                    to: to.clone(),
                    hash: hash.clone(),
                };
                if self.messages.insert(msg.clone(), sent).is_some() {
                    self.sent_twice.push(msg.clone());
                }
            }
            Event::Skip { ring, from, next } => self.skips.push((*ring, *from, *next)),
            _ => {}
        }
    }

    fn see(&mut self, at: usize, event: &Event) {
        let life = &mut self.lives[at];
        match event {
            Event::Sub { ring, from, .. } => {
                self.counters.changes += u64::from(*from > 0);
                life.rings.push((*ring, *from, None));
            }
            Event::Unsub { ring, from, .. } => {
                self.counters.changes += 1;
                let open = life.rings.iter_mut().rev();
                let mut open = open.filter(|(of, _, until)| of == ring && until.is_none());
                if let Some((_, _, until)) = open.next() {
                    *until = Some(*from);
                }
            }
            Event::Deliver(delivered) => {
                self.counters.deliveries += 1;
                life.delivered.push(delivered.clone());
            }
            Event::Passed { ring, next, .. } => {
                let passed = life.passed.entry(*ring).or_default();
                *passed = (*passed).max(*next);
            }
            Event::Install { point, source, .. } => {
                match source.as_str() {
                    "local" => self.counters.installed_local += 1,
                    _ => self.counters.installed_remote += 1,
                }
                life.installed = Some(point.clone());
            }
            _ => {}
        }
    }

    /// The place of a delivery, by the numbers that its ring was founded with; `None` if no line tells them.
    pub fn place(&self, delivered: &Delivered) -> Option<Place> {
        let founded = self.founded.get(&delivered.ring)?;
        let (round, rank, instance, _) = founded.place(delivered.inst.max(1));
        Some((round, rank, instance, delivered.idx))
    }

    /// Whether a message is for a partition: a message whose partitions no line tells is for all.
    pub fn is_for(&self, message: &str, part: &str) -> bool {
        let sent = self.messages.get(message);
        sent.is_none_or(|sent| sent.to.is_empty() || sent.to.iter().any(|to| to == part))
    }
}

/// The partition of the learner that a line is about.
fn part_of(event: &Event) -> Option<&str> {
    match event {
        Event::Sub { part, .. }
        | Event::Unsub { part, .. }
        | Event::Passed { part, .. }
        | Event::Install { part, .. } => Some(part),
        Event::Deliver(delivered) => Some(&delivered.part),
        _ => None,
    }
}
