//! The load of a ring: the records and bytes that wait behind a point, skips included. Rounds say nothing of that.

use alloc::collections::VecDeque;

use crate::order::Instance;

/// The number of records of a ring that is much.
const MUCH_RECORDS: u64 = 1024;
/// The number of bytes that is much.
const MUCH_BYTES: usize = 1 << 20;
/// The number of records that are counted together, at most.
const TOGETHER: u64 = 64;

#[derive(Clone, Debug)]
struct Part {
    /// The last instance among them.
    last: Instance,
    records: u64,
    bytes: usize,
}

/// The records of one ring that have come.
#[derive(Clone, Debug)]
pub(super) struct Load {
    parts: VecDeque<Part>,
}

impl Load {
    pub const fn new() -> Self {
        Self {
            parts: VecDeque::new(),
        }
    }

    /// Something has come, up to this instance.
    pub fn add(&mut self, last: Instance, records: u32, bytes: usize) {
        let records = u64::from(records);
        match self.parts.back_mut() {
            Some(part) if part.records < TOGETHER && part.bytes < MUCH_BYTES / 16 => {
                part.last = last;
                part.records += records;
                part.bytes += bytes;
            }
            _ => self.parts.push_back(Part {
                last,
                records,
                bytes,
            }),
        }
        // No more is remembered than is needed to say that it is much.
        if self.parts.len() > 64 {
            let first = self.parts.pop_front();
            if let (Some(first), Some(next)) = (first, self.parts.front_mut()) {
                next.records += first.records;
                next.bytes += first.bytes;
            }
        }
    }

    /// Whether much has come from this instance on.
    pub fn is_much_from(&self, point: Instance) -> bool {
        let rest = self.parts.iter().filter(|part| part.last >= point);
        let (mut records, mut bytes) = (0, 0);
        for part in rest {
            records += part.records;
            bytes += part.bytes;
        }
        records >= MUCH_RECORDS || bytes >= MUCH_BYTES
    }
}
