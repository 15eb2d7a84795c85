//! Descriptors of a process that has many connections: each takes one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// So many are needed for anything else: rings, links, files.
const OTHERS: u64 = 512;

/// Asks for as many as this process may have, and says in the log if they are fewer than so many connections need.
pub fn ask_for_all(connections: u64) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let limit = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    // None: there is no limit.
    if let Some(limit) = limit.filter(|limit| *limit < connections + OTHERS) {
        tracing::warn!(
            limit,
            connections,
            "there are fewer descriptors than connections may need: raise ulimit -n (LimitNOFILE=), or lower `clients`"
        );
    }
}
