//! The positions at which a log reaches an age or a size, for the decision about the entries to keep.

use rota_storage::acceptor::LogDisk;

use super::segment::HEADER;
use super::state::Log;
use super::{ReadError, Store, lock};

impl<D: LogDisk + 'static> Store<D> {
    /// The first position of a log whose stamp is not before `stamp_ms`, if stamps never fall; none if all are before
    /// it. The search reads from the disk.
    ///
    /// # Errors
    /// The reason why a record could not be read.
    pub fn first_after(&self, log: u64, stamp_ms: u64) -> Result<Option<u64>, ReadError> {
        let (mut low, mut high, firsts) = {
            let state = lock(&self.inner.state);
            let Some(entry) = state.logs.get(&log) else {
                return Err(ReadError::NotThere { next: 1 });
            };
            let firsts = entry.segments.range(entry.floor..).map(|(first, _)| *first);
            (entry.floor, entry.next, firsts.collect::<Vec<u64>>())
        };
        let end = high;
        // The first records of files are found without an index.
        let (mut from, mut to) = (0, firsts.len());
        while from < to {
            let middle = from.midpoint(to);
            match self.is_before(log, firsts[middle], stamp_ms)? {
                true => (low, from) = (firsts[middle] + 1, middle + 1),
                false => (high, to) = (firsts[middle], middle),
            }
        }
        while low < high {
            let middle = low.midpoint(high);
            match self.is_before(log, middle, stamp_ms)? {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok((low < end).then_some(low))
    }

    fn is_before(&self, log: u64, position: u64, stamp_ms: u64) -> Result<bool, ReadError> {
        let run = match self.read(log, position, position + 1, 1) {
            // The record was trimmed meanwhile, so it is before all that are kept.
            Err(ReadError::Trimmed { .. }) => return Ok(true),
            run => run?,
        };
        let stamp = run.iter().next().map(|record| record.stamp_ms);
        Ok(stamp.is_some_and(|stamp| stamp < stamp_ms))
    }

    /// The bytes of a log, about: of its files, and of records that wait to be written.
    pub fn bytes(&self, log: u64) -> u64 {
        self.bytes_from(log, 0)
    }

    /// The bytes of a log from a position on, about.
    pub fn bytes_from(&self, log: u64, position: u64) -> u64 {
        let state = lock(&self.inner.state);
        let Some(entry) = state.logs.get(&log) else {
            return 0;
        };
        let position = position.max(entry.floor);
        let segments = entry.segments.iter().rev();
        let segments = segments.take_while(|(_, segment)| segment.next > position);
        let sizes = segments.map(|(first, segment)| {
            let index = segment.index.as_ref().filter(|_| *first < position);
            let before = index.and_then(|index| index.before(position));
            segment.bytes - before.map_or(HEADER, |entry| entry.offset)
        });
        state.cache.unwritten_of(log) + sizes.sum::<u64>()
    }

    /// The last known position such that `keep` bytes or more remain behind it; none if there are no more than that.
    /// The known positions are the first ones of files, and more of those files that are written or read.
    pub fn position_at_bytes(&self, log: u64, keep: u64) -> Option<u64> {
        let state = lock(&self.inner.state);
        let entry = state.logs.get(&log)?;
        let position = position_with(entry, state.cache.unwritten_of(log), keep)?;
        (position > entry.floor).then_some(position)
    }
}

/// The last known position with `keep` bytes or more behind it, `unwritten` ones among them.
fn position_with(entry: &Log, unwritten: u64, keep: u64) -> Option<u64> {
    let mut behind = unwritten;
    for (first, segment) in entry.segments.iter().rev() {
        let bytes = segment.bytes - HEADER;
        if behind + bytes >= keep {
            let offset = segment.bytes - keep.saturating_sub(behind);
            let index = segment.index.as_ref();
            let noted = index.and_then(|index| index.before_offset(offset));
            return Some(noted.map_or(*first, |noted| noted.position));
        }
        behind += bytes;
    }
    None
}
