//! Commands of nobody's session: each is given once, and what it is answered is told to whoever gave it, at this replica and at those of other
//! partitions that have its ring.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rota_core::contract::SubmitError;
use rota_multiring::Rank;

use crate::command::Ordered;
use crate::error::CallError;
use crate::machine::Machine;
use crate::sessions::{ClientId, Sequence};
use crate::shared::Shared;

/// See the module's page. Whatever is done with an answer is done in the thread that applies commands, so it should be quick.
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

    /// Has a command ordered in a ring, once. `of`: the giver, drawn at random, and the command's number there: none is used twice. The answer is not
    /// asked for: see [`Self::wait_for`], before this.
    ///
    /// # Errors
    /// [`CallError`], never `Timeout`: the command does not count then. `Busy`: it may be tried again.
    pub fn give(
        &self,
        ring: Rank,
        of: (ClientId, Sequence),
        command: &[u8],
    ) -> Result<(), CallError> {
        let bytes = Ordered::Once(of.0, of.1, command).encode();
        let given = self.shared.submit(ring, &bytes);
        given.map_err(|error| match error {
            SubmitError::Full => CallError::Busy,
            SubmitError::Unsupported => CallError::NotOnRing,
            SubmitError::TooLarge { .. } => CallError::TooLarge,
            _ => CallError::Stopped,
        })
    }

    /// Has this done with the answer of this replica to such a command, which may have been given at another process, and may have been answered
    /// already if that was not long ago and its ring is the one of sessions. The name is for [`Self::give_up`]; `None`: the replica has stopped.
    pub fn wait_for(
        &self,
        of: (ClientId, Sequence),
        then: impl FnOnce(Result<Vec<u8>, CallError>) + Send + 'static,
    ) -> Option<u64> {
        self.shared.wait(of, Box::new(then))
    }

    /// Nobody waits under this name any more.
    pub fn give_up(&self, of: (ClientId, Sequence), name: u64) {
        self.shared.give_up(of, name);
    }

    /// As [`crate::Replica::read`], and `None` while it takes in the state of another replica: nobody waits for that.
    pub fn read<T>(&self, look: impl FnOnce(&M) -> T) -> Option<T> {
        if self.shared.installs.load(SeqCst) {
            return None;
        }
        let state = self.shared.state();
        state.is_whole.then(|| look(&state.machine))
    }

    /// Whether commands are taken: not while it gets the state of another replica.
    pub fn is_open(&self) -> bool {
        self.shared.has_way()
    }
}
