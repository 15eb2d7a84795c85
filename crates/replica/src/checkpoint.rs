//! A state on its way to a checkpoint, and back.

use std::io;

use rota_node::rings::RingsDelivery;
use rota_storage::acceptor::LogDisk;
use rota_storage::checkpoint::{CheckpointError, Reading, Writing, Written};

use crate::error::StartError;
use crate::machine::{Frozen, Machine};
use crate::sessions::Sessions;

/// The state of a replica at a point.
pub(crate) struct Kept<F> {
    pub(crate) about: Vec<u8>,
    pub(crate) sessions: Vec<u8>,
    pub(crate) machine: F,
}

impl<F: Frozen> Kept<F> {
    /// Writes the sessions, and the machine behind them.
    pub(crate) fn write<D: LogDisk>(self, writing: Writing<D>) -> Result<Written, CheckpointError> {
        let mut out = Out {
            writing,
            failed: None,
        };
        let length = self.sessions.len() as u64;
        let written = io::Write::write_all(&mut out, &length.to_le_bytes())
            .and_then(|()| io::Write::write_all(&mut out, &self.sessions))
            .and_then(|()| self.machine.write(&mut out));
        let path = out.writing.path();
        match (out.failed, written) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(CheckpointError::Io {
                path,
                doing: "write the state to",
                error,
            }),
            (None, Ok(())) => out.writing.finish(self.about),
        }
    }
}

/// A checkpoint as something to write to.
struct Out<D: LogDisk> {
    writing: Writing<D>,
    /// The first error of the disk.
    failed: Option<CheckpointError>,
}

impl<D: LogDisk> io::Write for Out<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.writing.write(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                let said = io::Error::other(error.to_string());
                self.failed.get_or_insert(error);
                Err(said)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A checkpoint as something to read from.
struct In<'a, D: LogDisk> {
    reading: &'a Reading<D>,
    chunk: Vec<u8>,
    used: usize,
    next: usize,
}

impl<D: LogDisk> io::Read for In<'_, D> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.used == self.chunk.len() {
            let chunk = self.reading.chunk(self.next);
            match chunk.map_err(|error| io::Error::other(error.to_string()))? {
                Some(chunk) => (self.chunk, self.used) = (chunk, 0),
                None => return Ok(0),
            }
            self.next += 1;
        }
        let left = &self.chunk[self.used..];
        let count = left.len().min(out.len());
        out[..count].copy_from_slice(&left[..count]);
        self.used += count;
        Ok(count)
    }
}

/// The sessions of a checkpoint; the machine takes its part.
pub(crate) fn install<M: Machine, D: LogDisk>(
    machine: &mut M,
    reading: &Reading<D>,
) -> Result<Sessions, StartError> {
    let mut state = In {
        reading,
        chunk: Vec::new(),
        used: 0,
        next: 0,
    };
    let sessions = read_sessions(&mut state).map_err(StartError::Install)?;
    machine.install(&mut state).map_err(StartError::Install)?;
    Ok(sessions)
}

fn read_sessions(state: &mut impl io::Read) -> io::Result<Sessions> {
    let mut length = [0; 8];
    state.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(&mut *state, length), &mut bytes)?;
    let sessions = (bytes.len() as u64 == length).then(|| Sessions::decode(&bytes));
    sessions.flatten().ok_or_else(|| {
        io::Error::other("its sessions are none, or of another version of this program")
    })
}

/// The reason why nothing more is delivered.
pub(crate) enum End {
    /// A ring has forgotten instances that are needed next: another replica's checkpoint helps.
    Trimmed(String),
    /// Nothing helps.
    Over(String),
}

/// The end that a delivery tells of, if it tells of one.
pub(crate) fn end_of(delivery: &RingsDelivery) -> Option<End> {
    match delivery {
        RingsDelivery::Trimmed(ring, count) => Some(End::Trimmed(format!(
            "ring {} has forgotten {count} instances that this replica needs: it has been away for too long, and has to \
             begin with a checkpoint of another replica",
            ring.0
        ))),
        RingsDelivery::Contradicted(ring) => {
            Some(End::Over(format!("ring {} contradicts itself", ring.0)))
        }
        RingsDelivery::Refounded(ring) => Some(End::Over(format!(
            "ring {} was founded anew after the state of this replica: its acceptors have lost what they kept",
            ring.0
        ))),
        RingsDelivery::Unreachable(ring) => Some(End::Over(format!(
            "this replica is not on ring {}, to which its partition subscribes",
            ring.0
        ))),
        RingsDelivery::Message(..)
        | RingsDelivery::Configuration(..)
        | RingsDelivery::Point(_)
        | RingsDelivery::Subscribed(..)
        | RingsDelivery::Left(..)
        | RingsDelivery::LastRing(_)
        | RingsDelivery::NotHeld(_) => None,
    }
}
