//! The gateway for the batches of clients of this process: it has them ordered, wherever their keys are (`order`), and
//! makes one answer of those of all partitions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use rota_multiring::Rank;
use rota_replica::Orders;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::clock::Clock;
use super::desk::Desk;
use super::full::has_room;
use super::maps::Maps;
use super::moves::Carrier;
use super::order::PAUSE;
use super::peers::Peers;
use super::{Item, Lane, Teller};
use crate::map::{Map, Partition, Partitions};
use crate::store::{Answer, Batch, MOST_ANSWER_BYTES, MOST_BATCH_BYTES, MOST_OPERATIONS};
use crate::store::{MOST_TOGETHER_BYTES, Outcome, Pack, Store};
use rota_front::Times;

/// The longest pause before a batch is given again that was refused since its slots move.
const LONG_PAUSE: Duration = Duration::from_millis(8);
/// The time by which a client's wait is longer than that for its message, which gives the better reason.
const LATER: Duration = Duration::from_millis(200);

/// The reason why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum OrderError {
    /// The batch is too large, and does not count.
    TooLarge,
    /// The rings take no more just now, or their coordinator is away: the batch does not count.
    Busy,
    /// No replica of this partition is connected: the batch does not count.
    NoReplica(Partition),
    /// This partition has no room for what these operations of the batch write, by their numbers; where there is none,
    /// it is not known which of them: the batch does not count.
    Full(Partition, Vec<usize>),
    /// The batch may count or not: these partitions have not answered in time.
    Unknown(Partitions),
    /// A partition's replicas are of another version, and cannot read the batch: others may have done their part.
    Unreadable,
    /// The conditions are in several partitions, which this version does not do: the batch does not count.
    Spread,
    /// The answer would be too large: the batch does not count.
    TooMuch,
    /// The slots are on their way to another partition: the batch does not count, and is given again.
    Moving,
}

impl OrderError {
    /// Whether the batch may count or not.
    pub(super) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Unreadable)
    }
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |of: &Partitions| {
            let names: Vec<String> = of.iter().map(|partition| partition.0.to_string()).collect();
            names.join(", ")
        };
        match self {
            Self::TooMuch => write!(
                f,
                "ERR what is asked for at once is more than {MOST_ANSWER_BYTES} bytes: it was not done, ask for less"
            ),
            Self::TooLarge => f.write_str("ERR the command is too large to be ordered at once"),
            Self::Moving => f.write_str("TRYAGAIN its slots are on their way to another partition: it was not done"),
            Self::Busy => f.write_str("TRYAGAIN nothing is ordered just now: it was not done"),
            Self::NoReplica(partition) => write!(
                f,
                "CLUSTERDOWN no replica of partition {} is there: it was not done",
                partition.0
            ),
            Self::Full(partition, _) => write!(
                f,
                "OOM command not allowed: partition {} is full",
                partition.0
            ),
            Self::Unknown(of) => write!(
                f,
                "ERR outcome unknown: no answer of partition {} in time; it may be done or not",
                names(of)
            ),
            Self::Unreadable => f.write_str(
                "ERR outcome unknown: a process is of another version; it may be done or not",
            ),
            Self::Spread => f.write_str(
                "CROSSSLOT conditions on keys of several partitions are not supported: it was not done",
            ),
        }
    }
}

/// The route of a batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Route {
    /// In the ring of the own partition.
    Own,
    /// In the ring of another one, by one of its processes.
    Other(Partition),
    /// In the ring of all.
    All,
    /// The batch only reads, in the own partition: it is not ordered itself, but a message without commands is.
    Look,
    /// The batch only reads, in another partition.
    LookAt(Partition),
}

/// The names of messages: their giver, which was drawn, and the number of the last one.
pub(super) struct Names {
    giver: u64,
    last: AtomicU64,
}

impl Names {
    pub(super) const fn new(giver: u64) -> Self {
        let last = AtomicU64::new(0);
        Self { giver, last }
    }
}

/// The gateway of a process.
pub(super) struct Gateway {
    pub(super) own: Partition,
    pub(super) ring: Rank,
    pub(super) global: Rank,
    pub(super) maps: Arc<Maps>,
    pub(super) orders: Orders<Store>,
    pub(super) names: Names,
    pub(super) desk: Arc<Desk>,
    pub(super) peers: Peers,
    pub(super) lanes: BTreeMap<Route, Arc<Lane>>,
    pub(super) patience: Duration,
    pub(super) carrier: Carrier,
    pub(super) clock: Arc<Clock>,
    /// Whoever lets time pass just now in the ring of all.
    pub(super) passes: tokio::sync::Mutex<()>,
    /// The times of batches that only read, and of those that were ordered.
    pub(super) looked: Times,
    pub(super) ordered: Times,
}

impl Gateway {
    /// Has a batch ordered, and waits for the answers of all of its partitions: the outcomes of each operation; `None`:
    /// the conditions did not hold.
    pub(super) async fn order(
        &self,
        batch: &mut Batch<'_>,
    ) -> Result<Option<Vec<Vec<Outcome>>>, OrderError> {
        let (began, until) = (Instant::now(), Instant::now() + self.patience);
        let (is_look, mut pause) = (batch.only_looks(), PAUSE);
        loop {
            let map = self.maps.now();
            batch.epoch = map.epoch();
            let ordered = self.order_by(&map, batch, until).await;
            if ordered == Err(OrderError::Moving) {
                self.maps.newest(self.peers.newest_epoch());
            }
            match ordered {
                // The new partition of the slots is soon known. A batch that waits long is given less often, as the
                // move needs the rings; and a batch whose time is nearly over is not given again, since nobody would
                // know whether it was done.
                Err(OrderError::Moving) if Instant::now() + self.patience / 4 < until => {
                    sleep(pause).await;
                    pause = (2 * pause).min(LONG_PAUSE);
                }
                ordered => {
                    let times = if is_look { &self.looked } else { &self.ordered };
                    times.add(began.elapsed());
                    return ordered;
                }
            }
        }
    }

    /// Has a batch ordered by this map of slots.
    pub(super) async fn order_by(
        &self,
        map: &Map,
        batch: &mut Batch<'_>,
        until: Instant,
    ) -> Result<Option<Vec<Vec<Outcome>>>, OrderError> {
        let to = batch.to(map);
        let is_look = batch.only_looks();
        // A life is reckoned from this time, also in one partition: a clock that nobody else has would end it early or late.
        let counts = to.len() > 1 || map.is_of_one() || batch.limits_lives();
        if !is_look && counts {
            self.knows_time(&to, until).await?;
        }
        batch.stamp = match is_look {
            true => self.clock.stamp(),
            false => self.clock.now(),
        };
        has_room(self, batch, (map, until)).await?;
        let bytes = Bytes::from(batch.encode());
        if bytes.len() > MOST_BATCH_BYTES || batch.operations.len() > MOST_OPERATIONS {
            return Err(OrderError::TooLarge);
        }
        let Some(route) = self.route(batch, &to)? else {
            return merged(Vec::new(), batch.operations.len());
        };
        let operations = batch.operations.len();
        let mut most = 0;
        if route == Route::All && batch.writes() {
            most = batch.most_answer();
            if most > MOST_TOGETHER_BYTES {
                self.ask_for_room((&bytes, operations), (&to, until))
                    .await?;
                most = MOST_TOGETHER_BYTES;
            }
        }
        self.answered(route, (bytes, most), (&to, until), operations)
            .await
    }

    /// Asks each partition of a batch whether it has room for its answer: when the batch is ordered, each does its part
    /// whatever others do.
    async fn ask_for_room(
        &self,
        (bytes, operations): (&Bytes, usize),
        (to, until): (&Partitions, Instant),
    ) -> Result<(), OrderError> {
        for of in to {
            let route = match self.peers.is_elsewhere(*of) {
                true => Route::LookAt(*of),
                false => Route::Look,
            };
            let (only, asks) = (Partitions::from([*of]), (bytes.clone(), 0));
            self.answered(route, asks, (&only, until), operations)
                .await?;
        }
        Ok(())
    }

    /// The route of a batch; `None`: it has no keys.
    fn route(&self, batch: &Batch<'_>, to: &Partitions) -> Result<Option<Route>, OrderError> {
        Ok(Some(match (to.len(), to.first()) {
            (0, _) | (_, None) => return Ok(None),
            (1, Some(only)) => match (!self.peers.is_elsewhere(*only), batch.only_looks()) {
                (true, true) => Route::Look,
                (true, false) => Route::Own,
                (false, true) => Route::LookAt(*only),
                (false, false) => Route::Other(*only),
            },
            _ if !batch.conditions.is_empty() => return Err(OrderError::Spread),
            _ => Route::All,
        }))
    }

    /// Waits until the time may be believed, for a batch whose time counts for all partitions, or for lives of keys.
    async fn knows_time(&self, to: &Partitions, until: Instant) -> Result<(), OrderError> {
        while !self.clock.is_known() {
            if let Some(away) = self.away(to) {
                return Err(OrderError::NoReplica(away));
            }
            if Instant::now() >= until {
                return Err(OrderError::Busy);
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// A partition of which no process is connected.
    pub(super) fn away(&self, to: &Partitions) -> Option<Partition> {
        let is_away = |partition: &&Partition| {
            **partition != self.own && self.peers.of(**partition, 0).is_none()
        };
        to.iter().find(is_away).copied()
    }

    async fn answered(
        &self,
        route: Route,
        (bytes, answer_bytes): (Bytes, usize),
        (to, until): (&Partitions, Instant),
        operations: usize,
    ) -> Result<Option<Vec<Vec<Outcome>>>, OrderError> {
        let Some(lane) = self.lanes.get(&route) else {
            return Err(OrderError::Busy);
        };
        let bytes = match route {
            Route::Look => Pack(vec![bytes]).encode().into(),
            _ => bytes,
        };
        loop {
            let (tell, heard) = oneshot::channel();
            lane.push(Item {
                bytes: bytes.clone(),
                answer_bytes,
                to: to.clone(),
                until,
                tell: Teller::Here(tell),
            });
            let Ok(Ok(said)) = timeout_at(until + LATER, heard).await else {
                return Err(OrderError::Unknown(to.clone()));
            };
            match merged(said?, operations) {
                // Others in its message have read much.
                Err(OrderError::Busy) if Instant::now() < until => {}
                merged => return merged,
            }
        }
    }

    /// The outcomes by the state of this replica, if the batch only reads and all of its keys are here.
    pub(super) fn look(&self, batch: &Batch<'_>) -> Option<Vec<Vec<Outcome>>> {
        let own = Partitions::from([self.own]);
        let look = |store: &Store| {
            if !batch.only_looks() || batch.to(store.map()) != own {
                return None;
            }
            let outcomes = store.look_all(&batch.operations)?;
            Some(outcomes.into_iter().map(|outcome| vec![outcome]).collect())
        };
        self.orders.read(look).flatten()
    }

    /// Waits until this replica has all that any client was answered before now, and all of it may be told.
    pub(super) async fn catch_up(&self) -> Result<(), OrderError> {
        if !self.peers.is_ready() {
            return Err(OrderError::Busy);
        }
        let nothing = Batch {
            stamp: self.clock.stamp(),
            ..Batch::default()
        };
        let bytes = Bytes::from(nothing.encode());
        let to = Partitions::from([self.own]);
        let until = Instant::now() + self.patience;
        self.answered(Route::Look, (bytes, 0), (&to, until), 0)
            .await
            .map(drop)
    }

    /// A name for a message.
    pub(super) fn name(&self) -> (u64, u64) {
        let Names { giver, last } = &self.names;
        (*giver, last.fetch_add(1, SeqCst) + 1)
    }
}

/// The outcomes of each operation, in all of its partitions.
fn merged(
    answers: Vec<Answer>,
    operations: usize,
) -> Result<Option<Vec<Vec<Outcome>>>, OrderError> {
    let mut merged = vec![Vec::new(); operations];
    for answer in answers {
        match answer {
            Answer::Outcomes(outcomes) => {
                for (at, outcome) in outcomes {
                    if let Some(of) = merged.get_mut(at as usize) {
                        of.push(outcome);
                    }
                }
            }
            Answer::Refused => return Ok(None),
            Answer::Later => return Err(OrderError::Busy),
            Answer::TooMuch => return Err(OrderError::TooMuch),
            Answer::Moving => return Err(OrderError::Moving),
            Answer::Spread => return Err(OrderError::Spread),
            // Other partitions may be able to read it.
            Answer::Unreadable => return Err(OrderError::Unreadable),
        }
    }
    Ok(Some(merged))
}
