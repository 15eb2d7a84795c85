//! Memory that a disk takes groups from: aligned to pages, and in huge ones where it is large and the system has them.
//!
//! A disk that reads memory itself is told of each piece of it, and small pages seldom lie together. A huge page is one
//! piece, and is found with one look instead of 512.

use memmap2::{Advice, MmapMut, MmapOptions};
use std::ops::{Deref, DerefMut};

/// A huge page, in bytes.
const HUGE: usize = 2 << 20;

/// The least that is mapped, in bytes: an idle log takes no more.
const LEAST: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Pages {
    mapping: Option<MmapMut>,
    /// The room, in bytes.
    room: usize,
    /// The place of the first byte in the mapping.
    start: usize,
    len: usize,
}

impl Pages {
    /// Room for at least `bytes` bytes, and nothing in it.
    fn with_room(bytes: usize) -> Self {
        let bytes = bytes.next_power_of_two().max(LEAST);
        // From half a huge page on it is worth a whole one, with as much again so that it lies in it at its own boundary.
        let is_huge = bytes >= HUGE / 2;
        let room = if is_huge { bytes.max(HUGE) } else { bytes };
        let mapped = if is_huge { room + HUGE } else { room };
        let mapping = MmapOptions::new().len(mapped).map_anon();
        // As with any allocation: without memory there is no way on.
        let mapping = mapping.expect("memory for what is written");
        let mut start = 0;
        if is_huge {
            start = mapping.as_ptr().align_offset(HUGE);
            // A system without them refuses; the memory is as good, only slower.
            let _ = mapping.advise_range(Advice::HugePage, start, room);
        }
        Self {
            mapping: Some(mapping),
            room,
            start,
            len: 0,
        }
    }

    /// The room, in bytes.
    pub const fn room(&self) -> usize {
        self.room
    }

    /// Adds `bytes` bytes, which may be anything; hands out the new ones.
    pub fn add(&mut self, bytes: usize) -> &mut [u8] {
        let before = self.len;
        if before + bytes > self.room() {
            let mut larger = Self::with_room(before + bytes);
            larger.len = before;
            larger.copy_from_slice(self);
            *self = larger;
        }
        self.len += bytes;
        &mut self[before..]
    }

    /// Keeps only the first `bytes` bytes.
    pub fn truncate(&mut self, bytes: usize) {
        self.len = self.len.min(bytes);
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let mapping = self.mapping.as_ref();
        mapping.map_or(&[], |mapping| &mapping[self.start..][..self.len])
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        let mapping = self.mapping.as_mut();
        mapping.map_or(&mut [], |mapping| &mut mapping[self.start..][..self.len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_it_stays_while_it_grows() {
        let mut pages = Pages::default();
        assert!(pages.is_empty() && pages.add(0).is_empty());
        let mut expected = Vec::new();
        for (count, size) in [1, 4096, 70_000, 900_000, 0, 300_000, 5 << 20]
            .into_iter()
            .enumerate()
        {
            pages.add(size).fill(count as u8);
            expected.resize(expected.len() + size, count as u8);
            assert!(*pages == *expected && pages.room() >= pages.len());
        }
        pages.truncate(70_000);
        assert!(*pages == expected[..70_000]);
        pages.truncate(80_000);
        assert_eq!(pages.len(), 70_000);
    }

    #[test]
    fn large_ones_begin_with_a_huge_page_and_have_all_of_it() {
        for (bytes, aligned) in [
            (1, 4096),
            (LEAST + 1, 4096),
            (HUGE / 4, 4096),
            (HUGE / 4 + 1, HUGE),
            (HUGE / 2 + 1, HUGE),
            (3 * HUGE, HUGE),
        ] {
            let mut pages = Pages::default();
            pages.add(bytes).fill(1);
            assert_eq!(pages.as_ptr().align_offset(aligned), 0, "{bytes}");
            let whole = if aligned == HUGE {
                bytes.next_multiple_of(HUGE)
            } else {
                LEAST
            };
            assert!(pages.room() >= whole, "{bytes}");
        }
    }
}
