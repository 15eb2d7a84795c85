//! Clients that mean harm: what they can have of a daemon's memory and time.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rota_client::protocol::{Inbox, MAX_REPLY_BYTES, Reply, Request, Send};
use rota_client::{Code, Destination, Service};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::access::{counter, free_address};
use crate::bad_clients::{connect, frame, group, hello, reply, status};
use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder, client, next_text};
use crate::service::daemon;

/// A hello is short: before it is whole the daemon does not know whom it keeps memory for.
#[test]
fn what_begins_as_a_long_hello_is_refused_with_its_first_bytes() {
    let cluster = Cluster::start(1, "message_bytes = 1048576");
    let mut stream = connect(&cluster.socket(1));
    let mut head = 1_000_000_u32.to_le_bytes().to_vec();
    head.push(1);
    stream.write_all(&head).expect("written");
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("not zero");
    let refused = reply(&mut stream, &mut Inbox::new(MAX_REPLY_BYTES));
    let code = match &refused {
        Reply::Refused { code, .. } => Some(*code),
        _ => None,
    };
    assert_eq!(code, Some(Code::TooLarge), "{refused:?}");
    // Who is let in may send as much as ever, and at once.
    let mut whole = hello("quick");
    whole.extend(to("#quick#n1", 1 << 20));
    let mut stream = connect(&cluster.socket(1));
    let mut writer = stream.try_clone().expect("a descriptor");
    let writing = thread::spawn(move || writer.write_all(&whole));
    let mut inbox = Inbox::new(MAX_REPLY_BYTES);
    loop {
        match reply(&mut stream, &mut inbox) {
            Reply::Message(message) => break assert_eq!(message.payload.len(), 1 << 20),
            Reply::Welcome(_) | Reply::Credit { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    writing.join().expect("no panic").expect("it is written");
}

fn to(destination: &str, bytes: usize) -> Vec<u8> {
    let to: Destination = destination.parse().expect("a destination");
    frame(&Request::Send(Send {
        service: Service::Agreed,
        self_discard: false,
        kind: 0,
        to: vec![to],
        payload: vec![b'x'; bytes].into(),
    }))
}

#[test]
fn one_that_comes_and_sends_and_goes_again_and_again_fills_no_memory() {
    const CLIENTS: u64 = 8;
    /// Bytes of each message, and how many of them each sends, for which it has room.
    const BYTES: usize = 10_000;
    const EACH: u64 = 10;
    let cluster = Cluster::narrow(2, &format!("clients = {CLIENTS}"));
    let mut stays = client(&cluster, 1, "stays");
    let stop = Arc::new(AtomicBool::new(false));
    let floods = (0..4).map(|_| {
        let (path, stop) = (cluster.socket(1), Arc::clone(&stop));
        let mut bytes = frame(&Request::Hello(rota_client::protocol::Hello::new(
            None, false,
        )));
        bytes.extend(to("nobody", BYTES).repeat(EACH as usize));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let mut stream = connect(&path);
                // One that is refused hears that.
                let _ = stream.write_all(&bytes);
            }
        })
    });
    let floods: Vec<_> = floods.collect();
    let until = Instant::now() + PATIENCE;
    let mut most = 0;
    loop {
        let now = status(&cluster, 1);
        let requests = now["queues"]["requests"].as_u64().expect("a number");
        most = most.max(requests);
        // As many as may be connected, as many that are leaving, and a disconnect of each.
        assert!(requests <= 2 * CLIENTS * (EACH + 1), "{now}");
        let refused = now["counters"]["clients_refused"].as_u64();
        if refused > Some(20) {
            break;
        }
        assert!(Instant::now() < until, "they are never refused: {most}");
        thread::sleep(Duration::from_millis(20));
    }
    stop.store(true, Ordering::Relaxed);
    for flood in floods {
        flood.join().expect("it floods");
    }
    // There is room again when some of it has been ordered.
    let until = Instant::now() + PATIENCE;
    while builder("late").connect(cluster.socket(1)).is_err() {
        assert!(Instant::now() < until, "there is never room");
        thread::sleep(Duration::from_millis(20));
    }
    stays.send("#stays#n1", b"it works").expect("sent");
    assert_eq!(next_text(&mut stays), "it works");
}

/// What is asked costs much, and the answer, to who may see nothing, is short.
#[test]
fn questions_do_not_keep_the_ring_waiting() {
    const GROUPS: usize = 4000;
    const ASKED: u32 = 6000;
    let tcp = free_address();
    let rules = format!(
        "tcp = [\"{tcp}\"]\nclient_memberships = {GROUPS}\n\
         [[daemon.access]]\nwho = {{ uid = {} }}\njoin = [\"*\"]\nsend = [\"*\"]\n\
         [[daemon.access]]\nwho = {{ address = \"127.0.0.1/32\" }}\nsend = [\"only-this\"]\n",
        geteuid().as_raw()
    );
    let cluster = Cluster::start(1, &rules);
    let mut ann = client(&cluster, 1, "ann");
    let mut stream = connect(&cluster.socket(1));
    let mut joins = hello("many");
    for at in 0..GROUPS as u32 {
        let group = group(&format!("g{at}"));
        joins.extend(frame(&Request::Join { request: at, group }));
    }
    stream.write_all(&joins).expect("written");
    let mut inbox = Inbox::new(MAX_REPLY_BYTES);
    let mut done = 0;
    while done < GROUPS {
        done += usize::from(matches!(reply(&mut stream, &mut inbox), Reply::Done { .. }));
    }
    let mut curious = TcpStream::connect(tcp).expect("it listens");
    curious.set_read_timeout(Some(PATIENCE)).expect("not zero");
    curious.write_all(&hello("curious")).expect("written");
    let mut inbox = Inbox::new(MAX_REPLY_BYTES);
    let welcome = reply(&mut curious, &mut inbox);
    assert!(matches!(welcome, Reply::Welcome(_)), "{welcome:?}");
    let list = |request| {
        frame(&Request::List {
            request,
            group: None,
        })
    };
    let lists: Vec<u8> = (0..ASKED).flat_map(list).collect();
    curious.write_all(&lists).expect("written");
    let mut longest = Duration::ZERO;
    for at in 0..20 {
        let asked = Instant::now();
        ann.send("#ann#n1", at.to_string().as_bytes())
            .expect("sent");
        assert_eq!(next_text(&mut ann), at.to_string());
        longest = longest.max(asked.elapsed());
    }
    // Some hundred times as long as it takes, and a fraction of what all those lists take.
    assert!(longest < Duration::from_secs(3), "{longest:?}");
    let answer = reply(&mut curious, &mut inbox);
    let Reply::Groups { request: 0, groups } = answer else {
        panic!("{answer:?}");
    };
    assert!(groups.is_empty(), "{groups:?}");
}

/// Whoever should read the log is stuck from the beginning, and for ever.
#[test]
fn a_log_that_nobody_reads_keeps_nobody_waiting() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_stuck, log) = UnixStream::pair().expect("descriptors");
    log.set_nonblocking(true).expect("a flag");
    let full = loop {
        match (&log).write(&[b'x'; 1000]) {
            Ok(written) => assert!(written > 0),
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    log.set_nonblocking(false).expect("a flag");
    let mut daemon = daemon(dir.path(), "")
        .stderr(OwnedFd::from(log))
        .spawn()
        .expect("the binary");
    let until = Instant::now() + PATIENCE;
    let path = dir.path().join("sock");
    let builder = builder("ann").timeout(Duration::from_secs(5));
    let mut ann = loop {
        match builder.connect(path.clone()) {
            Ok(client) => break client,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    ann.send("#ann#n1", b"it works").expect("sent");
    assert_eq!(next_text(&mut ann), "it works");
    kill_process(Pid::from_child(&daemon), Signal::TERM).expect("it runs");
    assert!(daemon.wait().expect("a child").success());
}

#[test]
fn lost_lines_of_the_log_are_counted() {
    let cluster = Cluster::start(1, "");
    assert_eq!(counter(&cluster, "log_lines_lost"), 0);
}
