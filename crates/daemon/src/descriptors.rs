//! Descriptors of the process: each client takes one, and admins, metrics, links and files need some as well.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors that are kept from clients: for admins, metrics, links between nodes, and files.
const KEPT: u64 = 64;

/// The part of few descriptors that is kept from clients: one in this number.
const FEW: u64 = 4;

/// Raises the limit of this process as far as it may, and logs a warning if there are fewer descriptors than this
/// number of clients needs.
pub fn ask_for_all(clients: usize) {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    // A limit that the system refuses to raise stays as it was.
    let raised = soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
    let limit = if raised { hard } else { soft };
    if for_clients(limit) < clients as u64 {
        tracing::warn!(
            limit,
            clients,
            "there are fewer descriptors than `clients` may need: raise ulimit -n (LimitNOFILE=), or lower `clients`"
        );
    }
}

/// Whether the next descriptor may be a client's: the kernel hands out the lowest that is free, so a high one is one of the
/// last.
///
/// # Errors
/// What the kernel says where there is none left, and so where only those are that are kept.
pub(crate) fn has_one_for_a_client(any: &impl AsFd) -> io::Result<()> {
    let next = any.as_fd().try_clone_to_owned()?;
    let number = u64::try_from(next.as_raw_fd()).unwrap_or(0);
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if number < for_clients(limit) {
        Ok(())
    } else {
        Err(Errno::EMFILE.into())
    }
}

/// The number of these descriptors that clients may have.
const fn for_clients(limit: u64) -> u64 {
    let part = limit / FEW;
    limit - if part < KEPT { part } else { KEPT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_kept_from_clients_however_few_there_are() {
        let limits = [0, 4, 128, 256, 1024, u64::MAX];
        let kept = limits.map(|limit| limit - for_clients(limit));
        assert_eq!(kept, [0, 1, 32, 64, 64, 64]);
        assert!(has_one_for_a_client(&io::stderr()).is_ok());
    }
}
