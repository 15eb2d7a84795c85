//! The source of entries that this process does not have: the other processes.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::{NodeId, Process};
use rota_front::rings::Lookout;
use rota_net::{KeyRing, RpcConnection};
use rota_storage::acceptor::FileDir;

use super::lock;
use super::question::{Ask, MOST_BYTES, Told};
use crate::config::PARTITION;
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

/// The other processes, with connections to them.
pub(super) struct Source {
    own: (Process, u32),
    keys: Option<KeyRing>,
    others: Vec<(NodeId, SocketAddr)>,
    /// The replicas, for whoever asks whether they are there: all processes have the only partition.
    pub(super) lookout: Lookout,
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
        // Nobody asks this process at its address.
        let here = (own.0.node, SocketAddr::from(([0; 4], 0)));
        let all = others.iter().copied().chain([here]);
        let replicas = all.map(|(node, address)| (PARTITION, node, address));
        let lookout = Lookout::new(own, keys.clone(), replicas.collect());
        Self {
            own,
            keys,
            others,
            lookout,
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
        let others = self.others.iter().enumerate();
        let all = others.filter_map(|(at, (other, _))| match self.ask(at, &Ask::CONFIGURATION) {
            Ok(Told::Configuration(rings)) => Some((*other, rings)),
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

    /// Gets all entries that a store does not have, until it has them, the process stops, or `still` says that nobody
    /// needs them any more.
    ///
    /// # Errors
    /// It was not to go on.
    pub(super) fn get_all(
        &self,
        store: &Store<FileDir>,
        still: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let (mut said, mut failed): (Option<Instant>, usize) = (None, 0);
        loop {
            let missing = store.missing();
            if missing.is_empty() {
                return Ok(());
            }
            // Entries that nobody gives now do not hold up others.
            let next = &missing[failed % missing.len()];
            if self.stop.load(SeqCst) || !still() {
                return Err(io::Error::other("it is not to go on"));
            }
            match self.get(store, next) {
                Ok(true) => continue,
                Ok(false) => failed += 1,
                Err(error) => {
                    failed += 1;
                    tracing::error!(%error, "entries that came cannot be written");
                }
            }
            if failed % missing.len() > 0 {
                continue;
            }
            if said.is_none_or(|said| said.elapsed() > SAY) {
                said = Some(Instant::now());
                let (log, from, to) = (next.log, next.from, next.to);
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
