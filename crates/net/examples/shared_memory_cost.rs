//! The cost of handing messages to another thread through a Unix socket, and through memory that both see: `cargo run
//! --release -p rota-net --example shared_memory_cost`.
//!
//! The same batches both ways. Through the socket: one `writev` a batch, as large reads as there is something
//! for. Through memory: a copy into a ring, and one `write` to an eventfd where the reader sleeps. The figures
//! are what a daemon and its client could save at most.

use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of the ring; a power of two.
const RING: usize = 1 << 20;
/// Of so many rounds the median is shown.
const ROUNDS: usize = 5;

/// A kind of load.
#[derive(Clone, Copy)]
struct Load {
    bytes: usize,
    batch: usize,
    batches: usize,
    /// Time between two batches; none as fast as it goes.
    every: Option<Duration>,
}

/// CPU time of the calling thread, in nanoseconds.
fn cpu() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0, "the thread has a clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Writes batches at their times, and says what that cost this thread.
fn write(load: Load, mut batch: impl FnMut()) -> u64 {
    let (start, begun) = (Instant::now(), cpu());
    let mut slept = 0;
    for index in 0..load.batches {
        if let Some(every) = load.every {
            let before = cpu();
            let due = start + every * index as u32;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            slept += cpu() - before;
        }
        batch();
    }
    cpu() - begun - slept
}

/// Nanoseconds of both sides for each message, through a socket.
fn socket(load: Load) -> (f64, f64) {
    let (mut to, mut from) = UnixStream::pair().expect("a pair");
    let total = load.bytes * load.batch * load.batches;
    let reader = thread::spawn(move || {
        let begun = cpu();
        let (mut buffer, mut got, mut sum) = (vec![0; 256 << 10], 0, 0_u64);
        while got < total {
            let bytes = from.read(&mut buffer).expect("it reads");
            sum += buffer[..bytes]
                .iter()
                .step_by(64)
                .map(|byte| u64::from(*byte))
                .sum::<u64>();
            got += bytes;
        }
        (cpu() - begun, sum)
    });
    let message = vec![1; load.bytes];
    let wrote = write(load, || {
        let mut slices = vec![IoSlice::new(&message); load.batch];
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            let written = to.write_vectored(rest).expect("it writes");
            IoSlice::advance_slices(&mut rest, written);
        }
    });
    per_message(load, wrote, reader.join().expect("it has read").0)
}

/// Memory that two threads see, and what says how far each of them is.
struct Ring {
    memory: Vec<AtomicU8>,
    written: AtomicUsize,
    read: AtomicUsize,
    sleeps: AtomicBool,
}

impl Ring {
    /// The bytes of the ring from `at` on, up to `len` and up to its end.
    fn part(&self, at: usize, len: usize) -> (*mut u8, usize) {
        let at = at % RING;
        let len = len.min(RING - at);
        (self.memory[at..at + len].as_ptr().cast_mut().cast(), len)
    }
}

/// Nanoseconds of both sides for each message, through memory.
fn memory(load: Load) -> (f64, f64) {
    // SAFETY: a new descriptor, which the file owns.
    let bell = unsafe { std::fs::File::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
    assert!(bell.as_raw_fd() >= 0, "an eventfd");
    let ring = Arc::new(Ring {
        memory: (0..RING).map(|_| AtomicU8::new(0)).collect(),
        written: AtomicUsize::new(0),
        read: AtomicUsize::new(0),
        sleeps: AtomicBool::new(false),
    });
    let total = load.bytes * load.batch * load.batches;
    let (theirs, mut heard) = (Arc::clone(&ring), bell.try_clone().expect("a descriptor"));
    let reader = thread::spawn(move || read_ring(&theirs, &mut heard, total));
    let (message, mut bell) = (vec![1_u8; load.bytes], bell);
    let mut at = 0;
    let wrote = write(load, || {
        for _ in 0..load.batch {
            while at + load.bytes - ring.read.load(Ordering::Acquire) > RING {
                thread::yield_now();
            }
            let mut done = 0;
            while done < load.bytes {
                let (to, len) = ring.part(at + done, load.bytes - done);
                // SAFETY: these bytes are the writer's until `written` passes them.
                unsafe { std::ptr::copy_nonoverlapping(message[done..].as_ptr(), to, len) };
                done += len;
            }
            at += load.bytes;
        }
        ring.written.store(at, Ordering::SeqCst);
        if ring.sleeps.swap(false, Ordering::SeqCst) {
            bell.write_all(&1_u64.to_ne_bytes()).expect("it rings");
        }
    });
    per_message(load, wrote, reader.join().expect("it has read").0)
}

fn read_ring(ring: &Ring, bell: &mut std::fs::File, total: usize) -> (u64, u64) {
    let begun = cpu();
    let (mut got, mut sum) = (0, 0_u64);
    while got < total {
        let written = ring.written.load(Ordering::Acquire);
        if written == got {
            ring.sleeps.store(true, Ordering::SeqCst);
            let none = ring.written.load(Ordering::SeqCst) == got;
            if none || !ring.sleeps.swap(false, Ordering::SeqCst) {
                bell.read_exact(&mut [0; 8]).expect("it wakes");
            }
            continue;
        }
        while got < written {
            let (from, len) = ring.part(got, written - got);
            // SAFETY: these bytes are the reader's until `read` passes them.
            let part = unsafe { std::slice::from_raw_parts(from, len) };
            sum += part
                .iter()
                .step_by(64)
                .map(|byte| u64::from(*byte))
                .sum::<u64>();
            got += len;
        }
        ring.read.store(got, Ordering::Release);
    }
    (cpu() - begun, sum)
}

fn per_message(load: Load, wrote: u64, read: u64) -> (f64, f64) {
    let messages = (load.batch * load.batches) as f64;
    (wrote as f64 / messages, read as f64 / messages)
}

fn median(load: Load, way: fn(Load) -> (f64, f64)) -> (f64, f64) {
    let mut rounds: Vec<_> = (0..ROUNDS).map(|_| way(load)).collect();
    rounds.sort_by(|one, other| (one.0 + one.1).total_cmp(&(other.0 + other.1)));
    rounds[ROUNDS / 2]
}

fn main() {
    println!("CPU ns a message           socket: writer reader   memory: writer reader");
    for (bytes, batch, batches, every) in [
        (1350, 48, 20_000, None),
        (100, 400, 10_000, None),
        (1350, 4, 4000, Some(Duration::from_micros(400))),
        (1350, 1, 4000, Some(Duration::from_micros(400))),
    ] {
        let load = Load {
            bytes,
            batch,
            batches,
            every,
        };
        let (socket, memory) = (median(load, socket), median(load, memory));
        let pace = every.map_or("full speed", |_| "every 400 us");
        println!(
            "{bytes:5} bytes x {batch:3}, {pace:12}  {:7.0} {:6.0}  {:15.0} {:6.0}",
            socket.0, socket.1, memory.0, memory.1
        );
    }
}
