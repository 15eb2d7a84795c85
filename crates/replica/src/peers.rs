//! Checkpoints for other replicas of the partition, and from them.
//!
//! A replica that has been away for longer than its rings remember begins with the newest checkpoint of another one: it asks all for their newest
//! ones, takes the one that is furthest, and its chunks from all that have the same state. What has come stays, whatever happens meanwhile.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rota_core::contract::{Incarnation, NodeId, Process};
use rota_multiring::{Point, Resume};
use rota_net::Talk;
use rota_storage::acceptor::FileDir;
use rota_storage::checkpoint::{CheckpointError, Checkpoints, Incoming, Manifest, Reading};

use crate::config::ReplicaConfig;

/// What is asked for.
const NEWEST: u8 = 1;
const CHUNK: u8 = 2;

/// A peer has so long for each answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many peers are served at once.
const MOST_SERVED: usize = 8;
/// How often the door is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// A manifest comes in parts of this size, and has at most so many.
const PART_BYTES: usize = 1 << 20;
const MOST_PARTS: usize = 300;

/// The checkpoints of a replica, which it writes and its peers read.
pub(crate) type Shelf = Arc<Mutex<Checkpoints>>;

pub(crate) fn locked(shelf: &Shelf) -> MutexGuard<'_, Checkpoints> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who a replica is to its peers. A life of its own: nothing of an earlier one goes on.
fn own(config: &ReplicaConfig) -> (Process, u32) {
    let process = Process {
        node: config.node,
        incarnation: Incarnation(1),
    };
    (process, config.rings.common.cluster)
}

/// Serves peers until it is dropped.
#[derive(Debug)]
pub(crate) struct Door {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Waits for peers at this replica's own address.
    pub(crate) fn open(config: &ReplicaConfig, shelf: &Shelf) -> io::Result<Option<Self>> {
        let Some(address) = config.peers.get(&config.node).copied() else {
            return Ok(None);
        };
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (config, shelf) = (Arc::new(config.clone()), Arc::clone(shelf));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("rota-peers".to_owned());
        let thread =
            thread.spawn(move || wait_for_peers(&listener, (&config, &shelf), &stopped))?;
        Ok(Some(Self {
            stop,
            thread: Some(thread),
        }))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            // It has panicked, or it has not: nobody is served any more.
            let _ = thread.join();
        }
    }
}

fn wait_for_peers(
    listener: &TcpListener,
    (config, shelf): (&Arc<ReplicaConfig>, &Shelf),
    stop: &Arc<AtomicBool>,
) {
    let served = Arc::new(AtomicUsize::new(0));
    while !stop.load(SeqCst) {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(_) => {
                thread::sleep(LOOK);
                continue;
            }
        };
        if served.load(SeqCst) >= MOST_SERVED {
            continue;
        }
        served.fetch_add(1, SeqCst);
        let (config, shelf, stop) = (Arc::clone(config), Arc::clone(shelf), Arc::clone(stop));
        let done = Arc::clone(&served);
        let serve = move || {
            if let Err(error) = serve(stream, (&config, &shelf), &stop) {
                tracing::debug!(%error, "a peer is served no more");
            }
            done.fetch_sub(1, SeqCst);
        };
        if thread::Builder::new()
            .name("rota-peer".to_owned())
            .spawn(serve)
            .is_err()
        {
            served.fetch_sub(1, SeqCst);
        }
    }
}

/// Answers one peer until it goes.
fn serve(
    stream: TcpStream,
    (config, shelf): (&ReplicaConfig, &Shelf),
    stop: &AtomicBool,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let keys = config.rings.common.keys().map_err(io::Error::other)?;
    let may = |node: NodeId| config.peers.contains_key(&node);
    let mut talk = Talk::accept(stream, own(config), may, keys.as_ref(), PATIENCE)?;
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
                // What is damaged here may be sound elsewhere.
                let chunk = reading.as_ref().and_then(|open| open.chunk(index).ok()?);
                let chunk = chunk.unwrap_or_default();
                pace.wait(chunk.len());
                talk.say(&chunk)?;
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Ok(())
}

/// The state with this hash, if it is kept.
fn open(shelf: &Shelf, hash: &[u8]) -> Option<Reading<FileDir>> {
    let shelf = locked(shelf);
    let manifest = shelf.manifests().find(|manifest| manifest.hash == *hash)?;
    shelf.read(manifest).ok()?
}

/// So many bytes a second.
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

    /// Until so many more may leave.
    fn wait(&mut self, bytes: usize) {
        let due = Duration::from_secs_f64(self.sent as f64 / self.rate as f64);
        if let Some(early) = due.checked_sub(self.began.elapsed()) {
            thread::sleep(early);
        } else if self.began.elapsed() > due + Duration::from_secs(1) {
            // What was not used is not made up for.
            (self.began, self.sent) = (Instant::now(), 0);
        }
        self.sent += bytes as u64;
    }
}

/// A peer that answers, and its newest checkpoint.
struct Source {
    talk: Talk,
    manifest: Manifest,
    point: Point,
}

/// Why nothing came of it. What has come stays.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// No peer has a checkpoint that this replica can begin with.
    Nothing,
    /// All that had it have gone.
    Gone,
    /// It was told to stop.
    Stopped,
    /// The own disk, or what came was made up.
    Checkpoint(CheckpointError),
}

impl std::fmt::Display for FetchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("no other replica has a checkpoint to begin with"),
            Self::Gone => f.write_str("the replicas that have the checkpoint have gone"),
            Self::Stopped => f.write_str("it was stopped"),
            Self::Checkpoint(error) => error.fmt(f),
        }
    }
}

/// Gets the furthest checkpoint of the peers onto the shelf. How many bytes came.
pub(crate) fn fetch(
    config: &ReplicaConfig,
    shelf: &Shelf,
    stop: &AtomicBool,
) -> Result<u64, FetchError> {
    let own = locked(shelf)
        .manifests()
        .last()
        .and_then(|own| point_of(own));
    let mut sources = ask_all(config);
    // What is not further is forgotten as well.
    sources.retain(|source| own.is_none_or(|own| source.point > own));
    let furthest = sources.iter().max_by_key(|source| source.point);
    let furthest = furthest.ok_or(FetchError::Nothing)?.manifest.clone();
    sources.retain(|source| source.manifest.is_same_state(&furthest));
    let incoming = locked(shelf).receive(furthest);
    let mut incoming = incoming.map_err(FetchError::Checkpoint)?;
    let bytes = take_all(&mut incoming, sources.into(), stop)?;
    // It is read once more as a whole, which takes as long as it takes.
    let written = incoming.finish().map_err(FetchError::Checkpoint)?;
    let _ = locked(shelf).add(written);
    Ok(bytes)
}

/// All peers that have a checkpoint of this partition.
fn ask_all(config: &ReplicaConfig) -> Vec<Source> {
    let peers = config
        .peers
        .iter()
        .filter(|(node, _)| **node != config.node);
    let ask = |(node, address): (&NodeId, &SocketAddr)| match ask(config, (*node, *address)) {
        Ok(source) => source,
        Err(error) => {
            tracing::info!(%node, %address, %error, "no checkpoint from a replica");
            None
        }
    };
    peers.filter_map(ask).collect()
}

fn ask(config: &ReplicaConfig, peer: (NodeId, SocketAddr)) -> io::Result<Option<Source>> {
    let keys = config.rings.common.keys().map_err(io::Error::other)?;
    let mut talk = Talk::dial(own(config), peer, keys.as_ref(), PATIENCE)?;
    talk.say(&[NEWEST])?;
    let parts: [u8; 4] = talk
        .hear()?
        .try_into()
        .map_err(|_| io::ErrorKind::InvalidData)?;
    let parts = u32::from_le_bytes(parts) as usize;
    if parts == 0 {
        return Ok(None);
    }
    if parts > MOST_PARTS {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut encoded = Vec::new();
    for _ in 0..parts {
        encoded.extend(talk.hear()?);
    }
    let manifest = Manifest::decode(&encoded).map_err(io::Error::other)?;
    if manifest.of != config.subject() {
        return Err(io::Error::other(format!(
            "it has a checkpoint of partition {}",
            manifest.of.partition
        )));
    }
    let nowhere = || io::Error::other("its checkpoint does not say where it is");
    let point = point_of(&manifest).ok_or_else(nowhere)?;
    Ok(Some(Source {
        talk,
        manifest,
        point,
    }))
}

/// Where a checkpoint is.
fn point_of(manifest: &Manifest) -> Option<Point> {
    let resume = Resume::decode(Bytes::from(manifest.about.clone()))?;
    Some(resume.point)
}

/// Takes what is missing from all that have it, in turns.
fn take_all(
    incoming: &mut Incoming<FileDir>,
    mut sources: VecDeque<Source>,
    stop: &AtomicBool,
) -> Result<u64, FetchError> {
    let mut bytes = 0;
    let missing: Vec<usize> = incoming.missing().collect();
    for index in missing {
        loop {
            if stop.load(SeqCst) {
                return Err(FetchError::Stopped);
            }
            let mut source = sources.pop_front().ok_or(FetchError::Gone)?;
            let Some(chunk) = chunk_of(&mut source, index) else {
                continue;
            };
            sources.push_back(source);
            match incoming.put(index, &chunk) {
                Ok(()) => {
                    bytes += chunk.len() as u64;
                    break;
                }
                // It was damaged there: others may have it. Who has nothing else is left out.
                Err(CheckpointError::Chunk { .. }) => {
                    sources.pop_back();
                }
                Err(error) => return Err(FetchError::Checkpoint(error)),
            }
        }
    }
    Ok(bytes)
}

fn chunk_of(source: &mut Source, index: usize) -> Option<Vec<u8>> {
    let mut asked = vec![CHUNK];
    asked.extend_from_slice(&source.manifest.hash);
    asked.extend_from_slice(&(index as u32).to_le_bytes());
    source.talk.say(&asked).ok()?;
    source.talk.hear().ok()
}
