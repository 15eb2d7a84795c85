//! Networks that tests make for themselves, as root.

use nix::sched::{CloneFlags, unshare};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Networks take turns: a process that another test starts has this one's sockets as well, until it has
/// become `ip`, and an address that was just given up would still be in use.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `test` in a network of its own, which `ip` has set up by these commands.
pub fn in_namespace(commands: &[&str], test: impl FnOnce() + Send) {
    // A test that failed leaves nothing behind that others would stumble over.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let body = || {
        // The namespace changes for this thread, and for the threads and processes that it starts.
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
        for command in commands {
            let status = Command::new("ip").args(command.split(' ')).status();
            let status = status.expect("`ip`, of the package iproute2");
            assert!(status.success(), "ip {command}");
        }
        test();
    };
    thread::scope(|scope| scope.spawn(body).join())
        .unwrap_or_else(|p| std::panic::resume_unwind(p));
}
