//! The ring of a configuration, and the place of this process in it.

use alloc::vec::Vec;

use crate::Config;
use rota_core::contract::Process;

/// The processes of a ring, in their order. From the coordinator on, places are counted as *distance*: the coordinator
/// has 0, its successor 1.
#[derive(Debug)]
pub struct Places {
    ring: Vec<Process>,
    me: usize,
    coordinator: usize,
}

impl Places {
    /// Those of this configuration; `None` if `me` is not in its ring.
    pub fn of(config: &Config, me: Process) -> Option<Self> {
        let place = |who: Process| config.ring.iter().position(|other| *other == who);
        let (me, coordinator) = (place(me)?, place(config.coordinator)?);
        Some(Self {
            ring: config.ring.clone(),
            me,
            coordinator,
        })
    }

    /// Their number.
    pub const fn count(&self) -> usize {
        self.ring.len()
    }

    /// The place of this process.
    pub const fn me(&self) -> usize {
        self.me
    }

    /// The place of the coordinator.
    pub const fn coordinator(&self) -> usize {
        self.coordinator
    }

    /// Whether this process coordinates.
    pub const fn leads(&self) -> bool {
        self.me == self.coordinator
    }

    /// The process at a place.
    pub fn process(&self, place: usize) -> Process {
        self.ring[place]
    }

    /// All processes, each with its place.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Process)> {
        self.ring.iter().copied().enumerate()
    }

    /// The place of a process.
    pub fn place(&self, who: Process) -> Option<usize> {
        self.ring.iter().position(|other| *other == who)
    }

    /// The place behind this process: its own if it is alone.
    pub const fn next(&self) -> usize {
        (self.me + 1) % self.ring.len()
    }

    /// The process to which this one sends; `None` if it is alone.
    pub fn successor(&self) -> Option<Process> {
        let next = self.next();
        (next != self.me).then(|| self.ring[next])
    }

    /// The process that sends to this one; `None` if it is alone.
    pub fn predecessor(&self) -> Option<Process> {
        let count = self.ring.len();
        let before = (self.me + count - 1) % count;
        (before != self.me).then(|| self.ring[before])
    }

    /// Whether proposals go on from here: they end at the coordinator's predecessor.
    pub fn passes_on(&self) -> bool {
        let coordinator = self.ring[self.coordinator];
        self.successor().is_some_and(|next| next != coordinator)
    }

    /// Whether the successor stands as far from the coordinator as this place, or farther.
    pub const fn is_successor_behind(&self, place: usize) -> bool {
        self.distance(self.next()) >= self.distance(place)
    }

    const fn distance(&self, place: usize) -> usize {
        let count = self.ring.len();
        (place + count - self.coordinator) % count
    }

    /// Its invariants.
    pub fn check(&self) {
        let places = self.ring.len();
        assert!(self.me < places, "this process is in it");
        assert!(self.coordinator < places, "so is the coordinator");
    }
}
