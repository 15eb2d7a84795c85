//! Commands of no session: each is given once, and its answer goes to the giver, at this replica and at those of other
//! partitions that have its ring.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rota_core::contract::SubmitError;
use rota_multiring::Rank;
use rota_multiring::accounts::Command;
use rota_node::rings::RingsStatus;

use crate::command::Ordered;
use crate::error::CallError;
use crate::machine::Machine;
use crate::sessions::{ClientId, Sequence};
use crate::shared::Shared;

const fn call_error(error: SubmitError) -> CallError {
    match error {
        SubmitError::Full => CallError::Busy,
        SubmitError::Unsupported => CallError::NotOnRing,
        SubmitError::TooLarge { .. } => CallError::TooLarge,
        _ => CallError::Stopped,
    }
}

/// A way for commands of no session. The code that takes an answer runs in the thread that applies commands, so it
/// should be quick.
#[derive(Debug)]
pub struct Orders<M: Machine> {
    shared: Arc<Shared<M>>,
}

impl<M: Machine> Clone for Orders<M> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<M: Machine> Orders<M> {
    pub(crate) const fn new(shared: Arc<Shared<M>>) -> Self {
        Self { shared }
    }

    /// Has a command ordered in a ring, once. `of`: the giver, drawn at random, and the giver's number for the command:
    /// no pair is used twice. A giver that wants the answer calls [`Self::wait_for`] before this.
    ///
    /// # Errors
    /// [`CallError`], never `Timeout`: the command does not count then. After `Busy` the giver may try again.
    pub fn give(
        &self,
        ring: Rank,
        of: (ClientId, Sequence),
        command: &[u8],
    ) -> Result<(), CallError> {
        let bytes = Ordered::Once(of.0, of.1, command).encode();
        let given = self.shared.submit(ring, &bytes);
        given.map_err(call_error)
    }

    /// The state of the rings; `None` while the replica gets the state of another one, when it has stopped, and where
    /// the rings are too busy to say. It may take a second.
    pub fn rings(&self) -> Option<RingsStatus> {
        self.shared.rings()
    }

    /// Has a command about what a ring may forget ordered soon: those that only an operator gives.
    ///
    /// # Errors
    /// [`CallError`], as [`Self::give`].
    pub fn order(&self, ring: Rank, command: Command) -> Result<(), CallError> {
        self.shared.order(ring, command).map_err(call_error)
    }

    /// Calls `then` with the answer of this replica to such a command. The command may have been given at another
    /// process, and may have been answered already if that was not long ago. The name is for [`Self::give_up`]; `None`: the replica has stopped.
    pub fn wait_for(
        &self,
        of: (ClientId, Sequence),
        then: impl FnOnce(Result<Vec<u8>, CallError>) + Send + 'static,
    ) -> Option<u64> {
        self.shared.wait(of, Box::new(then))
    }

    /// Removes the waiter with this name.
    pub fn give_up(&self, of: (ClientId, Sequence), name: u64) {
        self.shared.give_up(of, name);
    }

    /// As [`crate::Replica::read`], but `None` at once while the replica takes in the state of another replica.
    pub fn read<T>(&self, look: impl FnOnce(&M) -> T) -> Option<T> {
        if self.shared.installs.load(SeqCst) {
            return None;
        }
        let state = self.shared.state();
        state.is_whole.then(|| look(&state.machine))
    }

    /// Whether the replica takes commands: not while it gets the state of another replica.
    pub fn is_open(&self) -> bool {
        self.shared.has_way()
    }
}
