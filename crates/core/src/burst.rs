//! Packets laid out for segmentation offload.

use alloc::vec::Vec;

use crate::contract::Burst;

/// Lays packets out in as few bursts as their sizes and the kernel's limits allow, in order.
#[derive(Debug, Default)]
pub struct BurstBuilder {
    done: Vec<Burst>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    burst: Burst,
    segments: usize,
    /// The last packet is shorter than a segment: nothing may follow it.
    closed: bool,
}

impl BurstBuilder {
    /// Nothing laid out yet.
    pub const fn new() -> Self {
        Self {
            done: Vec::new(),
            open: None,
        }
    }

    /// Appends a datagram of `len` bytes, which `encode` writes; `expected` says how many more of its size may follow.
    pub fn push_with(&mut self, len: usize, expected: usize, encode: impl FnOnce(&mut Vec<u8>)) {
        if !self.open.as_ref().is_some_and(|open| open.takes(len)) {
            self.close();
            let capacity = (len * expected.clamp(1, Burst::MAX_SEGMENTS)).min(Burst::MAX_BYTES);
            let bytes = Vec::with_capacity(capacity.max(len));
            let burst = Burst {
                bytes,
                segment: len,
            };
            self.open = Some(Open {
                burst,
                segments: 0,
                closed: false,
            });
        }
        if let Some(open) = self.open.as_mut() {
            encode(&mut open.burst.bytes);
            open.segments += 1;
            open.closed = len < open.burst.segment;
        }
    }

    /// The size, at most, of a shorter datagram that the last burst takes behind its packets, in bytes; `None` if that
    /// is less than `least`.
    pub fn room_for_shorter(&self, least: usize) -> Option<usize> {
        let open = self.open.as_ref().filter(|open| open.takes(least))?;
        Some(
            open.burst
                .segment
                .min(Burst::MAX_BYTES - open.burst.bytes.len()),
        )
    }

    /// Closes the last burst, and returns all bursts in order.
    pub fn finish(mut self) -> Vec<Burst> {
        self.close();
        self.done
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.done.push(open.burst);
        }
    }
}

impl Open {
    const fn takes(&self, len: usize) -> bool {
        !self.closed
            && len <= self.burst.segment
            && self.segments < Burst::MAX_SEGMENTS
            && self.burst.bytes.len() + len <= Burst::MAX_BYTES
    }
}
