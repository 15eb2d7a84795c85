//! The logs as a replicated state machine: entries go to the store, and a state refers to them.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use rota_core::bytes::{Reader, put_bytes, take_bytes};
use rota_replica::{Command, Frozen, Machine};
use rota_storage::acceptor::FileDir;

use super::lock;
use super::source::Source;
use super::waiters::Waiters;
use crate::machine::{Effect, Logs};
use crate::store::{Mark, Store, Tails};

/// So many states are kept beside the newest one, at most.
const KEPT: usize = 3;

/// See the module's page.
pub(super) struct LogMachine {
    logs: Logs,
    store: Arc<Store<FileDir>>,
    waiters: Waiters,
    source: Arc<Source>,
    /// Which states were written.
    written: Arc<Mutex<VecDeque<Mark>>>,
}

/// A state that does not change any more.
pub(super) struct Kept {
    logs: Logs,
    mark: Mark,
    store: Arc<Store<FileDir>>,
    written: Arc<Mutex<VecDeque<Mark>>>,
}

impl LogMachine {
    pub(super) fn new(store: Arc<Store<FileDir>>, waiters: Waiters, source: Arc<Source>) -> Self {
        Self {
            logs: Logs::default(),
            store,
            waiters,
            source,
            written: Arc::default(),
        }
    }

    pub(super) const fn logs(&self) -> &Logs {
        &self.logs
    }
}

impl Machine for LogMachine {
    type Frozen = Kept;

    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        let Some(applied) = self.logs.apply(command.place, command.bytes) else {
            return Vec::new();
        };
        for effect in applied.effects {
            match effect {
                Effect::Append(run) => {
                    let (log, first) = (run.log(), run.first());
                    let count = (run.next() - first) as u32;
                    self.store.append(log, first, count, run.into_bytes());
                }
                Effect::Trim(log, first) => self.store.trim(log, first),
                Effect::Delete(log) => self.store.delete(log),
            }
        }
        self.waiters.wake(&applied.changed);
        applied.answers
    }

    fn freeze(&mut self) -> Kept {
        Kept {
            logs: self.logs.clone(),
            mark: self.store.mark(),
            store: Arc::clone(&self.store),
            written: Arc::clone(&self.written),
        }
    }

    fn install(&mut self, state: &mut dyn io::Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        let none = || io::Error::other("it is no state of logs");
        let (logs, tails) = decode(&bytes).ok_or_else(none)?;
        let heads = logs.iter().map(|(_, log)| (log.id, log.first, log.next));
        let heads: Vec<_> = heads.collect();
        let missing = self.store.begin(&heads, Some(&tails))?;
        lock(&self.written).clear();
        self.logs = logs;
        self.waiters.wake_all();
        if missing.is_empty() {
            return Ok(());
        }
        if tails.store() == self.store.id() {
            // The state was this replica's own, and has been told as that: what is damaged since is got meanwhile.
            tracing::error!(
                ranges = missing.len(),
                "entries are not there any more: others are asked for them"
            );
            return Ok(());
        }
        // Others may forget what this replica says that it has.
        self.source.get_all(&self.store)?;
        self.store.sync(self.store.mark()).map(drop)
    }
}

fn decode(bytes: &[u8]) -> Option<(Logs, Tails)> {
    let mut bytes = Reader(bytes);
    let mut logs = Reader(take_bytes(&mut bytes)?);
    let tails = take_bytes(&mut bytes)?;
    let is_all = bytes.0.is_empty();
    let decoded = Logs::decode(&mut logs)?;
    (is_all && logs.0.is_empty()).then_some((decoded, Tails::decode(tails)?))
}

impl Frozen for Kept {
    fn write(self, out: &mut dyn io::Write) -> io::Result<()> {
        let tails = self.store.sync(self.mark)?;
        let (mut logs, mut of) = (Vec::new(), Vec::new());
        self.logs.encode(&mut logs);
        tails.encode(&mut of);
        let mut bytes = Vec::with_capacity(8 + logs.len() + of.len());
        put_bytes(&mut bytes, &logs);
        put_bytes(&mut bytes, &of);
        out.write_all(&bytes)?;
        let mut written = lock(&self.written);
        written.push_back(self.mark);
        if written.len() > KEPT
            && let Some(old) = written.pop_front()
        {
            self.store.settle(old);
        }
        Ok(())
    }
}
