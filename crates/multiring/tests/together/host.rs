//! A host: its disks, the state that its application has kept, and its process if that lives.

use std::collections::BTreeMap;

use rota_core::contract::{Checked, MessageId, Process};
use rota_multiring::{Leveled, Place, Point, Resume, RingsLearner};
use rota_paxos::uring::URing;

use super::disk::Disk;

/// The engine of a ring.
pub type RingEngine = Checked<Leveled<URing>>;

/// What an application has of everything that it was told.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct State {
    pub count: u64,
    /// Of the messages and their places, in order.
    pub digest: u64,
}

/// A state that was kept.
#[derive(Clone, Debug)]
pub struct Kept {
    pub resume: Resume,
    pub state: State,
}

/// A state that comes from another host.
#[derive(Debug)]
pub struct Fetched {
    /// When it is here.
    pub at: u64,
    pub kept: Kept,
    /// All rings keep what is behind it.
    pub is_pinned: bool,
}

pub struct Life {
    pub me: Process,
    /// By the ring's index.
    pub engines: BTreeMap<usize, RingEngine>,
    pub learner: RingsLearner,
    pub state: State,
    /// Behind which point it began.
    pub began: Option<Point>,
    /// What it was told.
    pub told: Vec<(Place, MessageId)>,
    /// It has submitted so many messages to each ring.
    pub submitted: BTreeMap<usize, u64>,
    /// A ring has forgotten what it needs.
    pub is_trimmed: bool,
    /// It wants to keep a state then.
    pub keeps: u64,
    /// It does nothing until then.
    pub stopped: u64,
    /// Its application takes nothing until then.
    pub busy: u64,
    /// It takes so many messages at once.
    pub takes: usize,
}

#[derive(Default)]
pub struct Host {
    pub life: Option<Life>,
    pub lives: u64,
    /// When it is started again.
    pub again: u64,
    /// By the ring's index.
    pub disks: BTreeMap<usize, Disk>,
    /// When each disk answers next.
    pub answers: BTreeMap<usize, u64>,
    /// The rings whose messages its application wants, by index.
    pub subscribes: Vec<usize>,
    /// On the disk.
    pub kept: Option<Kept>,
    /// On its way there, and when it is.
    pub writes: Option<(u64, Kept)>,
    /// On its way from another host.
    pub fetches: Option<Fetched>,
    /// Its process has begun behind a state that all rings had to keep what is behind.
    pub is_pinned: bool,
    pub ever: super::accounts::Ever,
    /// It has lost a state.
    pub has_lost: bool,
}
