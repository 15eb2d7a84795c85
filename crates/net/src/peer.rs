//! Who is at the other end of a Unix socket, as far as safe crates do not tell.

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
