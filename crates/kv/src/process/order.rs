//! Messages on their way: each has the batches that waited in a lane, and the answers of its partitions are dealt out
//! to the clients.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use rota_multiring::Rank;
use rota_replica::CallError;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::frame::{Ask, Failed};
use super::gateway::{Gateway, OrderError, Route};
use super::link::Lost;
use super::listen::Server;
use super::question::{Question, answers_of};
use super::{Item, lock};
use crate::map::{Partition, Partitions};
use crate::store::{Answer, Answered, Pack};
use rota_front::lane::Permit;

/// The pause before a message is given again that a ring did not take.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// The time after which the next message for several partitions may leave, though this one is not delivered here: the
/// own partition may have no majority, and the next message may be for others.
const HELD: Duration = Duration::from_millis(500);

/// The permit of a message, until one of those that hold it lets it go.
#[derive(Clone)]
struct Held(Arc<Mutex<Option<Permit>>>);

impl Held {
    fn new(permit: Permit) -> Self {
        Self(Arc::new(Mutex::new(Some(permit))))
    }

    fn let_go(&self) {
        let permit = lock(&self.0).take();
        drop(permit);
    }
}

/// The answer of one partition to a message.
type Said = Result<Vec<Answer>, OrderError>;

/// A waiter for an answer here. Dropping this removes it.
pub(super) struct Waiting<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) of: (u64, u64),
    pub(super) name: Option<u64>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name {
            self.gateway.orders.give_up(self.of, name);
        }
    }
}

/// Has the batches ordered that wait for a route, for ever.
pub(super) async fn run(server: Arc<Server>, route: Route) {
    let lane = server.gateway.lanes.get(&route).cloned();
    let Some(lane) = lane else { return };
    loop {
        let (items, permit) = lane.next().await;
        let server = Arc::clone(&server);
        drop(tokio::task::spawn_local(async move {
            server.gateway.carry(route, items, permit).await;
        }));
    }
}

/// The message for some batches.
fn pack(items: &[Item]) -> Bytes {
    let parts = items.iter().map(|item| &item.bytes[..]).collect();
    Pack::<&[u8]>(parts).encode().into()
}

impl Gateway {
    async fn carry(&self, route: Route, items: Vec<Item>, permit: Permit) {
        let until = items.iter().map(|item| item.until).max();
        let (of, until) = (self.name(), until.unwrap_or_else(Instant::now));
        let (partition, said) = match route {
            Route::Look => return self.looks(items, (permit, until)).await,
            Route::All => {
                let bytes = pack(&items);
                return self.everywhere(of, (items, &bytes), (permit, until)).await;
            }
            Route::Own => {
                let bytes = pack(&items);
                let here = self.here(of, (self.ring, &bytes), (permit, until));
                (self.own, here.await)
            }
            Route::Other(partition) => {
                let bytes = pack(&items);
                let said = self.give_there(of, &bytes, partition, until).await;
                drop(permit);
                (partition, said)
            }
            Route::LookAt(partition) => {
                let bytes = pack(&items);
                let said = self.look_there(&bytes, partition, until).await;
                drop(permit);
                (partition, said)
            }
        };
        deal_out(items, &BTreeMap::from([(partition, said)]));
    }

    /// Has a message ordered in the own partition.
    async fn here(
        &self,
        of: (u64, u64),
        (ring, bytes): (Rank, &[u8]),
        (permit, until): (Permit, Instant),
    ) -> Said {
        let (heard, waiting) = self.wait_here(of, move || drop(permit));
        self.give(ring, of, bytes, until).await?;
        let said = self.heard(heard, until).await;
        drop(waiting);
        said
    }

    /// Waits for the answer here. `delivered`: called when the message is delivered, though its answer is not told yet.
    fn wait_here(
        &self,
        of: (u64, u64),
        delivered: impl FnOnce() + Send + 'static,
    ) -> (oneshot::Receiver<Said>, Waiting<'_>) {
        let (tell, heard) = oneshot::channel();
        let (desk, own) = (Arc::clone(&self.desk), self.own);
        let then = move |answer: Result<Vec<u8>, CallError>| {
            delivered();
            let answered = answer.ok().and_then(|answer| Answered::decode(&answer));
            match answered {
                Some(Answered { behind, answers }) => {
                    desk.tell_when(behind, move || drop(tell.send(Ok(answers))));
                }
                None => drop(tell.send(Err(OrderError::Unknown(Partitions::from([own]))))),
            }
        };
        let waiting = Waiting {
            gateway: self,
            of,
            name: self.orders.wait_for(of, then),
        };
        (heard, waiting)
    }

    async fn heard(&self, heard: oneshot::Receiver<Said>, until: Instant) -> Said {
        match timeout_at(until, heard).await {
            Ok(Ok(said)) => said,
            _ => Err(OrderError::Unknown(Partitions::from([self.own]))),
        }
    }

    pub(super) async fn give(
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

    /// Has a message ordered by a process of another partition. Each replica of that partition has the answer: if the
    /// process that was asked goes, or says nothing for long, others are asked for it.
    async fn give_there(
        &self,
        of: (u64, u64),
        bytes: &Bytes,
        partition: Partition,
        until: Instant,
    ) -> Said {
        let unknown = || OrderError::Unknown(Partitions::from([partition]));
        let mut question = Question::new(&self.peers, partition);
        loop {
            if !question.put(|id| Ask::Give(id, of, bytes.clone())) {
                if Instant::now() >= until {
                    return Err(OrderError::NoReplica(partition));
                }
                sleep(10 * PAUSE).await;
                continue;
            }
            match question.hears(self.some_time(until)).await {
                Some(Ok(answer)) => return answers_of(&answer).ok_or_else(unknown),
                Some(Err(Lost::Failed(Failed::TooLarge))) => return Err(OrderError::TooLarge),
                // Nothing was ordered: it may be given again.
                Some(Err(lost)) if was_not_asked(lost) => {
                    if Instant::now() >= until {
                        return Err(OrderError::Busy);
                    }
                    sleep(PAUSE).await;
                }
                // The message may be ordered.
                Some(Err(_)) | None => return self.awaited(of, question, until).await,
            }
        }
    }

    /// Has batches that only read answered by a process of another partition.
    async fn look_there(&self, pack: &Bytes, partition: Partition, until: Instant) -> Said {
        let unknown = || OrderError::Unknown(Partitions::from([partition]));
        let mut question = Question::new(&self.peers, partition);
        loop {
            if !question.put(|id| Ask::Look(id, pack.clone())) {
                if Instant::now() >= until {
                    return Err(OrderError::NoReplica(partition));
                }
                sleep(10 * PAUSE).await;
                continue;
            }
            // Another process may be asked as well.
            match question.hears(self.some_time(until)).await {
                Some(Ok(answer)) => return answers_of(&answer).ok_or_else(unknown),
                Some(Err(Lost::Failed(Failed::TooLarge))) => return Err(OrderError::TooLarge),
                Some(Err(_)) if Instant::now() >= until => return Err(OrderError::Busy),
                None if Instant::now() >= until => return Err(unknown()),
                Some(Err(_)) => sleep(PAUSE).await,
                None => {}
            }
        }
    }

    /// The time until another process is asked, too: it may know more.
    fn some_time(&self, until: Instant) -> Instant {
        until.min(Instant::now() + self.patience / 4)
    }

    /// Has a message ordered for several partitions: once, and answered by each.
    async fn everywhere(
        &self,
        of: (u64, u64),
        (items, bytes): (Vec<Item>, &Bytes),
        (permit, until): (Permit, Instant),
    ) {
        // All batches of the message are of the same partitions.
        let to = items
            .first()
            .map(|item| item.to.clone())
            .unwrap_or_default();
        if let Some(away) = self.away(&to) {
            return fail(items, &OrderError::NoReplica(away));
        }
        let held = Held::new(permit);
        let here = held.clone();
        let (heard, waiting) = self.wait_here(of, move || here.let_go());
        let mut answers = pin!(self.answers_of_all(of, (&to, bytes), (heard, until)));
        let said = match timeout(HELD, &mut answers).await {
            Ok(said) => said,
            Err(_) => {
                held.let_go();
                answers.await
            }
        };
        drop(waiting);
        match said {
            Ok(said) => deal_out(items, &said),
            Err(error) => fail(items, &error),
        }
    }

    /// Orders a message in the ring of all; the answers of its partitions.
    async fn answers_of_all(
        &self,
        of: (u64, u64),
        (to, bytes): (&Partitions, &Bytes),
        (heard, until): (oneshot::Receiver<Said>, Instant),
    ) -> Result<BTreeMap<Partition, Said>, OrderError> {
        let mut said = self.give_to_all(of, (to, bytes), until).await?;
        // All partitions are asked at once.
        let is_here = to.contains(&self.own) && !self.peers.is_elsewhere(self.own);
        let is_asked = |partition: &&Partition| {
            let waits_here = is_here && **partition == self.own;
            !waits_here && !said.contains_key(*partition)
        };
        let others = to.iter().filter(is_asked);
        let questions: Vec<Question<'_>> = others
            .map(|partition| {
                let mut question = Question::new(&self.peers, *partition);
                question.put(|id| Ask::Await(id, of));
                question
            })
            .collect();
        for question in questions {
            let partition = question.partition;
            let answers = self.awaited(of, question, until).await;
            said.insert(partition, answers);
        }
        if is_here && !said.contains_key(&self.own) {
            said.insert(self.own, self.heard(heard, until).await);
        }
        Ok(said)
    }

    /// Orders a message in the ring of all. If the replica here has not caught up another process does it, which may
    /// answer for its partition at once.
    async fn give_to_all(
        &self,
        of: (u64, u64),
        (to, bytes): (&Partitions, &Bytes),
        until: Instant,
    ) -> Result<BTreeMap<Partition, Said>, OrderError> {
        let mut others = to
            .iter()
            .filter(|partition| self.peers.is_elsewhere(**partition));
        let is_open = |of: &&Partition| {
            let process = self.peers.of(**of, 0);
            process.is_some_and(|(link, _)| link.health().is_open)
        };
        let Some(first) = others.find(is_open).filter(|_| !self.peers.is_ready()) else {
            self.give(self.global, of, bytes, until).await?;
            return Ok(BTreeMap::new());
        };
        let mut question = Question::new(&self.peers, *first);
        while Instant::now() < until {
            if question.put(|id| Ask::GiveToAll(id, of, bytes.clone())) {
                match question.hears(self.some_time(until)).await {
                    Some(Ok(answer)) => {
                        let unknown = || OrderError::Unknown(Partitions::from([*first]));
                        let said = answers_of(&answer).ok_or_else(unknown);
                        return Ok(BTreeMap::from([(*first, said)]));
                    }
                    Some(Err(Lost::Failed(Failed::TooLarge))) => return Err(OrderError::TooLarge),
                    Some(Err(lost)) if was_not_asked(lost) => {}
                    // The message may be ordered: other processes know of it, too.
                    _ => return Ok(BTreeMap::new()),
                }
            }
            sleep(10 * PAUSE).await;
        }
        Err(OrderError::Busy)
    }

    /// The answer of a partition to a message that was, or may be, ordered by another process. If one process does not answer for long
    /// another one is asked, too: each replica of the partition has the answer, unless it has begun anew meanwhile with
    /// a state behind the message.
    async fn awaited(&self, of: (u64, u64), mut question: Question<'_>, until: Instant) -> Said {
        let partition = question.partition;
        let unknown = || OrderError::Unknown(Partitions::from([partition]));
        loop {
            // An answer that has come is taken in any case.
            if let Some(told) = question.hears(self.some_time(until)).await {
                match told {
                    Ok(answer) => return answers_of(&answer).ok_or_else(unknown),
                    Err(_) => sleep(PAUSE).await,
                }
            }
            if Instant::now() >= until {
                return Err(unknown());
            }
            if !question.put(|id| Ask::Await(id, of)) {
                sleep(10 * PAUSE).await;
            }
        }
    }
}

const fn was_not_asked(lost: Lost) -> bool {
    matches!(lost, Lost::Down | Lost::Failed(Failed::Busy))
}

pub(super) fn fail(items: Vec<Item>, error: &OrderError) {
    for item in items {
        item.tell.tell(Err(error.clone()));
    }
}

/// Gives each batch the answers of all of its partitions.
fn deal_out(items: Vec<Item>, said: &BTreeMap<Partition, Said>) {
    for (at, item) in items.into_iter().enumerate() {
        let of = |partition: &Partition| match said.get(partition) {
            Some(Ok(answers)) => {
                let answer = answers.get(at).cloned();
                answer.ok_or_else(|| OrderError::Unknown(Partitions::from([*partition])))
            }
            Some(Err(error)) => Err(error.clone()),
            None => Err(OrderError::Unknown(Partitions::from([*partition]))),
        };
        let answers: Said = item.to.iter().map(of).collect();
        item.tell.tell(answers);
    }
}
