//! The thread of a replica: it feeds the machine, keeps states, and begins anew with another replica's state where the
//! rings have forgotten instances that it needs.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use rota_multiring::Resume;
use rota_node::rings::{RingsDelivery, RingsNode, RingsStartError, StateSource};
use rota_storage::acceptor::FileDir;
use rota_storage::checkpoint::{CheckpointError, Reading, Written};

use crate::account::Account;
use crate::checkpoint::{End, Kept, end_of, install};
use crate::config::ReplicaConfig;
use crate::error::StartError;
use crate::machine::Machine;
use crate::peers::{FetchError, SharedCheckpoints, Watch, fetch, locked, newest_of, resume_of};
use crate::sessions::Sessions;
use crate::shared::Shared;

/// The time between two looks at what is due while nothing is delivered.
const LOOK: Duration = Duration::from_millis(100);
/// The number of attempts, at most, to start the rings without an application.
const SERVES: u32 = 20;
/// The pause before other replicas are asked again.
const AGAIN: Duration = Duration::from_secs(1);

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

/// The result of a thread that writes a checkpoint.
type WrittenOrNot = Result<Written, CheckpointError>;

/// Feeds the machine, and keeps its state.
pub(crate) struct Keeper<M: Machine> {
    pub(crate) config: ReplicaConfig,
    pub(crate) shared: Arc<Shared<M>>,
    pub(crate) shelf: SharedCheckpoints,
    /// A point was asked for, and has not been delivered.
    pub(crate) is_wanted: bool,
    /// The number of rounds after the last point at which a state is due.
    pub(crate) due_rounds: u64,
    /// The result of the checkpoint that is being written.
    pub(crate) written: Option<Receiver<WrittenOrNot>>,
    /// The time of the last point, and the bytes that were applied and the messages that were delivered before it.
    pub(crate) last: Instant,
    pub(crate) before: (u64, u64),
    /// The round of the last point, and the time of the last question for the point of the rings.
    pub(crate) round: u64,
    pub(crate) looked: Instant,
}

impl<M: Machine> Keeper<M> {
    /// Runs the thread; where the machine panics its clients are told that nothing more is answered.
    pub(crate) fn run_to_the_end(self, node: RingsNode) {
        let shared = Arc::clone(&self.shared);
        let run = AssertUnwindSafe(|| self.run(node));
        if let Err(panic) = std::panic::catch_unwind(run) {
            shared.set_rings(None);
            shared.end("its machine has panicked".to_owned());
            std::panic::resume_unwind(panic);
        }
    }

    fn run(mut self, mut node: RingsNode) {
        let newest = newest_of(&self.shelf);
        self.account().open(&node, newest.as_ref());
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
            match self.recover() {
                Ok(resumed) => node = resumed,
                Err(why) => break why,
            }
            self.shared.set_rings(Some(&node));
        };
        self.shared.set_rings(None);
        self.shared.end(why);
        self.wait_for_written();
    }

    fn account(&self) -> Account<'_> {
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

    /// Starts the rings without an application: their acceptors go on, as others may need their votes, and nothing is
    /// delivered.
    fn serve(&self) -> Option<RingsNode> {
        let start = || RingsNode::start_with(&self.config.rings, self.config.node, Some(&[]));
        let mut served = start();
        for _ in 0..SERVES {
            // A log may be held for a moment by a thread that still writes.
            if served.is_ok() || self.shared.stop.load(SeqCst) {
                break;
            }
            std::thread::sleep(LOOK);
            served = start();
        }
        if let Ok(node) = &served {
            let newest = newest_of(&self.shelf);
            self.account().open(node, newest.as_ref());
        }
        let why =
            |error: &RingsStartError| tracing::error!(%error, "the rings do not go on meanwhile");
        served.inspect_err(why).ok()
    }

    /// Begins anew with a checkpoint of another replica, as soon as there is one that helps.
    fn recover(&mut self) -> Result<RingsNode, String> {
        let (mut served, mut installed) = (self.serve(), None);
        loop {
            if installed.is_none() {
                installed = self.get_checkpoint(served.as_ref())?;
            }
            if let Some(resume) = &installed {
                drop(served.take());
                let (rings, node) = (&self.config.rings, self.config.node);
                let state = (Resume::clone(resume), StateSource::Peer);
                match RingsNode::resume(rings, node, state) {
                    Ok(node) => {
                        self.account().open(&node, Some(resume));
                        self.shared.state().counts.recoveries += 1;
                        return Ok(node);
                    }
                    // A log may be held for a moment by a thread that still writes.
                    Err(error @ RingsStartError::Ring(..)) => {
                        tracing::error!(%error, "the rings do not start: they are tried again");
                    }
                    Err(error) => return Err(error.to_string()),
                }
            }
            self.pause()?;
            if installed.is_none() {
                served = served.or_else(|| self.serve());
            }
        }
    }

    /// Gets a checkpoint of another replica, and has the machine take its state; its place. The rings keep the
    /// instances behind it meanwhile. `None`: no checkpoint was of use.
    fn get_checkpoint(&self, served: Option<&RingsNode>) -> Result<Option<Resume>, String> {
        let (account, stop) = (self.account(), &self.shared.stop);
        let begin = |resume: &Resume| served.is_none_or(|node| account.pin(node, resume, stop));
        let still = |resume: &Resume| served.is_none_or(|node| account.pin_again(node, resume));
        let watch = Watch {
            begin: &begin,
            still: &still,
        };
        match fetch((&self.config, &self.shelf), &watch, stop) {
            Ok(bytes) => {
                self.shared.state().counts.recovered_bytes += bytes;
                let why = |error: &StartError| {
                    tracing::error!(%error, "a checkpoint of another replica is of no use");
                };
                Ok(self.install_newest().inspect_err(why).ok())
            }
            Err(FetchError::Stopped) => Err("it was stopped".to_owned()),
            Err(error) => {
                tracing::warn!(%error, "no checkpoint yet");
                Ok(None)
            }
        }
    }

    /// Waits before other replicas are asked again. An error: the replica was stopped.
    fn pause(&self) -> Result<(), String> {
        let until = Instant::now() + AGAIN;
        while Instant::now() < until {
            if self.shared.stop.load(SeqCst) {
                return Err("it was stopped".to_owned());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Has the machine take the newest checkpoint; its place.
    fn install_newest(&self) -> Result<Resume, StartError> {
        let newest = locked(&self.shelf).newest_sound()?;
        let newest = newest.ok_or(StartError::About)?;
        self.shared.installs.store(true, SeqCst);
        let mut state = self.shared.state();
        // A panic, too, leaves a machine with a part of a state.
        state.is_whole = false;
        let begun = begin_with(&self.config, &mut state.machine, &newest);
        self.shared.installs.store(false, SeqCst);
        if begun.is_err() {
            // The checkpoint is rejected, so that no replica begins with it, here or elsewhere.
            locked(&self.shelf).reject(newest.manifest());
        }
        let (sessions, resume) = begun?;
        (state.sessions, state.is_whole) = (sessions, true);
        resume.ok_or(StartError::About)
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

    /// Keeps the state at a point: everything before it was applied, and nothing behind it.
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
        let writing = locked(&self.shelf).begin();
        let write = move || {
            let written = writing.and_then(|writing| kept.write(writing));
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
            Ok(written) => {
                let manifest = locked(&self.shelf).add(written);
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
