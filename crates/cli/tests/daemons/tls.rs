//! Clients of other hosts: certificates, and handshakes that go wrong.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rota_client::{AsyncClient, Client, Code, ConnectError, ConnectionLost, Event, Message, Tls};
use rustix::process::{PidfdFlags, PidfdGetfdFlags};
use socket2::SockRef;

use crate::access::{await_line, counter, free_address};
use crate::bad_clients::{Others, status};
use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder, client, end_of, member, next_text, next_view};
use crate::pki::{Pki, Served};

/// Whether the other side closes, whatever it says before.
fn closes(socket: &mut TcpStream) -> bool {
    // The end, or an error as some of what it was sent was never read.
    match socket.read_to_end(&mut Vec::new()) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn a_client_with_a_certificate_is_a_client_like_all_others() {
    let served = Served::new("");
    let mut local = member(&served.cluster, 1, "local");
    local.join("g").expect("it joins");
    next_view(&mut local);
    let mut far = served.client("far");
    far.join("g").expect("it joins");
    assert_eq!(next_view(&mut local).members.len(), 2);
    // The largest there may be, in both directions.
    for fill in [1, 2] {
        let large = vec![fill; far.largest_payload()];
        local.send("g", &large).expect("sent");
        far.send("g", &large).expect("sent");
        for client in [&mut local, &mut far] {
            for _ in 0..2 {
                assert!(next_message(client).payload == large, "it arrives whole");
            }
        }
    }
    let status = status(&served.cluster, 1);
    let clients = status["clients"].as_array().expect("a list");
    let is_far = |client: &&serde_json::Value| client["name"] == "#far#n1";
    let entry = clients.iter().find(is_far).expect("it is connected");
    assert_eq!(entry["peer"], "127.0.0.1 alice.example");
    far.close().expect("the daemon has read everything");
    assert_eq!(next_view(&mut local).members.len(), 1);
    assert_eq!(counter(&served.cluster, "tls_shown"), 1);
    assert_eq!(counter(&served.cluster, "tls_refused"), 0);
}

fn next_message(client: &mut Client) -> Message {
    match client.recv_timeout(PATIENCE) {
        Ok(Some(Event::Message(message))) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_halves_send_and_receive_at_the_same_time() {
    const COUNT: usize = 30_000;
    let served = Served::new("");
    let mut local = client(&served.cluster, 1, "local");
    local.join("g").expect("it joins");
    let mut far = served.client("far");
    far.join("g").expect("it joins");
    let (mut sender, mut receiver) = far.split();
    let sending = thread::spawn(move || {
        for at in 0..COUNT {
            let text = format!("{at} {:100}", "");
            sender.feed("g", text.as_bytes()).expect("sent");
        }
        sender.flush().expect("written");
        sender
    });
    for at in 0..COUNT {
        let event = receiver.recv_timeout(PATIENCE).expect("connected");
        let Some(Event::Message(message)) = event else {
            panic!("{event:?}");
        };
        assert!(message.payload.starts_with(format!("{at} ").as_bytes()));
        let text = next_text(&mut local);
        assert_eq!(text.trim_end(), at.to_string());
    }
    let sender = sending.join().expect("no panic");
    sender.close().expect("written");
    let ended = receiver.recv().expect_err("the daemon closes");
    assert!(matches!(ended, ConnectionLost::Ended), "{ended}");
}

#[test]
fn an_async_client_does_the_same() {
    let served = Served::new("");
    let mut local = client(&served.cluster, 1, "local");
    local.join("g").expect("it joins");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let (address, builder) = (served.address(), served.builder("far"));
    runtime.expect("a runtime").block_on(async {
        let connected = AsyncClient::connect_as(&builder, address).await;
        let mut far = connected.expect("the daemon lets it in");
        far.join("g").await.expect("it joins");
        let large = vec![7; far.largest_payload()];
        for at in 0..200_u32 {
            far.send("g", format!("{at}").as_bytes())
                .await
                .expect("sent");
        }
        far.send("g", &large).await.expect("sent");
        for at in 0..=200_u32 {
            let Ok(Event::Message(message)) = far.recv().await else {
                panic!("message {at} does not come");
            };
            if at < 200 {
                assert_eq!(&message.payload[..], format!("{at}").as_bytes());
            } else {
                assert!(message.payload == large, "it arrives whole");
            }
        }
        far.close().await.expect("the daemon has read everything");
    });
    for at in 0..200 {
        assert_eq!(next_text(&mut local), at.to_string());
    }
}

#[test]
fn certificates_that_are_no_good_are_refused_counted_and_said() {
    let served = Served::new("");
    let Served { pki, .. } = &served;
    pki.issue("expired", "alice.example", &pki.ca, (2000, 2001));
    pki.issue("early", "alice.example", &pki.ca, (3000, 4000));
    pki.issue("foreign", "alice.example", &pki.other_ca, (2000, 4000));
    let connect = |tls: Tls| {
        let connected = builder("mallory").tls(tls).connect(served.address());
        match connected {
            Err(error @ ConnectError::Tls(_)) => {
                assert!(!error.may_pass(), "nobody tries again");
                error.to_string()
            }
            other => panic!("{other:?}"),
        }
    };
    let without = Tls::new(pki.path("ca.pem")).expect("a good file");
    let without = without.server_name("daemon.example");
    let untrusting = Tls::with_certificate(
        pki.path("other-ca.pem"),
        pki.path("alice.pem"),
        pki.path("alice.key"),
    );
    let untrusting = untrusting
        .expect("good files")
        .server_name("daemon.example");
    for (at, (tls, told, said)) in [
        (pki.tls("expired"), "Expired", "its certificate has expired"),
        (pki.tls("early"), "received fatal alert", "is not valid yet"),
        (
            pki.tls("foreign"),
            "UnknownCA",
            "does not come from client_ca",
        ),
        (without, "CertificateRequired", "it shows no certificate"),
        (
            untrusting,
            "UnknownIssuer",
            "does not go on with this daemon",
        ),
        (
            pki.tls("alice").server_name("other.example"),
            "NotValidForName",
            "does not go on with this daemon",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let error = connect(tls);
        let flat = |text: &str| text.replace([' ', '_'], "").to_lowercase();
        let close = flat(&error).contains(&flat(told)) || error.contains("not valid for name");
        assert!(close, "{told}: {error}");
        served.await_counter("tls_refused", at as u64 + 1);
        await_line(&served.cluster, said);
    }
    assert_eq!(counter(&served.cluster, "tls_shown"), 0);
    assert_eq!(counter(&served.cluster, "clients_connected"), 0);
    served
        .client("alice")
        .send("#a#n1", b"")
        .expect("the good one is let in");
    assert_eq!(counter(&served.cluster, "tls_refused"), 6);
}

#[test]
fn the_name_of_a_certificate_says_what_a_client_may_do() {
    let served = Served::with(
        "",
        "[[daemon.access]]\nwho = { certificate = \"alice.example\" }\njoin = [\"orders\"]\n",
    );
    served
        .pki
        .issue("bob", "bob.example", &served.pki.ca, (2000, 4000));
    let mut alice = served.client("alice");
    alice.join("orders").expect("it may");
    let refused = alice.join("trades").expect_err("it may not");
    assert!(refused.to_string().contains("not allowed"), "{refused}");
    let bob = builder("bob").tls(served.pki.tls("bob"));
    let Err(ConnectError::Refused { code, .. }) = bob.connect(served.address()) else {
        panic!("bob is let in");
    };
    assert_eq!(code, Code::NotAllowed);
    assert_eq!(counter(&served.cluster, "clients_not_allowed"), 1);
    await_line(&served.cluster, "who=127.0.0.1 bob.example");
}

#[test]
fn clients_without_a_certificate_are_taken_only_where_the_configuration_says_so() {
    let (pki, listen) = (Pki::new(), free_address());
    let rules = "[[daemon.access]]\nwho = { address = \"127.0.0.1/32\" }\nsend = [\"orders\"]\n";
    let section = pki.section(listen, "anonymous = true");
    let _cluster = Cluster::start(1, &format!("{section}{rules}"));
    let tls = Tls::new(pki.path("ca.pem")).expect("a good file");
    let tls = tls.server_name("daemon.example");
    let connected = builder("anybody").tls(tls).connect(format!("tls:{listen}"));
    let mut client = connected.expect("it is let in");
    client.join("orders").expect_err("it may only send");
    client.send("orders", b"hello").expect("sent");
    client.close().expect("the daemon has read it");
}

#[test]
fn what_is_no_handshake_costs_nobody_anything() {
    let served = Served::new("handshake_ms = 500\nhandshakes = 16");
    let mut others = Others::of(&served.cluster, 1);
    let mut far = served.client("far");
    far.join("far").expect("it joins");
    // Silent ones, more than there may be; one that stops in the middle of its first message.
    let mut silent: Vec<TcpStream> = (0..40).map(|_| served.socket()).collect();
    let mut half = served.socket();
    half.write_all(&[22, 3, 1, 2, 0, 1, 0, 1]).expect("written");
    silent.push(half);
    others.go_on(50);
    let mut garbage = served.socket();
    let bytes: Vec<u8> = (0..50_000_u32).map(|at| ((at * 7919) >> 3) as u8).collect();
    let _ = garbage.write_all(&bytes);
    let mut plain = served.socket();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("written");
    for socket in [&mut garbage, &mut plain] {
        let _ = socket.shutdown(Shutdown::Write);
        assert!(closes(socket), "it is not closed");
    }
    served.await_counter("tls_refused", 2);
    for socket in &mut silent {
        others.go_on(3);
        assert!(closes(socket), "it is not closed");
    }
    served.await_counter("tls_silent", 41);
    // Those who were there go on, and others come.
    far.send("far", b"still here").expect("sent");
    assert_eq!(next_text(&mut far), "still here");
    served.client("late");
    others.go_on(50);
    await_line(&served.cluster, "it took too long to show who it is");
}

/// Carries bytes, one at a time in the direction of the daemon.
fn byte_by_byte(from: TcpStream, to: TcpStream) {
    let (mut back_from, mut back_to) =
        (to.try_clone().expect("one"), from.try_clone().expect("one"));
    thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
    let (mut from, mut to) = (from, to);
    let mut byte = [0];
    while from.read(&mut byte).is_ok_and(|bytes| bytes == 1) {
        if to.write_all(&byte).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[test]
fn a_handshake_may_come_byte_by_byte() {
    let served = Served::new("");
    let mut others = Others::of(&served.cluster, 1);
    let slow = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("tls:{}", slow.local_addr().expect("it is bound"));
    let daemon = served.socket();
    thread::spawn(move || {
        let (client, _) = slow.accept().expect("it connects");
        byte_by_byte(client, daemon);
    });
    let builder = served.builder("slow");
    let connecting = thread::spawn(move || builder.connect(address));
    others.go_on(100);
    let mut slow = connecting.join().expect("no panic").expect("it is let in");
    slow.send("#slow#n1", b"byte by byte").expect("sent");
    assert_eq!(next_text(&mut slow), "byte by byte");
    others.go_on(100);
}

#[test]
fn a_connection_that_somebody_writes_into_is_over_and_nothing_of_that_counts() {
    let served = Served::new("");
    let between = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("tls:{}", between.local_addr().expect("it is bound"));
    let daemon = served.socket();
    let mut meddling = daemon.try_clone().expect("a descriptor");
    thread::spawn(move || {
        let (client, _) = between.accept().expect("it connects");
        byte_by_byte(client, daemon);
    });
    let mut far = served
        .builder("far")
        .connect(address)
        .expect("it is let in");
    far.send("#far#n1", b"fine so far").expect("sent");
    assert_eq!(next_text(&mut far), "fine so far");
    // A record of the right form, which nobody could encrypt.
    let mut record = vec![23, 3, 3, 0, 40];
    record.resize(45, 7);
    meddling.write_all(&record).expect("written");
    let ended = end_of(&mut far);
    assert!(matches!(ended, ConnectionLost::Io(_)), "{ended}");
    assert_eq!(counter(&served.cluster, "tls_refused"), 1);
    served.await_counter("clients_connected", 1);
    let until = Instant::now() + PATIENCE;
    while counter(&served.cluster, "clients_now") > 0 {
        assert!(Instant::now() < until, "the daemon keeps it");
    }
    served.client("far").close().expect("its name is free");
}

#[test]
fn one_that_does_not_read_is_disconnected_and_the_others_lose_nothing() {
    let served =
        Served::new("message_bytes = 100000\nclient_queue_bytes = 200000\nhandshake_ms = 1000");
    let mut others = Others::of(&served.cluster, 1);
    let mut deaf = served.client("deaf");
    deaf.join("g").expect("it joins");
    let until = Instant::now() + PATIENCE;
    while counter(&served.cluster, "clients_slow") == 0 {
        assert!(Instant::now() < until, "it is never too much");
        others.go_on(50);
    }
    others.go_on(50);
    end_of(&mut deaf);
}

#[test]
fn pub_and_sub_speak_tls_and_one_that_is_killed_is_gone() {
    let served = Served::new("");
    let mut local = member(&served.cluster, 1, "local");
    local.join("g").expect("it joins");
    next_view(&mut local);
    let file = |name: &str| served.pki.path(name).display().to_string();
    let (ca, certificate, key) = (file("ca.pem"), file("alice.pem"), file("alice.key"));
    let address = served.address();
    let options = |command: &str, certificate: &str| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_rota"));
        process
            .args([command, "g", "--socket", &address, "--ca", &ca])
            .args(["--certificate", certificate, "--key", &key])
            .args(["--server-name", "daemon.example"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        process
    };
    let mut sub = options("sub", &certificate).spawn().expect("the binary");
    assert_eq!(next_view(&mut local).members.len(), 2);
    let mut publishing = options("pub", &certificate).spawn().expect("the binary");
    let mut input = publishing.stdin.take().expect("a pipe");
    let lines: String = (0..5000).map(|at| format!("line {at}\n")).collect();
    input.write_all(lines.as_bytes()).expect("it reads");
    drop(input);
    let output = publishing.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let mut heard = vec![0; lines.len()];
    let out = sub.stdout.as_mut().expect("a pipe");
    out.read_exact(&mut heard).expect("all lines come");
    assert!(heard == lines.as_bytes(), "other lines came out");
    for at in 0..5000 {
        assert_eq!(next_text(&mut local), format!("line {at}"));
    }
    // Its process dies without a word.
    sub.kill().expect("it runs");
    sub.wait().expect("it is a child");
    assert_eq!(next_view(&mut local).members.len(), 1);
    // Wrong files are wrong use, and so are certificates where there is no TLS.
    let output = rota_sub_with_ca(&served).output().expect("the binary");
    assert_eq!(output.status.code(), Some(2));
    let output = options("pub", &ca).output().expect("the binary");
    assert_eq!(output.status.code(), Some(2));
}

fn rota_sub_with_ca(served: &Served) -> Command {
    let mut process = Command::new(env!("CARGO_BIN_EXE_rota"));
    process
        .args(["sub", "g", "--socket"])
        .arg(served.cluster.socket(1));
    process.arg("--ca").arg(served.pki.path("ca.pem"));
    process
}

#[test]
fn silent_ones_that_take_all_descriptors_do_not_keep_others_out_for_long() {
    let (pki, listen) = (Pki::new(), free_address());
    pki.issue("alice", "alice.example", &pki.ca, (2000, 4000));
    let section = pki.section(listen, &pki.client_ca());
    let settings = format!("handshake_ms = 300\n{section}");
    let served = Served {
        cluster: Cluster::limited(1, &settings, Some(64)),
        pki,
        listen,
    };
    // The last of them wait for a descriptor, and the client behind them.
    let silent: Vec<_> = (0..100).map(|_| served.socket()).collect();
    let mut late = served.client("late");
    late.send("#late#n1", b"it works").expect("sent");
    assert_eq!(next_text(&mut late), "it works");
    drop(silent);
}

#[test]
fn a_descriptor_that_another_thread_gives_back_is_for_who_waits_at_any_socket() {
    let pki = Pki::new();
    let listen = free_address();
    let section = pki.section(listen, &pki.client_ca());
    let settings = format!("handshake_ms = 600000\n{section}");
    let cluster = Cluster::limited(1, &settings, Some(64));
    let silent: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(listen).expect("it listens"))
        .collect();
    await_line(&cluster, "a TLS client cannot be let in");
    let path = cluster.socket(1);
    let late = thread::spawn(move || builder("late").connect(path));
    await_line(&cluster, "a client cannot be let in");
    // Nothing else happens at the sockets of the ring's thread.
    drop(silent);
    let late = late.join().expect("no panic");
    assert_eq!(late.expect("let in").name().to_string(), "#late#n1");
    assert!(cluster.said("a client cannot be let in") < 3);
}

/// The daemon's end of a connection to this address, as the kernel lets its parent have it.
fn accepted(cluster: &Cluster, listen: SocketAddr) -> Option<OwnedFd> {
    let pid = cluster.pid(1);
    let raw = rustix::process::Pid::from_raw(pid as i32).expect("not 0");
    let daemon = rustix::process::pidfd_open(raw, PidfdFlags::empty()).expect("it runs");
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let numbers = descriptors.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let copies = numbers.filter_map(|number: i32| {
        let flags = PidfdGetfdFlags::empty();
        rustix::process::pidfd_getfd(&daemon, number, flags).ok()
    });
    let mut copies = copies.collect::<Vec<_>>().into_iter();
    copies.find(|copy| {
        let socket = SockRef::from(copy);
        let here = socket.local_addr().ok().and_then(|at| at.as_socket());
        here == Some(listen) && socket.peer_addr().is_ok()
    })
}

#[test]
fn messages_do_not_wait_for_each_other() {
    let served = Served::new("");
    let client = served.client("alice");
    let socket = accepted(&served.cluster, served.listen).expect("it is connected");
    assert!(SockRef::from(&socket).tcp_nodelay().expect("an option"));
    drop(client);
}

#[test]
fn a_daemon_that_stops_says_goodbye_and_one_that_is_killed_cuts_off() {
    let mut served = Served::new("");
    let mut far = served.client("far");
    assert!(served.cluster.terminate(1).success());
    let ended = end_of(&mut far);
    let ConnectionLost::Goodbye { code, .. } = ended else {
        panic!("{ended}");
    };
    assert_eq!(code, Code::ShuttingDown);
    served.cluster.restart(1);
    let mut far = served.client("far");
    served.cluster.kill(1);
    let ended = end_of(&mut far);
    // Nobody can cut a connection off and have it look like the daemon's own end.
    assert!(matches!(ended, ConnectionLost::Io(_)), "{ended}");
}

#[test]
fn one_address_has_so_many_connections_and_the_others_do_not_notice() {
    let served = Served::new("per_address = 4");
    let mut others = Others::of(&served.cluster, 1);
    let mut far: Vec<Client> = ["a", "b", "c"].map(|name| served.client(name)).into();
    let silent = served.socket();
    served.await_counter("tls_shown", 3);
    let mut flood: Vec<TcpStream> = (0..200).map(|_| served.socket()).collect();
    for socket in &mut flood {
        assert!(closes(socket), "it is not closed");
    }
    assert_eq!(counter(&served.cluster, "clients_crowded"), 200);
    await_line(
        &served.cluster,
        "its address has as many connections as it may",
    );
    others.go_on(50);
    for client in &mut far {
        let name = client.name().to_string();
        client.send(&*name, b"still here").expect("sent");
        assert_eq!(next_text(client), "still here");
    }
    // One goes, and there is room.
    drop(silent);
    let until = Instant::now() + PATIENCE;
    while served.builder("d").connect(served.address()).is_err() {
        assert!(Instant::now() < until, "there is never room");
    }
}

#[test]
fn files_that_have_changed_are_read_again_and_bad_ones_are_not_used() {
    let served = Served::new("");
    let mut before = served.client("before");
    let pki = &served.pki;
    let connect = || {
        let tls = pki.tls("alice").server_name("new.example");
        builder("late").tls(tls).connect(served.address())
    };
    assert!(connect().is_err(), "it has the old name");
    fs::write(pki.path("daemon.pem"), "half").expect("a file");
    let until = Instant::now() + PATIENCE;
    while served.cluster.said("cannot be used: the old ones hold") == 0 {
        assert!(Instant::now() < until, "it does not notice");
        served
            .client("still")
            .close()
            .expect("it is let in as before");
        thread::sleep(Duration::from_millis(50));
    }
    pki.issue("daemon", "new.example", &pki.ca, (2000, 4000));
    while connect().is_err() {
        assert!(Instant::now() < until, "it does not notice");
        thread::sleep(Duration::from_millis(50));
    }
    await_line(&served.cluster, "have been read again");
    before.send("#before#n1", b"as before").expect("sent");
    assert_eq!(next_text(&mut before), "as before");
}
