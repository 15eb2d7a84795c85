//! The state of a replica, and the waiters for answers to commands.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rota_core::contract::SubmitError;
use rota_multiring::accounts::Command;
use rota_multiring::{Place, Rank};
use rota_node::rings::{RingsNode, RingsPublisher, RingsStatus, RingsWatch};

use crate::command::Ordered;
use crate::error::CallError;
use crate::kept::Kept;
use crate::machine::Machine;
use crate::sessions::{ClientId, Sequence, Sessions, Verdict};

/// The answer to a client.
pub(crate) type Answer = Result<Vec<u8>, CallError>;

/// The state that commands change.
#[derive(Debug)]
pub(crate) struct State<M> {
    pub(crate) machine: M,
    /// The machine has a whole state, and not a part of one that it did not take, or of a command in which it panicked.
    pub(crate) is_whole: bool,
    pub(crate) sessions: Sessions,
    pub(crate) counts: Counts,
}

/// Counters since the replica started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Commands that were applied.
    pub applied: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Commands that had been applied before.
    pub again: u64,
    /// Messages that are no commands: they are of another user of a ring.
    pub foreign: u64,
    /// Messages of all kinds.
    pub delivered: u64,
    /// The place of the last command that was applied.
    pub place: Option<Place>,
    /// Checkpoints that were written.
    pub checkpoints: u64,
    /// Checkpoints that could not be written.
    pub checkpoints_failed: u64,
    /// Times at which the replica began anew with a checkpoint of another one.
    pub recoveries: u64,
    /// The bytes that came for these checkpoints.
    pub recovered_bytes: u64,
}

/// The code that takes an answer. It runs in the thread that applies commands, so it should be quick.
pub(crate) type Then = Box<dyn FnOnce(Answer) + Send>;
/// The client of a command, and the command's number there.
pub(crate) type Of = (ClientId, Sequence);

/// The name of a waiter, and the code that takes the answer.
type Waiting = (u64, Then);

/// The waiters for answers to commands.
#[derive(Default)]
struct Pending {
    of: HashMap<Of, Vec<Waiting>>,
    /// The name of the last waiter.
    last: u64,
    /// Answers to commands that other processes have given, for which they have not asked yet: in the ring that
    /// partitions have in common, where each of them is asked, and in others, where they ask if a process is lost.
    common: Kept,
    others: Kept,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut of = f.debug_struct("Pending");
        of.field("of", &self.of.len()).finish_non_exhaustive()
    }
}

/// A replica, for its clients.
#[derive(Debug)]
pub(crate) struct Shared<M> {
    state: Mutex<State<M>>,
    pending: Mutex<Pending>,
    /// The way to its rings. `None` while the replica gets a checkpoint of another one.
    rings: Mutex<Option<(RingsPublisher, RingsWatch)>>,
    /// The ring that partitions have in common, by which sessions begin and end.
    keeps: Option<Rank>,
    pub(crate) stop: AtomicBool,
    /// The replica takes in the state of another one, and holds the state for long.
    pub(crate) installs: AtomicBool,
    /// The reason why it has stopped.
    ended: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: Machine> Shared<M> {
    pub(crate) fn new(machine: M, sessions: Sessions, keeps: Option<Rank>) -> Self {
        Self {
            keeps,
            state: Mutex::new(State {
                machine,
                is_whole: true,
                sessions,
                counts: Counts::default(),
            }),
            pending: Mutex::default(),
            rings: Mutex::default(),
            stop: AtomicBool::new(false),
            installs: AtomicBool::new(false),
            ended: Mutex::default(),
        }
    }

    /// The way for commands, if there is one.
    fn publisher(&self) -> Option<RingsPublisher> {
        let rings = lock(&self.rings);
        rings.as_ref().map(|(publisher, _)| publisher.clone())
    }

    /// Whether there is a way for commands.
    pub(crate) fn has_way(&self) -> bool {
        lock(&self.rings).is_some()
    }

    /// The state of its rings, unless the replica gets a checkpoint of another one, or the rings are too busy to say.
    pub(crate) fn rings(&self) -> Option<RingsStatus> {
        let watch = lock(&self.rings).as_ref().map(|(_, watch)| watch.clone());
        watch.and_then(|watch| watch.status())
    }

    /// Has a command about what a ring may forget ordered. `Full`: there is no way just now, or much waits already.
    pub(crate) fn order(&self, ring: Rank, command: Command) -> Result<(), SubmitError> {
        let watch = lock(&self.rings).as_ref().map(|(_, watch)| watch.clone());
        let watch = watch.ok_or(SubmitError::Full)?;
        watch.order(ring, command)
    }

    pub(crate) fn set_rings(&self, node: Option<&RingsNode>) {
        *lock(&self.rings) = node.map(|node| (node.publisher(), node.watch()));
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State<M>> {
        lock(&self.state)
    }

    /// Registers a waiter for the answer to a command, and returns the waiter's name. An answer that is kept is told at
    /// once. `None`: the replica has stopped, and nothing is done.
    pub(crate) fn wait(&self, of: Of, then: Then) -> Option<u64> {
        let ended = lock(&self.ended);
        if ended.is_some() {
            return None;
        }
        let mut pending = lock(&self.pending);
        pending.last += 1;
        let name = pending.last;
        let kept = pending.common.take(of).or_else(|| pending.others.take(of));
        if let Some(answer) = kept {
            drop(pending);
            then(Ok(answer));
            return Some(name);
        }
        pending.of.entry(of).or_default().push((name, then));
        Some(name)
    }

    /// Removes a waiter; other waiters for the same command go on.
    pub(crate) fn give_up(&self, of: Of, name: u64) {
        let mut pending = lock(&self.pending);
        if let Some(waiting) = pending.of.get_mut(&of) {
            waiting.retain(|(other, _)| *other != name);
            if waiting.is_empty() {
                pending.of.remove(&of);
            }
        }
    }

    /// The number of answers that are kept for who comes for them, and their bytes.
    pub(crate) fn kept(&self) -> (usize, usize) {
        let pending = lock(&self.pending);
        let (common, others) = (pending.common.figures(), pending.others.figures());
        (common.0 + others.0, common.1 + others.1)
    }

    /// Tells an answer to its waiters. `rank`: a waiter may come for it later; the command's ring.
    fn answer(&self, of: Of, answer: Answer, rank: Option<Rank>) {
        let mut pending = lock(&self.pending);
        let Some(waiting) = pending.of.remove(&of) else {
            if let (Ok(answer), Some(_)) = (answer, rank) {
                let kept = match rank == self.keeps {
                    true => &mut pending.common,
                    false => &mut pending.others,
                };
                kept.keep(of, answer);
            }
            return;
        };
        drop(pending);
        for (_, then) in waiting {
            then(answer.clone());
        }
    }

    /// Applies the message that was delivered next, and tells the answer.
    pub(crate) fn apply(&self, place: Place, payload: &[u8]) {
        let mut state = self.state();
        state.counts.delivered += 1;
        let Some(ordered) = Ordered::decode(payload) else {
            state.counts.foreign += 1;
            return;
        };
        let is_common = Some(place.rank) == self.keeps;
        let (of, answer) = match ordered {
            // Partitions without this ring would not know of it, and commands of rings that they have would count in a
            // part of their partitions only.
            Ordered::Open(_) | Ordered::Close(_) | Ordered::Renew(_) if !is_common => {
                state.counts.foreign += 1;
                return;
            }
            Ordered::Open(client) => {
                state.sessions.open(client);
                ((client, 0), Ok(Vec::new()))
            }
            Ordered::Close(client) => {
                state.sessions.close(client);
                ((client, 0), Ok(Vec::new()))
            }
            Ordered::Renew(client) => return state.sessions.renew(client),
            Ordered::Apply(client, sequence, bytes) => {
                if is_common {
                    state.sessions.renew(client);
                }
                let answer = state.apply(place, (client, sequence), bytes);
                ((client, sequence), answer)
            }
            Ordered::Once(giver, number, bytes) => {
                let answer = state.run(place, giver, bytes);
                drop(state);
                return self.answer((giver, number), Ok(answer), Some(place.rank));
            }
        };
        drop(state);
        self.answer(of, answer, None);
    }

    /// Remembers that the replica has stopped, and why, and tells all waiters.
    pub(crate) fn end(&self, why: String) {
        lock(&self.ended).get_or_insert(why);
        self.tell_all(&CallError::Stopped);
    }

    /// Gives up its rings for the state of another replica: commands that were given to them may be lost, or be in that
    /// state, and no delivery answers them any more. A client that comes now finds no way to give a command.
    pub(crate) fn begin_anew(&self) {
        self.set_rings(None);
        self.tell_all(&CallError::BeginsAnew);
    }

    fn tell_all(&self, error: &CallError) {
        let pending = std::mem::take(&mut lock(&self.pending).of);
        for (_, then) in pending.into_values().flatten() {
            then(Err(error.clone()));
        }
    }

    /// Has a message ordered. `Full`: there is no way just now, or the ring takes no more.
    pub(crate) fn submit(&self, ring: Rank, bytes: &[u8]) -> Result<(), SubmitError> {
        let publisher = self.publisher().ok_or(SubmitError::Full)?;
        match publisher.submit(ring, bytes) {
            // These rings were given up while they were asked.
            Err(SubmitError::Stopped) if self.ended().is_none() => Err(SubmitError::Full),
            submitted => submitted,
        }
    }

    pub(crate) fn ended(&self) -> Option<String> {
        lock(&self.ended).clone()
    }
}

impl<M: Machine> State<M> {
    fn run(&mut self, place: Place, client: ClientId, bytes: &[u8]) -> Vec<u8> {
        let command = crate::machine::Command {
            place,
            client,
            bytes,
        };
        // The state is not whole if the machine panics.
        self.is_whole = false;
        let answer = self.machine.apply(command);
        self.is_whole = true;
        self.counts.applied += 1;
        self.counts.bytes += bytes.len() as u64;
        self.counts.place = Some(place);
        answer
    }

    fn apply(
        &mut self,
        place: Place,
        (client, sequence): (ClientId, Sequence),
        bytes: &[u8],
    ) -> Answer {
        let of = (place.rank, sequence);
        match self.sessions.begin(client, of) {
            Verdict::New => {
                let answer = self.run(place, client, bytes);
                self.sessions.answer(client, of, answer.clone());
                Ok(answer)
            }
            Verdict::Again(answer) => {
                self.counts.again += 1;
                Ok(answer)
            }
            Verdict::Forgotten => Err(CallError::Forgotten),
            Verdict::Unknown => Err(CallError::Expired),
        }
    }
}
