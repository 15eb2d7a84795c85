//! Moves of slots that this process carries out, and the end of moves whose process is gone.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rota_resp::Reply;
use tokio::time::sleep;

use super::gateway::Gateway;
use crate::map::Partition;
use crate::moving::{Failure, Moved, Mover, Next};
use crate::slots::Slots;
use crate::store::{Batch, MoveName, Operation, Outcome, Snapshot, Step, Store};

/// The time for which a group of slots is tried again.
const TRIES: Duration = Duration::from_secs(20);
/// The pause after a move failed.
const PAUSE: Duration = Duration::from_millis(250);
/// The time after which frozen slots are given free: the process that froze them counts as gone.
const FROZEN: Duration = Duration::from_secs(2);
/// The time after the last copy at which copied keys are given up.
const IDLE: Duration = Duration::from_secs(10);

/// The reason why slots did not move, or not all of them.
#[derive(Debug)]
pub(super) enum MoveError {
    /// This process moves other slots already.
    Busy,
    /// The replica here has not caught up.
    Behind,
    /// There is no such partition.
    Partition(Partition),
    /// These slots have another partition: a process of that one has to be asked.
    Elsewhere(Slots),
    /// The partition has no room.
    Full(Partition),
    /// A group failed; the number of slots that had moved before.
    Failed(Failure, usize),
}

impl fmt::Display for MoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => write!(f, "this process moves other slots already"),
            Self::Behind => f.write_str(
                "this process has not caught up: another one of its partition is to be asked",
            ),
            Self::Partition(partition) => write!(f, "there is no partition {}", partition.0),
            Self::Elsewhere(slots) => write!(f, "not of this process's partition: {slots}"),
            Self::Full(partition) => write!(f, "partition {} has no room", partition.0),
            Self::Failed(why, before) => write!(f, "{why}; {before} slots had moved before"),
        }
    }
}

/// The result of a move.
#[derive(Default)]
pub(super) struct Report {
    moved: usize,
    keys: u64,
    bytes: u64,
    groups: u64,
    /// The longest time for which clients may have waited.
    longest: Duration,
    took: Duration,
}

impl Report {
    fn add(&mut self, moved: &Moved, frozen: Duration) {
        self.moved += moved.slots.len();
        self.keys += moved.keys;
        self.bytes += moved.bytes;
        self.groups += 1;
        self.longest = self.longest.max(frozen);
    }

    pub(super) fn reply(&self) -> Reply {
        let micros = |time: Duration| time.as_micros() as u64;
        let all = [
            ("slots", self.moved as u64),
            ("keys", self.keys),
            ("bytes", self.bytes),
            ("groups", self.groups),
            ("longest_freeze_us", micros(self.longest)),
            ("took_us", micros(self.took)),
        ];
        let pair = |(name, number): (&str, u64)| (Reply::from(name), Reply::Integer(number as i64));
        Reply::Map(all.map(pair).into())
    }
}

/// The turn to move slots, until this is dropped.
struct Turn<'a>(&'a AtomicBool);

impl<'a> Turn<'a> {
    fn take(is_moving: &'a AtomicBool) -> Option<Self> {
        (!is_moving.swap(true, SeqCst)).then_some(Self(is_moving))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

/// The moves of slots that this process carries out: one at a time.
#[derive(Debug, Default)]
pub(super) struct Carrier {
    is_moving: AtomicBool,
}

impl Carrier {
    /// Gives slots of the own partition to another one, a group at a time.
    pub(super) async fn move_slots(
        &self,
        gateway: &Gateway,
        slots: &Slots,
        to: Partition,
    ) -> Result<Report, MoveError> {
        let _turn = Turn::take(&self.is_moving).ok_or(MoveError::Busy)?;
        Move { gateway, to }.carry_out(slots).await
    }
}

/// A move of slots to a partition.
struct Move<'a> {
    gateway: &'a Gateway,
    to: Partition,
}

impl Move<'_> {
    async fn carry_out(&self, slots: &Slots) -> Result<Report, MoveError> {
        let (own, to, maps) = (self.gateway.own, self.to, &self.gateway.maps);
        if !maps.own().partitions().contains(&to) {
            return Err(MoveError::Partition(to));
        }
        // The map here may lack a move whose end another process has told its client. Where there is no answer, the
        // first step of the move says why.
        self.answers(own).await;
        let map = maps.own();
        let is_other = |slot: &u16| ![own, to].contains(&map.of_slot(*slot));
        let others: Slots = slots.iter().filter(is_other).collect();
        if !others.is_empty() {
            return Err(MoveError::Elsewhere(others));
        }
        if !self.gateway.peers.is_ready() {
            return Err(MoveError::Behind);
        }
        let (began, mut report) = (Instant::now(), Report::default());
        let mut last = began;
        loop {
            let map = maps.own();
            let is_left = |slot: &u16| map.of_slot(*slot) == own && to != own;
            let left: Slots = slots.iter().filter(is_left).collect();
            if left.is_empty() {
                report.took = began.elapsed();
                return Ok(report);
            }
            if self.gateway.peers.is_full(to) {
                return Err(MoveError::Full(to));
            }
            match self.move_group(left).await {
                (Ok(moved), frozen) => {
                    last = Instant::now();
                    report.add(&moved, frozen);
                }
                (Err(why), _) if why == Failure::Silent || last.elapsed() > TRIES => {
                    return Err(MoveError::Failed(why, report.moved));
                }
                (Err(why), frozen) => {
                    tracing::warn!(%why, "a group of slots is tried again");
                    report.longest = report.longest.max(frozen);
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Moves the first of these slots; and the time for which they were frozen.
    async fn move_group(&self, slots: Slots) -> (Result<Moved, Failure>, Duration) {
        let mut mover = Mover::new(self.gateway.name(), (self.gateway.own, self.to), slots);
        let (began, mut frozen) = (Instant::now(), None);
        loop {
            match mover.go_on() {
                Next::Look => match self.snapshot(began + TRIES) {
                    Some(snapshot) => mover.looked(snapshot),
                    // The replica takes in the state of another one, or is behind.
                    None => sleep(PAUSE / 10).await,
                },
                Next::Ask => {
                    let all_answer = self.all_answer().await;
                    mover.answered(all_answer && self.gateway.peers.is_ready());
                }
                Next::Order(step) => {
                    let asked = Instant::now();
                    if mover.has_frozen() {
                        frozen.get_or_insert(asked);
                    }
                    let outcome = self.step(step).await;
                    mover.heard(outcome.as_ref());
                    if frozen.is_none() {
                        // The pause leaves half of the time to clients.
                        sleep(asked.elapsed()).await;
                    }
                }
                Next::Ended(result) => {
                    let frozen = frozen.map_or(Duration::ZERO, |since| since.elapsed());
                    return (result, frozen);
                }
            }
        }
    }

    /// The state of the replica here, if it has caught up; from a time on in any case.
    fn snapshot(&self, until: Instant) -> Option<Snapshot> {
        let may = self.gateway.peers.is_ready() || Instant::now() > until;
        may.then(|| self.gateway.orders.read(Store::snapshot))
            .flatten()
    }

    /// Whether each partition answers a question that is for it alone.
    async fn all_answer(&self) -> bool {
        let map = self.gateway.maps.now();
        for partition in map.partitions() {
            if !self.answers(partition).await {
                return false;
            }
        }
        true
    }

    /// Whether a partition answers a question that is for it alone. Then, if it is the own one, the replica has all
    /// that anybody was told before.
    async fn answers(&self, partition: Partition) -> bool {
        let mut look = Batch {
            operations: vec![Operation::Size(Some(partition))],
            ..Batch::default()
        };
        let answer = self.gateway.order(&mut look).await;
        if let Err(error) = &answer {
            tracing::warn!(%error, "slots do not move while a partition does not answer");
        }
        answer.is_ok()
    }

    /// Orders a step. Its outcome is the same in all of its partitions; `None`: it is not known.
    async fn step(&self, step: Step) -> Option<Outcome> {
        let mut batch = step_batch(step);
        let outcomes = self.gateway.order(&mut batch).await;
        if let Err(error) = &outcomes
            && !error.is_unknown()
        {
            tracing::warn!(%error, "a step of a move of slots is not taken");
        }
        outcomes.ok()??.into_iter().flatten().next()
    }
}

pub(super) fn step_batch(step: Step) -> Batch<'static> {
    Batch {
        operations: vec![Operation::Step(step)],
        ..Batch::default()
    }
}

/// A watch over whether a move goes on.
#[derive(Debug, Default)]
pub(super) struct Watch {
    frozen: Option<(MoveName, Instant)>,
    aside: Option<(MoveName, u32, Instant)>,
}

impl Watch {
    /// The step that ends a move that does not go on. `more`: an additional time, so that not all processes do that at
    /// once.
    pub(super) fn ended(&mut self, store: &Store, more: Duration) -> Option<Step> {
        let now = Instant::now();
        let frozen = store.frozen().map(|frozen| frozen.of);
        if self.frozen.map(|(of, _)| of) != frozen {
            self.frozen = frozen.map(|of| (of, now));
        }
        let aside = store.aside();
        if self.aside.map(|(of, count, _)| (of, count)) != aside {
            self.aside = aside.map(|(of, count)| (of, count, now));
        }
        let is_over = |since: Instant, time: Duration| now - since > time + more;
        let frozen = self.frozen.filter(|(_, since)| is_over(*since, FROZEN));
        let aside = self.aside.filter(|(.., since)| is_over(*since, IDLE));
        let to = store.partition();
        let ended = match (frozen, aside) {
            (Some((of, _)), _) => Some(Step::End(of)),
            // No other partition knows of the move.
            (None, Some((of, ..))) => Some(Step::Forget { of, to }),
            (None, None) => None,
        };
        if ended.is_some() {
            // If the step is lost, it is ordered again.
            *self = Self::default();
        }
        ended
    }
}
