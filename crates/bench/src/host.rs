//! The host of a benchmark: what it is, and what else it did in the meantime.

use std::fs;
use std::thread::{self, JoinHandle};

use serde::Serialize;

use crate::clock::sleep_until;

/// The nanoseconds of one tick in `/proc/stat`.
const TICK_NS: u64 = 10_000_000;

/// The host, and what else it did while the load was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// The release of the kernel.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// The number of processors.
    pub processors: usize,
    /// The part of all processors that neither nodes nor clients used, though it was used.
    pub foreign_cpu_percent: f64,
    /// The part of all processors that the hypervisor gave to others.
    pub stolen_cpu_percent: f64,
}

/// The time that all processors together were busy, and that was stolen from them, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    stolen: u64,
    all: u64,
}

impl Ticks {
    fn now() -> Self {
        fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| Self::read(&text))
    }

    /// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
    fn read(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let numbers = line.split_whitespace().skip(1).take(8);
        let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
        Self {
            busy: at(0) + at(1) + at(2) + at(5) + at(6),
            stolen: at(7),
            all: numbers.iter().sum(),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(before.busy),
            stolen: self.stolen.saturating_sub(before.stolen),
            all: self.all.saturating_sub(before.all),
        }
    }
}

/// Looks at the host when the measured time begins, and when it ends.
#[derive(Debug)]
pub(crate) struct Watch(JoinHandle<Ticks>);

impl Watch {
    /// Watches the host from one time to the other, on the common clock.
    pub(crate) fn start(from: u64, until: u64) -> Self {
        Self(thread::spawn(move || {
            sleep_until(from);
            let before = Ticks::now();
            sleep_until(until);
            Ticks::now().since(before)
        }))
    }

    /// What was seen, where the nodes and their clients used so many nanoseconds of it.
    pub(crate) fn end(self, own_ns: u64) -> Host {
        let ticks = self.0.join().unwrap_or_default();
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Host {
            kernel: kernel.trim().to_owned(),
            processor: model(&processor).to_owned(),
            processors: thread::available_parallelism().map_or(1, usize::from),
            foreign_cpu_percent: percent(ticks.busy.saturating_sub(own_ns / TICK_NS), ticks.all),
            stolen_cpu_percent: percent(ticks.stolen, ticks.all),
        }
    }
}

/// The name of the first processor that `/proc/cpuinfo` lists.
fn model(text: &str) -> &str {
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':'));
    name.map_or("unknown", |(_, name)| name.trim())
}

fn percent(part: u64, all: u64) -> f64 {
    // A tenth of a percent is as much as ticks tell.
    (1000.0 * part as f64 / all.max(1) as f64).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_all_processors_is_read() {
        let before = Ticks::read("cpu  100 0 50 800 10 5 5 30 0 0\ncpu0 1 2\n");
        let after = Ticks::read("cpu  160 0 80 900 10 5 15 40 0 0\n");
        let grown = Ticks {
            busy: 100,
            stolen: 10,
            all: 210,
        };
        assert_eq!(after.since(before), grown);
        assert_eq!(Ticks::read(""), Ticks::default());
    }

    #[test]
    fn this_host_has_a_kernel_and_processors() {
        let host = Watch::start(0, 0).end(0);
        assert!(!host.kernel.is_empty() && host.processors > 0, "{host:?}");
        assert_eq!(model("model name\t: A B\nmodel name: C"), "A B");
        assert_eq!((percent(1, 8), percent(0, 0)), (12.5, 0.0));
    }
}
