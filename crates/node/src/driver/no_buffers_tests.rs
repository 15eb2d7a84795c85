//! A device whose queue is full refuses datagrams, and nobody says when it has room again.

#[path = "../../tests/namespace/mod.rs"]
mod namespace;

use super::durable::Durable;
use super::durable_tests::{Idle, PATIENCE, Script, config, id, me, token};
use super::store::{Found, Record, Store};
use super::*;
use namespace::in_namespace;
use rota_core::contract::PersistError;
use std::process::Command;
use std::time::Instant;

/// Longer than a thread waits that is woken, in nanoseconds.
const LONG: u64 = 20_000_000_000;
const TOKENS: u8 = 40;

struct Nothing;

impl Store for Nothing {
    fn store(&mut self, _: &Record) -> Result<(), PersistError> {
        Ok(())
    }
}

/// Of the loopback: it takes 2,000 bytes a second, and 2,000 at once.
fn make_slow() {
    let command = "qdisc add dev lo root tbf rate 16kbit burst 2000 limit 2000";
    let status = Command::new("tc").args(command.split(' ')).status();
    let status = status.expect("`tc`, of the package iproute2");
    assert!(status.success(), "tc {command}");
}

/// Neither a datagram nor a timer would end its sleep.
#[test]
#[ignore = "needs root, for a network namespace"]
fn what_a_full_device_refuses_leaves_as_soon_as_there_is_room() {
    in_namespace(&["link set lo up"], || {
        make_slow();
        let durable = Durable::with_store(Found::default(), Box::new(Nothing)).unwrap();
        let config = config();
        let sockets = Sockets::open(&config.network(), id(1)).unwrap();
        let mut driver =
            Driver::with_durable(Script::default(), sockets, (me(), 1), &config, durable).unwrap();
        driver
            .engine
            .outputs
            .extend((0..TOKENS).map(|mark| token(mark, None)));
        let began = Instant::now();
        let mut sleeps = 0;
        while !driver.engine.outputs.is_empty() || driver.io.is_stuck() {
            driver.turn(&mut Idle, Some(LONG)).unwrap();
            sleeps += usize::from(driver.io.has_no_buffers());
            assert!(began.elapsed() < PATIENCE, "it sleeps on its token");
        }
        assert!(sleeps > 0, "the device has taken all of it at once");
    });
}
