//! The thread of a replica: it feeds the machine, keeps states, and begins anew with another replica's state where the
//! rings have forgotten instances that it needs.

#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use rota_multiring::{Point, Resume};
use rota_node::rings::{RingsDelivery, RingsNode};
use rota_storage::acceptor::FileDir;
use rota_storage::checkpoint::{CheckpointError, Manifest, Reading};

use crate::account::Account;
use crate::checkpoint::{End, Kept, end_of, install};
use crate::config::ReplicaConfig;
use crate::error::StartError;
use crate::machine::{Frozen, Machine};
use crate::peers::{SharedCheckpoints, locked, newest_of, resume_of};
use crate::sessions::Sessions;
use crate::shared::Shared;

/// The time between two looks at what is due while nothing is delivered.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// The pause before other replicas are asked again.
pub(crate) const AGAIN: Duration = Duration::from_secs(1);

/// The sessions and the place of a checkpoint; the machine takes the state.
pub(crate) fn begin_with<M: Machine>(
    config: &ReplicaConfig,
    machine: &mut M,
    newest: &Reading<FileDir>,
) -> Result<(Sessions, Option<Resume>), StartError> {
    let about = newest.manifest().about.clone();
    let resume = Resume::decode(about.into()).ok_or(StartError::About)?;
    config.check(&resume)?;
    let sessions = install(machine, newest)?;
    Ok((sessions, Some(resume)))
}

/// The result of a thread that writes a checkpoint, and puts it on the shelf.
type WrittenOrNot = Result<Arc<Manifest>, CheckpointError>;

/// Writes a state to a checkpoint, and puts that on the shelf. The file of an old state goes for it, which takes half a
/// second where it is large and the disk is busy.
fn put<F: Frozen>(kept: Kept<F>, shelf: &SharedCheckpoints) -> WrittenOrNot {
    let writing = locked(shelf).begin();
    let written = kept.write(writing?)?;
    Ok(locked(shelf).add(written))
}

/// Feeds the machine, and keeps its state.
pub(crate) struct Keeper<M: Machine> {
    pub(crate) config: ReplicaConfig,
    pub(crate) shared: Arc<Shared<M>>,
    pub(crate) shelf: SharedCheckpoints,
    /// A point was asked for, and has not been delivered.
    is_wanted: bool,
    /// The number of rounds after the last point at which a state is due.
    due_rounds: u64,
    /// The result of the checkpoint that is being written.
    written: Option<Receiver<WrittenOrNot>>,
    /// The time of the last point, and the bytes that were applied and the messages that were delivered before it.
    last: Instant,
    before: (u64, u64),
    /// The round of the last point, and the time of the last question for the point of the rings.
    round: u64,
    looked: Instant,
    /// The newest checkpoint on the shelf is not the state of the machine yet: the machine has not taken it, or lacks
    /// something that it refers to. So nobody is told that this replica has it.
    pub(crate) is_owed: bool,
}

/// The beginning of a replica.
pub(crate) enum Begins {
    /// Its rings go on behind the state of the machine.
    Fed(RingsNode),
    /// The machine lacks something that its state, which is at this place, refers to.
    Lacking(Resume),
}

impl<M: Machine> Keeper<M> {
    /// The keeper of a replica; `began`: the place of the state that its machine has.
    pub(crate) fn new(
        config: &ReplicaConfig,
        (shared, shelf): (&Arc<Shared<M>>, SharedCheckpoints),
        began: Option<Point>,
    ) -> Self {
        Self {
            config: config.clone(),
            shared: Arc::clone(shared),
            shelf,
            is_wanted: false,
            due_rounds: config.due_rounds(),
            written: None,
            last: Instant::now(),
            before: (0, 0),
            round: began.map_or(0, |point| point.round),
            looked: Instant::now(),
            is_owed: false,
        }
    }

    /// Runs the thread; where the machine panics its clients are told that nothing more is answered.
    pub(crate) fn run_to_the_end(self, begins: Begins) {
        let shared = Arc::clone(&self.shared);
        let run = AssertUnwindSafe(|| self.run(begins));
        if let Err(panic) = std::panic::catch_unwind(run) {
            shared.set_rings(None);
            shared.end("its machine has panicked".to_owned());
            std::panic::resume_unwind(panic);
        }
    }

    fn run(mut self, begins: Begins) {
        match self.begin(begins) {
            Ok(node) => self.feed_on(node),
            Err(why) => self.end(why),
        }
    }

    fn begin(&mut self, begins: Begins) -> Result<RingsNode, String> {
        match begins {
            Begins::Fed(node) => {
                let newest = newest_of(&self.shelf);
                self.account().open(&node, newest.as_ref());
                Ok(node)
            }
            Begins::Lacking(resume) => {
                self.is_owed = true;
                let node = self.recover(Some(resume))?;
                self.shared.set_rings(Some(&node));
                Ok(node)
            }
        }
    }

    fn end(&mut self, why: String) {
        self.shared.set_rings(None);
        self.shared.end(why);
        self.wait_for_written();
    }

    /// Feeds the machine until the end, with states of other replicas where these are needed.
    fn feed_on(&mut self, mut node: RingsNode) {
        let why = loop {
            let why = match self.feed(&node) {
                End::Over(why) => {
                    drop(node);
                    break why;
                }
                End::Trimmed(why) => why,
            };
            self.shared.begin_anew();
            // The deliveries of the old rings are dropped with them.
            drop(node);
            self.wait_for_written();
            if self.config.peers.len() < 2 {
                break why;
            }
            tracing::warn!(why, "a checkpoint of another replica is needed");
            match self.recover(None) {
                Ok(resumed) => node = resumed,
                Err(why) => break why,
            }
            self.shared.set_rings(Some(&node));
        };
        self.end(why);
    }

    pub(crate) fn account(&self) -> Account<'_> {
        Account {
            config: &self.config,
        }
    }

    /// Applies deliveries until a stop, the end of the rings, or an end of the order.
    fn feed(&mut self, node: &RingsNode) -> End {
        loop {
            if self.shared.stop.load(SeqCst) {
                return End::Over("it was stopped".to_owned());
            }
            let mut is_quiet = false;
            match node.recv_timeout(LOOK) {
                Ok(RingsDelivery::Message(place, message)) => {
                    #[cfg(feature = "mutants")]
                    crate::mutants::wait(&self.config, &self.shared.stop);
                    self.shared.apply(place, &message.payload);
                }
                Ok(RingsDelivery::Point(resume)) => self.keep(&resume),
                Ok(other) => {
                    if let Some(end) = end_of(&other) {
                        return end;
                    }
                }
                Err(RecvTimeoutError::Timeout) => is_quiet = true,
                Err(RecvTimeoutError::Disconnected) => {
                    return End::Over("its rings have stopped".to_owned());
                }
            }
            self.look(node, is_quiet);
        }
    }

    fn wait_for_written(&mut self) {
        self.is_wanted = false;
        if let Some(written) = self.written.take() {
            match written.recv() {
                Ok(written) => self.on_written(written, None),
                Err(_) => self.on_panic(),
            }
        }
    }

    /// Takes in what was written, and asks for a point when a checkpoint is due.
    fn look(&mut self, node: &RingsNode, is_quiet: bool) {
        if let Some(written) = &self.written {
            match written.try_recv() {
                Ok(written) => self.on_written(written, Some(node)),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.on_panic(),
            }
        }
        if self.is_wanted {
            return;
        }
        let counts = self.shared.state().counts;
        let (bytes, delivered) = self.before;
        let is_much = counts.bytes - bytes >= self.config.bytes;
        let is_late = self.last.elapsed() >= self.config.every;
        let round = match is_quiet {
            true => self.round_of(node),
            false => counts.place.map(|place| place.round),
        };
        // A state from before the instances that acceptors keep is of no use: rings go on with the commands of others,
        // or with nothing.
        let most = self.round.saturating_add(self.due_rounds);
        let is_far = round.is_some_and(|round| round >= most);
        if is_much || is_late && counts.delivered > delivered || is_far {
            self.is_wanted = true;
            node.want_point();
        }
    }

    /// The round of the rings' point, for the time in which they deliver nothing. `None` if the last question was just
    /// before: the rings stop for each answer.
    fn round_of(&mut self, node: &RingsNode) -> Option<u64> {
        if self.looked.elapsed() < AGAIN {
            return None;
        }
        self.looked = Instant::now();
        let point = node.status().and_then(|status| status.point);
        point.map(|point| point.round)
    }

    /// Keeps the state at a point: everything before it was applied, and nothing behind it. Commands wait until the
    /// state is frozen, and for nothing of the disk or the shelf: all else is done by a thread of its own.
    fn keep(&mut self, resume: &Resume) {
        self.is_wanted = false;
        (self.last, self.round) = (Instant::now(), resume.point.round);
        let mut state = self.shared.state();
        self.before = (state.counts.bytes, state.counts.delivered);
        let kept = Kept {
            about: resume.encode(),
            sessions: state.sessions.encode(),
            machine: state.machine.freeze(),
        };
        drop(state);
        let (sender, receiver) = mpsc::sync_channel(1);
        let shelf = Arc::clone(&self.shelf);
        let write = move || {
            let written = put(kept, &shelf);
            // Whoever hears of the end may open the directory again.
            drop(shelf);
            // The checkpoint is on the disk, also if the keeper has stopped meanwhile.
            let _ = sender.send(written);
        };
        let thread = std::thread::Builder::new().name("rota-checkpoint".to_owned());
        match thread.spawn(write) {
            Ok(_) => self.written = Some(receiver),
            Err(error) => {
                tracing::warn!(%error, "no thread for a checkpoint");
                self.shared.state().counts.checkpoints_failed += 1;
            }
        }
    }

    /// The thread that wrote has panicked.
    fn on_panic(&mut self) {
        self.written = None;
        self.shared.state().counts.checkpoints_failed += 1;
        tracing::error!("no checkpoint: the machine has panicked as it wrote its state");
    }

    fn on_written(&mut self, written: WrittenOrNot, node: Option<&RingsNode>) {
        self.written = None;
        match written {
            Ok(manifest) => {
                if let (Some(node), Some(resume)) = (node, resume_of(&manifest)) {
                    self.account().mark(node, &resume);
                }
                self.shared.state().counts.checkpoints += 1;
                tracing::debug!(bytes = manifest.bytes, "a checkpoint was written");
            }
            Err(error) => {
                tracing::error!(%error, "no checkpoint: the one before stays the newest");
                self.shared.state().counts.checkpoints_failed += 1;
            }
        }
    }
}
