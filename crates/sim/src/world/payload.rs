//! What applications submit, and what was submitted.
//!
//! Payloads are slices of one pool of random bytes. So a submitted message is remembered in a few
//! bytes, its hash is computed once, and a delivery is compared with what was sent.

use bytes::Bytes;
use rota_core::contract::{MessageId, Process, Service};
use sha2::{Digest, Sha256};

use crate::rng::Rng;

/// A message that was submitted.
#[derive(Clone, Copy, Debug)]
pub struct Submitted {
    pub service: Service,
    pub hash: u64,
    start: u32,
    length: u32,
}

/// All payloads of a run.
#[derive(Debug)]
pub struct Payloads {
    pool: Bytes,
    /// By process, in the order in which they started: its messages by counter, from 1.
    sent: Vec<(Process, Vec<Submitted>)>,
}

impl Payloads {
    pub fn new(seed: u64, largest: u64) -> Self {
        let mut rng = Rng::split(seed, 5);
        let words = (2 * largest + 65_536) / 8;
        let pool: Vec<u8> = (0..words).flat_map(|_| rng.next().to_le_bytes()).collect();
        Self {
            pool: Bytes::from(pool),
            sent: Vec::new(),
        }
    }

    pub fn start(&mut self, process: Process) {
        self.sent.push((process, Vec::new()));
    }

    /// Draws a payload of so many bytes.
    pub fn draw(&self, rng: &mut Rng, length: u64) -> (u32, Bytes) {
        let start = rng.index(self.pool.len() - length as usize);
        let end = start + length as usize;
        (start as u32, self.pool.slice(start..end))
    }

    /// Remembers a message; `None` if its counter does not follow the one before.
    pub fn submitted(
        &mut self,
        id: MessageId,
        service: Service,
        payload: (u32, &Bytes),
    ) -> Option<Submitted> {
        let submitted = Submitted {
            service,
            hash: hash(payload.1),
            start: payload.0,
            length: payload.1.len() as u32,
        };
        let list = self.of_mut(id.process)?;
        list.push(submitted);
        (list.len() as u64 == id.counter).then_some(submitted)
    }

    pub fn get(&self, id: MessageId) -> Option<&Submitted> {
        let (_, list) = self
            .sent
            .iter()
            .rfind(|(process, _)| *process == id.process)?;
        list.get(usize::try_from(id.counter.checked_sub(1)?).ok()?)
    }

    /// The hash of a delivered payload: computed only when it is not what was sent.
    pub fn hash_of(&self, id: MessageId, payload: &Bytes) -> u64 {
        let sent = self.get(id).filter(|sent| {
            let start = sent.start as usize;
            self.pool[start..start + sent.length as usize] == payload[..]
        });
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
