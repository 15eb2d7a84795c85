//! A host: its disks, the state that its application has kept, and its process if that lives.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{Checked, MessageId, Process};
use rota_multiring::{Leveled, Place, Point, Resume, RingsLearner, Round};
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
    /// By ring: the instance from which on everything is to be kept meanwhile.
    pub pins: BTreeMap<usize, u64>,
    /// All of these rings keep what is behind it.
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
    /// The ring that has forgotten it, and the instance before which it has: of a process that had the ring already.
    pub lacks: Option<(usize, u64)>,
    /// It wants to keep a state then.
    pub keeps: u64,
    /// It does nothing until then.
    pub stopped: u64,
    /// Its application takes nothing until then.
    pub busy: u64,
    /// It takes so many messages at once.
    pub takes: usize,
    /// When it began another replica of its partition was in this round.
    pub catches_up: Round,
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
    /// Its partition.
    pub partition: usize,
    /// It wants its partition to have this ring, as soon as that keeps what the partition needs.
    pub wants: Option<usize>,
    /// On the disk.
    pub kept: Option<Kept>,
    /// On its way there, and when it is.
    pub writes: Option<(u64, Kept)>,
    /// On its way from another host.
    pub fetches: Option<Fetched>,
    /// Its process has begun behind a state, and these rings had to keep what is behind that.
    pub pinned: BTreeSet<usize>,
    pub ever: super::accounts::Ever,
    /// It has lost a state.
    pub has_lost: bool,
    /// Its state has come from another, and no life of it began behind that.
    pub is_fetched: bool,
    /// How many states of others it has begun to get since it has kept one of its own.
    pub transfers: u64,
    /// The point behind which its last life began, if it did behind one.
    pub began: Option<Point>,
}
