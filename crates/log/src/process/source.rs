//! The source of entries that this process does not have: the other processes.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rota_core::contract::{NodeId, Process};
use rota_net::{KeyRing, RpcConnection};
use rota_storage::acceptor::FileDir;

use super::lock;
use crate::machine::Position;
use crate::store::{Missing, Run, Store};

/// The time that a process has for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before others are asked again.
const AGAIN: Duration = Duration::from_millis(200);
/// The time for which a process that did not answer is asked last.
const SILENT: Duration = Duration::from_secs(10);
/// The time between two warnings that no process gives entries.
const SAY: Duration = Duration::from_secs(5);
/// The bytes that are asked for at once.
pub(super) const MOST_BYTES: u32 = 1 << 20;

/// A question, as four numbers: `u64` each, but for the last one, a `u32`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ask {
    /// The number of a log.
    pub(super) log: u64,
    /// The first position.
    pub(super) from: Position,
    /// The position behind the last.
    pub(super) to: Position,
    /// The number of bytes, about.
    pub(super) most: u32,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// Entries, as the store has them.
    Run(Bytes),
    /// The entries were trimmed: this is the first position that is kept.
    Trimmed(Position),
    /// The process does not have the entries, either.
    Nothing,
    /// The rings of the process's configuration.
    Configuration(Vec<u16>),
}

impl Ask {
    /// The question for the configuration: no log has this number.
    pub(super) const CONFIGURATION: Self = Self {
        log: 0,
        from: 0,
        to: 0,
        most: 0,
    };

    pub(super) fn encode(&self) -> Vec<u8> {
        let numbers = [self.log, self.from, self.to];
        let mut out: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        out.extend(self.most.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = rota_core::bytes::Reader(bytes);
        let ask = Self {
            log: bytes.u64()?,
            from: bytes.u64()?,
            to: bytes.u64()?,
            most: bytes.u32()?,
        };
        bytes.0.is_empty().then_some(ask)
    }
}

impl Told {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Run(run) => [&[0], &run[..]].concat(),
            Self::Trimmed(first) => [&[1], &first.to_le_bytes()[..]].concat(),
            Self::Nothing => vec![2],
            Self::Configuration(rings) => {
                let rings = rings.iter().flat_map(|ring| ring.to_le_bytes());
                [3].into_iter().chain(rings).collect()
            }
        }
    }

    pub(super) fn decode(bytes: Vec<u8>) -> Option<Self> {
        let bytes = Bytes::from(bytes);
        Some(match (bytes.first()?, bytes.len()) {
            (0, _) => Self::Run(bytes.slice(1..)),
            (1, 9) => Self::Trimmed(u64::from_le_bytes(bytes[1..].try_into().ok()?)),
            (2, 1) => Self::Nothing,
            (3, _) => {
                let (rings, rest) = bytes[1..].as_chunks::<2>();
                let rings = rings.iter().map(|ring| u16::from_le_bytes(*ring));
                rest.is_empty()
                    .then(|| Self::Configuration(rings.collect()))?
            }
            _ => return None,
        })
    }
}

/// The other processes, with connections to them.
pub(super) struct Source {
    own: (Process, u32),
    keys: Option<KeyRing>,
    others: Vec<(NodeId, SocketAddr)>,
    /// Connections that are not in use, by process; and processes that did not answer of late, with the time: they are
    /// asked last.
    idle: Mutex<Vec<(usize, RpcConnection)>>,
    silent: Mutex<HashMap<usize, Instant>>,
    /// Files that are being repaired, by log and first position.
    repairs: Mutex<HashSet<(u64, Position)>>,
    /// The process stops.
    pub(super) stop: AtomicBool,
    /// The bytes of entries that came.
    pub(super) bytes: AtomicU64,
}

impl Source {
    pub(super) fn new(
        own: (Process, u32),
        keys: Option<KeyRing>,
        others: Vec<(NodeId, SocketAddr)>,
    ) -> Self {
        Self {
            own,
            keys,
            others,
            idle: Mutex::default(),
            silent: Mutex::default(),
            repairs: Mutex::default(),
            stop: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
        }
    }

    fn talk(&self, which: usize) -> io::Result<RpcConnection> {
        let mut idle = lock(&self.idle);
        if let Some(at) = idle.iter().position(|(of, _)| *of == which) {
            return Ok(idle.swap_remove(at).1);
        }
        drop(idle);
        RpcConnection::dial(self.own, self.others[which], self.keys.as_ref(), PATIENCE)
    }

    fn ask(&self, which: usize, ask: &Ask) -> io::Result<Told> {
        let told = self.talk(which).and_then(|mut talk| {
            talk.say(&ask.encode())?;
            let told = Told::decode(talk.hear()?);
            let told = told.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
            lock(&self.idle).push((which, talk));
            Ok(told)
        });
        match &told {
            Ok(_) => drop(lock(&self.silent).remove(&which)),
            Err(_) => drop(lock(&self.silent).insert(which, Instant::now())),
        }
        told
    }

    /// The processes in the order in which to ask: those that did not answer of late come last.
    fn order(&self) -> Vec<usize> {
        let silent = lock(&self.silent);
        let is_silent = |which: &usize| {
            let since = silent.get(which);
            since.is_some_and(|since| since.elapsed() < SILENT)
        };
        let mut order: Vec<usize> = (0..self.others.len()).collect();
        order.sort_by_key(is_silent);
        order
    }

    /// The configured rings of all other processes that answer.
    pub(super) fn configurations(&self) -> Vec<(NodeId, Vec<u16>)> {
        let all =
            (0..self.others.len()).filter_map(|which| match self.ask(which, &Ask::CONFIGURATION) {
                Ok(Told::Configuration(rings)) => Some((self.others[which].0, rings)),
                _ => None,
            });
        all.collect()
    }

    /// Some of these entries, from the first on, if any process has them. The call blocks.
    pub(super) fn some(&self, log: u64, from: Position, to: Position) -> Told {
        let ask = Ask {
            log,
            from,
            to,
            most: MOST_BYTES,
        };
        for which in self.order() {
            if self.stop.load(SeqCst) {
                break;
            }
            match self.ask(which, &ask) {
                Ok(Told::Nothing | Told::Configuration(_)) | Err(_) => {}
                Ok(Told::Run(bytes)) => match Run::check(log, from, bytes) {
                    Ok(run) => {
                        self.bytes.fetch_add(run.bytes().len() as u64, SeqCst);
                        return Told::Run(run.into_bytes());
                    }
                    Err(error) => {
                        tracing::error!(%error, "another process has told entries that are none")
                    }
                },
                Ok(told @ Told::Trimmed(_)) => return told,
            }
        }
        Told::Nothing
    }

    /// Gets all entries that a store does not have, until it has them or the process stops.
    ///
    /// # Errors
    /// The process stops.
    pub(super) fn get_all(&self, store: &Store<FileDir>) -> io::Result<()> {
        let mut said: Option<Instant> = None;
        loop {
            let missing = store.missing();
            let Some(first) = missing.first() else {
                return Ok(());
            };
            if self.stop.load(SeqCst) {
                return Err(io::Error::other("it is to stop"));
            }
            match self.get(store, first) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "entries that came cannot be written"),
            }
            if said.is_none_or(|said| said.elapsed() > SAY) {
                said = Some(Instant::now());
                let (log, from, to) = (first.log, first.from, first.to);
                tracing::warn!(
                    log,
                    from,
                    to,
                    "no other process gives entries that are needed"
                );
            }
            thread::sleep(AGAIN);
        }
    }

    /// Gets some entries that a store does not have. `false`: no process gives them.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn get(&self, store: &Store<FileDir>, missing: &Missing) -> io::Result<bool> {
        match self.some(missing.log, missing.from, missing.to) {
            Told::Run(bytes) => match Run::check(missing.log, missing.from, bytes) {
                Ok(run) => store.fill(&run).map(|()| true),
                Err(_) => Ok(false),
            },
            Told::Trimmed(first) if first > missing.from => {
                trim(store, missing.log, first);
                Ok(true)
            }
            Told::Trimmed(_) | Told::Nothing | Told::Configuration(_) => Ok(false),
        }
    }

    /// The turn to repair a file: one at a time.
    fn turn(&self, of: (u64, Position)) -> Option<Turn<'_>> {
        // A turn that is made and dropped would end that of another thread.
        let is_mine = lock(&self.repairs).insert(of);
        is_mine.then(|| Turn { source: self, of })
    }

    /// Repairs a file that was found damaged. `false`: no process gives the entries.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn repair(
        &self,
        store: &Store<FileDir>,
        (log, from, to): (u64, Position, Position),
    ) -> io::Result<bool> {
        let Some(_turn) = self.turn((log, from)) else {
            // Another thread repairs the file now.
            return Ok(false);
        };
        let Some(mut repair) = store.repair(log, from, to)? else {
            // Another thread has repaired the file, or it was trimmed.
            return Ok(true);
        };
        loop {
            let (next, to) = repair.wanted();
            if next >= to {
                return repair.finish();
            }
            match self.some(log, next, to) {
                Told::Run(bytes) => match Run::check(log, next, bytes) {
                    Ok(run) => repair.add(&run)?,
                    Err(_) => return Ok(false),
                },
                Told::Trimmed(first) if first > next => {
                    trim(store, log, first);
                    return Ok(true);
                }
                Told::Trimmed(_) | Told::Nothing | Told::Configuration(_) => return Ok(false),
            }
        }
    }
}

/// The turn to repair a file, until this is dropped.
struct Turn<'a> {
    source: &'a Source,
    of: (u64, Position),
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.source.repairs).remove(&self.of);
    }
}

/// Trims entries that another process does not have any more: the command that has trimmed them comes here, too.
fn trim(store: &Store<FileDir>, log: u64, first: Position) {
    match first {
        Position::MAX => store.delete(log),
        first => store.trim(log, first),
    }
}
