//! The threads beside that of an acceptor's log: for syncs that no answer waits for, and for new segments.

use rota_storage::acceptor::{LogFile, Mode, SpareJob, SyncJob};
use std::io;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::helper::Shared;
use super::log_thread::Orders;
use rota_net::ask_not_to_interrupt;

/// The channels to these threads.
pub(super) struct Beside<F> {
    /// `None`: answers wait for each sync.
    pub(super) syncer: Option<Syncer<F>>,
    pub(super) spares: mpsc::Sender<SpareJob<F>>,
}

impl<F: LogFile> Beside<F> {
    pub(super) fn start(shared: &Arc<Shared<Orders>>, mode: Mode) -> io::Result<Self> {
        let syncer = match mode {
            Mode::Async { interval, .. } => Some(Syncer::start(shared, interval)?),
            Mode::Sync | Mode::Memory { .. } => None,
        };
        let spares = spare_writer(shared)?;
        Ok(Self { syncer, spares })
    }
}

/// A thread for syncs that no answer waits for.
pub(super) struct Syncer<F> {
    pub(super) jobs: mpsc::Sender<SyncJob<F>>,
    pub(super) interval: Duration,
    pub(super) since: Instant,
    pub(super) is_busy: bool,
}

/// A thread for jobs beside the log's. It ends when the other one does.
fn beside<J: Send + 'static>(
    name: &str,
    shared: &Arc<Shared<Orders>>,
    run: impl Fn(J, &Shared<Orders>) + Send + 'static,
) -> io::Result<mpsc::Sender<J>> {
    let (jobs, wanted) = mpsc::channel();
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            ask_not_to_interrupt();
            for job in wanted {
                run(job, &shared);
            }
        })?;
    Ok(jobs)
}

/// A thread that writes new segments.
fn spare_writer<F: LogFile>(shared: &Arc<Shared<Orders>>) -> io::Result<mpsc::Sender<SpareJob<F>>> {
    beside("rota-spare", shared, |job: SpareJob<F>, shared| {
        job.run();
        shared.put(|desk| desk.spare_written = true);
    })
}

impl<F: LogFile> Syncer<F> {
    fn start(shared: &Arc<Shared<Orders>>, interval: Duration) -> io::Result<Self> {
        let jobs = beside("rota-sync", shared, |job: SyncJob<F>, shared| {
            let done = job.run();
            shared.put(|desk| (desk.synced, desk.syncing) = (Some(done), None));
        })?;
        Ok(Self {
            jobs,
            interval,
            since: Instant::now(),
            is_busy: false,
        })
    }
}
