//! The listener that gives the checkpoints of a replica to its peers.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rota_net::RpcConnection;
use rota_storage::acceptor::FileDir;
use rota_storage::checkpoint::Reading;

use crate::config::ReplicaConfig;
use crate::peers::{CHUNK, NEWEST, PART_BYTES, PATIENCE, SharedCheckpoints, locked, own};

/// The number of peers that are served at once, at most.
const MOST_SERVED: usize = 8;
/// The number of connections, at most, that have not proved yet which node they are from.
const MOST_ARRIVING: usize = 64;
/// The time between two looks for a connection.
const LOOK: Duration = Duration::from_millis(50);

/// Serves peers until it is dropped.
#[derive(Debug)]
pub(crate) struct CheckpointServer {
    stop: Arc<AtomicBool>,
    guests: Arc<Guests>,
    thread: Option<JoinHandle<Vec<JoinHandle<()>>>>,
}

/// Connections that peers have made, each of which has a thread.
#[derive(Debug, Default)]
struct Guests {
    connections: Mutex<BTreeMap<usize, TcpStream>>,
    arriving: AtomicUsize,
    served: AtomicUsize,
}

impl Guests {
    fn connections(&self) -> MutexGuard<'_, BTreeMap<usize, TcpStream>> {
        let connections = self.connections.lock();
        connections.unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckpointServer {
    /// Waits for peers at this replica's own address.
    pub(crate) fn open(
        config: &ReplicaConfig,
        shelf: &SharedCheckpoints,
    ) -> io::Result<Option<Self>> {
        let Some(address) = config.peers.get(&config.node).copied() else {
            return Ok(None);
        };
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (config, shelf) = (Arc::new(config.clone()), Arc::clone(shelf));
        let guests = Arc::new(Guests::default());
        let room = Room {
            config,
            shelf,
            guests: Arc::clone(&guests),
            stop: Arc::clone(&stop),
        };
        let thread = thread::Builder::new().name("rota-peers".to_owned());
        let thread = thread.spawn(move || room.wait_for_peers(&listener))?;
        Ok(Some(Self {
            stop,
            guests,
            thread: Some(thread),
        }))
    }
}

impl Drop for CheckpointServer {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        // Threads that have panicked count as ended: no peer is served any more.
        let threads = self.thread.take().map(JoinHandle::join);
        for connection in self.guests.connections().values() {
            // The shutdown ends the wait of the connection's thread.
            let _ = connection.shutdown(Shutdown::Both);
        }
        for thread in threads.and_then(Result::ok).unwrap_or_default() {
            let _ = thread.join();
        }
    }
}

/// The data that the threads of all connections need.
#[derive(Clone)]
struct Room {
    config: Arc<ReplicaConfig>,
    shelf: SharedCheckpoints,
    guests: Arc<Guests>,
    stop: Arc<AtomicBool>,
}

impl Room {
    /// Waits for peers until the stop; returns the threads that serve them.
    fn wait_for_peers(&self, listener: &TcpListener) -> Vec<JoinHandle<()>> {
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        for number in 0.. {
            let Some(stream) = self.next(listener) else {
                break;
            };
            threads.retain(|thread| !thread.is_finished());
            let is_full = self.guests.arriving.load(SeqCst) >= MOST_ARRIVING;
            let Some(copy) = stream.try_clone().ok().filter(|_| !is_full) else {
                continue;
            };
            self.guests.connections().insert(number, copy);
            self.guests.arriving.fetch_add(1, SeqCst);
            let room = self.clone();
            let serve = move || room.serve(number, stream);
            let thread = thread::Builder::new().name("rota-peer".to_owned());
            match thread.spawn(serve) {
                Ok(thread) => threads.push(thread),
                Err(_) => {
                    self.guests.arriving.fetch_sub(1, SeqCst);
                    self.guests.connections().remove(&number);
                }
            }
        }
        threads
    }

    /// The next connection; `None` after the stop.
    fn next(&self, listener: &TcpListener) -> Option<TcpStream> {
        while !self.stop.load(SeqCst) {
            match listener.accept() {
                Ok((stream, _)) => return Some(stream),
                Err(_) => thread::sleep(LOOK),
            }
        }
        None
    }

    fn serve(&self, number: usize, stream: TcpStream) {
        let talk = accept(stream, &self.config);
        self.guests.arriving.fetch_sub(1, SeqCst);
        // A connection takes a place only after it has proved which node it is from.
        let is_room = self.guests.served.fetch_add(1, SeqCst) < MOST_SERVED;
        let end = match talk {
            Ok(talk) if is_room => serve(talk, (&self.config, &self.shelf), &self.stop),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        self.guests.served.fetch_sub(1, SeqCst);
        self.guests.connections().remove(&number);
        if let Err(error) = end {
            tracing::debug!(%error, "a peer is served no more");
        }
    }
}

fn accept(stream: TcpStream, config: &ReplicaConfig) -> io::Result<RpcConnection> {
    stream.set_nonblocking(false)?;
    let keys = config.rings.common.keys().map_err(io::Error::other)?;
    let may = |node: NodeId| config.peers.contains_key(&node);
    RpcConnection::accept(stream, own(config), may, keys.as_ref(), PATIENCE)
}

/// Answers the requests of one peer until the peer goes.
fn serve(
    mut talk: RpcConnection,
    (config, shelf): (&ReplicaConfig, &SharedCheckpoints),
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut reading: Option<Reading<FileDir>> = None;
    let mut pace = Pace::new(config.recovery_bytes);
    while !stop.load(SeqCst) {
        let asked = talk.hear()?;
        match asked.split_first() {
            Some((&NEWEST, [])) => {
                let newest = locked(shelf).manifests().last().cloned();
                let encoded = newest.map_or(Vec::new(), |manifest| manifest.encode());
                let parts: Vec<&[u8]> = encoded.chunks(PART_BYTES).collect();
                talk.say(&(parts.len() as u32).to_le_bytes())?;
                parts.into_iter().try_for_each(|part| talk.say(part))?;
            }
            Some((&CHUNK, rest)) => {
                let (hash, index) = rest
                    .split_at_checked(32)
                    .ok_or(io::ErrorKind::InvalidData)?;
                let index: [u8; 4] = index.try_into().map_err(io::Error::other)?;
                let index = u32::from_le_bytes(index) as usize;
                if reading
                    .as_ref()
                    .is_none_or(|open| open.manifest().hash != *hash)
                {
                    reading = open(shelf, hash);
                }
                // A chunk that is damaged here may be sound elsewhere.
                let chunk = reading.as_ref().and_then(|open| open.chunk(index).ok()?);
                let chunk = chunk.unwrap_or_default();
                pace.wait(chunk.len(), stop);
                talk.say(&chunk)?;
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Ok(())
}

/// The state with this hash, if it is kept.
fn open(shelf: &SharedCheckpoints, hash: &[u8]) -> Option<Reading<FileDir>> {
    let shelf = locked(shelf);
    let manifest = shelf.manifests().find(|manifest| manifest.hash == *hash)?;
    shelf.read(manifest).ok()?
}

/// The limit of bytes a second for one peer.
struct Pace {
    rate: u64,
    began: Instant,
    sent: u64,
}

impl Pace {
    fn new(rate: u64) -> Self {
        Self {
            rate: rate.max(1),
            began: Instant::now(),
            sent: 0,
        }
    }

    /// Waits until these bytes may leave, or until the stop.
    fn wait(&mut self, bytes: usize, stop: &AtomicBool) {
        let due = Duration::from_secs_f64(self.sent as f64 / self.rate as f64);
        if due > self.began.elapsed() {
            while let Some(early) = due.checked_sub(self.began.elapsed())
                && !stop.load(SeqCst)
            {
                thread::sleep(early.min(LOOK));
            }
        } else if self.began.elapsed() > due + Duration::from_secs(1) {
            // A rate that was not used is not made up for.
            (self.began, self.sent) = (Instant::now(), 0);
        }
        self.sent += bytes as u64;
    }
}
