//! The start of daemons, their failures to start, and their stop.

use std::fs::{self, File};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use rota_client::{Cause, Code, ConnectionLost, Event};
use rota_node::{EngineName, PaxosConfig, VoteStorage};
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::{Cluster, changed_config, config};
use crate::native::{client, end_of, meet, member, names, next, next_text, next_view};

#[test]
fn a_daemon_that_is_told_to_stop_says_goodbye_and_the_others_go_on() {
    let mut cluster = Cluster::start(3, "");
    meet(&cluster, &[1, 2, 3]);
    let mut members = [1, 2, 3].map(|id| {
        let mut client = member(&cluster, id, "member");
        client.join("g").expect("it joins");
        client
    });
    for (at, client) in members.iter_mut().enumerate() {
        for count in at + 1..=3 {
            assert_eq!(next_view(client).members.len(), count);
        }
    }
    // What it was told before, it still gets.
    members[2].send("g", b"last words").expect("sent");
    for client in &mut members[..2] {
        assert_eq!(next_text(client), "last words");
    }
    assert!(cluster.terminate(3).success());
    let [mut one, mut two, mut gone] = members;
    assert_eq!(next_text(&mut gone), "last words");
    let ended = end_of(&mut gone);
    assert!(
        matches!(
            ended,
            ConnectionLost::Goodbye {
                code: Code::ShuttingDown,
                ..
            }
        ),
        "{ended}"
    );
    for path in [cluster.socket(3), cluster.admin(3), cluster.spread(3)] {
        assert!(!path.exists(), "{} is still there", path.display());
    }
    for client in [&mut one, &mut two] {
        assert!(matches!(next(client), Event::Transitional { .. }));
        let view = next_view(client);
        assert_eq!(names(&view.members), ["#member#n1", "#member#n2"]);
        assert_eq!(view.cause, Cause::Network(vec![vec![0, 1]]));
    }
    one.send("g", b"we go on").expect("sent");
    assert_eq!(next_text(&mut two), "we go on");
    cluster.restart(3);
    meet(&cluster, &[1, 2, 3]);
}

/// What a daemon says that does not start.
fn refused(cluster: &Cluster, text: &str, arguments: &[&str]) -> String {
    let path = cluster.dir().join("refused.toml");
    fs::write(&path, text).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["daemon", "--config"])
        .arg(path)
        .args(arguments)
        .output()
        .expect("the binary");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

#[test]
fn a_second_daemon_at_the_same_socket_is_refused_and_the_first_goes_on() {
    let cluster = Cluster::start(1, "");
    let path = |name: &str| cluster.dir().join(name).display().to_string();
    let sockets = |socket: &str, admin: &str| {
        let [socket, admin] = [socket, admin].map(path);
        format!("[daemon]\nsocket = \"{socket}\"\nadmin = \"{admin}\"\n")
    };
    for section in [
        sockets("1.sock", "new.admin"),
        sockets("new.sock", "1.admin"),
    ] {
        let said = refused(&cluster, &config(1, &section), &["--node", "1"]);
        assert!(said.contains("another daemon listens there"), "{said}");
        for new in ["new.sock", "new.admin"] {
            assert!(!cluster.dir().join(new).exists(), "{new} was left behind");
        }
    }
    let mut ann = client(&cluster, 1, "ann");
    ann.send("#ann#n1", b"still here").expect("sent");
    assert_eq!(next_text(&mut ann), "still here");
    assert!(UnixStream::connect(cluster.admin(1)).is_ok());
}

#[test]
fn a_socket_that_nobody_listens_at_is_replaced_and_nothing_else_is() {
    let mut cluster = Cluster::start(1, "");
    cluster.kill(1);
    assert!(cluster.socket(1).exists(), "a killed daemon leaves it");
    assert!(UnixStream::connect(cluster.socket(1)).is_err());
    cluster.restart(1);
    client(&cluster, 1, "ann");

    let file = cluster.dir().join("file");
    fs::write(&file, "precious").expect("a file");
    let section = format!("[daemon]\nsocket = \"{}\"\n", file.display());
    let said = refused(&cluster, &config(1, &section), &["--node", "1"]);
    assert!(said.contains("something else than a socket"), "{said}");
    assert_eq!(fs::read(&file).expect("it is there"), b"precious");
    // Somebody listens who is no daemon.
    let taken = cluster.dir().join("taken");
    let _listener = UnixListener::bind(&taken).expect("a free path");
    let section = format!("[daemon]\nsocket = \"{}\"\n", taken.display());
    let said = refused(&cluster, &config(1, &section), &["--node", "1"]);
    assert!(said.contains("listens there"), "{said}");
}

#[test]
fn a_daemon_with_wrong_settings_says_what_is_wrong() {
    let cluster = Cluster::start(1, "");
    let node = &["--node", "1"][..];
    for (section, expected) in [
        ("[daemon]\nclient = 5", "unknown field `client`"),
        ("[daemon]\nclients = 0", "clients must not be 0"),
        ("[daemon]\nclients = \"many\"", "invalid type"),
        ("[daemon]\nmessage_bytes = 0", "message_bytes must not be 0"),
        (
            "[daemon]\nmessage_bytes = 999999999",
            "message_bytes may be at most",
        ),
        (
            "[daemon]\nclient_queue_bytes = 0",
            "client_queue_bytes must not be 0",
        ),
        ("[daemon]\nhandshake_ms = 0", "handshake_ms must not be 0"),
        (
            "[daemon]\ntcp = [\"0.0.0.0:4804\"]",
            "clients would not be protected there",
        ),
        (
            "[daemon.spread]\ntcp = [\"0.0.0.0:4803\"]",
            "say with `allow`",
        ),
        (
            "[daemon.spread]\nallow = [\"ten\"]",
            "invalid IP address syntax",
        ),
        (
            "[daemon]\nsocket = \"/no/such/directory/rota.sock\"",
            "cannot listen at /no/such",
        ),
        ("[daemon]\nper_address = 0", "per_address must not be 0"),
        (
            "[daemon.tls]\nlisten = [\"127.0.0.1:0\"]\ncertificate = \"/no/such.pem\"\n\
             key = \"/no/such.key\"\nclient_ca = \"/no/such-ca.pem\"",
            "[daemon.tls]: /no/such-ca.pem: ",
        ),
        (
            "[daemon.tls]\nlisten = [\"127.0.0.1:0\"]\ncertificate = \"/dev/null\"\n\
             key = \"/dev/null\"\nclient_ca = \"/dev/null\"",
            "there is no certificate in it",
        ),
        ("unknown = 5", "unknown"),
    ] {
        let said = refused(&cluster, &config(1, section), node);
        assert!(said.contains(expected), "{section}: {said}");
        assert!(said.contains("refused.toml"), "{said}");
    }
    for (arguments, expected) in [
        (&["--node", "9"][..], "9"),
        (&[], "2 of its nodes have an address of this host"),
    ] {
        let said = refused(&cluster, &config(2, ""), arguments);
        assert!(said.contains(expected), "{said}");
    }
    let small_ring = format!("message_bytes = 5000\n{}", config(1, ""));
    let said = refused(&cluster, &small_ring, node);
    assert!(
        said.contains("message_bytes of the ring must be at least"),
        "{said}"
    );
    let queue = "[daemon]\nclient_queue_bytes = 1048576";
    let said = refused(&cluster, &config(1, queue), node);
    assert!(
        said.contains("client_queue_bytes must be at least 1051819"),
        "{said}"
    );
    let said = refused(&cluster, "not toml", node);
    assert!(said.contains("line 1"), "{said}");
}

/// Somebody has the log for as long as it is tried to get it: that stands for one that takes long to be read.
#[test]
fn a_daemon_that_is_opening_its_log_ends_when_it_is_told_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let votes = dir.path().join("node-1.votes");
    fs::create_dir(&votes).expect("a directory");
    let [socket, admin] = ["sock", "admin"].map(|name| dir.path().join(name).display().to_string());
    let section = format!("[daemon]\nsocket = \"{socket}\"\nadmin = \"{admin}\"\n");
    let text = changed_config(1, &section, |config| {
        config.engine = EngineName::URingPaxos;
        config.state_dir = Some(dir.path().to_owned());
        let storage = VoteStorage::Sync;
        config.paxos = Some(PaxosConfig {
            storage,
            ..PaxosConfig::default()
        });
    });
    let path = dir.path().join("rota.toml");
    fs::write(&path, text).expect("a file");
    let locked = votes.join("lock");
    for signal in [Signal::TERM, Signal::INT] {
        let lock = File::create(&locked).expect("a file");
        lock.lock().expect("it is free");
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(["daemon", "--node", "1", "--config"])
            .arg(&path)
            .spawn()
            .expect("the binary");
        let files = format!("/proc/{}/fd", daemon.id());
        let tries = || {
            let files = fs::read_dir(&files).expect("it lives");
            let mut names = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
            names.any(|name| name == locked)
        };
        while !tries() {
            assert_eq!(daemon.try_wait().expect("a child"), None);
        }
        let pid = Pid::from_child(&daemon);
        kill_process(pid, signal).expect("it lives");
        let status = daemon.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
    }
}
