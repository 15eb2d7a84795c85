//! A thousand clients of one daemon, ten thousand groups, a hundred joins a second, and a stream to all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_client::{Client, Event};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::bad_clients::status;
use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder, client, meet, member};

const CLIENTS: usize = 1000;
/// Groups of one client each: ten for each client.
const GROUPS: usize = 10_000;
/// Groups to which all clients belong, a hundred to each.
const STREAMS: usize = 10;
/// Messages of each speaker to a stream, and as many to groups of one.
const COUNT: usize = 2000;
const SPEAKERS: usize = 2;
/// From one message of a speaker, or from one join, to the next.
const PERIOD: Duration = Duration::from_millis(10);
/// One after the other, a period apart.
const JOINS: usize = 1000;

/// What a daemon may have at most, in KiB: itself with its ring, each client, and each group of one.
const BASE_KIB: usize = 40 << 10;
const CLIENT_KIB: usize = 24;
const GROUP_KIB: usize = 2;

/// As many descriptors as this process may have: its daemons, too, as they come after it.
pub fn raise_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, all).expect("it may");
    let enough = maximum.is_none_or(|most| most > 2 * CLIENTS as u64);
    assert!(enough, "this test needs descriptors: ulimit -Hn 4096");
}

/// Memory of a process in KiB: `VmRSS` as it is now, `VmHWM` the most it ever was.
pub fn memory(pid: u32, key: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with(key));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.expect("a line").parse().expect("a number")
}

/// The group of one to which message `number` of a speaker goes.
const fn group_of(number: usize) -> usize {
    number * 7919 % GROUPS
}

/// A speaker's messages alternate between a stream and a group of one.
fn destination(at: usize) -> String {
    let number = at / 2;
    match at % 2 {
        0 => format!("stream{}", number % STREAMS),
        _ => format!("g{}", group_of(number)),
    }
}

/// Whether message `at` of any speaker is for client `index`.
const fn is_for(index: usize, at: usize) -> bool {
    let number = at / 2;
    match at % 2 {
        0 => number % STREAMS == index % STREAMS,
        _ => group_of(number) / (GROUPS / CLIENTS) == index,
    }
}

struct Listener {
    client: Client,
    missing: usize,
    /// Speakers and their messages, as they came.
    heard: Vec<(usize, usize)>,
}

impl Listener {
    fn new(cluster: &Cluster, index: usize) -> Self {
        // A few are told views.
        let builder = builder(&format!("c{index}")).membership(index.is_multiple_of(50));
        let client = builder.connect(cluster.socket(1)).expect("let in");
        Self {
            client,
            missing: SPEAKERS * (0..2 * COUNT).filter(|at| is_for(index, *at)).count(),
            heard: Vec::new(),
        }
    }

    fn join(&mut self, index: usize) {
        let client = &mut self.client;
        client
            .join(&format!("stream{}", index % STREAMS))
            .expect("it joins");
        let own = GROUPS / CLIENTS;
        for group in index * own..(index + 1) * own {
            client.join(&format!("g{group}")).expect("it joins");
        }
    }

    /// Whether there was anything.
    fn listen(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.client.try_recv().expect("it is connected") {
            any = true;
            if let Event::Message(message) = event {
                let text = String::from_utf8_lossy(&message.payload);
                let mut words = text.split(' ').map(|word| word.parse::<usize>());
                let mut number = || words.next().and_then(Result::ok).expect("a number");
                self.heard.push((number(), number()));
                self.missing = self.missing.checked_sub(1).expect("nothing comes twice");
            }
        }
        any
    }
}

/// On a crowded host a daemon may be taken for dead, and nobody is promised the messages of another ring.
pub struct Ring(u64);

impl Ring {
    pub fn new(cluster: &Cluster) -> Self {
        Self(Self::configurations(cluster))
    }

    fn configurations(cluster: &Cluster) -> u64 {
        let configurations = &status(cluster, 1)["counters"]["configurations"];
        configurations.as_u64().expect("a number")
    }

    /// Whether it is another one now.
    pub fn is_broken(&self, cluster: &Cluster) -> bool {
        self.0 != Self::configurations(cluster)
    }
}

/// Does something that needs a ring that lasts: again if it did not last.
pub fn on_one_ring(attempt: impl Fn() -> Option<()>) {
    for _ in 0..3 {
        if attempt().is_some() {
            return;
        }
        println!("the ring broke, as its processes got no time: once more");
    }
    panic!("no ring lasts: this host is too crowded for this test");
}

/// Listens for so many clients until all have what is theirs, or there is no use in it.
fn listen(mut listeners: Vec<Listener>, useless: &Arc<AtomicBool>) -> JoinHandle<Vec<Listener>> {
    let useless = Arc::clone(useless);
    thread::spawn(move || {
        let mut last = Instant::now();
        while listeners.iter().any(|one| one.missing > 0) && !useless.load(SeqCst) {
            let any = listeners
                .iter_mut()
                .fold(false, |any, one| one.listen() | any);
            if any {
                last = Instant::now();
            } else {
                assert!(last.elapsed() < PATIENCE, "messages are missing");
                thread::sleep(Duration::from_millis(1));
            }
        }
        listeners
    })
}

fn wait_until(start: Instant, step: usize) {
    let at = start + PERIOD * step as u32;
    thread::sleep(at.saturating_duration_since(Instant::now()));
}

fn speak(cluster: &Cluster, speaker: usize) -> JoinHandle<()> {
    let mut client = client(cluster, speaker as u16 + 1, "speaker");
    thread::spawn(move || {
        let start = Instant::now();
        for at in 0..2 * COUNT {
            wait_until(start, at / 4);
            let text = format!("{speaker} {at} {:100}", "");
            client
                .send(destination(at).as_str(), text.as_bytes())
                .expect("it is sent");
        }
        client.close().expect("all of it is taken");
    })
}

/// Clients join groups that others are in, and leave them; how long it took.
fn come_and_go(cluster: &Cluster) -> JoinHandle<Duration> {
    let mut clients: Vec<Client> = (0..10)
        .map(|at| member(cluster, 1 + at % 2, &format!("j{at}")))
        .collect();
    thread::spawn(move || {
        let start = Instant::now();
        for at in 0..JOINS {
            wait_until(start, at);
            let group = match at % 10 {
                0 => format!("stream{}", at / 10 % STREAMS),
                _ => format!("g{}", group_of(at)),
            };
            let number = at % clients.len();
            let client = &mut clients[number];
            client.join(&group).expect("it joins");
            client.leave(&group).expect("it leaves");
            while client.try_recv().expect("connected").is_some() {}
        }
        start.elapsed()
    })
}

fn check(listeners: &[Listener]) {
    // By stream: its messages as its first client heard them.
    let mut orders: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for (index, listener) in listeners.iter().enumerate() {
        for speaker in 0..SPEAKERS {
            let of = listener.heard.iter().filter(|(from, _)| *from == speaker);
            let expected = (0..2 * COUNT).filter(|at| is_for(index, *at));
            assert!(
                of.map(|(_, at)| *at).eq(expected),
                "client {index} of {speaker}"
            );
        }
        let stream = listener.heard.iter().filter(|(_, at)| at % 2 == 0);
        let stream: Vec<(usize, usize)> = stream.copied().collect();
        let order = orders
            .entry(index % STREAMS)
            .or_insert_with(|| stream.clone());
        assert!(*order == stream, "client {index} heard another order");
    }
}

#[test]
fn a_thousand_clients_in_ten_thousand_groups_lose_nothing() {
    raise_descriptors();
    on_one_ring(many_clients);
}

/// `None` if the ring broke meanwhile.
fn many_clients() -> Option<()> {
    let cluster = Cluster::patient(2, "");
    meet(&cluster, &[1, 2]);
    let pid = cluster.pid(1);
    let empty = memory(pid, "VmRSS");
    let listeners = (0..CLIENTS).map(|at| Listener::new(&cluster, at));
    let mut listeners: Vec<Listener> = listeners.collect();
    let connected = memory(pid, "VmRSS");
    for (index, listener) in listeners.iter_mut().enumerate() {
        listener.join(index);
    }
    let settled = memory(pid, "VmRSS");
    let mut asking = client(&cluster, 2, "asking");
    let groups = asking.groups().expect("a list");
    assert_eq!(groups.len(), GROUPS + STREAMS);

    let (ring, useless) = (Ring::new(&cluster), Arc::new(AtomicBool::new(false)));
    let mut threads = Vec::new();
    while !listeners.is_empty() {
        let rest = listeners.split_off(listeners.len().min(CLIENTS / 4));
        threads.push(listen(std::mem::replace(&mut listeners, rest), &useless));
    }
    let joins = come_and_go(&cluster);
    let start = Instant::now();
    let speakers: Vec<_> = (0..SPEAKERS).map(|at| speak(&cluster, at)).collect();
    for speaker in speakers {
        speaker.join().expect("it has sent all");
    }
    let joining = joins.join().expect("all have joined");
    while !threads.iter().all(JoinHandle::is_finished) {
        thread::sleep(Duration::from_millis(10));
        useless.fetch_or(ring.is_broken(&cluster), SeqCst);
    }
    let heard = threads
        .into_iter()
        .flat_map(|one| one.join().expect("all is heard"));
    let heard: Vec<Listener> = heard.collect();
    let took = start.elapsed();
    if ring.is_broken(&cluster) {
        return None;
    }
    check(&heard);
    let most = memory(pid, "VmHWM");
    println!(
        "KiB: {empty} without clients, {connected} with {CLIENTS}, {settled} with {GROUPS} groups, at most {most}; \
         {} deliveries in {took:.1?}, {JOINS} joins in {joining:.1?}",
        heard.iter().map(|one| one.heard.len()).sum::<usize>()
    );
    let bound = BASE_KIB + CLIENTS * CLIENT_KIB + GROUPS * GROUP_KIB;
    assert!(most < bound, "{most} KiB are more than {bound}");
    Some(())
}
