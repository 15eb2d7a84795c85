//! Small safe wrappers around system calls that the standard library does not have.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rota_core::contract::{Incarnation, NodeId, Process, Time};

/// Now, on the clock that never goes backwards; its zero is the machine's boot.
pub fn monotonic() -> Time {
    let mut spec = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `spec` is a valid place for the kernel to write a timespec to.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut spec) };
    debug_assert_eq!(failed, 0, "CLOCK_MONOTONIC exists on every Linux");
    Time(spec.tv_sec.cast_unsigned() * 1_000_000_000 + spec.tv_nsec.cast_unsigned())
}

/// Now, on the clock by which the kernel stamps datagrams, in nanoseconds. It may be set back.
pub fn realtime_nanos() -> u64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// A random number from the kernel.
///
/// # Errors
/// The kernel's own, on systems without `getrandom`.
pub fn random_u64() -> io::Result<u64> {
    let mut bytes = [0_u8; 8];
    // SAFETY: `bytes` has room for the number of bytes that is asked for.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    // Up to 256 bytes come whole or not at all.
    if got == 8 {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The number of the user that this process acts as.
pub fn effective_user() -> u32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Node `node` in an incarnation that it has not had before.
///
/// # Errors
/// As [`random_u64`].
pub fn new_process(node: NodeId) -> io::Result<Process> {
    // 0 would look like no incarnation at all.
    let incarnation = (random_u64()? & Incarnation::MAX).max(1);
    Ok(Process {
        node,
        incarnation: Incarnation(incarnation),
    })
}

/// Waits until one of `fds` is ready, at most `timeout_nanos`; says how many are. A signal counts as
/// the end of the wait.
pub fn poll(fds: &mut [libc::pollfd], timeout_nanos: Option<u64>) -> io::Result<usize> {
    let spec = timeout_nanos.map(|nanos| libc::timespec {
        tv_sec: (nanos / 1_000_000_000).min(1 << 31).cast_signed(),
        tv_nsec: (nanos % 1_000_000_000).cast_signed(),
    });
    let spec = spec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = fds.len() as libc::nfds_t;
    // SAFETY: `fds` points to `count` pollfds, and `spec` is null or points to a timespec that lives
    // until the end of this function; no signal mask is given.
    let ready = unsafe { libc::ppoll(fds.as_mut_ptr(), count, spec, std::ptr::null()) };
    if let Ok(ready) = usize::try_from(ready) {
        return Ok(ready);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted {
        for fd in fds {
            fd.revents = 0;
        }
        return Ok(0);
    }
    Err(error)
}

/// Gives the calling thread a real-time priority, from 1 to 99 (`SCHED_FIFO`): it then runs before all
/// ordinary threads. Threads that it starts do not inherit it.
///
/// # Errors
/// The kernel's own: most often that the process may not.
pub fn set_realtime(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: i32::from(priority),
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` lives until the end of the call, and 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether the calling thread has a real-time priority.
pub fn is_realtime() -> bool {
    // SAFETY: it has no pointers, and 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    policy == libc::SCHED_FIFO || policy == libc::SCHED_RR
}

/// Sets a socket option.
pub fn set_option<T: Copy>(fd: RawFd, level: i32, name: i32, value: T) -> io::Result<()> {
    let bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is alive for the call and has `bytes` bytes; the kernel only reads them.
    let result = unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), bytes) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads a numeric socket option.
pub fn option(fd: RawFd, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0_i32;
    let mut bytes = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `value` has `bytes` bytes, and the kernel writes no more than that.
    let result =
        unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut bytes) };
    if result == 0 {
        Ok(value)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Attaches a classic BPF program that decides which datagrams a socket gets.
pub fn attach_filter(fd: RawFd, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let filter = libc::sock_fprog {
        len,
        filter: program.as_mut_ptr(),
    };
    // The kernel copies the program, which `program` keeps alive until then.
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, filter)
}

/// The number of a network interface.
pub fn interface_index(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: `name` is a string that ends with a zero byte and lives until the end of the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// Wakes a thread that waits in [`crate::sockets::Sockets::wait`], from any other thread.
#[derive(Debug)]
pub struct WakeFd {
    fd: OwnedFd,
}

impl WakeFd {
    /// A new one, not yet signalled.
    ///
    /// # Errors
    /// The kernel's own, as when no descriptor is left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// Wakes the waiting thread, or keeps the next wait from sleeping.
    pub fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: `one` has the 8 bytes that are written. A full counter needs no further signal.
        unsafe { libc::write(self.fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Takes all signals back.
    pub fn clear(&self) {
        let mut count = [0_u8; 8];
        // SAFETY: `count` has room for the 8 bytes that are read.
        unsafe { libc::read(self.fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }

    /// The descriptor to poll; readable when signalled.
    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
