//! The cost of an acceptor's log beside the bare disk.
//!
//! ```text
//! cargo run --release -p rota-storage --example log_cost [DIRECTORY] [mode=sync] [size=1024] [writers=200] \
//!     [rounds=5] [millis=400]
//! ```
//!
//! So many writers as are named each have one record under way: they hand it over, wait until it is durable (with
//! `mode=async`: written), and hand over the next. Three ways take turns in each round:
//!
//! * `log`: one thread takes all that waits, appends it to an acceptor's log, syncs once, and answers all;
//!   segments of 64 MiB that serve again, trimmed all the time;
//! * `one file`: the same thread, writing the payloads alone into one file that was written before;
//! * `files`: each writer writes into a file of its own, that was written before, and syncs it. Nothing is handed
//!   over.
//!
//! The program shows medians of the rounds.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::{LogId, NodeId};
use rota_storage::acceptor::{
    DiskLog, Identity, Kind, LogOptions, Mode, RealFile, RecordRef, SyncDone, SyncJob,
};

/// Each writer's own file, and the one file of all.
const OWN_BYTES: u64 = 1 << 20;
const ONE_BYTES: u64 = 64 << 20;

/// So many instances are kept.
const KEPT_BYTES: u64 = 32 << 20;

struct Case {
    sync: bool,
    size: usize,
    writers: usize,
    time: Duration,
}

/// A sink for the records of a group.
trait Sink: Send {
    /// Makes these durable.
    fn group(&mut self, payloads: &[Arc<Vec<u8>>], writers: &[usize]);
    /// Does the work that can wait until they are answered.
    fn afterwards(&mut self) {}
}

struct Log {
    log: DiskLog,
    instance: u64,
    trimmed: u64,
    kept: u64,
    synced: Instant,
    jobs: Option<Sender<SyncJob<RealFile>>>,
    done: Receiver<SyncDone>,
    syncing: bool,
}

impl Log {
    fn open(path: &Path, case: &Case) -> Self {
        let mut options = LogOptions::new(Identity {
            cluster: 1,
            node: NodeId::new(1).expect("not 0"),
            log: LogId(1),
        });
        options.mode = if case.sync { Mode::Sync } else { Mode::ASYNC };
        options.spares = 3;
        let mut log = DiskLog::open(path.to_owned(), options).expect("a log");
        // Fills the first segments, so that what is measured is written over.
        let filler = vec![1; 1 << 20];
        let begin = log.last().map_or(log.first(), |last| last + 1);
        for instance in begin..begin + 200 {
            let record = vote(instance, &filler);
            log.append(&[record]).expect("appended");
            log.trim(instance).expect("trimmed");
            log.sync().expect("synced");
            while log.maintain().expect("maintained") {}
        }
        // Syncs beside the appends.
        let (jobs, wanted) = channel::<SyncJob<RealFile>>();
        let (answer, done) = channel();
        thread::spawn(move || {
            for job in wanted {
                if answer.send(job.run()).is_err() {
                    break;
                }
            }
        });
        Self {
            log,
            instance: begin + 200,
            trimmed: 0,
            kept: KEPT_BYTES / case.size as u64,
            synced: Instant::now(),
            jobs: Some(jobs),
            done,
            syncing: false,
        }
    }

    fn background_sync(&mut self) {
        if let Ok(done) = self.done.try_recv() {
            self.log.finish_sync(done).expect("synced");
            self.syncing = false;
        }
        if !self.syncing && self.log.sync_due(self.synced.elapsed()) {
            self.synced = Instant::now();
            if let Some(job) = self.log.start_sync().expect("written") {
                self.syncing = self
                    .jobs
                    .as_ref()
                    .is_some_and(|jobs| jobs.send(job).is_ok());
            }
        }
    }
}

const fn vote(instance: u64, bytes: &[u8]) -> RecordRef<'_> {
    RecordRef {
        kind: Kind::Vote,
        first: instance,
        last: instance,
        head: &[],
        bytes,
    }
}

impl Sink for Log {
    fn group(&mut self, payloads: &[Arc<Vec<u8>>], writers: &[usize]) {
        for writer in writers {
            let record = vote(self.instance, &payloads[*writer]);
            self.log.append(&[record]).expect("appended");
            self.instance += 1;
        }
        let keep_from = self.instance.saturating_sub(self.kept);
        if keep_from > self.trimmed + self.kept / 8 {
            self.log.trim(keep_from).expect("trimmed");
            self.trimmed = keep_from;
        }
        self.log.commit().expect("durable");
    }

    fn afterwards(&mut self) {
        self.background_sync();
        self.log.maintain().expect("maintained");
    }
}

/// A file that was written before.
fn written(path: &Path, bytes: u64) -> File {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .expect("a file");
    let zeros = vec![0; 1 << 20];
    for _ in 0..bytes >> 20 {
        file.write_all(&zeros).expect("written");
    }
    file.sync_all().expect("synced");
    file
}

struct OneFile {
    file: File,
    at: u64,
    bytes: Vec<u8>,
    sync: bool,
}

impl Sink for OneFile {
    fn group(&mut self, payloads: &[Arc<Vec<u8>>], writers: &[usize]) {
        self.bytes.clear();
        for writer in writers {
            self.bytes.extend_from_slice(&payloads[*writer]);
        }
        if self.at + self.bytes.len() as u64 > ONE_BYTES {
            self.at = 0;
        }
        self.file
            .write_all_at(&self.bytes, self.at)
            .expect("written");
        self.at += self.bytes.len() as u64;
        if self.sync {
            self.file.sync_data().expect("synced");
        }
    }
}

/// The desk at which writers hand over, and wait.
#[derive(Default)]
struct Desk {
    waiting: Mutex<Vec<usize>>,
    came: Condvar,
    stop: AtomicBool,
}

fn payloads(case: &Case) -> Vec<Arc<Vec<u8>>> {
    let mut draw = 1_u64;
    let payload = |_| {
        let bytes = (0..case.size).map(|_| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (draw >> 56) as u8
        });
        Arc::new(bytes.collect())
    };
    (0..case.writers).map(payload).collect()
}

/// Records in a second, by handing over to one thread.
fn handed_over(case: &Case, mut sink: Box<dyn Sink>) -> f64 {
    let (desk, payloads) = (Arc::new(Desk::default()), payloads(case));
    let writers: Vec<_> = (0..case.writers)
        .map(|me| {
            let desk = Arc::clone(&desk);
            thread::spawn(move || {
                loop {
                    desk.waiting.lock().expect("no panic").push(me);
                    desk.came.notify_one();
                    thread::park();
                    if desk.stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            })
        })
        .collect();
    let (mut group, mut count, started) = (Vec::new(), 0, Instant::now());
    while started.elapsed() < case.time {
        let waiting = desk.waiting.lock().expect("no panic");
        let mut waiting = desk
            .came
            .wait_while(waiting, |waiting| waiting.is_empty())
            .expect("no panic");
        std::mem::swap(&mut *waiting, &mut group);
        drop(waiting);
        sink.group(&payloads, &group);
        count += group.len();
        for writer in group.drain(..) {
            writers[writer].thread().unpark();
        }
        sink.afterwards();
    }
    let rate = count as f64 / started.elapsed().as_secs_f64();
    desk.stop.store(true, Ordering::Relaxed);
    for writer in writers {
        // Also one that has handed over and just begins to wait.
        writer.thread().unpark();
        writer.join().expect("no panic");
    }
    rate
}

/// Records in a second, each writer with a file of its own.
fn by_themselves(case: &Case, files: &[Arc<File>]) -> f64 {
    let stop = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let writers: Vec<_> = files
        .iter()
        .zip(payloads(case))
        .map(|(file, payload)| {
            let (file, stop, sync) = (Arc::clone(file), Arc::clone(&stop), case.sync);
            thread::spawn(move || {
                let (mut at, mut count) = (0, 0_u64);
                while !stop.load(Ordering::Relaxed) {
                    if at + payload.len() as u64 > OWN_BYTES {
                        at = 0;
                    }
                    file.write_all_at(&payload, at).expect("written");
                    at += payload.len() as u64;
                    if sync {
                        file.sync_data().expect("synced");
                    }
                    count += 1;
                }
                count
            })
        })
        .collect();
    thread::sleep(case.time);
    stop.store(true, Ordering::Relaxed);
    let counts = writers
        .into_iter()
        .map(|writer| writer.join().expect("no panic"));
    let count: u64 = counts.sum();
    count as f64 / started.elapsed().as_secs_f64()
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn measure(directory: &Path, case: &Case, rounds: usize) {
    let name = |what: &str| directory.join(what);
    let own = |writer| Arc::new(written(&name(&format!("own-{writer}")), OWN_BYTES));
    let files: Vec<_> = (0..case.writers).map(own).collect();
    let one = written(&name("one"), ONE_BYTES);
    std::fs::create_dir(name("log")).expect("a directory");
    drop(Log::open(&name("log"), case));
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let log = Log::open(&name("log"), case);
        rates[0].push(handed_over(case, Box::new(log)));
        let sink = OneFile {
            file: one.try_clone().expect("the same file"),
            at: 0,
            bytes: Vec::new(),
            sync: case.sync,
        };
        rates[1].push(handed_over(case, Box::new(sink)));
        rates[2].push(by_themselves(case, &files));
    }
    std::fs::remove_dir_all(name("log")).expect("removed");
    let [log, one, own] = rates.each_mut().map(|rates| median(rates));
    let megabytes = log * case.size as f64 / 1e6;
    println!(
        "{:>5} {:>6} {:>7} | {log:>9.0} {megabytes:>7.1} | {one:>9.0} {:>5.2} | {own:>9.0} {:>5.2}",
        if case.sync { "sync" } else { "async" },
        case.size,
        case.writers,
        log / one,
        log / own
    );
}

fn main() {
    let mut directory = std::env::temp_dir();
    let (mut modes, mut sizes, mut writers) =
        (vec![true, false], vec![1024, 32_768], vec![1, 32, 200]);
    let (mut rounds, mut millis) = (3, 300);
    for argument in std::env::args().skip(1) {
        let number = |text: &str| text.parse::<usize>().expect("a number");
        match argument.split_once('=') {
            Some(("mode", mode)) => modes = vec![mode == "sync"],
            Some(("size", bytes)) => sizes = vec![number(bytes)],
            Some(("writers", count)) => writers = vec![number(count)],
            Some(("rounds", count)) => rounds = number(count),
            Some(("millis", count)) => millis = number(count),
            Some((other, _)) => panic!("{other}: no such option"),
            None => directory = PathBuf::from(argument),
        }
    }
    let directory = tempfile::tempdir_in(directory).expect("a directory");
    println!(" mode   size writers |       log    MB/s |  one file ratio |     files ratio");
    for sync in modes {
        for size in sizes.iter().copied() {
            for writers in writers.iter().copied() {
                let time = Duration::from_millis(millis as u64);
                let case = Case {
                    sync,
                    size,
                    writers,
                    time,
                };
                measure(directory.path(), &case, rounds);
            }
        }
    }
}
