//! This host: how long it stands still, what of its time is stolen, its buffers and descriptors.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_daemon::DaemonConfig;
use rota_node::NodeConfig;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use super::sockets::Sockets;

/// A sleep of the thread that looks for pauses.
const NAP: Duration = Duration::from_millis(1);

/// Descriptors of a daemon for everything but clients.
const BESIDE_CLIENTS: u64 = 100;

/// What is known of this host.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    pub receive_buffer_bytes: usize,
    pub receive_buffer_wanted_bytes: usize,
    pub descriptors: u64,
    pub descriptors_wanted: u64,
    pub longest_pause_ms: f64,
    pub stolen_percent: f64,
}

impl Host {
    /// Ends the look for pauses.
    pub fn of(
        daemon: &DaemonConfig,
        sockets: &Sockets,
        config: &NodeConfig,
        pauses: Pauses,
    ) -> Self {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        // One by TLS takes three.
        let each = if daemon.tls.is_some() { 3 } else { 1 };
        let clients = (daemon.clients + daemon.handshakes) as u64;
        Self {
            receive_buffer_bytes: sockets.receive_buffer_bytes,
            receive_buffer_wanted_bytes: config.receive_buffer_bytes,
            descriptors: hard,
            descriptors_wanted: each * clients + BESIDE_CLIENTS,
            longest_pause_ms: f64::from(pauses.longest_us()) / 1e3,
            stolen_percent: f64::from(pauses.stolen_permille()) / 10.0,
        }
    }
}

/// A thread that sleeps again and again, and notices when it wakes late: then a daemon would have been late, too.
#[derive(Debug)]
pub struct Pauses {
    longest_us: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    before: Option<Ticks>,
}

impl Pauses {
    /// Begins to look.
    pub fn start() -> Self {
        let longest_us = Arc::new(AtomicU32::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (longest, stopped) = (Arc::clone(&longest_us), Arc::clone(&stop));
        let nap = move || {
            while !stopped.load(Ordering::Relaxed) {
                let lay_down = Instant::now();
                thread::sleep(NAP);
                let late = lay_down.elapsed().saturating_sub(NAP);
                let late = u32::try_from(late.as_micros()).unwrap_or(u32::MAX);
                longest.fetch_max(late, Ordering::Relaxed);
            }
        };
        let thread = thread::Builder::new().name("rota-pauses".to_owned());
        Self {
            longest_us,
            stop,
            thread: thread.spawn(nap).ok(),
            before: Ticks::now(),
        }
    }

    /// The longest pause so far, in microseconds.
    pub fn longest_us(&self) -> u32 {
        self.longest_us.load(Ordering::Relaxed)
    }

    /// The part of the processors' time since the start that a hypervisor gave to others, in thousandths.
    pub fn stolen_permille(&self) -> u32 {
        let (Some(before), Some(now)) = (self.before, Ticks::now()) else {
            return 0;
        };
        let all = now.all.saturating_sub(before.all);
        let stolen = now.stolen.saturating_sub(before.stolen);
        (stolen * 1000 / all.max(1)) as u32
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Time of all processors, in the kernel's ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::read(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The line of all processors: user, nice, system, idle, iowait, irq, softirq, steal; guests are in user and nice.
    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks = line.split_whitespace().take(8).map(str::parse);
        let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
        let stolen = *ticks.get(7)?;
        let all = ticks.iter().sum();
        Some(Self { all, stolen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_number_of_all_processors() {
        let stat = "cpu  10 1 20 300 5 0 4 60 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 5\n";
        let ticks = Ticks::read(stat).expect("a line of all");
        assert_eq!(
            ticks,
            Ticks {
                all: 400,
                stolen: 60
            }
        );
        for wrong in [
            "",
            "cpu0 1 2 3 4 5 6 7 8\n",
            "cpu  1 2 3\n",
            "cpu  1 2 3 4 5 6 7 x\n",
        ] {
            assert_eq!(Ticks::read(wrong), None, "{wrong}");
        }
        assert!(Ticks::now().is_some());
    }

    #[test]
    fn a_thread_that_sleeps_notices_some_pause_and_ends_when_it_is_told_to() {
        let pauses = Pauses::start();
        let until = Instant::now() + Duration::from_secs(30);
        while pauses.longest_us() == 0 && Instant::now() < until {
            thread::sleep(NAP);
        }
        // No sleep ends on the microsecond.
        assert!(pauses.longest_us() > 0);
        assert!(pauses.stolen_permille() <= 1000);
    }
}
