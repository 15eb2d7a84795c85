//! Files of segments: their names, their headers, and walks through them.

use std::io;

use rota_storage::acceptor::LogFile;

use super::record::{HEADER_BYTES, Head, Seed};

/// The length of a segment's header, before its first record.
pub(super) const HEADER: u64 = 64;

/// The bytes that are read at once.
pub(super) const BLOCK: usize = 1 << 20;

const MAGIC: &[u8; 8] = b"ROTALOGS";
const VERSION: u32 = 1;
const ID_AT: usize = 32;
const SUM_AT: usize = 60;

/// The name of the segment of `log` that begins with `first`.
pub(super) fn name(log: u64, first: u64) -> String {
    format!("l{log:016x}-p{first:020}.seg")
}

/// The log and the first position of a name.
pub(super) fn parse_name(text: &str) -> Option<(u64, u64)> {
    let (log, first) = text
        .strip_prefix('l')?
        .strip_suffix(".seg")?
        .split_once("-p")?;
    let log = u64::from_str_radix(log, 16).ok()?;
    let first = first.parse().ok()?;
    (name(log, first) == text).then_some((log, first))
}

/// A segment's header. The id is of this file alone, so that another file with the same name is not taken for it.
pub(super) fn header(log: u64, first: u64, id: u64) -> [u8; HEADER as usize] {
    let mut out = [0; HEADER as usize];
    out[..8].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&VERSION.to_le_bytes());
    out[16..24].copy_from_slice(&log.to_le_bytes());
    out[24..32].copy_from_slice(&first.to_le_bytes());
    out[ID_AT..ID_AT + 8].copy_from_slice(&id.to_le_bytes());
    let sum = crc_fast::crc32_iscsi(&out[..SUM_AT]);
    out[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
    out
}

/// The id of a file that begins as a segment of `log` and `first` does.
pub(super) fn id_of<F: LogFile>(file: &F, log: u64, first: u64) -> io::Result<Option<u64>> {
    let mut found = [0; HEADER as usize];
    let read = file.read_at(0, &mut found)?;
    let id = found[ID_AT..].first_chunk();
    let id = id.map_or(0, |id| u64::from_le_bytes(*id));
    let is_whole = read == found.len() && found == header(log, first, id);
    Ok(is_whole.then_some(id))
}

/// The place of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) position: u64,
    pub(super) offset: u64,
}

/// The places of some of a segment's records.
#[derive(Clone, Default, Debug)]
pub(super) struct Index {
    entries: Vec<Entry>,
}

impl Index {
    /// Notes a record that is behind all that are noted, if it is `every` bytes from the last one.
    pub(super) fn note(&mut self, position: u64, offset: u64, every: u64) {
        let is_far = |last: &Entry| offset >= last.offset.saturating_add(every);
        if self.entries.last().is_none_or(is_far) {
            self.entries.push(Entry { position, offset });
        }
    }

    /// Notes the records of a run that was written at `offset`.
    pub(super) fn note_run(&mut self, run: &[u8], mut offset: u64, every: u64) {
        let mut rest = run;
        while let Some(head) = Head::read(rest) {
            self.note(head.position, offset, every);
            offset += head.total() as u64;
            rest = rest.get(head.total()..).unwrap_or_default();
        }
    }

    /// The last noted record that is not behind `position`.
    pub(super) fn before(&self, position: u64) -> Option<Entry> {
        let behind = self.entries.partition_point(|e| e.position <= position);
        self.entries.get(behind.checked_sub(1)?).copied()
    }

    /// The last noted record that does not begin behind an offset.
    pub(super) fn before_offset(&self, offset: u64) -> Option<Entry> {
        let behind = self.entries.partition_point(|e| e.offset <= offset);
        self.entries.get(behind.checked_sub(1)?).copied()
    }
}

/// A file read in large blocks, up to an end.
pub(super) struct Blocks<'a, F> {
    file: &'a F,
    end: u64,
    start: u64,
    block: Vec<u8>,
}

impl<'a, F: LogFile> Blocks<'a, F> {
    pub(super) const fn new(file: &'a F, end: u64) -> Self {
        Self {
            file,
            end,
            start: 0,
            block: Vec::new(),
        }
    }

    /// At least `length` bytes from `at` on: none when there are fewer.
    fn get(&mut self, at: u64, length: usize) -> io::Result<Option<&[u8]>> {
        let have_to = self.start + self.block.len() as u64;
        if at < self.start || at + length as u64 > have_to {
            let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
            let wanted = length.max(BLOCK).min(left);
            self.block.resize(wanted, 0);
            let read = self.file.read_at(at, &mut self.block)?;
            self.block.truncate(read);
            self.start = at;
        }
        let bytes = self.block.get((at - self.start) as usize..);
        Ok(bytes.filter(|bytes| bytes.len() >= length))
    }
}

/// Walks over good records, from the one at `from` to the position `to`; returns the first place without a good record.
///
/// With a `seed` sums are checked; without, the walk may go over records that are damaged.
pub(super) fn walk<F: LogFile>(
    blocks: &mut Blocks<'_, F>,
    seed: Option<Seed>,
    from: Entry,
    to: u64,
    mut seen: impl FnMut(Entry),
) -> io::Result<Entry> {
    let mut here = from;
    while here.position < to {
        let Some(bytes) = blocks.get(here.offset, HEADER_BYTES)? else {
            break;
        };
        let head = Head::read(bytes).filter(|head| head.position == here.position);
        let Some(head) = head else { break };
        let Some(bytes) = blocks.get(here.offset, head.total())? else {
            break;
        };
        if seed.is_some_and(|seed| !head.is_good(seed, &bytes[..head.total()])) {
            break;
        }
        seen(here);
        here.offset += head.total() as u64;
        here.position += 1;
    }
    Ok(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_they_were_made_and_no_others() {
        let name = name(0xab, 12);
        assert_eq!(name, "l00000000000000ab-p00000000000000000012.seg");
        assert_eq!(parse_name(&name), Some((0xab, 12)));
        assert_eq!(parse_name("lab-p12.seg"), None);
        assert_eq!(parse_name(&format!("{name}.new")), None);
        assert_eq!(
            parse_name("l00000000000000AB-p00000000000000000012.seg"),
            None
        );
    }

    #[test]
    fn an_index_finds_the_last_record_before() {
        let mut index = Index::default();
        for n in 0..100 {
            index.note(10 + n, 64 + n * 10, 100);
        }
        assert_eq!(index.entries.len(), 10);
        assert_eq!(index.before(9), None);
        let entry = |position, offset| Some(Entry { position, offset });
        assert_eq!(index.before(19), entry(10, 64));
        assert_eq!(index.before(20), entry(20, 164));
        assert_eq!(index.before_offset(264), entry(30, 264));
        assert_eq!(index.before_offset(263), entry(20, 164));
    }
}
