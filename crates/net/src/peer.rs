//! The process at the other end of a Unix socket, as far as safe crates do not tell of it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Groups that most processes have room in.
const USUAL: usize = 64;

/// The supplementary groups of the process that connected a Unix socket, as they were then.
///
/// # Errors
/// The kernel's own: the socket is none, or not connected.
pub fn peer_groups(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut groups: Vec<libc::gid_t> = vec![0; USUAL];
    loop {
        let mut bytes =
            libc::socklen_t::try_from(size_of_val(&*groups)).map_err(io::Error::other)?;
        // SAFETY: `groups` has `bytes` bytes, and the kernel writes no more than that.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        let count = bytes as usize / size_of::<libc::gid_t>();
        if result == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        // There are more, and the kernel has said how many.
        if error.raw_os_error() != Some(libc::ERANGE) || count <= groups.len() {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}

/// The process at the other end of a connected Unix socket, by its number among this process's own: the listener for
/// the process that has connected. `None` if the process cannot be seen from here, as it is in another PID namespace.
///
/// # Errors
/// The kernel's own: the socket is none, or not connected.
pub fn peer_process(socket: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut bytes = libc::socklen_t::try_from(size_of_val(&peer)).map_err(io::Error::other)?;
    // SAFETY: `peer` has `bytes` bytes, and the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut bytes,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::try_from(peer.pid).ok().filter(|pid| *pid != 0))
}
