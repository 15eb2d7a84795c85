//! A transaction that has begun.

use rota_front::command::error;
use rota_resp::Reply;

use super::work::Task;
use crate::store::MOST_BATCH_BYTES;

/// It has so many commands at most.
const MOST_QUEUED: usize = 10_000;

/// See the module's page. It has no more bytes than may be ordered at once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    tasks: Vec<Task>,
    bytes: usize,
    /// A command was refused: none of them is done.
    is_broken: bool,
}

impl Queue {
    /// None of its commands is done, and none is kept.
    pub(super) fn refuse(&mut self) {
        *self = Self {
            is_broken: true,
            ..Self::default()
        };
    }

    /// What it keeps.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its commands, if all of them are done.
    pub(super) fn tasks(self) -> Option<Vec<Task>> {
        (!self.is_broken).then_some(self.tasks)
    }

    /// One more, and what is told.
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
