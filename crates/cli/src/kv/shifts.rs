//! Moves slots of a demo's store from partition to partition, again and again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rota_core::random::Random;
use rota_kv::Slots;
use serde::Serialize;

use super::moves::{map_at, shift_at};
use crate::service::who::Who;

/// The time between two looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// The moves so far.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Shifted {
    /// The number of moves.
    pub moves: u64,
    /// The number of slots.
    pub slots: u64,
    /// The number of moves that failed, or whose outcome is not known.
    pub failed: u64,
    /// The longest time that writes to a group of slots waited, in milliseconds.
    pub longest_freeze_ms: u64,
}

/// See the module's page.
pub struct Shifts {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Shifted>,
}

struct Run {
    /// The processes, each with its partition.
    addresses: Vec<(u16, SocketAddr)>,
    random: Random,
    done: Shifted,
}

impl Shifts {
    /// With so much time between two moves.
    pub fn start(addresses: Vec<(u16, SocketAddr)>, every: Duration, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let mut run = Run {
            addresses,
            random: Random::new(seed),
            done: Shifted::default(),
        };
        let thread = thread::spawn(move || {
            loop {
                let mut left = every;
                while !left.is_zero() {
                    if ends.load(SeqCst) {
                        return run.done;
                    }
                    let some = left.min(LOOK);
                    thread::sleep(some);
                    left -= some;
                }
                run.shift();
            }
        });
        Self { stop, thread }
    }

    /// Ends it: what has moved.
    pub fn end(self) -> Shifted {
        self.stop.store(true, SeqCst);
        self.thread.join().unwrap_or_default()
    }
}

impl Run {
    fn draw(&mut self, below: usize) -> usize {
        self.random.below(below as u64) as usize
    }

    /// A quarter of what some partition has goes to another one. Processes may be away.
    fn shift(&mut self) {
        let at = self.draw(self.addresses.len());
        let (from, address) = self.addresses[at];
        let Ok(map) = map_at(address, &Who::default()) else {
            self.done.failed += 1;
            return;
        };
        let others: Vec<u16> = map
            .iter()
            .map(|(of, _)| *of)
            .filter(|of| *of != from)
            .collect();
        let own = map.iter().find(|(of, _)| *of == from);
        let Some((_, own)) = own.filter(|(_, own)| !own.is_empty() && !others.is_empty()) else {
            return;
        };
        let to = others[self.draw(others.len())];
        let first = self.draw(own.len());
        let some = own.iter().cycle().skip(first).take(own.len().div_ceil(4));
        let some: Slots = some.collect();
        match shift_at(address, &Who::default(), (from, to, &some)) {
            Ok(part) => {
                self.done.moves += 1;
                self.done.slots += part.slots.unsigned_abs();
                let freeze = part.longest_freeze_us.unsigned_abs() / 1_000;
                self.done.longest_freeze_ms = self.done.longest_freeze_ms.max(freeze);
            }
            Err(_) => self.done.failed += 1,
        }
    }
}
