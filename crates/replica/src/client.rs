//! Sessions with a replica: commands, and the answers to them.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rota_core::contract::SubmitError;
use rota_multiring::Rank;

use crate::command::Ordered;
use crate::error::CallError;
use crate::machine::Machine;
use crate::sessions::{ClientId, Sequence};
use crate::shared::Shared;

/// The pause of a client before it tries a full ring again, during which it waits for an answer.
const PAUSE: Duration = Duration::from_millis(1);

/// The time after which a session that works in other rings is renewed in the common ring, with its next command: of
/// very many sessions those that were not used there for the longest time make way.
const RENEW: Duration = Duration::from_secs(10);

/// Whether a session is to be renewed; `last`: when the common ring was given something of it, if that is known.
fn is_due(last: Option<Instant>, now: Instant) -> bool {
    last.is_none_or(|last| now.duration_since(last) >= RENEW)
}

/// A session with the replicas of a partition, by one of them. Each command counts once, though it may be given again, here or at another replica.
#[derive(Debug)]
pub struct Client<M: Machine> {
    id: ClientId,
    last: Sequence,
    sessions: Rank,
    /// The time at which the common ring was given something of this session.
    renewed: Option<Instant>,
    shared: Arc<Shared<M>>,
}

impl<M: Machine> Client<M> {
    /// A session that begins; `id` was drawn at random.
    pub(crate) fn open(
        (id, sessions): (ClientId, Rank),
        shared: Arc<Shared<M>>,
        patience: Duration,
    ) -> Result<Self, CallError> {
        let client = Self {
            id,
            last: 0,
            sessions,
            renewed: Some(Instant::now()),
            shared,
        };
        let bytes = Ordered::Open(id).encode();
        client.order(sessions, 0, &bytes, patience)?;
        Ok(client)
    }

    /// A session that has begun, at this replica or at another one; `last`: the number of its last command.
    pub(crate) fn go_on(
        (id, last): (ClientId, Sequence),
        sessions: Rank,
        shared: Arc<Shared<M>>,
    ) -> Self {
        Self {
            id,
            last,
            sessions,
            renewed: None,
            shared,
        }
    }

    /// The identifier of the session.
    pub const fn id(&self) -> ClientId {
        self.id
    }

    /// The number of its last command.
    pub const fn last(&self) -> Sequence {
        self.last
    }

    /// Has a command ordered in a ring, and waits until this replica has applied it: the machine's answer.
    ///
    /// # Errors
    /// [`CallError`]: after `Timeout` it is not known whether the command counts.
    pub fn call(
        &mut self,
        ring: Rank,
        command: &[u8],
        patience: Duration,
    ) -> Result<Vec<u8>, CallError> {
        self.last += 1;
        self.renew(ring);
        self.again(ring, self.last, command, patience)
    }

    /// Has the session renewed if this is due: a command of the common ring does so itself.
    fn renew(&mut self, ring: Rank) {
        let now = Instant::now();
        if ring != self.sessions && !is_due(self.renewed, now) {
            return;
        }
        let bytes = Ordered::Renew(self.id).encode();
        // A ring that takes nothing now is asked again with the next command.
        if ring == self.sessions || self.shared.submit(self.sessions, &bytes).is_ok() {
            self.renewed = Some(now);
        }
    }

    /// Gives a command of this session once more, in the ring to which it went first: if it counts already, the answer
    /// is the one it had.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn again(
        &self,
        ring: Rank,
        sequence: Sequence,
        command: &[u8],
        patience: Duration,
    ) -> Result<Vec<u8>, CallError> {
        if sequence == 0 {
            return Err(CallError::Forgotten);
        }
        let bytes = Ordered::Apply(self.id, sequence, command).encode();
        self.order(ring, sequence, &bytes, patience)
    }

    /// Ends the session.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn close(self, patience: Duration) -> Result<(), CallError> {
        let bytes = Ordered::Close(self.id).encode();
        self.order(self.sessions, 0, &bytes, patience).map(drop)
    }

    /// Gives the command once more where the replica began anew: a command from before may be lost with its rings. In a
    /// session no command counts twice.
    fn order(
        &self,
        ring: Rank,
        sequence: Sequence,
        bytes: &[u8],
        patience: Duration,
    ) -> Result<Vec<u8>, CallError> {
        let began = Instant::now();
        let mut was_given = false;
        loop {
            match self.order_once((ring, bytes), sequence, (began, patience)) {
                Err(CallError::BeginsAnew) if began.elapsed() < patience => was_given = true,
                // The command that was given before may count.
                Err(CallError::Busy | CallError::BeginsAnew) if was_given => {
                    let waited = began.elapsed();
                    return Err(CallError::Timeout { sequence, waited });
                }
                answer => return answer,
            }
        }
    }

    fn order_once(
        &self,
        (ring, bytes): (Rank, &[u8]),
        sequence: Sequence,
        (began, patience): (Instant, Duration),
    ) -> Result<Vec<u8>, CallError> {
        let (answer, answered) = mpsc::sync_channel(1);
        let of = (self.id, sequence);
        // A client that has gone wants no answer.
        let then = move |what| drop(answer.try_send(what));
        let Some(name) = self.shared.wait(of, Box::new(then)) else {
            return Err(CallError::Stopped);
        };
        let submitted = loop {
            match self.shared.submit(ring, bytes) {
                Err(SubmitError::Full) if began.elapsed() < patience => {}
                submitted => break submitted,
            }
            // An answer at this point says that the replica has stopped, or begins anew.
            if let Ok(answer) = answered.recv_timeout(PAUSE) {
                return answer;
            }
        };
        let failed = match submitted {
            Ok(()) => match answered.recv_timeout(patience.saturating_sub(began.elapsed())) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Timeout) => CallError::Timeout {
                    sequence,
                    waited: began.elapsed(),
                },
                Err(RecvTimeoutError::Disconnected) => CallError::Stopped,
            },
            Err(SubmitError::Full) => CallError::Busy,
            Err(SubmitError::Unsupported) => CallError::NotOnRing,
            Err(SubmitError::TooLarge { .. }) => CallError::TooLarge,
            Err(_) => CallError::Stopped,
        };
        self.shared.give_up(of, name);
        Err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_in_other_rings_renews_its_session_now_and_then() {
        let now = Instant::now();
        assert!(is_due(None, now), "nobody knows");
        assert!(!is_due(Some(now), now));
        assert!(!is_due(Some(now), now + RENEW / 2));
        assert!(is_due(Some(now), now + RENEW));
    }
}
