//! The events that a loop waits for, and those that came.

use rota_core::contract::Class;
use std::io;
use std::os::fd::RawFd;

use super::Sockets;
use crate::socket::Port;
use crate::sys;

/// The sockets that have something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready {
    /// The data socket can be read.
    pub data: bool,
    /// The token socket can be read.
    pub token: bool,
    /// The waker was signalled.
    pub woken: bool,
    /// One of the links has something.
    pub links: bool,
}

/// The events to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wait {
    /// At most this long, in nanoseconds; `None`: without end.
    pub nanos: Option<u64>,
    /// Not for tokens: none may be read now.
    pub no_token: bool,
    /// Until this class can be sent.
    pub writable: Option<Class>,
    /// Until this descriptor is readable.
    pub waker: Option<RawFd>,
    /// Or this one, which is for the driver itself.
    pub stored: Option<RawFd>,
    /// Or this one, which stands for all links.
    pub links: Option<RawFd>,
}

/// The descriptors that the kernel is asked about for one driver: data, token, waker, the data's own sender, what is
/// stored, links.
pub type PollSet = [libc::pollfd; 6];

impl Sockets {
    /// Waits, spends no time where something is ready already, and says what is.
    ///
    /// # Errors
    /// The kernel's own.
    pub fn wait(&mut self, wait: Wait) -> io::Result<Ready> {
        let mut fds = self.poll_set(&wait);
        if sys::poll(&mut fds, wait.nanos)? == 0 {
            return Ok(Ready::default());
        }
        Ok(self.heard(&fds))
    }

    /// The descriptors to ask the kernel about.
    pub fn poll_set(&self, wait: &Wait) -> PollSet {
        let reading = |port: &Port| libc::pollfd {
            fd: port.raw(),
            events: libc::POLLIN,
            revents: 0,
        };
        // A negative descriptor is skipped by the kernel.
        let waiting = |fd: Option<RawFd>, events| libc::pollfd {
            fd: fd.unwrap_or(-1),
            events,
            revents: 0,
        };
        let mut fds = [
            reading(&self.data),
            reading(&self.token),
            waiting(wait.waker, libc::POLLIN),
            waiting(None, 0),
            waiting(wait.stored, libc::POLLIN),
            waiting(wait.links, libc::POLLIN),
        ];
        if wait.no_token {
            fds[1].events = 0;
        }
        match (wait.writable, &self.sender) {
            (Some(Class::Token), _) => fds[1].events |= libc::POLLOUT,
            (Some(Class::Data), Some(sender)) => {
                fds[3].fd = sender.raw();
                fds[3].events |= libc::POLLOUT;
            }
            (Some(Class::Data), None) => fds[0].events |= libc::POLLOUT,
            (None, _) => {}
        }
        fds
    }

    /// Takes over the answer of the kernel.
    pub fn heard(&mut self, fds: &[libc::pollfd]) -> Ready {
        if fds.iter().any(|fd| fd.revents & libc::POLLERR != 0) {
            self.read_errors();
        }
        let readable = |at: usize| fds.get(at).is_some_and(|fd| fd.revents & libc::POLLIN != 0);
        Ready {
            data: readable(0),
            token: readable(1),
            woken: readable(2),
            links: readable(5),
        }
    }
}
