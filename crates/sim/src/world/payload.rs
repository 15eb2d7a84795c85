//! The payloads that applications submit, and the record of them.
//!
//! Payloads are slices of one pool of random bytes, or begin with bytes of their own. Each is hashed once,
//! and a delivery is compared with what was sent.

use std::ops::RangeInclusive;

use bytes::Bytes;
use rota_core::contract::{MessageId, Process, Service};
use sha2::{Digest, Sha256};

use crate::rng::Rng;

/// A message that was submitted.
#[derive(Clone, Debug)]
pub struct Submitted {
    pub service: Service,
    pub hash: u64,
    payload: Bytes,
    /// Some application has got it, or it is known why perhaps none ever will.
    settled: bool,
}

/// The bytes that payloads are made of; a copy takes no memory of its own.
#[derive(Clone, Debug)]
pub struct Pool(Bytes);

impl Pool {
    pub fn new(seed: u64, largest: u64) -> Self {
        let mut rng = Rng::split(seed, 5);
        let words = (2 * largest + 65_536) / 8;
        let pool: Vec<u8> = (0..words).flat_map(|_| rng.next().to_le_bytes()).collect();
        Self(Bytes::from(pool))
    }

    /// Draws a payload of so many bytes.
    pub fn draw(&self, rng: &mut Rng, length: u64) -> Bytes {
        let start = rng.index(self.0.len() - length as usize);
        self.0.slice(start..start + length as usize)
    }
}

/// All that was submitted in a run.
#[derive(Default, Debug)]
pub struct Payloads {
    /// By process, in the order in which they started: its messages by counter, from 1.
    sent: Vec<(Process, Vec<Submitted>)>,
}

impl Payloads {
    pub fn start(&mut self, process: Process) {
        self.sent.push((process, Vec::new()));
    }

    /// Remembers a message, and says its hash; `None` if its counter does not follow the one before.
    pub fn submitted(&mut self, id: MessageId, service: Service, payload: Bytes) -> Option<u64> {
        let hash = hash(&payload);
        let list = self.of_mut(id.process)?;
        list.push(Submitted {
            service,
            hash,
            payload,
            settled: false,
        });
        (list.len() as u64 == id.counter).then_some(hash)
    }

    pub fn get(&self, id: MessageId) -> Option<&Submitted> {
        let (_, list) = self
            .sent
            .iter()
            .rfind(|(process, _)| *process == id.process)?;
        list.get(usize::try_from(id.counter.checked_sub(1)?).ok()?)
    }

    /// Messages of a process have been delivered to some application, or need not be.
    pub fn settle(&mut self, process: Process, counters: RangeInclusive<u64>) {
        let Some(list) = self.of_mut(process) else {
            return;
        };
        let place = |counter: u64| usize::try_from(counter).unwrap_or(usize::MAX);
        let end = place(*counters.end()).min(list.len());
        let from = place(counters.start().saturating_sub(1)).min(end);
        list[from..end]
            .iter_mut()
            .for_each(|sent| sent.settled = true);
    }

    /// The counter of the first message of a process of which that is not known.
    pub fn unsettled(&self, process: Process) -> Option<u64> {
        let (_, list) = self.sent.iter().rfind(|(of, _)| *of == process)?;
        let place = list.iter().position(|sent| !sent.settled)?;
        Some(place as u64 + 1)
    }

    /// The hash of a delivered payload: computed only when it is not what was sent.
    pub fn hash_of(&self, id: MessageId, payload: &Bytes) -> u64 {
        let sent = self.get(id).filter(|sent| sent.payload == payload);
        sent.map_or_else(|| hash(payload), |sent| sent.hash)
    }

    fn of_mut(&mut self, process: Process) -> Option<&mut Vec<Submitted>> {
        let mut lists = self.sent.iter_mut().rev();
        lists.find(|(of, _)| *of == process).map(|(_, list)| list)
    }
}

/// The first 64 bits of the payload's SHA-256.
fn hash(payload: &[u8]) -> u64 {
    let digest = Sha256::digest(payload);
    digest
        .first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
