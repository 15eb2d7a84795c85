//! A device whose queue is full refuses datagrams, and nobody says when it has room again.

use super::durable::Durable;
use super::durable_tests::{Idle, PATIENCE, Script, config, id, me, token};
use super::store::{Found, Record, Store};
use super::*;
use rota_core::contract::PersistError;
use std::process::Command;
use std::thread;
use std::time::Instant;

/// Longer than anybody waits who is woken.
const LONG: u64 = 20_000_000_000;
const TOKENS: u8 = 40;

struct Nothing;

impl Store for Nothing {
    fn store(&mut self, _: &Record) -> Result<(), PersistError> {
        Ok(())
    }
}

fn run(command: &str) {
    let mut words = command.split(' ');
    let program = words.next().expect("a program");
    let status = Command::new(program).args(words).status();
    let status = status.expect("`ip` and `tc`, of the package iproute2");
    assert!(status.success(), "{command}");
}

/// In a network of its own, whose loopback device takes 2,000 bytes a second, and 2,000 at once.
fn on_a_slow_device(test: impl FnOnce() + Send) {
    let body = || {
        // SAFETY: no memory is involved. The namespace changes for this thread and for what it starts.
        let failed = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(failed, 0, "no network namespace: are you root?");
        run("ip link set lo up");
        run("tc qdisc add dev lo root tbf rate 16kbit burst 2000 limit 2000");
        test();
    };
    thread::scope(|scope| scope.spawn(body).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Neither a datagram nor a timer would end its sleep.
#[test]
fn what_a_full_device_refuses_leaves_as_soon_as_there_is_room() {
    on_a_slow_device(|| {
        let durable = Durable::with_store(Found::default(), Box::new(Nothing)).unwrap();
        let config = config();
        let sockets = Sockets::open(&config, id(1)).unwrap();
        let mut driver =
            Driver::with_durable(Script::default(), sockets, (me(), 1), &config, durable).unwrap();
        driver
            .engine
            .outputs
            .extend((0..TOKENS).map(|mark| token(mark, None)));
        let began = Instant::now();
        let mut sleeps = 0;
        while !driver.engine.outputs.is_empty() || driver.stuck.is_some() {
            driver.turn(&mut Idle, Some(LONG)).unwrap();
            sleeps += usize::from(driver.no_buffers);
            assert!(began.elapsed() < PATIENCE, "it sleeps on its token");
        }
        assert!(sleeps > 0, "the device has taken all of it at once");
    });
}
