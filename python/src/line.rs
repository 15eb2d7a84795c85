//! How the threads of one client wait.
//!
//! All of them look at the client in turns. One that does not find what it wants waits for the socket, and
//! reads for all; the others wait for it. Nobody holds the interpreter's lock meanwhile, and everybody comes
//! back now and then to see whether there was a signal.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rota_client::{Client, Owner};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::Failure;

/// The longest a thread does not look whether there was a signal. A signal that arrives while the thread
/// waits for the socket ends the wait by itself; this is for those that it misses.
const TURN: Duration = Duration::from_millis(100);

/// A client that several threads use.
///
/// Whoever looks at it has the mutex, and must want nothing of the interpreter meanwhile: another thread may have
/// that and wait for the mutex. So nobody gets the guard: [`Self::with`] runs a function that knows no interpreter, and
/// what fails there is a [`Failure`], which becomes an exception outside.
pub struct Line {
    inside: Mutex<Inside>,
    changed: Condvar,
    /// Of the socket, also when the client has been closed.
    socket: OwnedFd,
    /// The process that connected. Its children have copies of all this, the mutex included, which a thread that they
    /// do not have may hold: they are told so before they ask for it.
    owner: Owner,
}

pub struct Inside {
    client: Option<Client>,
    /// A thread waits for the socket, and will read: nobody else does meanwhile.
    pub reading: bool,
    /// This side has said bye.
    pub closing: bool,
}

impl Inside {
    /// The client, unless it has been closed.
    pub fn client(&mut self) -> Result<&mut Client, Failure> {
        self.client.as_mut().ok_or(Failure::Closed)
    }

    /// Hangs up.
    pub fn hang_up(&mut self) {
        self.client = None;
    }
}

/// What a thread finds in its turn.
enum Turn<T> {
    Found(T),
    /// The time has come.
    Over,
    /// Nothing yet: see whether there was a signal.
    Again,
}

impl Line {
    pub fn new(client: Client) -> std::io::Result<Self> {
        let socket = client.as_fd().try_clone_to_owned()?;
        let inside = Inside {
            client: Some(client),
            reading: false,
            closing: false,
        };
        Ok(Self {
            inside: Mutex::new(inside),
            changed: Condvar::new(),
            socket,
            owner: Owner::this(),
        })
    }

    /// No step of a client panics half-way.
    fn inside(&self) -> Result<MutexGuard<'_, Inside>, Failure> {
        if !self.owner.is_this() {
            return Err(Failure::Forked);
        }
        Ok(self.inside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does something with the client and what belongs to it, alone.
    pub fn with_all<T>(
        &self,
        act: impl FnOnce(&mut Inside) -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        let mut inside = self.inside()?;
        act(&mut inside)
    }

    /// Does something with the client, alone.
    pub fn with<T>(
        &self,
        act: impl FnOnce(&mut Client) -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        self.with_all(|inside| act(inside.client()?))
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Wakes all that wait for another thread.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// Looks until something is found; nothing if the time comes first.
    pub fn wait<T: Send>(
        &self,
        py: Python<'_>,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Client) -> Result<Option<T>, Failure> + Send,
    ) -> PyResult<Option<T>> {
        loop {
            match py.detach(|| self.turn(deadline, &mut look))? {
                Turn::Found(found) => return Ok(Some(found)),
                Turn::Over => return Ok(None),
                Turn::Again => py.check_signals()?,
            }
        }
    }

    fn turn<T>(
        &self,
        deadline: Option<Instant>,
        look: &mut impl FnMut(&mut Client) -> Result<Option<T>, Failure>,
    ) -> Result<Turn<T>, Failure> {
        let turn_ends = Instant::now() + TURN;
        let until = deadline.map_or(turn_ends, |deadline| deadline.min(turn_ends));
        let mut inside = self.inside()?;
        loop {
            if let Some(found) = look(inside.client()?)? {
                return Ok(Turn::Found(found));
            }
            let read = !inside.reading && inside.client()?.try_read();
            if read {
                self.wake();
            }
            let now = Instant::now();
            // What has come is read, for a turn more at most: a daemon may send without end.
            let late = if read { TURN } else { Duration::ZERO };
            let over = deadline.and_then(|deadline| now.checked_duration_since(deadline));
            if over.is_some_and(|over| over >= late) {
                // What was read last may be it.
                let found = look(inside.client()?)?;
                return Ok(found.map_or(Turn::Over, Turn::Found));
            }
            if turn_ends <= now {
                return Ok(Turn::Again);
            }
            if read {
                continue;
            }
            let write = inside.client()?.wants_write();
            if inside.reading && !write {
                let waited = self.changed.wait_timeout(inside, until - now);
                inside = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            // Who has something to write does that itself, whoever reads.
            let read = !inside.reading;
            inside.reading = true;
            drop(inside);
            let ready = self.poll(read, write, until - now);
            inside = self.inside()?;
            if read {
                inside.reading = false;
            }
            self.go_on(&mut inside, read && ready == Ready::Yes);
            if ready == Ready::Interrupted {
                return Ok(Turn::Again);
            }
        }
    }

    /// Writes and reads what is possible, for all.
    fn go_on(&self, inside: &mut Inside, read: bool) {
        if let Some(client) = &mut inside.client {
            // A socket that takes nothing more will also say so when it is read, and why.
            let _ = client.try_flush();
            if read {
                client.try_read();
            }
        }
        self.wake();
    }

    fn poll(&self, read: bool, write: bool, timeout: Duration) -> Ready {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, read);
        flags.set(PollFlags::OUT, write);
        let mut fds = [PollFd::new(&self.socket, flags)];
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => Ready::No,
            // An error of the socket shows itself when it is read.
            Ok(_) => Ready::Yes,
            Err(_) => Ready::Interrupted,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ready {
    Yes,
    No,
    Interrupted,
}
