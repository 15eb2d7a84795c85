//! Notices: datagrams between nodes that are not their engines', which share their sockets, seals and checksums.
//!
//! They come among tokens, and begin with a byte that no datagram of an engine begins with.

use bytes::Bytes;
use rota_core::wire::HEADER_BYTES;
use std::collections::VecDeque;

use super::Arrival;
use crate::runs::kept_runs;

/// The first byte of a notice.
pub const NOTICE: u8 = 0x52;
/// The bytes before the content of a notice: no datagram that is sealed may be shorter.
pub const NOTICE_HEADER_BYTES: usize = HEADER_BYTES;
/// The longest content of a notice, in bytes: it fits every path that the smallest datagrams fit.
pub const MOST_NOTICE_BYTES: usize = 400;

/// Notices that may wait. More are dropped: whoever sends one sends it again.
const MOST: usize = 128;

/// The notices that have come, oldest first.
#[derive(Debug, Default)]
pub(super) struct Notices {
    waiting: VecDeque<Bytes>,
    /// Somebody takes them: a node that never does loses nothing by those that are dropped.
    is_taken: bool,
}

impl Notices {
    /// Takes the notices out of what has come since there were so many arrivals; how many were dropped, if anybody takes
    /// them.
    #[inline]
    pub(super) fn take_out(&mut self, arrivals: &mut VecDeque<Arrival>, before: usize) -> u64 {
        if arrivals.iter().skip(before).any(has_notice) {
            self.sift(arrivals, before)
        } else {
            0
        }
    }

    #[cold]
    fn sift(&mut self, arrivals: &mut VecDeque<Arrival>, before: usize) -> u64 {
        let mut dropped = 0;
        for Arrival { bytes, segment } in arrivals.split_off(before) {
            let is_engines = |_: usize, datagram: &[u8]| {
                let is_notice = is_notice(datagram);
                if is_notice && self.waiting.len() < MOST {
                    self.waiting.push_back(Bytes::copy_from_slice(datagram));
                } else {
                    dropped += u64::from(is_notice && self.is_taken);
                }
                !is_notice
            };
            kept_runs(&bytes, segment, is_engines, |bytes| {
                let segment = segment.min(bytes.len());
                arrivals.push_back(Arrival { bytes, segment });
            });
        }
        dropped
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.is_taken = true;
        self.waiting.pop_front()
    }
}

fn has_notice(arrival: &Arrival) -> bool {
    let mut datagrams = arrival.bytes.chunks(arrival.segment.max(1));
    datagrams.any(is_notice)
}

fn is_notice(datagram: &[u8]) -> bool {
    datagram.first() == Some(&NOTICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(text: &'static [u8], segment: usize) -> Arrival {
        Arrival {
            bytes: Bytes::from_static(text),
            segment,
        }
    }

    #[test]
    fn notices_are_taken_out_and_everything_else_stays_in_its_order() {
        let mut notices = Notices::default();
        // R is 0x52; what was there before is left alone.
        let mut arrivals = VecDeque::from([arrival(b"Rx", 2), arrival(b"aabb", 2)]);
        arrivals.push_back(arrival(b"ccR1ddR2e", 2));
        arrivals.push_back(arrival(b"R3", 2));
        notices.take_out(&mut arrivals, 2);
        let shown = |arrival: &Arrival| {
            let text = String::from_utf8_lossy(&arrival.bytes);
            format!("{text} {}", arrival.segment)
        };
        let left: Vec<String> = arrivals.iter().map(shown).collect();
        assert_eq!(left, ["Rx 2", "aabb 2", "cc 2", "dd 2", "e 1"]);
        let next = || notices.next().map(|bytes| bytes.to_vec());
        let taken: Vec<Vec<u8>> = std::iter::from_fn(next).collect();
        assert_eq!(taken, [b"R1", b"R2", b"R3"]);
    }

    #[test]
    fn a_flood_of_notices_is_bounded_and_counted_where_they_are_taken() {
        let mut notices = Notices::default();
        let mut flood = || {
            let mut dropped = 0;
            for _ in 0..2 * MOST {
                let mut arrivals = VecDeque::from([arrival(b"Rx", 2)]);
                dropped += notices.take_out(&mut arrivals, 0);
                assert!(arrivals.is_empty());
            }
            assert_eq!(notices.waiting.len(), MOST);
            let taken = std::iter::from_fn(|| notices.next()).count();
            assert_eq!(taken, MOST);
            dropped
        };
        // Nobody has taken any yet.
        assert_eq!(flood(), 0);
        assert_eq!(flood(), MOST as u64);
    }
}
