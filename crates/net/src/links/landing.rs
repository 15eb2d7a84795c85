//! The listener for [`RpcConnection`](super::RpcConnection)s: each connection is served by a thread of its own.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The pause between two looks for a connection.
const LOOK: Duration = Duration::from_millis(20);

type Guests = Arc<Mutex<HashMap<u64, TcpStream>>>;
type Serve = dyn Fn(TcpStream) -> io::Result<()> + Send + Sync;

fn lock(guests: &Guests) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
    guests.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See the module's page. Dropping it ends all connections.
#[derive(Debug)]
pub struct Landing {
    stop: Arc<AtomicBool>,
    guests: Guests,
    thread: Option<JoinHandle<()>>,
}

impl Landing {
    /// Waits at an address, in threads with this name, for `most` connections at a time. `serve` has one until it ends.
    ///
    /// # Errors
    /// The system's.
    pub fn open(
        address: SocketAddr,
        (name, most): (&'static str, usize),
        serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let (stop, guests) = (Arc::new(AtomicBool::new(false)), Guests::default());
        let waiting = Waiting {
            name,
            most,
            stop: Arc::clone(&stop),
            guests: Arc::clone(&guests),
            serve: Arc::new(serve),
        };
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || waiting.run(&listener))?;
        Ok(Self {
            stop,
            guests,
            thread: Some(thread),
        })
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for guest in lock(&self.guests).values() {
            // This ends the threads of that connection.
            let _ = guest.shutdown(Shutdown::Both);
        }
    }
}

struct Waiting {
    name: &'static str,
    most: usize,
    stop: Arc<AtomicBool>,
    guests: Guests,
    serve: Arc<Serve>,
}

impl Waiting {
    fn run(&self, listener: &TcpListener) {
        for number in 0.. {
            let stream = loop {
                if self.stop.load(SeqCst) {
                    return;
                }
                match listener.accept() {
                    Ok((stream, _)) => break stream,
                    Err(_) => thread::sleep(LOOK),
                }
            };
            let is_room = lock(&self.guests).len() < self.most;
            if let Some(copy) = stream.try_clone().ok().filter(|_| is_room) {
                lock(&self.guests).insert(number, copy);
                self.serve(number, stream);
            }
        }
    }

    fn serve(&self, number: u64, stream: TcpStream) {
        let (guests, serve) = (Arc::clone(&self.guests), Arc::clone(&self.serve));
        let run = move || {
            let served = stream.set_nonblocking(false).and_then(|()| serve(stream));
            if let Err(error) = served {
                tracing::debug!(%error, "another process is served no more");
            }
            lock(&guests).remove(&number);
        };
        let thread = thread::Builder::new().name(self.name.to_owned());
        if thread.spawn(run).is_err() {
            lock(&self.guests).remove(&number);
        }
    }
}
