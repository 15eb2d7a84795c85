//! Checkpoints for other replicas of the partition, and from them.
//!
//! A replica that has been away for longer than its rings remember begins with the newest checkpoint of another one: it
//! asks all for their newest ones, takes the one that is furthest, and its chunks from all that have the same state.
//! Chunks that have come stay on the disk, also over a failure or a restart.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rota_core::contract::{Incarnation, NodeId, Process};
use rota_multiring::Resume;
use rota_net::RpcConnection;
use rota_storage::acceptor::FileDir;
use rota_storage::checkpoint::{CHUNK_BYTES, CheckpointError, Checkpoints, Incoming, Manifest};

use crate::config::ReplicaConfig;

/// The requests: for the newest manifest, and for a chunk.
pub(crate) const NEWEST: u8 = 1;
pub(crate) const CHUNK: u8 = 2;

/// The time that a peer has for each answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two looks at whether the checkpoint that comes is still of use.
const LOOK: Duration = Duration::from_secs(10);
/// The size of the parts of a manifest, and their number, at most.
pub(crate) const PART_BYTES: usize = 1 << 20;
const MOST_PARTS: usize = 300;

/// The checkpoints of a replica, which it writes and its peers read.
pub(crate) type SharedCheckpoints = Arc<Mutex<Checkpoints>>;

pub(crate) fn locked(shelf: &SharedCheckpoints) -> MutexGuard<'_, Checkpoints> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process that a replica is to its peers. The incarnation is always the same: no state of a connection outlives
/// it.
pub(crate) fn own(config: &ReplicaConfig) -> (Process, u32) {
    let process = Process {
        node: config.node,
        incarnation: Incarnation(1),
    };
    (process, config.rings.common.cluster)
}

/// A peer that answers, and its newest checkpoint.
struct Source {
    peer: (NodeId, SocketAddr),
    talk: RpcConnection,
    manifest: Manifest,
    resume: Resume,
}

impl Source {
    /// Gets a chunk. A peer closes a connection that asks for nothing for long, as while chunks that came before are
    /// read: then this connects once more.
    fn chunk(&mut self, config: &ReplicaConfig, index: usize) -> io::Result<Vec<u8>> {
        let mut asked = vec![CHUNK];
        asked.extend_from_slice(&self.manifest.hash);
        asked.extend_from_slice(&(index as u32).to_le_bytes());
        ask_for(&mut self.talk, &asked).or_else(|_| {
            self.talk = dial(config, self.peer)?;
            ask_for(&mut self.talk, &asked)
        })
    }
}

fn ask_for(talk: &mut RpcConnection, what: &[u8]) -> io::Result<Vec<u8>> {
    talk.say(what)?;
    talk.hear()
}

fn dial(config: &ReplicaConfig, peer: (NodeId, SocketAddr)) -> io::Result<RpcConnection> {
    let keys = config.rings.common.keys().map_err(io::Error::other)?;
    RpcConnection::dial(own(config), peer, keys.as_ref(), PATIENCE)
}

/// The reason why no checkpoint came. Chunks that have come stay.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// No peer has a checkpoint that this replica can begin with.
    Nothing,
    /// All peers that had the checkpoint have gone.
    Gone,
    /// The instances behind the checkpoint are forgotten by now.
    Forgotten,
    /// The replica was told to stop.
    Stopped,
    /// The own disk failed, or the chunks are not those of the manifest.
    Checkpoint(CheckpointError),
}

impl std::fmt::Display for FetchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("no other replica has a checkpoint to begin with"),
            Self::Gone => f.write_str("the replicas that have the checkpoint have gone"),
            Self::Forgotten => f.write_str("what follows the checkpoint is forgotten by now"),
            Self::Stopped => f.write_str("it was stopped"),
            Self::Checkpoint(error) => error.fmt(f),
        }
    }
}

/// The tests of whether a checkpoint helps, given its place.
pub(crate) struct Watch<'a> {
    /// The test before any chunk comes.
    pub(crate) begin: &'a dyn Fn(&Resume) -> bool,
    /// The test while chunks come.
    pub(crate) still: &'a dyn Fn(&Resume) -> bool,
}

/// Gets the furthest checkpoint of the peers onto the shelf; the bytes that came. `watch` is asked about its place
/// before any chunk comes, and while chunks come.
pub(crate) fn fetch(
    (config, shelf): (&ReplicaConfig, &SharedCheckpoints),
    watch: &Watch<'_>,
    stop: &AtomicBool,
) -> Result<u64, FetchError> {
    let own = newest_of(shelf);
    if let Some((manifest, resume)) = broken_off(config, shelf, own.as_ref())
        && (watch.begin)(&resume)
    {
        let mut sources = ask_all(config, stop);
        // The old checkpoint may not be the newest of the peers, but they may have it all the same.
        let is_it = |source: &mut Source| source.manifest = manifest.clone();
        sources.iter_mut().for_each(is_it);
        match take_one((config, shelf), (manifest, watch), sources, stop) {
            Err(FetchError::Stopped) => return Err(FetchError::Stopped),
            // The old checkpoint is of no use any more.
            Err(_) => {}
            Ok(bytes) => return Ok(bytes),
        }
    }
    let mut sources = ask_all(config, stop);
    // A checkpoint that is not further is followed by forgotten instances, too, and one of rings that were founded at
    // another time says nothing.
    sources.retain(|source| {
        own.as_ref()
            .is_none_or(|own| is_further(&source.resume, own))
    });
    let mut failed = FetchError::Nothing;
    while let Some(furthest) = sources.iter().max_by_key(|source| source.resume.point) {
        if !(watch.begin)(&furthest.resume) {
            // A checkpoint that is less far does not help either.
            break;
        }
        let furthest = furthest.manifest.clone();
        let is_same = |source: &Source| source.manifest.is_same_state(&furthest);
        let (same, others) = sources.into_iter().partition(is_same);
        sources = others;
        match take_one((config, shelf), (furthest, watch), same, stop) {
            Err(FetchError::Stopped) => return Err(FetchError::Stopped),
            // Another state, less far, may help as well.
            Err(error) => failed = error,
            Ok(bytes) => return Ok(bytes),
        }
    }
    Err(failed)
}

/// The checkpoint that was coming at the last break, if it is further than the own one.
fn broken_off(
    config: &ReplicaConfig,
    shelf: &SharedCheckpoints,
    own: Option<&Resume>,
) -> Option<(Manifest, Resume)> {
    let manifest = locked(shelf).incoming().ok()??;
    let resume = resume_of(&manifest)?;
    let is_further = own.is_none_or(|own| is_further(&resume, own));
    let is_of_use = is_further && config.check(&resume).is_ok();
    is_of_use.then_some((manifest, resume))
}

/// Whether a checkpoint is further than the own one, and of the same foundations.
fn is_further(resume: &Resume, own: &Resume) -> bool {
    let founded = |resume: &Resume| {
        let rings = resume.rings.iter();
        rings.map(|ring| ring.founded).collect::<Vec<u64>>()
    };
    resume.point > own.point && founded(resume) == founded(own)
}

/// Gets one state from all that have it.
fn take_one(
    (config, shelf): (&ReplicaConfig, &SharedCheckpoints),
    (manifest, watch): (Manifest, &Watch<'_>),
    sources: Vec<Source>,
    stop: &AtomicBool,
) -> Result<u64, FetchError> {
    let resume = resume_of(&manifest).ok_or(FetchError::Nothing)?;
    let mut looked = Instant::now();
    let still = || {
        let is_due = looked.elapsed() >= LOOK;
        if is_due {
            looked = Instant::now();
        }
        !is_due || (watch.still)(&resume)
    };
    let incoming = locked(shelf).receive(manifest);
    let mut incoming = incoming.map_err(FetchError::Checkpoint)?;
    let bytes = take_all(config, (&mut incoming, still), sources.into(), stop)?;
    // The whole state is read once more, which may take long.
    let written = incoming.finish().map_err(FetchError::Checkpoint)?;
    let _ = locked(shelf).add(written);
    Ok(bytes)
}

/// All peers that have a checkpoint of this partition.
fn ask_all(config: &ReplicaConfig, stop: &AtomicBool) -> Vec<Source> {
    let peers = config
        .peers
        .iter()
        .filter(|(node, _)| **node != config.node);
    let ask = |(node, address): (&NodeId, &SocketAddr)| match ask(config, (*node, *address), stop) {
        Ok(source) => source,
        Err(error) => {
            tracing::info!(%node, %address, %error, "no checkpoint from a replica");
            None
        }
    };
    peers.filter_map(ask).collect()
}

fn ask(
    config: &ReplicaConfig,
    peer: (NodeId, SocketAddr),
    stop: &AtomicBool,
) -> io::Result<Option<Source>> {
    let mut talk = dial(config, peer)?;
    let parts = ask_for(&mut talk, &[NEWEST])?;
    let parts: [u8; 4] = parts.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
    let parts = u32::from_le_bytes(parts) as usize;
    if parts == 0 {
        return Ok(None);
    }
    if parts > MOST_PARTS {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut encoded = Vec::new();
    for _ in 0..parts {
        let part = talk.hear()?;
        if part.len() > PART_BYTES || stop.load(SeqCst) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        encoded.extend(part);
    }
    let manifest = Manifest::decode(&encoded).map_err(io::Error::other)?;
    if manifest.of != config.subject() {
        return Err(io::Error::other(format!(
            "it has a checkpoint of partition {}",
            manifest.of.partition
        )));
    }
    if manifest.chunk_bytes > CHUNK_BYTES {
        return Err(io::Error::other("its chunks are too large"));
    }
    let nowhere = || io::Error::other("its checkpoint does not say where it is");
    let resume = resume_of(&manifest).ok_or_else(nowhere)?;
    config.check(&resume).map_err(io::Error::other)?;
    Ok(Some(Source {
        peer,
        talk,
        manifest,
        resume,
    }))
}

/// The place of the newest checkpoint, if there is one.
pub(crate) fn newest_of(shelf: &SharedCheckpoints) -> Option<Resume> {
    let newest = locked(shelf).manifests().last().cloned()?;
    resume_of(&newest)
}

/// The place of a checkpoint, as its manifest tells it.
pub(crate) fn resume_of(manifest: &Manifest) -> Option<Resume> {
    Resume::decode(Bytes::from(manifest.about.clone()))
}

/// Gets the missing chunks from all peers that have the checkpoint, in turns.
fn take_all(
    config: &ReplicaConfig,
    (incoming, mut still): (&mut Incoming<FileDir>, impl FnMut() -> bool),
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
            if !still() {
                return Err(FetchError::Forgotten);
            }
            let mut source = sources.pop_front().ok_or(FetchError::Gone)?;
            let Ok(chunk) = source.chunk(config, index) else {
                continue;
            };
            sources.push_back(source);
            match incoming.put(index, &chunk) {
                Ok(()) => {
                    bytes += chunk.len() as u64;
                    break;
                }
                // The chunk was damaged there, and others may have it. This peer is left out from now on.
                Err(CheckpointError::Chunk { .. }) => {
                    sources.pop_back();
                }
                Err(error) => return Err(FetchError::Checkpoint(error)),
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use rota_multiring::{Constants, Point, Rank, ResumeRing, Snapshot};

    use super::*;

    /// A state at the beginning of a round, in a ring that was founded so, of which this instance is next.
    fn state(round: u64, (founded, next): (u64, u64)) -> Resume {
        let base = Snapshot {
            next,
            ..Snapshot::default()
        };
        let of = Constants::new(Rank(1));
        Resume {
            point: Point {
                round,
                turn: Rank(1),
                used: 0,
            },
            rings: vec![ResumeRing { of, founded, base }],
            spent: Vec::new(),
        }
    }

    /// Whatever the number of an instance in one of the rings.
    #[test]
    fn the_furthest_checkpoint_is_that_of_the_latest_point() {
        let own = state(10, (3, 11));
        assert!(is_further(&state(11, (3, 12)), &own));
        assert!(!is_further(&own, &own));
        assert!(!is_further(&state(9, (3, 99)), &own));
        assert!(!is_further(&state(11, (4, 12)), &own), "of another ring");
        let states = [state(9, (3, 99)), state(11, (3, 12)), state(10, (3, 50))];
        let furthest = states.iter().max_by_key(|state| state.point);
        assert_eq!(furthest, Some(&states[1]));
    }
}
