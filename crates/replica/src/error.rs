//! The errors of a replica.

use std::fmt;
use std::io;
use std::time::Duration;

use rota_node::rings::RingsStartError;
use rota_storage::checkpoint::CheckpointError;

use crate::sessions::Sequence;

/// The reason why a replica did not start.
#[derive(Debug)]
pub enum StartError {
    /// Its checkpoints cannot be opened or read.
    Checkpoint(CheckpointError),
    /// The newest checkpoint does not tell its place in the order as this version writes it.
    About,
    /// Its newest checkpoint is of other rings than the configuration says, or in other places of the order.
    Subscription {
        /// The rings of the checkpoint.
        has: Vec<u16>,
        /// The rings of the configuration.
        wanted: Vec<u16>,
    },
    /// The machine does not take the state of its newest checkpoint.
    Install(io::Error),
    /// Its rings did not start.
    Rings(RingsStartError),
    /// The system does not give it a thread, or a random number.
    System(io::Error),
}

impl StartError {
    /// Whether the newest checkpoint is the reason, so that no attempt can succeed with it.
    pub(crate) fn is_of_the_state(&self) -> bool {
        match self {
            Self::Install(error) => matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            ),
            Self::About | Self::Subscription { .. } => true,
            Self::Rings(error) => matches!(error, RingsStartError::State(_)),
            Self::Checkpoint(_) | Self::System(_) => false,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkpoint(error) => error.fmt(f),
            Self::About => f.write_str(
                "the newest checkpoint does not say where in the order it is: another version of this program wrote it",
            ),
            Self::Subscription { has, wanted } => write!(
                f,
                "the newest checkpoint is of rings {has:?}, and the configuration says {wanted:?}: replicas of one partition have the same \
                 rings for ever; give it the old ones back, or begin the partition anew"
            ),
            Self::Install(error) => {
                write!(f, "the state of the newest checkpoint is not taken: {error}")
            }
            Self::Rings(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl From<RingsStartError> for StartError {
    fn from(error: RingsStartError) -> Self {
        Self::Rings(error)
    }
}

impl From<CheckpointError> for StartError {
    fn from(error: CheckpointError) -> Self {
        Self::Checkpoint(error)
    }
}

/// The reason why a client has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// The ring cannot take more just now. The command is not ordered.
    Busy,
    /// The command is longer than the ring takes. It is not ordered.
    TooLarge,
    /// This replica's node is not on the ring. The command is not ordered.
    NotOnRing,
    /// The answer did not come in time. Whether the command counts is not known: [`crate::Client::again`] finds out.
    Timeout {
        /// The number of the command in the session.
        sequence: Sequence,
        /// The time for which the client waited.
        waited: Duration,
    },
    /// The session was given up for sessions that were used later. The command does not count; one that was given before
    /// may.
    Expired,
    /// The command is not remembered, after many later commands of the session, or its answer is not, which had to make
    /// way for others. Whether it counts is not known.
    Forgotten,
    /// The replica begins anew with the state of another one. Whether the command counts is not known. [`crate::Client`] gives it again by itself.
    BeginsAnew,
    /// The replica has stopped. Whether the command counts is not known.
    Stopped,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("the ring takes no more just now: try again"),
            Self::TooLarge => f.write_str("the command is longer than the ring takes"),
            Self::NotOnRing => f.write_str("this replica's node is not on that ring"),
            Self::Timeout { sequence, waited } => write!(
                f,
                "no answer to command {sequence} within {waited:?}: it may count or not"
            ),
            Self::Expired => f.write_str("the session was given up: the command may count or not"),
            Self::Forgotten => {
                f.write_str("the command is too old to be known: it may count or not")
            }
            Self::BeginsAnew => f.write_str(
                "the replica begins anew with the state of another one: the command may count or not",
            ),
            Self::Stopped => f.write_str("the replica has stopped: the command may count or not"),
        }
    }
}

impl std::error::Error for CallError {}
