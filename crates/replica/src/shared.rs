//! The state of a replica, and who waits for what becomes of it.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rota_multiring::Place;
use rota_node::rings::{RingsNode, RingsPublisher, RingsStatus, RingsWatch};

use crate::command::Ordered;
use crate::error::CallError;
use crate::machine::{Command, Machine};
use crate::sessions::{ClientId, Sequence, Sessions, Verdict};

/// What a client is told.
pub(crate) type Answer = Result<Vec<u8>, CallError>;

/// What commands change.
#[derive(Debug)]
pub(crate) struct State<M> {
    pub(crate) machine: M,
    /// The machine has a whole state, and not a part of one that it did not take.
    pub(crate) is_whole: bool,
    pub(crate) sessions: Sessions,
    pub(crate) counts: Counts,
}

/// What was counted since the replica started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Commands that were applied.
    pub applied: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Commands that had been applied before.
    pub again: u64,
    /// Messages that are no commands: somebody else uses a ring, too.
    pub foreign: u64,
    /// Messages of all kinds.
    pub delivered: u64,
    /// Where the last command that was applied stands.
    pub place: Option<Place>,
    /// Checkpoints that were written, and that could not be written.
    pub checkpoints: u64,
    /// See above.
    pub checkpoints_failed: u64,
    /// How often it began anew with a checkpoint of another replica, and bytes that came for that.
    pub recoveries: u64,
    /// See above.
    pub recovered_bytes: u64,
}

/// Under which name somebody waits, and where the answer goes.
type Waiting = (u64, SyncSender<Answer>);

/// Who waits for what becomes of a command.
#[derive(Debug, Default)]
struct Pending {
    of: HashMap<(ClientId, Sequence), Vec<Waiting>>,
    /// The name of the last that came.
    last: u64,
}

/// A replica, for its clients.
#[derive(Debug)]
pub(crate) struct Shared<M> {
    state: Mutex<State<M>>,
    pending: Mutex<Pending>,
    /// To its rings. None while it gets a checkpoint of another replica.
    rings: Mutex<Option<(RingsPublisher, RingsWatch)>>,
    pub(crate) stop: AtomicBool,
    /// Why it has stopped.
    ended: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: Machine> Shared<M> {
    pub(crate) fn new(machine: M, sessions: Sessions) -> Self {
        Self {
            state: Mutex::new(State {
                machine,
                is_whole: true,
                sessions,
                counts: Counts::default(),
            }),
            pending: Mutex::default(),
            rings: Mutex::default(),
            stop: AtomicBool::new(false),
            ended: Mutex::default(),
        }
    }

    /// Where commands go, if there is a way.
    pub(crate) fn publisher(&self) -> Option<RingsPublisher> {
        let rings = lock(&self.rings);
        rings.as_ref().map(|(publisher, _)| publisher.clone())
    }

    /// How its rings are, unless it gets a checkpoint of another replica, or they are too busy to say.
    pub(crate) fn rings(&self) -> Option<RingsStatus> {
        let watch = lock(&self.rings).as_ref().map(|(_, watch)| watch.clone());
        watch.and_then(|watch| watch.status())
    }

    pub(crate) fn set_rings(&self, node: Option<&RingsNode>) {
        *lock(&self.rings) = node.map(|node| (node.publisher(), node.watch()));
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State<M>> {
        lock(&self.state)
    }

    /// Somebody waits for the answer to a command: under this name. `None`: the replica has stopped.
    pub(crate) fn wait(&self, of: (ClientId, Sequence), answer: SyncSender<Answer>) -> Option<u64> {
        let ended = lock(&self.ended);
        if ended.is_some() {
            return None;
        }
        let mut pending = lock(&self.pending);
        pending.last += 1;
        let name = pending.last;
        pending.of.entry(of).or_default().push((name, answer));
        Some(name)
    }

    /// Somebody does not any more; whoever else waits for the same command goes on.
    pub(crate) fn give_up(&self, of: (ClientId, Sequence), name: u64) {
        let mut pending = lock(&self.pending);
        if let Some(waiting) = pending.of.get_mut(&of) {
            waiting.retain(|(other, _)| *other != name);
            if waiting.is_empty() {
                pending.of.remove(&of);
            }
        }
    }

    fn answer(&self, of: (ClientId, Sequence), answer: Answer) {
        let waiting = lock(&self.pending).of.remove(&of);
        for (_, waiting) in waiting.unwrap_or_default() {
            // Who has gone wants no answer.
            let _ = waiting.try_send(answer.clone());
        }
    }

    /// What was ordered next.
    pub(crate) fn apply(&self, place: Place, payload: &[u8]) {
        let mut state = self.state();
        state.counts.delivered += 1;
        let Some(ordered) = Ordered::decode(payload) else {
            state.counts.foreign += 1;
            return;
        };
        let (of, answer) = match ordered {
            Ordered::Open(client) => {
                state.sessions.open(client);
                ((client, 0), Ok(Vec::new()))
            }
            Ordered::Close(client) => {
                state.sessions.close(client);
                ((client, 0), Ok(Vec::new()))
            }
            Ordered::Apply(client, sequence, bytes) => {
                let answer = state.apply(place, (client, sequence), bytes);
                ((client, sequence), answer)
            }
        };
        drop(state);
        self.answer(of, answer);
    }

    /// It has stopped, and this is why.
    pub(crate) fn end(&self, why: String) {
        lock(&self.ended).get_or_insert(why);
        let pending = std::mem::take(&mut lock(&self.pending).of);
        for (_, waiting) in pending.into_values().flatten() {
            let _ = waiting.try_send(Err(CallError::Stopped));
        }
    }

    pub(crate) fn ended(&self) -> Option<String> {
        lock(&self.ended).clone()
    }
}

impl<M: Machine> State<M> {
    fn apply(
        &mut self,
        place: Place,
        (client, sequence): (ClientId, Sequence),
        bytes: &[u8],
    ) -> Answer {
        match self.sessions.begin(client, sequence) {
            Verdict::New => {
                let command = Command {
                    place,
                    client,
                    bytes,
                };
                // Should it panic.
                self.is_whole = false;
                let answer = self.machine.apply(command);
                self.is_whole = true;
                self.sessions.answer(client, sequence, answer.clone());
                self.counts.applied += 1;
                self.counts.bytes += bytes.len() as u64;
                self.counts.place = Some(place);
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
