//! Gives a replica's checkpoints to its peers.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rota_net::Talk;
use rota_storage::acceptor::FileDir;
use rota_storage::checkpoint::Reading;

use crate::config::ReplicaConfig;
use crate::peers::{CHUNK, NEWEST, PART_BYTES, PATIENCE, Shelf, locked, own};

/// So many peers are served at once.
const MOST_SERVED: usize = 8;
/// So many may be about to prove who they are.
const MOST_ARRIVING: usize = 64;
/// How often the door is looked at.
const LOOK: Duration = Duration::from_millis(50);

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
    let (arriving, served) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    while !stop.load(SeqCst) {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(_) => {
                thread::sleep(LOOK);
                continue;
            }
        };
        if arriving.load(SeqCst) >= MOST_ARRIVING {
            continue;
        }
        arriving.fetch_add(1, SeqCst);
        let (config, shelf, stop) = (Arc::clone(config), Arc::clone(shelf), Arc::clone(stop));
        let (here, served) = (Arc::clone(&arriving), Arc::clone(&served));
        let serve = move || {
            let talk = accept(stream, &config);
            here.fetch_sub(1, SeqCst);
            // Whoever has proved nothing takes nobody's place.
            let is_room = served.fetch_add(1, SeqCst) < MOST_SERVED;
            let end = match talk {
                Ok(talk) if is_room => serve(talk, (&config, &shelf), &stop),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            served.fetch_sub(1, SeqCst);
            if let Err(error) = end {
                tracing::debug!(%error, "a peer is served no more");
            }
        };
        let thread = thread::Builder::new().name("rota-peer".to_owned());
        if thread.spawn(serve).is_err() {
            arriving.fetch_sub(1, SeqCst);
        }
    }
}

fn accept(stream: TcpStream, config: &ReplicaConfig) -> io::Result<Talk> {
    stream.set_nonblocking(false)?;
    let keys = config.rings.common.keys().map_err(io::Error::other)?;
    let may = |node: NodeId| config.peers.contains_key(&node);
    Talk::accept(stream, own(config), may, keys.as_ref(), PATIENCE)
}

/// Answers one peer until it goes.
fn serve(
    mut talk: Talk,
    (config, shelf): (&ReplicaConfig, &Shelf),
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
