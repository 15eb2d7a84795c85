//! A transaction that has begun.

use rota_front::command::error;
use rota_resp::Reply;

use super::work::Task;
use crate::store::MOST_BATCH_BYTES;

/// The number of commands of a transaction, at most.
const MOST_QUEUED: usize = 10_000;

/// The commands of a transaction. They have no more bytes than may be ordered at once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    tasks: Vec<Task>,
    bytes: usize,
    /// A command was refused: no command of the transaction is done.
    is_broken: bool,
}

impl Queue {
    /// Refuses the transaction: none of its commands is done, and none is kept.
    pub(super) fn refuse(&mut self) {
        *self = Self {
            is_broken: true,
            ..Self::default()
        };
    }

    /// The bytes of its commands.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its commands, if none was refused.
    pub(super) fn tasks(self) -> Option<Vec<Task>> {
        (!self.is_broken).then_some(self.tasks)
    }

    /// Adds a command; the reply to it.
    pub(super) fn push(&mut self, task: Task) -> Reply {
        if self.is_broken {
            return Reply::Simple("QUEUED");
        }
        if self.tasks.len() >= MOST_QUEUED {
            self.refuse();
            return error("ERR a transaction has no more than 10000 commands");
        }
        self.bytes += task.bytes();
        if self.bytes > MOST_BATCH_BYTES {
            self.refuse();
            return error("ERR a transaction has no more than 1 MiB");
        }
        self.tasks.push(task);
        Reply::Simple("QUEUED")
    }
}
