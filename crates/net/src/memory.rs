//! The memory that the process keeps, and the memory that it gives back.

use std::io;
use std::thread;
use std::time::Duration;

/// Buffers up to this size come from memory that is kept, in bytes: a few times the largest message of a link.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BUFFER: i32 = 4 << 20;
/// The number of free bytes at the end of that memory from which on they go back to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_FREE: i32 = 16 << 20;

/// Asks the allocator to keep what large buffers took, where it is the GNU C library's: by itself it may take each buffer of more than
/// 128 KiB from the system and give it back at once, and the kernel has to clear its pages each time. It is meant for programs
/// that do nothing else, as it holds for all that the process allocates.
pub fn keep_large_buffers() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (what, bytes) in [
        (libc::M_MMAP_THRESHOLD, KEPT_BUFFER),
        (libc::M_TRIM_THRESHOLD, KEPT_FREE),
    ] {
        // SAFETY: it takes two numbers; what it refuses stays as it was.
        unsafe {
            libc::mallopt(what, bytes);
        }
    }
}

/// The time between two looks whether the process has memory to give back.
const LOOK: Duration = Duration::from_secs(5);

/// The bytes that the process may keep beyond those that it had when it started.
const KEPT: u64 = 32 << 20;

/// Looks that are left out at most after a try that gave little back, where most is in use: one, two, four and so on.
const MOST_LEFT_OUT: u32 = 16;

/// Gives memory that is free back to the system when the process has come to rest, from a thread of its own, until the
/// process ends: the allocator keeps what a time with much to do has taken, though nobody needs it any more.
///
/// # Errors
/// The system's: there is no thread.
pub fn give_memory_back_at_rest() -> io::Result<()> {
    // Other allocators are not asked.
    if cfg!(not(all(target_os = "linux", target_env = "gnu"))) {
        return Ok(());
    }
    let thread = thread::Builder::new().name("rota-memory".to_owned());
    let give = || {
        let mut rest = Rest::new(resident_bytes());
        loop {
            thread::sleep(LOOK);
            if rest.is_due(resident_bytes(), busy_nanos()) {
                trim();
                rest.given(resident_bytes());
            }
        }
    };
    thread.spawn(give).map(drop)
}

/// Tells when memory is to be given back.
#[derive(Debug)]
struct Rest {
    /// The bytes that the process had when it started.
    least: u64,
    /// The bytes that the process had at the last look.
    had: u64,
    /// The time for which the process had run by then, in nanoseconds.
    ran: u64,
    /// Looks that are left out.
    skip: u32,
    /// The number of looks that are left out the next time.
    next: u32,
}

impl Rest {
    const fn new(least: u64) -> Self {
        Self {
            least,
            had: 0,
            ran: 0,
            skip: 0,
            next: 1,
        }
    }

    /// Whether a process rests and has much memory: it has `has` bytes, and has run for `ran` nanoseconds.
    fn is_due(&mut self, has: u64, ran: u64) -> bool {
        let more = ran.saturating_sub(std::mem::replace(&mut self.ran, ran));
        let grows = has > std::mem::replace(&mut self.had, has);
        if grows || u128::from(more) * 4 > LOOK.as_nanos() {
            (self.skip, self.next) = (0, 1);
            return false;
        }
        if let Some(left) = self.skip.checked_sub(1) {
            self.skip = left;
            return false;
        }
        has > self.least + KEPT
    }

    /// Memory was given back, and `left` bytes remain.
    fn given(&mut self, left: u64) {
        if self.had.saturating_sub(left) < KEPT {
            self.skip = self.next;
            self.next = (2 * self.next).min(MOST_LEFT_OUT);
        } else {
            self.next = 1;
        }
        self.had = left;
    }
}

/// The memory that the process has, in bytes; 0 where that is not known.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.map_or(0, |kib: u64| kib << 10)
}

/// The time for which the process's threads have run, in nanoseconds.
fn busy_nanos() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes one time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Gives back what is free, where the allocator is the GNU C library's.
fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes a number, and touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUCH: u64 = 10 * KEPT;

    #[test]
    fn memory_is_given_back_at_rest_and_not_again_and_again_where_it_is_in_use() {
        let mut rest = Rest::new(KEPT);
        let second = 1_000_000_000;
        assert!(!rest.is_due(MUCH, second), "it grows");
        assert!(!rest.is_due(MUCH, 4 * second), "it runs");
        assert!(rest.is_due(MUCH, 4 * second));
        for left_out in [1, 2, 4, 8, 16, 16] {
            rest.given(MUCH - 1);
            for _ in 0..left_out {
                assert!(!rest.is_due(MUCH - 1, 4 * second), "it is in use");
            }
            assert!(rest.is_due(MUCH - 1, 4 * second));
        }
        rest.given(2 * KEPT);
        assert!(!rest.is_due(2 * KEPT, 4 * second), "it has little");
    }

    #[test]
    fn what_was_free_is_the_systems_again() {
        // In pieces below what comes from the system by itself, with one that stays behind them.
        let mut pieces: Vec<Vec<u8>> = (0..512).map(|_| vec![1; 100 << 10]).collect();
        let last = pieces.pop();
        let before = resident_bytes();
        drop(pieces);
        trim();
        assert!(resident_bytes() + (32 << 20) < before);
        drop(last);
        assert!(busy_nanos() > 0);
    }
}
