//! Time and CPU time of this process.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC` in nanoseconds: the same for all processes and namespaces of a host, so a
/// payload can carry it from one to another.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The kernel may end a wait late by a thousandth of its length: who wants to be on time wakes up so long before, and
/// waits again.
const EARLY_NS: u64 = 1_000_000;

/// When to wake up next, for something that is due at `due`.
pub const fn wake_for(now: u64, due: u64) -> u64 {
    if due > now + 2 * EARLY_NS {
        due - EARLY_NS
    } else {
        due
    }
}

/// Sleeps until the clock shows `at`.
pub fn sleep_until(at: u64) {
    let left = at.saturating_sub(now_ns());
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
}

/// Time on a CPU of the calling thread in nanoseconds, system calls and the network's soft
/// interrupts they run included. (`/proc/self/stat` counts in ticks of 10 ms, too coarse.)
pub fn thread_cpu_ns() -> u64 {
    first_number("/proc/thread-self/schedstat")
}

/// Time on a CPU of all live threads of this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    tasks("/proc/self/task")
}

/// The same of another process.
pub fn process_cpu_ns_of(process: u32) -> u64 {
    tasks(&format!("/proc/{process}/task"))
}

fn tasks(dir: &str) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .map(|task| first_number(&format!("{}/schedstat", task.path().display())))
        .sum()
}

fn first_number(path: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

/// Time of the kernel's soft-interrupt threads of all CPUs, in nanoseconds: network work that was
/// put off and that no process is charged for. Other processes' work is in it too.
pub fn softirq_threads_ns() -> u64 {
    let Ok(entries) = fs::read_dir("/proc") else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with(|c: char| c.is_ascii_digit())
        })
        .filter(|entry| {
            fs::read_to_string(entry.path().join("comm"))
                .is_ok_and(|name| name.starts_with("ksoftirqd/"))
        })
        .map(|entry| first_number(&format!("{}/schedstat", entry.path().display())))
        .sum()
}
