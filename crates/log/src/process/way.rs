//! The way for the batches of clients of this process: those that wait for a ring are ordered together, and their
//! answers are dealt out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use rota_front::lane::{self, Permit, Teller};
use rota_front::{Times, now};
use rota_multiring::Rank;
use rota_replica::{CallError, Orders, Ready};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::around::LogMachine;
use super::server::Server;
use crate::machine::{Answer, Batch, MOST_BATCH_BYTES, MOST_OPERATIONS, MOST_PACKED, Pack};
use crate::mutants::{self, Mutant};

/// The pause before a message is given again that a ring did not take.
const PAUSE: Duration = Duration::from_millis(1);
/// The time by which a client's wait is longer than that for its message, which gives the better reason.
const LATER: Duration = Duration::from_millis(200);

/// The reason why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OrderError {
    /// The batch is too large, and does not count.
    TooLarge,
    /// The rings take no more just now, or their coordinator is away: the batch does not count.
    Busy,
    /// The replica has not caught up: the batch does not count.
    Behind,
    /// There is no room for more: the batch does not count.
    Full,
    /// The batch may count or not: there was no answer in time.
    Unknown,
    /// The sender of the message has another version than this replica.
    Unreadable,
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "ERR the command is too large to be ordered at once: 1 MiB",
            Self::Busy => "TRYAGAIN nothing is ordered just now: it was not done",
            Self::Behind => {
                "LOADING this process has not caught up: it was not done, and others answer"
            }
            Self::Full => "OOM command not allowed: the disk of this process is full",
            Self::Unknown => "ERR outcome unknown: no answer in time; it may be done or not",
            Self::Unreadable => "ERR the answer is of a version that this one does not know",
        })
    }
}

/// The answer to a batch.
type Said = Result<Answer, OrderError>;
type Item = lane::Item<(), Said>;
type Lane = lane::Lane<(), Said>;

/// The way to the rings.
pub(super) struct Way {
    pub(super) orders: Orders<LogMachine>,
    pub(super) ready: Arc<Ready<LogMachine>>,
    /// The queue of batches for each ring.
    lanes: BTreeMap<Rank, Arc<Lane>>,
    /// The queue of readers that wait for all that was answered before.
    marks: Arc<Lane>,
    giver: u64,
    last: AtomicU64,
    pub(super) patience: Duration,
    /// The disk is full.
    pub(super) is_full: Arc<AtomicBool>,
    /// The times of batches that were ordered, and of waits for all that was answered before.
    pub(super) ordered: Times,
    pub(super) marked: Times,
}

fn lane() -> Arc<Lane> {
    Arc::new(Lane::new(MOST_PACKED, || Err(OrderError::Busy)))
}

/// A waiter for an answer here. Dropping this removes it.
struct Waiting<'a> {
    way: &'a Way,
    of: (u64, u64),
    name: Option<u64>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name {
            self.way.orders.give_up(self.of, name);
        }
    }
}

impl Way {
    /// A way over these rings. `giver`: drawn at random.
    pub(super) fn new(
        (orders, ready): (Orders<LogMachine>, Arc<Ready<LogMachine>>),
        rings: &[u16],
        giver: u64,
        (patience, is_full): (Duration, Arc<AtomicBool>),
    ) -> Self {
        Self {
            orders,
            ready,
            lanes: rings.iter().map(|ring| (Rank(*ring), lane())).collect(),
            marks: lane(),
            giver,
            last: AtomicU64::new(0),
            patience,
            is_full,
            ordered: Times::default(),
            marked: Times::default(),
        }
    }

    /// The ring of a log. A batch about several logs is ordered in the ring of any, as all processes have all rings.
    fn ring_of(&self, log: &[u8]) -> Option<(&Rank, &Arc<Lane>)> {
        let sum = log.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let at = sum % (self.lanes.len() as u64).max(1);
        self.lanes.iter().nth(at as usize)
    }

    /// Has a batch ordered, which is about this log; the answer. `grows`: the batch needs room.
    pub(super) async fn order(&self, batch: &Batch<'_>, log: &[u8], grows: bool) -> Said {
        if !self.ready.is_open() {
            return Err(OrderError::Behind);
        }
        if grows && self.is_full.load(SeqCst) {
            return Err(OrderError::Full);
        }
        let bytes = Bytes::from(batch.encode());
        if bytes.len() > MOST_BATCH_BYTES || batch.operations.len() > MOST_OPERATIONS {
            return Err(OrderError::TooLarge);
        }
        let (_, lane) = self.ring_of(log).ok_or(OrderError::Busy)?;
        let began = Instant::now();
        let said = self.put(lane, bytes).await;
        self.ordered.add(began.elapsed());
        said
    }

    /// Waits until this process has all that any client was answered before now.
    pub(super) async fn catch_up(&self) -> Result<(), OrderError> {
        if mutants::on(Mutant::D06) {
            return Ok(());
        }
        if !self.ready.is_open() {
            return Err(OrderError::Behind);
        }
        let began = Instant::now();
        let said = self.put(&self.marks, Bytes::new()).await;
        self.marked.add(began.elapsed());
        said.map(drop)
    }

    async fn put(&self, lane: &Lane, bytes: Bytes) -> Said {
        let (tell, heard) = oneshot::channel();
        let until = Instant::now() + self.patience;
        lane.push(Item {
            answer_bytes: 0,
            bytes,
            to: (),
            until,
            tell: Teller::Here(tell),
        });
        match timeout_at(until + LATER, heard).await {
            Ok(Ok(said)) => said,
            _ => Err(OrderError::Unknown),
        }
    }

    /// A name for a message.
    fn name(&self) -> (u64, u64) {
        (self.giver, self.last.fetch_add(1, SeqCst) + 1)
    }

    /// Has the batches ordered that wait for a ring. `is_mark`: instead a message without operations, whose delivery is
    /// enough.
    async fn carry(&self, ring: Rank, (items, permit): (Vec<Item>, Permit), is_mark: bool) {
        let until = items.iter().map(|item| item.until).max();
        let until = until.unwrap_or_else(Instant::now);
        let message = match is_mark {
            true => marker(),
            false => Pack(items.iter().map(|item| &item.bytes[..]).collect()).encode(),
        };
        let said = self.answers((ring, &message), permit, until).await;
        match said {
            Err(error) => items
                .into_iter()
                .for_each(|item| item.tell.tell(Err(error))),
            Ok(answers) => {
                let mut answers = answers.into_iter();
                for item in items {
                    let answer = match is_mark {
                        true => Some(Answer::Outcomes(Vec::new())),
                        false => answers.next(),
                    };
                    item.tell.tell(answer.ok_or(OrderError::Unreadable));
                }
            }
        }
    }

    async fn answers(
        &self,
        (ring, message): (Rank, &[u8]),
        permit: Permit,
        until: Instant,
    ) -> Result<Vec<Answer>, OrderError> {
        let (tell, heard) = oneshot::channel();
        let then = move |answer: Result<Vec<u8>, CallError>| {
            // The next message may leave.
            drop(permit);
            let _ = tell.send(answer);
        };
        let of = self.name();
        let waiting = Waiting {
            way: self,
            of,
            name: self.orders.wait_for(of, then),
        };
        self.give((ring, message), of, until).await?;
        let answer = timeout_at(until, heard).await;
        drop(waiting);
        match answer {
            Ok(Ok(Ok(answer))) => Answer::all(&answer).ok_or(OrderError::Unreadable),
            _ => Err(OrderError::Unknown),
        }
    }

    async fn give(
        &self,
        (ring, message): (Rank, &[u8]),
        of: (u64, u64),
        until: Instant,
    ) -> Result<(), OrderError> {
        loop {
            match self.orders.give(ring, of, message) {
                Ok(()) => return Ok(()),
                Err(CallError::TooLarge) => return Err(OrderError::TooLarge),
                Err(CallError::Busy) if Instant::now() < until => sleep(PAUSE).await,
                Err(_) => return Err(OrderError::Busy),
            }
        }
    }
}

/// A message that does nothing but let time pass.
pub(super) fn marker() -> Vec<u8> {
    let nothing = Batch {
        stamp: now(),
        ..Batch::default()
    };
    Pack(vec![nothing.encode()]).encode()
}

/// Has the waiting batches ordered, for ever, in tasks of this thread.
pub(super) fn run(server: &Arc<Server>) {
    let way = &server.way;
    let first = way.lanes.keys().next().copied();
    let lanes = way.lanes.iter();
    let lanes = lanes.map(|(ring, lane)| (*ring, Arc::clone(lane), false));
    let marks = first.map(|ring| (ring, Arc::clone(&way.marks), true));
    for (ring, lane, is_mark) in lanes.chain(marks) {
        let server = Arc::clone(server);
        drop(tokio::task::spawn_local(async move {
            loop {
                let next = lane.next().await;
                let server = Arc::clone(&server);
                drop(tokio::task::spawn_local(async move {
                    server.way.carry(ring, next, is_mark).await;
                }));
            }
        }));
    }
}
