//! A daemon whose host vanishes without closing its connections.

use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rota_client::{Client, ConnectionLost};

use crate::peer::{CREDIT, Connection, welcome};

/// Set where this program runs in a network of its own.
const ALONE: &str = "ROTA_TEST_ALONE";

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    let status = status.expect("`ip`, of the package iproute2");
    assert!(status.success(), "ip {arguments}");
}

/// Runs a test of this program again, in a network of its own.
fn alone(test: &str) {
    let own = std::env::current_exe().expect("a path");
    let mut command = Command::new("unshare");
    command.arg("--net").arg(own).args(["--exact", test]);
    let command = command.args(["--ignored", "--nocapture"]).env(ALONE, "1");
    let status = command
        .status()
        .expect("`unshare`, of the package util-linux");
    assert!(status.success(), "{status}");
}

#[test]
#[ignore = "needs root, for a network of its own"]
fn a_host_that_vanishes_is_noticed_by_who_listens_and_by_who_sends() {
    if std::env::var_os(ALONE).is_none() {
        let name = "vanished::a_host_that_vanishes_is_noticed_by_who_listens_and_by_who_sends";
        return alone(name);
    }
    ip("link set lo up");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let _peers = thread::spawn(move || {
        let mut kept = Vec::new();
        for _ in 0..2 {
            let mut connection = Connection::accept_tcp(&listener);
            connection.hello();
            connection.tell(&[welcome(CREDIT)]);
            kept.push(connection);
        }
        // The daemon neither sends nor closes.
        thread::sleep(Duration::from_secs(600));
    });
    let connect = || Client::connect(address).expect("let in");
    let (listens, sends) = (connect(), connect());
    ip("link set lo down");
    let ended = [(listens, false), (sends, true)].map(|(mut client, says)| {
        thread::spawn(move || {
            let began = Instant::now();
            if says {
                client.send("orders", b"x").expect("the socket takes it");
            }
            (client.recv().expect_err("nobody is there"), began.elapsed())
        })
    });
    for (ended, what) in ended.into_iter().zip(["listens", "sends"]) {
        let (lost, after) = ended.join().expect("no panic");
        assert!(matches!(lost, ConnectionLost::Io(_)), "{what}: {lost}");
        let expected = Duration::from_secs(25)..Duration::from_secs(45);
        assert!(expected.contains(&after), "{what}: {after:?}");
    }
}
