//! What clients of this process ask for: it is ordered, wherever its keys are, and what all of its partitions answer is one answer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use rota_core::contract::NodeId;
use rota_multiring::Rank;
use rota_replica::{CallError, Orders};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::desk::Desk;
use super::frame::{Ask, Failed};
use super::link::{Link, Lost, Told};
use crate::map::{Map, Partition, Partitions};
use crate::store::{Answer, Answered, Batch, Outcome, Store};

/// How long what a ring does not take waits until it is given again.
const PAUSE: Duration = Duration::from_millis(1);

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum OrderError {
    /// It is too large, and does not count.
    TooLarge,
    /// The rings take no more just now, or their coordinator is away: it does not count.
    Busy,
    /// No replica of this partition is there: it does not count.
    NoReplica(Partition),
    /// This partition has no room for more: it does not count.
    Full(Partition),
    /// It may count or not: these have not answered in time.
    Unknown(Partitions),
    /// Its conditions are in several partitions, which this version does not do: it does not count.
    Spread,
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |of: &Partitions| {
            let names: Vec<String> = of.iter().map(|partition| partition.0.to_string()).collect();
            names.join(", ")
        };
        match self {
            Self::TooLarge => f.write_str("ERR the command is too large to be ordered at once"),
            Self::Busy => f.write_str("TRYAGAIN nothing is ordered just now: it was not done"),
            Self::NoReplica(partition) => write!(
                f,
                "CLUSTERDOWN no replica of partition {} is there: it was not done",
                partition.0
            ),
            Self::Full(partition) => write!(
                f,
                "OOM command not allowed: partition {} is full",
                partition.0
            ),
            Self::Unknown(of) => write!(
                f,
                "ERR outcome unknown: no answer of partition {} in time; it may be done or not",
                names(of)
            ),
            Self::Spread => f.write_str(
                "CROSSSLOT conditions on keys of several partitions are not supported: it was not done",
            ),
        }
    }
}

/// See the module's page.
pub(super) struct Gateway {
    pub(super) own: Partition,
    pub(super) ring: Rank,
    pub(super) global: Rank,
    pub(super) map: Arc<Map>,
    pub(super) orders: Orders<Store>,
    pub(super) giver: u64,
    pub(super) last: AtomicU64,
    pub(super) desk: Arc<Desk>,
    pub(super) links: BTreeMap<NodeId, Link>,
    /// The processes that have each other partition, the one first that is asked first.
    pub(super) others: BTreeMap<Partition, Vec<NodeId>>,
    pub(super) patience: Duration,
    pub(super) is_full: Arc<AtomicBool>,
}

/// What one partition says.
type Said = Result<Answer, OrderError>;

/// Somebody waits for an answer here. Dropping it ends that.
struct Waiting<'a> {
    gateway: &'a Gateway,
    of: (u64, u64),
    name: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.gateway.orders.give_up(self.of, self.name);
    }
}

/// The same at another process.
struct Asked<'a> {
    link: &'a Link,
    id: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.link.give_up(self.id);
    }
}

/// What a process was asked, where its answer comes, and its place among those of its partition.
type Question<'a> = (Asked<'a>, oneshot::Receiver<Told>, usize);

impl Gateway {
    /// Has a batch ordered, and waits for what all of its partitions answer: what became of each operation; `None`: its conditions did not hold.
    pub(super) async fn order(
        &self,
        batch: &Batch<'_>,
    ) -> Result<Option<Vec<Vec<Outcome>>>, OrderError> {
        let to = batch.to(&self.map);
        if batch.writes() {
            let full = to.iter().find(|partition| self.is_full(**partition));
            full.map_or(Ok(()), |full| Err(OrderError::Full(*full)))?;
        }
        let bytes = Bytes::from(batch.encode());
        let until = Instant::now() + self.patience;
        let of = (self.giver, self.last.fetch_add(1, SeqCst) + 1);
        let answers = match to.first() {
            None => Vec::new(),
            Some(only) if to.len() == 1 && *only == self.own => {
                vec![self.here(of, (self.ring, &bytes), until).await?]
            }
            Some(only) if to.len() == 1 => vec![self.there(of, *only, bytes, until).await?],
            Some(_) => self.everywhere(of, &to, &bytes, until).await?,
        };
        merged(answers, batch.operations.len())
    }

    /// What this replica has now, if it is only read and all of it is here.
    pub(super) fn look(&self, batch: &Batch<'_>) -> Option<Vec<Vec<Outcome>>> {
        let to = batch.to(&self.map);
        if batch.writes() || !batch.conditions.is_empty() || to != Partitions::from([self.own]) {
            return None;
        }
        let look = |store: &Store| {
            let operations = batch.operations.iter();
            let outcomes = operations.map(|operation| Some(vec![store.look(operation)?]));
            outcomes.collect::<Option<Vec<_>>>()
        };
        self.orders.read(look).flatten()
    }

    /// Whether a process is there.
    pub(super) fn is_up(&self, node: NodeId) -> bool {
        self.links.get(&node).is_none_or(Link::is_up)
    }

    fn is_full(&self, partition: Partition) -> bool {
        match self.others.get(&partition) {
            None => self.is_full.load(SeqCst),
            Some(nodes) => {
                let mut links = nodes.iter().filter_map(|node| self.links.get(node));
                links.any(Link::is_full)
            }
        }
    }

    /// In the own partition.
    async fn here(&self, of: (u64, u64), (ring, bytes): (Rank, &[u8]), until: Instant) -> Said {
        let (heard, waiting) = self.wait_here(of);
        self.give(ring, of, bytes, until).await?;
        let said = self.heard(heard, until).await;
        drop(waiting);
        said
    }

    fn wait_here(&self, of: (u64, u64)) -> (oneshot::Receiver<Said>, Option<Waiting<'_>>) {
        let (tell, heard) = oneshot::channel();
        let (desk, own) = (Arc::clone(&self.desk), self.own);
        let unknown = move || OrderError::Unknown(Partitions::from([own]));
        let then = move |answer: Result<Vec<u8>, CallError>| {
            let answered = answer.ok().and_then(|answer| Answered::decode(&answer));
            match answered {
                Some(Answered { behind, answer }) => {
                    desk.tell_when(behind, move || drop(tell.send(Ok(answer))));
                }
                None => drop(tell.send(Err(unknown()))),
            }
        };
        let name = self.orders.wait_for(of, then);
        let gateway = self;
        let waiting = name.map(|name| Waiting { gateway, of, name });
        (heard, waiting)
    }

    async fn heard(&self, heard: oneshot::Receiver<Said>, until: Instant) -> Said {
        match timeout_at(until, heard).await {
            Ok(Ok(said)) => said,
            _ => Err(OrderError::Unknown(Partitions::from([self.own]))),
        }
    }

    async fn give(
        &self,
        ring: Rank,
        of: (u64, u64),
        bytes: &[u8],
        until: Instant,
    ) -> Result<(), OrderError> {
        loop {
            match self.orders.give(ring, of, bytes) {
                Ok(()) => return Ok(()),
                Err(CallError::TooLarge) => return Err(OrderError::TooLarge),
                Err(CallError::Busy) if Instant::now() < until => sleep(PAUSE).await,
                Err(_) => return Err(OrderError::Busy),
            }
        }
    }

    /// The process that is asked for a partition: the first one that is there.
    fn of(&self, partition: Partition, from: usize) -> Option<(&Link, usize)> {
        let nodes = self.others.get(&partition)?;
        let mut links = (0..nodes.len()).map(|at| (from + at) % nodes.len());
        let at = links.find(|at| self.links.get(&nodes[*at]).is_some_and(Link::is_up))?;
        Some((self.links.get(&nodes[at])?, at))
    }

    /// In another partition alone.
    async fn there(
        &self,
        of: (u64, u64),
        partition: Partition,
        bytes: Bytes,
        until: Instant,
    ) -> Said {
        let unknown = || OrderError::Unknown(Partitions::from([partition]));
        loop {
            let none = OrderError::NoReplica(partition);
            let Some((link, _)) = self.of(partition, 0) else {
                if Instant::now() >= until {
                    return Err(none);
                }
                sleep(10 * PAUSE).await;
                continue;
            };
            let command = bytes.clone();
            let (tell, heard) = oneshot::channel();
            let id = link.ask(
                |id| Ask::Give(id, of, command),
                move |told| drop(tell.send(told)),
            );
            let asked = Asked { link, id };
            let told = timeout_at(until, heard).await;
            drop(asked);
            match told {
                Ok(Ok(Ok(answer))) => return answer_of(&answer).ok_or_else(unknown),
                Ok(Ok(Err(Lost::Failed(Failed::TooLarge)))) => return Err(OrderError::TooLarge),
                // Nothing was asked, or nothing was done.
                Ok(Ok(Err(Lost::Down | Lost::Failed(Failed::Busy)))) => {
                    if Instant::now() >= until {
                        return Err(OrderError::Busy);
                    }
                    sleep(PAUSE).await;
                }
                _ => return Err(unknown()),
            }
        }
    }

    /// In several partitions: ordered once, and answered by each.
    async fn everywhere(
        &self,
        of: (u64, u64),
        to: &Partitions,
        bytes: &[u8],
        until: Instant,
    ) -> Result<Vec<Answer>, OrderError> {
        let others = || to.iter().filter(|partition| **partition != self.own);
        let away = others().find(|partition| self.of(**partition, 0).is_none());
        if let Some(away) = away {
            return Err(OrderError::NoReplica(*away));
        }
        let here = to.contains(&self.own).then(|| self.wait_here(of));
        self.give(self.global, of, bytes, until).await?;
        // All are asked at once.
        let asked: Vec<_> = others()
            .map(|partition| (*partition, self.ask(of, *partition, 0)))
            .collect();
        let mut answers = Vec::new();
        for (partition, asked) in asked {
            answers.push(self.awaited(of, (partition, asked), until).await?);
        }
        if let Some((heard, waiting)) = here {
            answers.push(self.heard(heard, until).await?);
            drop(waiting);
        }
        Ok(answers)
    }

    fn ask(&self, of: (u64, u64), partition: Partition, from: usize) -> Option<Question<'_>> {
        let (link, at) = self.of(partition, from)?;
        let (tell, heard) = oneshot::channel();
        let id = link.ask(|id| Ask::Await(id, of), move |told| drop(tell.send(told)));
        Some((Asked { link, id }, heard, at))
    }

    /// What a partition answers to what is ordered for several. Where one process goes another one is asked: each of its replicas has the answer.
    async fn awaited<'a>(
        &'a self,
        of: (u64, u64),
        (partition, asked): (Partition, Option<Question<'a>>),
        until: Instant,
    ) -> Said {
        let unknown = || OrderError::Unknown(Partitions::from([partition]));
        let (mut asked, mut from) = (asked, 0);
        loop {
            if Instant::now() >= until {
                return Err(unknown());
            }
            if let Some((waits, heard, at)) = asked.take() {
                // Not for ever: who has begun anew meanwhile may have it in its state, and tells nothing of it.
                let some = until.min(Instant::now() + self.patience / 4);
                let told = timeout_at(some, heard).await;
                drop(waits);
                if let Ok(Ok(Ok(answer))) = told {
                    return answer_of(&answer).ok_or_else(unknown);
                }
                from = at + 1;
            }
            asked = self.ask(of, partition, from);
            if asked.is_none() {
                sleep(10 * PAUSE).await;
            }
        }
    }
}

fn answer_of(bytes: &[u8]) -> Option<Answer> {
    Answered::decode(bytes).map(|answered| answered.answer)
}

/// What became of each operation, in all of its partitions.
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
            Answer::Spread | Answer::Unreadable => return Err(OrderError::Spread),
        }
    }
    Ok(Some(merged))
}
