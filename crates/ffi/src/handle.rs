//! Handles: one thread at a time, and no panic beyond them.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, TryLockError};

use rota_client::{PrivateName, Receiver, Reconnecting, Sender};

use crate::held::Held;
use crate::list::Lists;
use crate::status::{Failure, Status};

/// A connection to a daemon, or one half of it.
pub struct Client {
    pub(crate) name: CString,
    pub(crate) largest_payload: usize,
    /// Of the socket; nothing is done with it here.
    pub(crate) fd: RawFd,
    pub(crate) inside: Mutex<Inside>,
}

/// What one thread at a time may use.
pub(crate) struct Inside {
    pub half: Half,
    /// The newest event. In a place of its own, since it points into itself.
    pub held: Box<Held>,
    pub lists: Lists,
}

pub(crate) enum Half {
    Both(Box<rota_client::Client>),
    Sender(Box<Sender>),
    Receiver(Box<Receiver>),
    /// A client that connects again.
    Lasting(Box<Reconnecting>),
    /// Only within a call.
    Neither,
}

impl Client {
    pub(crate) fn new(name: PrivateName, largest_payload: usize, fd: RawFd, half: Half) -> Self {
        Self {
            // A name has no zeros.
            name: CString::new(name.to_string()).unwrap_or_default(),
            largest_payload,
            fd,
            inside: Mutex::new(Inside {
                half,
                held: Box::default(),
                lists: Lists::default(),
            }),
        }
    }
}

/// Runs the body of a function: what it says, and what of a panic, becomes a status.
pub(crate) fn guarded(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    // A lock, which the panic has poisoned, guards all that the panic may have left half-way.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(failure)) => failure.keep(),
        Err(_) => BUG.keep(),
    }
}

const BUG: Failure = Failure::new(Status::Bug, c"the library has failed: this is a bug of it");

/// Runs the body of a function with what is inside a handle.
///
/// # Safety
///
/// `client` is NULL, or a handle that nobody frees meanwhile.
pub(crate) unsafe fn inside(
    client: *const Client,
    body: impl FnOnce(&Client, &mut Inside) -> Result<(), Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: as this function asks for; a handle is shared only, and its parts are behind a lock.
        let client = unsafe { client.as_ref() };
        let client = client.ok_or(Failure::argument(c"the client is NULL"))?;
        let mut inside = client.inside.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failure::new(
                Status::Busy,
                c"another thread is in a call with this handle",
            ),
            TryLockError::Poisoned(_) => BUG,
        })?;
        body(client, &mut inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> Client {
        let name = "#alice#n1".parse().expect("legal");
        Client::new(name, 100, -1, Half::Neither)
    }

    #[test]
    fn a_panic_is_a_status_and_stays_one() {
        let client = handle();
        // SAFETY: the handle outlives all calls.
        let status = unsafe { inside(&client, |_, _| panic!("on purpose")) };
        assert_eq!(status, Status::Bug);
        // SAFETY: as above.
        let status = unsafe { inside(&client, |_, _| Ok(())) };
        assert_eq!(status, Status::Bug);
    }

    #[test]
    fn a_handle_that_is_in_use_is_busy_and_then_free() {
        let client = handle();
        // SAFETY: the handle outlives all calls.
        let outer = unsafe {
            inside(&client, |_, _| {
                let inner = inside(&client, |_, _| Ok(()));
                assert_eq!(inner, Status::Busy);
                Ok(())
            })
        };
        assert_eq!(outer, Status::Ok);
        // SAFETY: NULL is taken.
        let null = unsafe { inside(std::ptr::null(), |_, _| Ok(())) };
        assert_eq!(null, Status::InvalidArgument);
    }
}
