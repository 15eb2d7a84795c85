//! Memory of clients whose sessions are over, and that they have not read to the end.
//!
//! A client may still read the frames from before the end of its session: they are in memory that both have. The daemon
//! gives that memory back when the client has read it, or has had time to, even if another process still maps it.

use std::collections::VecDeque;

use rota_core::contract::Time;
use rota_memory::Writer;

/// The time that a client may take to read the rest, in nanoseconds.
const UNREAD_NANOS: u64 = 10_000_000_000;

/// The time between two looks whether clients have read the rest.
const LOOK_NANOS: u64 = 1_000_000_000;

/// Regions that are kept for this; with one more the oldest is given back.
const MOST: usize = 256;

/// Oldest first.
#[derive(Debug, Default)]
pub(super) struct Unread {
    regions: VecDeque<(Time, Writer)>,
    look_at: Time,
}

impl Unread {
    pub fn keep(&mut self, now: Time, memory: Writer) {
        if self.regions.is_empty() {
            self.look_at = now.after(LOOK_NANOS);
        }
        if self.regions.len() >= MOST {
            self.regions.pop_front();
        }
        self.regions.push_back((now, memory));
    }

    /// Leaves the memory to its clients, since the process ends: they can still read the rest.
    pub fn leave(&mut self) {
        let regions = self.regions.drain(..);
        regions.for_each(|(_, memory)| memory.leave());
    }

    /// Gives back what clients have read, or had time to read.
    pub fn give_back(&mut self, now: Time) {
        if !self.regions.is_empty() && now >= self.look_at {
            self.look_at = now.after(LOOK_NANOS);
            let stays = |(since, memory): &(Time, Writer)| {
                now.since(*since) < UNREAD_NANOS && !memory.is_read()
            };
            self.regions.retain(stays);
        }
    }

    /// The time of the next look whether memory can be given back.
    pub fn next_wake(&self) -> Option<Time> {
        (!self.regions.is_empty()).then_some(self.look_at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn unread() -> Writer {
        let (mut writer, _) = Writer::new(64 << 10).expect("memory");
        let bytes = [0; 8 << 10];
        let written = writer.write(&mut Vec::new(), &[IoSlice::new(&bytes)]);
        assert_eq!(written.expect("a list takes all"), bytes.len());
        writer
    }

    #[test]
    fn it_is_kept_for_a_while_and_not_without_end() {
        let mut all = Unread::default();
        for at in 0..2 * MOST as u64 {
            all.keep(Time(at), unread());
        }
        assert_eq!(all.regions.len(), MOST);
        all.keep(Time(SECOND), Writer::new(64 << 10).expect("memory").0);
        all.give_back(Time(2 * SECOND));
        assert_eq!(all.regions.len(), MOST - 1, "the last one is read");
        all.give_back(Time(11 * SECOND));
        assert_eq!(all.regions.len(), 0);
    }
}
