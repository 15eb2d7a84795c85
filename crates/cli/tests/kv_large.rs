//! A process of a store that has lost a large state gets another one's, while clients go on. `ROTA_LARGE_MB=1000 cargo test --profile campaign -p rota
//! --test kv_large -- --nocapture` has a state of so many MB, and says how long clients waited, and how much less was done.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rota_kv::KvConfig;
use rota_node::VoteStorage;
use rota_resp::{Replies, Reply, Request};

const PATIENCE: Duration = Duration::from_secs(60);
const VALUE: usize = 1000;
/// Clients that load it: half of them at each of the two that stay.
const CLIENTS: u64 = 16;
/// Values that are written at once when it is filled.
const BATCH: u64 = 100;

/// Ends with its process.
struct Served(Child);

impl Served {
    fn start(file: &Path, node: u16) -> Self {
        let said = file.with_file_name(format!("said-{node}"));
        let said = std::fs::File::create(said).expect("it is ours");
        let mut serve = Command::new(env!("CARGO_BIN_EXE_rota"));
        serve.args(["kv", "serve", "--node", &node.to_string(), "--config"]);
        Self(serve.arg(file).stderr(said).spawn().expect("it starts"))
    }

    /// The most memory that it has had, in MiB.
    fn memory(&self) -> u64 {
        let status = format!("/proc/{}/status", self.0.id());
        let status = std::fs::read_to_string(status).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let mut words = line.expect("a line").split_whitespace();
        let kib: u64 = words.nth(1).expect("a number").parse().expect("a number");
        kib / 1024
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A connection of a client.
struct Talk(TcpStream, Replies);

impl Talk {
    fn open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Some(Self(stream, Replies::new(1 << 20)))
    }

    /// Says several commands at once, and hears what each is answered.
    fn say(&mut self, commands: &[Vec<&[u8]>]) -> Vec<Reply> {
        let mut out = Vec::new();
        for command in commands {
            Request::write(command, &mut out);
        }
        self.0.write_all(&out).expect("it is there");
        let mut replies = Vec::new();
        let mut buffer = [0; 16_384];
        while replies.len() < commands.len() {
            match self.1.next().expect("a reply") {
                Some(reply) => replies.push(reply),
                None => {
                    let read = self.0.read(&mut buffer).expect("an answer");
                    assert!(read > 0, "it has closed the connection");
                    self.1.push(&buffer[..read]);
                }
            }
        }
        replies
    }
}

/// The store: its file, and where clients connect, and metrics are.
struct Store {
    file: PathBuf,
    states: PathBuf,
    clients: Vec<SocketAddr>,
    metrics: Vec<SocketAddr>,
}

impl Store {
    /// One partition of three replicas. Its address is of this process of tests alone.
    fn new(directory: &Path, port: u16) -> Self {
        let mut config = KvConfig::loopback((1, 3), port, (directory, VoteStorage::Async));
        let [_, a, b, c] = std::process::id().to_be_bytes();
        let host = IpAddr::from([127, 64 + a, b, c]);
        for node in &mut config.rings.common.nodes {
            node.address = host;
        }
        for ring in &mut config.rings.rings {
            let paxos = ring.paxos.as_mut().expect("it has one");
            paxos.kept_instances = NonZeroU64::new(100);
        }
        for name in ["votes", "states"] {
            std::fs::create_dir(directory.join(name)).expect("it is ours");
        }
        let file = directory.join("rota.toml");
        std::fs::write(&file, config.to_toml().expect("a file")).expect("it is ours");
        let all = config.kv.process.iter();
        let at = |port: Option<u16>| SocketAddr::new(host, port.expect("a port"));
        Self {
            file,
            states: config.kv.state_dir.clone(),
            clients: all.clone().map(|of| at(of.redis_port)).collect(),
            metrics: all.map(|of| at(of.metrics_port)).collect(),
        }
    }

    /// What a process says of itself, all metrics of that name taken together; `None` if it does not answer.
    fn metric(&self, node: usize, name: &str) -> Option<u64> {
        let mut stream = TcpStream::connect(self.metrics[node]).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let named = text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with([' ', '{']))
        });
        let values = named.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        let values: Vec<f64> = values.collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() as u64)
    }

    /// Puts that many values there.
    fn fill(&self, keys: u64) {
        let value = vec![b'v'; VALUE];
        let next = AtomicU64::new(0);
        thread::scope(|scope| {
            for at in 0..CLIENTS as usize {
                let (next, value) = (&next, &value);
                scope.spawn(move || {
                    let mut talk = Talk::open(self.clients[at % 2]).expect("it serves");
                    loop {
                        let from = next.fetch_add(BATCH, SeqCst);
                        if from >= keys {
                            return;
                        }
                        let names = (from..keys.min(from + BATCH)).map(key);
                        let names: Vec<String> = names.collect();
                        let put = |name| set(name, value);
                        let replies = talk.say(&names.iter().map(put).collect::<Vec<_>>());
                        let wrong = replies.iter().find(|reply| reply.is_error());
                        assert!(wrong.is_none(), "{wrong:?}");
                    }
                });
            }
        });
    }
}

fn key(number: u64) -> String {
    format!("user{number:020}")
}

fn set<'a>(name: &'a String, value: &'a [u8]) -> Vec<&'a [u8]> {
    vec![b"SET", name.as_bytes(), value]
}

fn until(patience: Duration, what: &str, mut is_done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_done() {
        assert!(began.elapsed() < patience, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The load: how long a client waits between two, whether it is over, when each was answered and how long it took.
#[derive(Default)]
struct Load {
    pause: Mutex<Duration>,
    is_over: AtomicBool,
    calls: Mutex<Vec<(Instant, Duration)>>,
}

/// The load is over when this is dropped, also by a failure.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

impl Load {
    /// Writes values until it is over.
    fn client(&self, address: SocketAddr, seed: u64, keys: u64) {
        let mut talk = Talk::open(address).expect("it serves");
        let value = vec![b'w'; VALUE];
        let mut next = Instant::now();
        for number in 0_u64.. {
            if self.is_over.load(SeqCst) {
                return;
            }
            let pause = *self.pause.lock().expect("nobody panics");
            next = match pause.is_zero() {
                true => Instant::now(),
                false => next + pause,
            };
            thread::sleep(next.saturating_duration_since(Instant::now()));
            let spread = (seed + number * CLIENTS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let name = key((spread >> 20) % keys);
            let asked = Instant::now();
            let reply = talk.say(&[set(&name, &value)]).remove(0);
            assert!(!reply.is_error(), "{reply:?}");
            let now = Instant::now();
            let mut calls = self.calls.lock().expect("nobody panics");
            calls.push((now, now - asked));
        }
    }

    /// Answers in a second, from one moment to another; the longest wait; and the least in any two seconds.
    fn figures(&self, from: Instant, to: Instant) -> (f64, Duration, f64) {
        let calls = self.calls.lock().expect("nobody panics");
        let inside: Vec<_> = calls
            .iter()
            .filter(|(at, _)| (from..to).contains(at))
            .collect();
        let rate = inside.len() as f64 / (to - from).as_secs_f64();
        let longest = inside.iter().map(|(_, took)| *took).max();
        let two = Duration::from_secs(2);
        let (mut least, mut begin) = (f64::MAX, from);
        while begin + two <= to {
            let in_two = |at: &Instant| (begin..begin + two).contains(at);
            let count = inside.iter().filter(|(at, _)| in_two(at)).count();
            least = least.min(count as f64 / 2.0);
            begin += Duration::from_millis(250);
        }
        (rate, longest.unwrap_or_default(), least.min(rate))
    }
}

#[test]
fn a_process_that_has_lost_a_large_state_comes_back() {
    let mb = std::env::var("ROTA_LARGE_MB").map_or(24, |text| text.parse().expect("a number"));
    let keys: u64 = mb * 1_000_000 / VALUE as u64;
    let phase = Duration::from_secs(if mb > 100 { 10 } else { 1 });
    // To write, to send and to verify it.
    let patience = PATIENCE + Duration::from_millis(300 * mb);
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::new(directory.path(), 24_520);
    let start = |node| Served::start(&store.file, node);
    let [first, second, third] = [1, 2, 3].map(start);
    until(patience, "all are there", || {
        (0..3).all(|at| store.metric(at, "rota_kv_open") == Some(1))
    });
    store.fill(keys);
    let load = Load::default();
    thread::scope(|scope| {
        let ends = Ends(&load.is_over);
        for seed in 0..CLIENTS {
            let (load, address) = (&load, store.clients[seed as usize % 2]);
            scope.spawn(move || load.client(address, seed, keys));
        }
        thread::sleep(phase);
        let now = Instant::now();
        let (most, ..) = load.figures(now - phase, now);
        *load.pause.lock().expect("nobody panics") =
            Duration::from_secs_f64(CLIENTS as f64 / (0.75 * most));
        drop(third);
        let states = store.states.join("node-3");
        std::fs::remove_dir_all(&states).expect("it is ours");
        let written = |at| store.metric(at, "rota_kv_checkpoints_total").unwrap_or(0);
        let before = [written(0), written(1)];
        thread::sleep(phase);
        let now = Instant::now();
        let (usual, stall, least) = load.figures(now - phase, now);
        until(patience, "they have states behind it", || {
            written(0) > before[0] && written(1) > before[1]
        });
        let began = Instant::now();
        let third = start(3);
        let metric = |name| store.metric(2, name).unwrap_or(0);
        until(patience, "it has a state", || {
            metric("rota_kv_recoveries_total") > 0
        });
        let transfer = began.elapsed();
        until(patience, "it has caught up", || metric("rota_kv_open") == 1);
        let caught_up = began.elapsed();
        thread::sleep(phase / 4);
        let (rate, longest, lowest) = load.figures(began, Instant::now());
        drop(ends);
        let recoveries = metric("rota_kv_recoveries_total");
        let memory = [&first, &second, &third].map(Served::memory);
        println!(
            "{mb} MB: {most:.0} puts/s at most; before, at 75 %: {usual:.0}/s, longest {stall:.0?}, least in 2 s {least:.0}/s; while it came back: {rate:.0}/s, longest {longest:.0?}, least in 2 s {lowest:.0}/s ({:.2}); state after {transfer:.1?}, caught up after {caught_up:.1?}, {recoveries} transfers; MiB at most {memory:?}",
            lowest / usual
        );
        assert_eq!(recoveries, 1, "one transfer is enough");
        let bytes = metric("rota_kv_recovered_bytes_total");
        assert!(bytes >= mb * 1_000_000, "{bytes}");
        assert_eq!(store.metric(2, "rota_kv_keys"), Some(keys));
    });
    drop((first, second));
}
