//! All logs of a service.

use std::ops::Bound;

use bytes::Bytes;
use imbl::OrdMap;
use rota_core::bytes::{Reader, put_bytes, take_bytes, take_list};
use rota_multiring::Place;

use super::log::Log;

/// All logs of a service, without their entries. A copy takes no time.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Logs {
    pub(super) of: OrdMap<Bytes, Log>,
    /// The name of each log, by its number.
    pub(super) by_id: OrdMap<u64, Bytes>,
    /// The number of the log that was made last.
    pub(super) last_id: u64,
    /// The time, in milliseconds since 1970: the latest of all commands.
    pub(super) stamp: u64,
    /// The place of the last command.
    pub(super) last: Option<Place>,
}

/// The version of the form in which a state is written.
const VERSION: u16 = 1;

impl Logs {
    /// The log with this name.
    pub fn get(&self, name: &[u8]) -> Option<&Log> {
        self.of.get(name)
    }

    /// All logs with their names, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &Log)> {
        self.of.iter()
    }

    /// The logs from this name on.
    pub fn from(&self, name: &Bytes) -> impl Iterator<Item = (&Bytes, &Log)> {
        self.of.range(name.clone()..)
    }

    /// The logs with a number above this one, in the order in which they were made.
    pub fn after(&self, id: u64) -> impl Iterator<Item = (&u64, &Bytes)> {
        self.by_id.range((Bound::Excluded(id), Bound::Unbounded))
    }

    /// The number of logs.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether there is no log.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether there was a log with this number that is not there any more.
    pub fn is_gone(&self, id: u64) -> bool {
        (1..=self.last_id).contains(&id) && !self.by_id.contains_key(&id)
    }

    /// The time of the logs, in milliseconds since 1970.
    pub const fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The place of the last command.
    pub const fn last(&self) -> Option<Place> {
        self.last
    }

    /// Writes all logs, without their entries.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(VERSION.to_le_bytes());
        for number in [self.last_id, self.stamp] {
            out.extend(number.to_le_bytes());
        }
        out.push(u8::from(self.last.is_some()));
        if let Some(place) = self.last {
            place.put(out);
        }
        out.extend((self.of.len() as u32).to_le_bytes());
        for (name, log) in &self.of {
            put_bytes(out, name);
            log.put(out);
        }
    }

    /// Reads the logs that were written. `None`: the bytes are no logs.
    pub fn decode(bytes: &mut Reader<'_>) -> Option<Self> {
        if bytes.u16()? != VERSION {
            return None;
        }
        let (last_id, stamp) = (bytes.u64()?, bytes.u64()?);
        let last = match bytes.flag()? {
            true => Some(Place::take(bytes)?),
            false => None,
        };
        let of = take_list(bytes, |bytes| {
            let name = Bytes::copy_from_slice(take_bytes(bytes)?);
            Some((name, Log::take(bytes)?))
        })?;
        let is_sound = of.iter().all(|(_, log)| log.id <= last_id);
        let by_id = of
            .iter()
            .map(|(name, log): &(Bytes, Log)| (log.id, name.clone()));
        let by_id: OrdMap<u64, Bytes> = by_id.collect();
        (is_sound && by_id.len() == of.len()).then(|| Self {
            of: of.into_iter().collect(),
            by_id,
            last_id,
            stamp,
            last,
        })
    }
}
