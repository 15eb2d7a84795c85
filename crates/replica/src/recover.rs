//! The way of a replica to a state with which it can go on: that of another replica, or one of which its machine lacks
//! something yet. Its acceptors go on meanwhile.

use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use rota_multiring::Resume;
use rota_node::rings::{RingsNode, RingsStartError, StateSource};

use crate::error::StartError;
use crate::keeper::{AGAIN, Keeper, LOOK, begin_with};
use crate::machine::Machine;
use crate::peers::{FetchError, Watch, fetch, locked, newest_of};

/// The number of attempts, at most, to start the rings without an application.
const SERVES: u32 = 20;
/// The time between two looks at whether the rings still keep what follows a state.
const WATCH: Duration = Duration::from_secs(10);

impl<M: Machine> Keeper<M> {
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
            match self.is_owed {
                true => self.account().hold(node),
                false => self.account().open(node, newest_of(&self.shelf).as_ref()),
            }
        }
        let why =
            |error: &RingsStartError| tracing::error!(%error, "the rings do not go on meanwhile");
        served.inspect_err(why).ok()
    }

    /// Begins anew with a checkpoint of another replica, as soon as there is one that helps. `taken`: the place of a
    /// state that the machine has, and of which it lacks something.
    pub(crate) fn recover(&mut self, mut taken: Option<Resume>) -> Result<RingsNode, String> {
        let mut served = self.serve();
        loop {
            if taken.is_none() {
                taken = self.get_checkpoint(served.as_ref())?;
            }
            if let Some(resume) = &taken {
                match self.complete(served.as_ref(), resume)? {
                    Completed::Whole => {
                        drop(served.take());
                        if let Some(node) = self.resume(resume)? {
                            return Ok(node);
                        }
                    }
                    Completed::Again => {}
                    Completed::Forgotten => taken = None,
                }
            }
            self.pause()?;
            if self.is_owed || taken.is_none() {
                served = served.or_else(|| self.serve());
            }
        }
    }

    /// Goes on behind a state that the machine has. `None`: the rings do not start just now.
    fn resume(&self, resume: &Resume) -> Result<Option<RingsNode>, String> {
        let (rings, node) = (&self.config.rings, self.config.node);
        let state = (Resume::clone(resume), StateSource::Peer);
        match RingsNode::resume(rings, node, state) {
            Ok(node) => {
                self.account().open(&node, Some(resume));
                self.shared.state().counts.recoveries += 1;
                Ok(Some(node))
            }
            // A log may be held for a moment by a thread that still writes.
            Err(error @ RingsStartError::Ring(..)) => {
                tracing::error!(%error, "the rings do not start: they are tried again");
                Ok(None)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Gets a checkpoint of another replica, and has the machine take its state; its place. The rings keep the
    /// instances behind it meanwhile. `None`: no checkpoint was of use.
    fn get_checkpoint(&mut self, served: Option<&RingsNode>) -> Result<Option<Resume>, String> {
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
                self.is_owed = true;
            }
            Err(FetchError::Stopped) => return Err("it was stopped".to_owned()),
            // The one that came before, and was not taken, is tried again.
            Err(FetchError::Nothing) if self.is_owed => {}
            Err(error) => {
                tracing::warn!(%error, "no checkpoint yet");
                return Ok(None);
            }
        }
        let why = |error: &StartError| {
            tracing::error!(%error, "a checkpoint of another replica is not taken");
        };
        Ok(self.install_newest().inspect_err(why).ok())
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
    fn install_newest(&mut self) -> Result<Resume, StartError> {
        let newest = locked(&self.shelf).newest_sound()?;
        let newest = newest.ok_or(StartError::About)?;
        self.shared.installs.store(true, SeqCst);
        let mut state = self.shared.state();
        // A panic, too, leaves a machine with a part of a state.
        state.is_whole = false;
        let begun = begin_with(&self.config, &mut state.machine, &newest);
        self.shared.installs.store(false, SeqCst);
        if begun.as_ref().is_err_and(StartError::is_of_the_state) {
            // The checkpoint is rejected, so that no replica begins with it, here or elsewhere. Where the disk failed,
            // or something else that may pass, it is tried again.
            locked(&self.shelf).reject(newest.manifest());
            self.is_owed = false;
        }
        let (sessions, resume) = begun?;
        (state.sessions, state.is_whole) = (sessions, true);
        resume.ok_or(StartError::About)
    }

    /// Has the machine get what its state refers to. The rings keep what follows the state meanwhile.
    fn complete(
        &mut self,
        served: Option<&RingsNode>,
        resume: &Resume,
    ) -> Result<Completed, String> {
        if !self.shared.state().machine.is_complete() {
            let got = self.get_rest(served, resume)?;
            if got != Completed::Whole {
                return Ok(got);
            }
        }
        self.is_owed = false;
        Ok(Completed::Whole)
    }

    fn get_rest(&self, served: Option<&RingsNode>, resume: &Resume) -> Result<Completed, String> {
        let (account, stop) = (self.account(), &self.shared.stop);
        if !served.is_none_or(|node| account.pin(node, resume, stop)) {
            return Ok(Completed::Forgotten);
        }
        let (looked, is_kept) = (Cell::new(Instant::now()), Cell::new(true));
        let still = || {
            if looked.get().elapsed() >= WATCH {
                looked.set(Instant::now());
                is_kept.set(served.is_none_or(|node| account.pin_again(node, resume)));
            }
            is_kept.get() && !stop.load(SeqCst)
        };
        self.shared.installs.store(true, SeqCst);
        let completed = self.shared.state().machine.complete(&still);
        self.shared.installs.store(false, SeqCst);
        match completed {
            Ok(()) => Ok(Completed::Whole),
            Err(_) if stop.load(SeqCst) => Err("it was stopped".to_owned()),
            Err(error) => {
                tracing::warn!(%error, "the state of a checkpoint is not complete yet");
                Ok(match is_kept.get() {
                    true => Completed::Again,
                    false => Completed::Forgotten,
                })
            }
        }
    }
}

/// The result of an attempt to get all that a state refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Completed {
    /// The machine has all of it.
    Whole,
    /// Something failed that may pass.
    Again,
    /// What follows the state is forgotten by now: another state is needed.
    Forgotten,
}
