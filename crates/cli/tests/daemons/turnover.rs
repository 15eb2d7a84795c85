//! The cost of a crowd that comes and goes for the others, and the share of a daemon that all clients of one user can
//! take. Times are printed, and judged by a reader on a quiet host; costs that must not be are judged here. To be run
//! by hand: `ROTA_BINARY=target/release/rota cargo test -p rota --test daemons turnover -- --ignored --nocapture`.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_client::protocol::{Destination, Hello, Request, Send};
use rota_client::{Client, ClientName, Event, Service};
use rota_net::monotonic;
use rustix::thread::{Gid, Uid, set_thread_gid, set_thread_uid};

use crate::bad_clients::{connect, frame, group, status};
use crate::cluster::Cluster;
use crate::native::{PATIENCE, client, meet};
use crate::scale::raise_descriptors;

/// From one message of the others to the next.
const PERIOD: Duration = Duration::from_millis(5);

/// A user who runs nothing.
const NOBODY: u32 = 65_534;

/// Clients of one user, or members of one group, that are told its views, in the raw.
struct Crowd {
    streams: Vec<UnixStream>,
    scratch: Vec<u8>,
    /// Bytes that were read.
    read: usize,
    /// Whose connections have ended.
    ended: usize,
}

impl Crowd {
    /// So many, as far as the daemon lets them in.
    fn new(cluster: &Cluster, count: usize) -> Self {
        let streams = (0..count).map(|at| {
            let mut stream = connect(&cluster.socket(1));
            let name = ClientName::new(&format!("m{at}")).expect("a name");
            let hello = frame(&Request::Hello(Hello::new(Some(name), true)));
            stream.write_all(&hello).expect("written");
            stream.set_nonblocking(true).expect("a socket");
            stream
        });
        Self {
            streams: streams.collect(),
            scratch: vec![0; 256 << 10],
            read: 0,
            ended: 0,
        }
    }

    /// All ask for the same.
    fn ask(&mut self, request: &Request) {
        let bytes = frame(request);
        for stream in &mut self.streams {
            stream.write_all(&bytes).expect("there is room");
        }
    }

    /// Reads what there is; whether there was something.
    fn read(&mut self) -> bool {
        let before = self.read;
        let mut ended = 0;
        for stream in &mut self.streams {
            match stream.read(&mut self.scratch) {
                Ok(0) => ended += 1,
                Ok(bytes) => self.read += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => ended += 1,
            }
        }
        self.ended = self.ended.max(ended);
        self.read > before
    }

    /// Reads until nothing has come for a while.
    fn settle(&mut self) {
        let mut last = Instant::now();
        while last.elapsed() < Duration::from_secs(2) {
            if self.read() {
                last = Instant::now();
            } else {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// How long messages take from one client to another, both of one daemon.
struct Probe {
    from: Client,
    to: Client,
    /// In nanoseconds.
    times: Vec<u64>,
}

impl Probe {
    fn new(cluster: &Cluster, id: u16) -> Self {
        let mut to = client(cluster, id, "to");
        to.join("probe").expect("it joins");
        Self {
            from: client(cluster, id, "from"),
            to,
            times: Vec::new(),
        }
    }

    /// Sends, each a while after the last one has come, until told to stop.
    fn run(mut self, stop: &AtomicBool) -> Self {
        self.times.clear();
        while !stop.load(SeqCst) {
            let began = monotonic().0;
            self.from.send("probe", b"probe").expect("sent");
            self.from.flush().expect("written");
            loop {
                let event = self.to.recv_timeout(PATIENCE).expect("connected");
                if let Event::Message(_) = event.expect("in time") {
                    break;
                }
            }
            self.times.push(monotonic().0 - began);
            thread::sleep(PERIOD);
        }
        self
    }

    /// The 99th of a hundred, and the longest, in milliseconds.
    fn times(&mut self) -> (f64, f64) {
        self.times.sort_unstable();
        let at = |place: usize| self.times[place] as f64 / 1e6;
        (at(self.times.len() * 99 / 100), at(self.times.len() - 1))
    }
}

/// Probes at both daemons while something happens: what each has seen, with a name for that.
fn while_probed(probes: Vec<Probe>, what: &str, act: impl FnOnce()) -> (Vec<Probe>, f64) {
    let stop = AtomicBool::new(false);
    let mut worst: f64 = 0.0;
    let probes = thread::scope(|scope| {
        let stop = &stop;
        let run = |probe: Probe| scope.spawn(move || probe.run(stop));
        let running: Vec<_> = probes.into_iter().map(run).collect();
        act();
        stop.store(true, SeqCst);
        let ended = running.into_iter().enumerate().map(|(at, probe)| {
            let mut probe = probe.join().expect("all have come");
            let (p99, longest) = probe.times();
            worst = worst.max(p99);
            let count = probe.times.len();
            println!(
                "{what}: node {}: p99 {p99:.1} ms, longest {longest:.1} ms ({count})",
                at + 1
            );
            probe
        });
        ended.collect()
    });
    (probes, worst)
}

fn resident_mib(cluster: &Cluster) -> usize {
    let text = fs::read_to_string(format!("/proc/{}/status", cluster.pid(1))).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    kib.and_then(|kib| kib.parse::<usize>().ok())
        .expect("a number")
        >> 10
}

fn counter(cluster: &Cluster, name: &str) -> u64 {
    status(cluster, 1)["counters"][name]
        .as_u64()
        .expect("a counter")
}

#[test]
#[ignore = "takes long, and says how long others wait"]
fn turnover_of_a_large_group_costs_no_member_its_connection() {
    raise_descriptors();
    // All are told of each change: work grows with its square. A thousand by hand.
    let count = std::env::var("ROTA_CROWD").map_or(400, |text| text.parse().expect("a number"));
    let cluster = Cluster::patient(2, "");
    meet(&cluster, &[1, 2]);
    let probes = vec![Probe::new(&cluster, 1), Probe::new(&cluster, 2)];
    let mut crowd = Crowd::new(&cluster, count);
    crowd.settle();
    let (probes, _) = while_probed(probes, "at rest", || thread::sleep(Duration::from_secs(3)));
    let (request, group) = (1, group("x"));
    crowd.ask(&Request::Join { request, group });
    crowd.settle();
    let before = resident_mib(&cluster);
    let mut most = before;
    let (probes, _) = while_probed(probes, "all leave and come back", || {
        let began = Instant::now();
        crowd.ask(&Request::Leave { request, group });
        crowd.ask(&Request::Join { request, group });
        let mut last = Instant::now();
        while last.elapsed() < Duration::from_secs(2) {
            if crowd.read() {
                last = Instant::now();
            }
            most = most.max(resident_mib(&cluster));
        }
        let took = (began.elapsed() - last.elapsed()).as_secs_f64();
        println!("{} MB told in {took:.1} s", crowd.read / 1_000_000);
    });
    drop(probes);
    let slow = counter(&cluster, "clients_slow");
    assert_eq!((slow, crowd.ended), (0, 0), "who reads stays");
    drop(crowd);
    thread::sleep(Duration::from_secs(16));
    let after = resident_mib(&cluster);
    println!("memory: {before} MiB before, {most} at most, {after} afterwards");
    assert!(
        most <= before + 64 && after <= before + 32,
        "{before} {most} {after}"
    );
}

#[test]
#[ignore = "needs root, to be another user; takes long, and says how long others wait"]
fn turnover_and_all_else_that_one_user_can_do_takes_a_quarter() {
    raise_descriptors();
    let settings =
        "clients = 400\nper_user = 100\nqueues_bytes = 268435456\nclient_queue_bytes = 4194304";
    let cluster = Cluster::patient(2, settings);
    meet(&cluster, &[1, 2]);
    for (path, mode) in [
        (cluster.dir().to_owned(), 0o755),
        (cluster.socket(1), 0o666),
    ] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(path, mode).expect("it is ours");
    }
    let probes = vec![Probe::new(&cluster, 1), Probe::new(&cluster, 2)];
    let (probes, calm) = while_probed(probes, "at rest", || thread::sleep(Duration::from_secs(3)));
    let before = resident_mib(&cluster);
    let mut most = before;
    let (probes, troubled) = while_probed(probes, "one user does all it can", || {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let hostile = scope.spawn(|| {
                set_thread_gid(Gid::from_raw(NOBODY)).expect("root may");
                set_thread_uid(Uid::from_raw(NOBODY)).expect("root may");
                misbehave(&cluster, &stop);
            });
            let until = Instant::now() + Duration::from_secs(8);
            while Instant::now() < until {
                most = most.max(resident_mib(&cluster));
                thread::sleep(Duration::from_millis(50));
            }
            let clients = counter(&cluster, "clients_now");
            println!("clients {clients}, memory {before} MiB before, {most} at most");
            assert!(clients <= 100 + 4, "{clients}");
            let (sent, garbled) = ["net_submissions", "clients_garbled"]
                .map(|name| counter(&cluster, name))
                .into();
            println!("{sent} messages and changes were ordered");
            // What it does is allowed, and much.
            assert!(garbled == 0 && sent > 10_000, "{garbled} {sent}");
            stop.store(true, SeqCst);
            hostile.join().expect("it can misbehave");
        });
    });
    println!("p99 of the others: {calm:.1} ms, then {troubled:.1} ms");
    drop(probes);
    // A quarter of what may wait for all, and what the rest of the daemon takes.
    assert!(most <= before + 64 + 64, "{before} {most}");
}

/// Clients that change a large group, ask for lists, send much and read little.
fn misbehave(cluster: &Cluster, stop: &AtomicBool) {
    let mut crowd = Crowd::new(cluster, 150);
    crowd.settle();
    crowd.streams.retain_mut(|stream| {
        let mut byte = [0];
        !matches!(stream.read(&mut byte), Ok(0))
    });
    let (request, group) = (1, group("x"));
    let mut requests = Vec::new();
    for at in 0..20 {
        let name = crate::bad_clients::group(&format!("g{at}"));
        requests.extend(frame(&Request::Join {
            request,
            group: name,
        }));
    }
    let message = frame(&Request::Send(Send {
        service: Service::Safe,
        self_discard: false,
        kind: 0,
        to: vec![Destination::Group(group)],
        payload: vec![0; 1000].into(),
    }));
    for _ in 0..50 {
        requests.extend(&message);
        requests.extend(frame(&Request::Join { request, group }));
        requests.extend(frame(&Request::Leave { request, group }));
        requests.extend(frame(&Request::List {
            request,
            group: None,
        }));
    }
    let mut written = vec![0; crowd.streams.len()];
    while !stop.load(SeqCst) {
        let streams = crowd.streams.iter_mut().zip(&mut written);
        for (at, (stream, written)) in streams.enumerate() {
            // A stream takes no more, or has ended. Half a frame that another follows would end it.
            if let Ok(bytes) = stream.write(&requests[*written..]) {
                *written = (*written + bytes) % requests.len();
            }
            if at % 2 == 0 {
                let _ = stream.read(&mut crowd.scratch);
            }
        }
    }
}
