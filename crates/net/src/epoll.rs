//! The sockets of many that have something to do, asked for in one call for all of them.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Answers taken in one call.
const AT_ONCE: usize = 32;

/// The kernel's word about one socket. It comes once for each time that something changes: the caller keeps it in mind
/// until a call on that socket would block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    /// The name of the socket in the set.
    pub(crate) name: u64,
    /// Something can be read, be it the end.
    pub(crate) readable: bool,
    /// Something can be written, or there is an error to be told of.
    pub(crate) writable: bool,
    /// The other end has closed: reading goes on until it says so.
    pub(crate) ended: bool,
}

/// A set of sockets. Closing a socket takes it out.
#[derive(Debug)]
pub(crate) struct Epoll {
    fd: OwnedFd,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// Takes in a socket under this name.
    pub(crate) fn add(&self, socket: &impl AsRawFd, name: u64) -> io::Result<()> {
        let flags = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        let mut event = libc::epoll_event {
            events: flags.cast_unsigned(),
            u64: name,
        };
        let (set, fd) = (self.raw(), socket.as_raw_fd());
        // SAFETY: `event` lives until the end of the call, and the kernel only reads it.
        let result = unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Hands out the changes since the last call, or some of them. Never waits.
    pub(crate) fn changes(&self, mut each: impl FnMut(Change)) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        let room = AT_ONCE as libc::c_int;
        // SAFETY: `events` has room for as many as are asked for.
        let count = unsafe { libc::epoll_wait(self.raw(), events.as_mut_ptr(), room, 0) };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            let interrupted = error.kind() == io::ErrorKind::Interrupted;
            return if interrupted { Ok(()) } else { Err(error) };
        };
        for event in &events[..count.min(AT_ONCE)] {
            let (name, flags) = (event.u64, event.events.cast_signed());
            let any = |of: libc::c_int| flags & of != 0;
            let broken = any(libc::EPOLLERR | libc::EPOLLHUP);
            each(Change {
                name,
                readable: broken || any(libc::EPOLLIN | libc::EPOLLRDHUP),
                writable: broken || any(libc::EPOLLOUT),
                ended: broken || any(libc::EPOLLRDHUP),
            });
        }
        Ok(())
    }

    /// The descriptor to poll: readable while something has changed.
    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
