//! A thread with tasks of its own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime;
use tokio::task::{LocalSet, spawn_local};

/// The time between two looks for the end.
const LOOK: Duration = Duration::from_millis(50);

/// A thread with tasks of its own. Its tasks end when this is dropped.
pub struct Local {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Local {
    /// A thread with this name. `begin` starts its tasks.
    pub fn start(name: &str, begin: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let run = move || {
            LocalSet::new().block_on(&runtime, async {
                begin();
                while !ends.load(SeqCst) {
                    tokio::time::sleep(LOOK).await;
                }
            });
        };
        let thread = thread::Builder::new().name(name.to_owned());
        Ok(Self {
            stop,
            thread: Some(thread.spawn(run)?),
        })
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A listener at an address, for [`listen`] in a thread with tasks.
pub fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Has a task serve the connections of a listener.
pub fn listen<F: Future<Output = ()> + 'static>(
    listener: std::net::TcpListener,
    serve: impl FnOnce(TcpListener) -> F,
) {
    match TcpListener::from_std(listener) {
        Ok(listener) => drop(spawn_local(serve(listener))),
        Err(error) => tracing::error!(%error, "a listener does not work"),
    }
}
