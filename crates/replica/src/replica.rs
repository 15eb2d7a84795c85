//! A replica: its rings, its machine, its checkpoints.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rota_multiring::{Point, Rank};
use rota_node::rings::{RingsNode, RingsStatus, StateSource};
use rota_storage::checkpoint::Checkpoints;

use crate::client::Client;
use crate::config::ReplicaConfig;
use crate::door::CheckpointServer;
use crate::error::{CallError, StartError};
use crate::keeper::{Begins, Keeper, begin_with};
use crate::machine::Machine;
use crate::orders::Orders;
use crate::sessions::{ClientId, Sequence, Sessions};
use crate::shared::{Counts, Shared};

/// The state of a replica, for its operator.
#[derive(Clone, Debug)]
pub struct ReplicaStatus {
    /// Counters since its start.
    pub counts: Counts,
    /// Sessions of its partition.
    pub sessions: usize,
    /// The memory of the answers that these keep, in bytes, about.
    pub sessions_bytes: usize,
    /// Answers to commands of no session ([`Orders`]) that are kept for who comes for them.
    pub answers_kept: usize,
    /// The bytes of these answers.
    pub answers_kept_bytes: usize,
    /// The point at which it began, behind the state of a checkpoint; `None`: with nothing.
    pub began: Option<Point>,
    /// The state of its rings, and what the replica waits for. `None` while the replica gets a checkpoint of another
    /// one, when it has stopped, and where the rings are too busy to say.
    pub rings: Option<RingsStatus>,
    /// The reason why it has stopped.
    pub ended: Option<String>,
}

/// A running replica of a partition. Dropping it stops it.
#[derive(Debug)]
pub struct Replica<M: Machine> {
    shared: Arc<Shared<M>>,
    sessions: Rank,
    began: Option<Point>,
    thread: Option<JoinHandle<()>>,
    /// Gives its checkpoints to others.
    _door: Option<CheckpointServer>,
}

impl<M: Machine> Replica<M> {
    /// Starts a replica. It goes on behind its newest checkpoint that is whole; without one, `machine` begins with the
    /// first command, and has to be as it is at the beginning. If its rings have forgotten instances that it needs
    /// next, the replica gets a checkpoint of another one. What the machine lacks of its state
    /// ([`Machine::is_complete`]) it gets before the replica goes on, and this does not wait for that.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(config: &ReplicaConfig, mut machine: M) -> Result<Self, StartError> {
        let fresh = getrandom::u64().map_err(|error| StartError::System(error.into()))?;
        let directory = config.checkpoints.clone();
        let mut checkpoints = Checkpoints::open(directory, config.subject(), fresh)?;
        let newest = checkpoints.newest_sound()?;
        for (path, why) in checkpoints.damaged() {
            tracing::error!(file = %path.display(), %why, "a checkpoint is damaged");
        }
        let (sessions, resume) = match newest {
            Some(newest) => begin_with(config, &mut machine, &newest)?,
            None => (Sessions::default(), None),
        };
        let began = resume.as_ref().map(|resume| resume.point);
        let begins = match resume {
            Some(resume) if !machine.is_complete() => Begins::Lacking(resume),
            Some(resume) => {
                let state = (resume, StateSource::Own);
                let node = RingsNode::resume(&config.rings, config.node, state);
                Begins::Fed(node.map_err(StartError::Rings)?)
            }
            None => {
                let rings = Some(&config.subscribe[..]);
                let node = RingsNode::start_with(&config.rings, config.node, rings);
                Begins::Fed(node.map_err(StartError::Rings)?)
            }
        };
        let shelf = Arc::new(Mutex::new(checkpoints));
        let door = CheckpointServer::open(config, &shelf).map_err(StartError::System)?;
        let keeps = Some(Rank(config.sessions));
        let shared = Arc::new(Shared::new(machine, sessions, keeps));
        if let Begins::Fed(node) = &begins {
            shared.set_rings(Some(node));
        }
        let keeper = Keeper::new(config, (&shared, shelf), began);
        let thread = std::thread::Builder::new().name("rota-replica".to_owned());
        let thread = thread.spawn(move || keeper.run_to_the_end(begins));
        let thread = thread.map_err(StartError::System)?;
        Ok(Self {
            shared,
            sessions: Rank(config.sessions),
            began,
            thread: Some(thread),
            _door: door,
        })
    }

    /// Begins a session here.
    ///
    /// # Errors
    /// [`CallError`]: the session may have begun all the same, and makes way for others when it is not used.
    pub fn client(&self, patience: Duration) -> Result<Client<M>, CallError> {
        let id = getrandom::u64().map_err(|_| CallError::Stopped)?;
        Client::open((id, self.sessions), Arc::clone(&self.shared), patience)
    }

    /// Goes on with a session that began at another replica of the partition, or before a restart; `last`: the number of its last command.
    pub fn go_on(&self, id: ClientId, last: Sequence) -> Client<M> {
        Client::go_on((id, last), self.sessions, Arc::clone(&self.shared))
    }

    /// A way for commands of no session.
    pub fn orders(&self) -> Orders<M> {
        Orders::new(Arc::clone(&self.shared))
    }

    /// Looks at the machine as it is here: another replica may be ahead of it. Commands wait meanwhile. `None` where
    /// the machine has no whole state, as it did not take the checkpoint of another replica, or has panicked in the
    /// middle of a command.
    pub fn read<T>(&self, look: impl FnOnce(&M) -> T) -> Option<T> {
        let state = self.shared.state();
        state.is_whole.then(|| look(&state.machine))
    }

    /// The reason why the replica has stopped, if it has.
    pub fn ended(&self) -> Option<String> {
        self.shared.ended()
    }

    /// The state of the replica, for its operator.
    pub fn status(&self) -> ReplicaStatus {
        let (ended, rings) = (self.shared.ended(), self.shared.rings());
        let (answers_kept, answers_kept_bytes) = self.shared.kept();
        let state = self.shared.state();
        ReplicaStatus {
            counts: state.counts,
            sessions: state.sessions.len(),
            sessions_bytes: state.sessions.bytes(),
            answers_kept,
            answers_kept_bytes,
            began: self.began,
            rings,
            ended,
        }
    }

    /// Stops the replica. Commands without an answer may count or not.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.stop.store(true, SeqCst);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl<M: Machine> Drop for Replica<M> {
    fn drop(&mut self) {
        self.end();
    }
}
