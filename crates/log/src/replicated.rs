//! The logs as a replicated state machine ([`rota_replica::Machine`]): entries go to the store, and a state refers to them.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rota_core::bytes::Reader;
use rota_replica::{Command, Frozen, Machine};
use rota_storage::acceptor::LogDisk;

use crate::machine::{Effect, Logs};
use crate::mutants::{self, Mutant};
use crate::store::{Mark, Store, Tails, lock};

/// The number of written states that may still be begun with, at most: those on the shelf, and some that did not get
/// there.
const KEPT: usize = 8;

/// The logs, their store, and the surroundings of the replica.
pub struct Replicated<D: LogDisk + 'static> {
    logs: Logs,
    store: Arc<Store<D>>,
    around: Box<dyn Around<D>>,
    /// The states that were written.
    written: Arc<Mutex<Written>>,
    view: View,
    /// The digest of a state of another replica, some of whose entries may not be here.
    lacks: Option<u64>,
    /// The number of messages and batches that could not be read.
    unreadable: Arc<AtomicU64>,
}

/// The logs as they were when the last command was done, for readers that do not wait for the next command.
#[derive(Clone, Default, Debug)]
pub struct View(Arc<Mutex<Logs>>);

impl View {
    /// A copy, which takes no time.
    pub fn now(&self) -> Logs {
        lock(&self.0).clone()
    }

    /// Looks at the logs.
    pub fn look<T>(&self, look: impl FnOnce(&Logs) -> T) -> T {
        look(&self.now())
    }
}

/// The surroundings of a replica.
pub trait Around<D: LogDisk + 'static>: Send {
    /// Hears that these logs have changed, by their names; none: all may have.
    fn changed(&self, logs: Option<&[Bytes]>);

    /// Gets all entries that the store does not have from other replicas, for as long as that takes.
    ///
    /// # Errors
    /// The disk's, or the process stops, or `still` says that nobody needs them any more: it is asked now and then.
    fn get_all(&self, store: &Store<D>, still: &dyn Fn() -> bool) -> io::Result<()>;

    /// Whether states of the store with this number, or the state with this digest, were told as ones that this replica
    /// has, with all of their entries.
    fn was_told(&self, _state: u64) -> bool {
        false
    }

    /// Notes that such states are told from now on.
    ///
    /// # Errors
    /// The disk's.
    fn tell(&self, _state: u64) -> io::Result<()> {
        Ok(())
    }
}

/// The states that were written.
#[derive(Default)]
struct Written {
    /// States, the oldest first.
    marks: VecDeque<Mark>,
    /// The newest tails that are known of this store.
    tails: Option<Tails>,
}

/// A state that does not change any more.
pub struct Kept<D: LogDisk + 'static> {
    logs: Logs,
    mark: Mark,
    store: Arc<Store<D>>,
    written: Arc<Mutex<Written>>,
}

impl<D: LogDisk + 'static> Replicated<D> {
    /// A machine without logs.
    pub fn new(store: Arc<Store<D>>, around: Box<dyn Around<D>>) -> Self {
        Self {
            logs: Logs::default(),
            store,
            around,
            written: Arc::default(),
            view: View::default(),
            lacks: None,
            unreadable: Arc::default(),
        }
    }

    /// The number of messages and batches that could not be read since this was made: they are of another version. It
    /// stays up to date.
    pub fn unreadable(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.unreadable)
    }

    /// A view of its logs, which stays up to date.
    pub fn view(&self) -> View {
        self.view.clone()
    }

    /// The logs, but for their entries.
    pub const fn logs(&self) -> &Logs {
        &self.logs
    }
}

impl<D: LogDisk + 'static> Machine for Replicated<D> {
    type Frozen = Kept<D>;

    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        let Some(applied) = self.logs.apply(command.place, command.bytes) else {
            self.unreadable.fetch_add(1, Relaxed);
            return Vec::new();
        };
        self.unreadable.fetch_add(applied.unreadable, Relaxed);
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
        *lock(&self.view.0) = self.logs.clone();
        self.around.changed(Some(&applied.changed));
        applied.answers
    }

    fn freeze(&mut self) -> Kept<D> {
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
        let none = || io::Error::new(io::ErrorKind::InvalidData, "it is no state of logs");
        let (logs, tails) = decode(&bytes).ok_or_else(none)?;
        let heads = logs.iter().map(|(_, log)| (log.id, log.first, log.next));
        let heads: Vec<_> = heads.collect();
        let is_own = tails.store() == self.store.id();
        // The state is of the own store; or of the own one before it was lost, or of another one of which this replica
        // had all.
        let digest = u64::from(crc_fast::crc32_iscsi(&bytes)) | (bytes.len() as u64) << 32;
        let was_told =
            is_own || self.around.was_told(tails.store()) || self.around.was_told(digest);
        let known = match is_own {
            true => Some(tails),
            false => self.known_tails(),
        };
        let missing = self.store.begin(&heads, known.as_ref())?;
        *lock(&self.written) = Written {
            tails: known,
            ..Written::default()
        };
        self.logs = logs;
        *lock(&self.view.0) = self.logs.clone();
        self.around.changed(None);
        self.lacks = (!was_told).then_some(digest);
        if was_told && !missing.is_empty() {
            // Entries that were lost since come from others meanwhile.
            let ranges = missing.len();
            tracing::error!(
                ranges,
                "entries are not there any more: others are asked for them"
            );
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.lacks.is_none()
    }

    fn complete(&mut self, still: &dyn Fn() -> bool) -> io::Result<()> {
        let Some(digest) = self.lacks else {
            return Ok(());
        };
        // Others may forget entries that this replica says it has.
        if !mutants::on(Mutant::D07) {
            self.around.get_all(&self.store, still)?;
        }
        let tails = self.store.sync(self.store.mark())?;
        if let Err(error) = self.store.keep_tails(&tails) {
            tracing::warn!(%error, "after a restart all entries are looked through");
        }
        lock(&self.written).tails = Some(tails);
        self.around.tell(digest)?;
        self.lacks = None;
        Ok(())
    }
}

impl<D: LogDisk + 'static> Replicated<D> {
    /// The newest tails that are known of this store.
    fn known_tails(&self) -> Option<Tails> {
        let known = lock(&self.written).tails.clone();
        known.or_else(|| self.store.kept_tails())
    }
}

/// Writes the number of bytes and the bytes: a state may have more than 4 GiB.
fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take<'a>(bytes: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(bytes.u64()?).ok()?;
    let (taken, rest) = bytes.0.split_at_checked(length)?;
    bytes.0 = rest;
    Some(taken)
}

fn decode(bytes: &[u8]) -> Option<(Logs, Tails)> {
    let mut bytes = Reader(bytes);
    let mut logs = Reader(take(&mut bytes)?);
    let tails = take(&mut bytes)?;
    let is_all = bytes.0.is_empty();
    let decoded = Logs::decode(&mut logs)?;
    (is_all && logs.0.is_empty()).then_some((decoded, Tails::decode(tails)?))
}

impl<D: LogDisk + 'static> Frozen for Kept<D> {
    fn write(self, out: &mut dyn io::Write) -> io::Result<()> {
        let tails = self.store.sync(self.mark)?;
        let (mut logs, mut of) = (Vec::new(), Vec::new());
        self.logs.encode(&mut logs);
        tails.encode(&mut of);
        let mut bytes = Vec::with_capacity(16 + logs.len() + of.len());
        put(&mut bytes, &logs);
        put(&mut bytes, &of);
        out.write_all(&bytes)?;
        let mut written = lock(&self.written);
        written.tails = Some(tails);
        written.marks.push_back(self.mark);
        if written.marks.len() > KEPT
            && let Some(old) = written.marks.pop_front()
        {
            self.store.settle(old);
        }
        Ok(())
    }
}
