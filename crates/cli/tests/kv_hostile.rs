//! Clients that harm: thousands of them, one that reads nothing, some that announce more than they may send. The process has bounded memory, and serves the others.
//!
//! `ROTA_CONNECTIONS=10000` for as many as the limit is; figures are printed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rota_kv::KvConfig;
use rota_node::VoteStorage;
use rota_resp::{Replies, Reply, Request};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const PATIENCE: Duration = Duration::from_secs(60);
/// It may grow by so much.
const MOST_KIB: u64 = 700 << 10;

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Served {
    fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()));
        let status = status.expect("it is there");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let words = line.expect("a line").split_whitespace();
        words.skip(1).flat_map(str::parse).next().expect("a number")
    }
}

struct Client(TcpStream, Replies);

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self(stream, Replies::new(4 << 20))
    }

    fn say(&mut self, words: &[&str]) -> Reply {
        let mut out = Vec::new();
        Request::write(words, &mut out);
        self.0.write_all(&out).expect("it is heard");
        let mut buffer = [0; 65_536];
        loop {
            if let Some(reply) = self.1.next().expect("a reply") {
                return reply;
            }
            let read = self.0.read(&mut buffer).expect("a reply in time");
            assert!(read > 0, "the connection has ended");
            self.1.push(&buffer[..read]);
        }
    }

    /// Half of a few hundred answers took no longer, and 99 of 100.
    fn times(&mut self) -> (Duration, Duration) {
        let ask = |_| {
            let began = Instant::now();
            assert_eq!(self.say(&["GET", "small"]), Reply::from("1"));
            began.elapsed()
        };
        let mut all: Vec<Duration> = (0..600).map(ask).collect();
        all.sort_unstable();
        (all[300], all[594])
    }
}

/// Asks for a large value again and again, and reads no answer, until nothing more is taken.
fn flood(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    let soon = Some(Duration::from_millis(500));
    stream.set_write_timeout(soon).expect("a socket");
    let mut ask = Vec::new();
    Request::write(&["GET", "large"], &mut ask);
    let many = ask.repeat(1_000);
    let end = (0..20_000).find(|_| stream.write_all(&many).is_err());
    assert!(end.is_some(), "all of it is taken");
    stream
}

fn start(config: &KvConfig, directory: &std::path::Path) -> Served {
    let file = directory.join("rota.toml");
    std::fs::write(&file, config.to_toml().expect("a file")).expect("it is ours");
    for name in ["votes", "states"] {
        std::fs::create_dir(directory.join(name)).expect("it is ours");
    }
    let mut serve = Command::new(env!("CARGO_BIN_EXE_rota"));
    serve
        .args(["kv", "serve", "--node", "1", "--config"])
        .arg(file);
    Served(serve.stderr(Stdio::null()).spawn().expect("it starts"))
}

#[test]
fn clients_that_harm_take_no_memory_without_a_bound_and_stop_nobody() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, all).expect("it may");
    let connections = std::env::var("ROTA_CONNECTIONS").ok();
    let connections = connections
        .and_then(|text| text.parse().ok())
        .unwrap_or(500);
    let directory = tempfile::tempdir().expect("a directory");
    let of = (directory.path(), VoteStorage::Memory);
    let config = KvConfig::loopback((1, 1), 24_500, of);
    let served = start(&config, directory.path());
    let port = config.kv.process[0].redis_port.expect("a port");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(began.elapsed() < PATIENCE, "it does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut client = Client::connect(address);
    while client.say(&["SET", "small", "1"]) != Reply::OK {
        assert!(began.elapsed() < PATIENCE, "nothing is ordered");
    }
    let large = "x".repeat(700_000);
    assert_eq!(client.say(&["SET", "large", &large]), Reply::OK);
    let (calm, before) = (client.times(), served.memory_kib());
    let idle: Vec<TcpStream> = (0..connections - 100)
        .map(|_| TcpStream::connect(address).expect("it is let in"))
        .collect();
    let floods: Vec<TcpStream> = (0..8).map(|_| flood(address)).collect();
    let mut announced = Vec::new();
    for _ in 0..50 {
        let mut guest = TcpStream::connect(address).expect("it is let in");
        let begins = b"*2\r\n$3\r\nGET\r\n$536870912\r\n";
        guest.write_all(begins).expect("it is heard");
        // Some of it comes, and is not kept; or the client is hung up on before it has sent that.
        let _ = guest.write_all(&[b'x'; 3_000_000]);
        announced.push(guest);
        // As much as it may, and not the end of it.
        let mut guest = TcpStream::connect(address).expect("it is let in");
        guest
            .write_all(b"*2\r\n$3\r\nGET\r\n$700000\r\n")
            .expect("it is heard");
        guest.write_all(&[b'x'; 690_000]).expect("it is heard");
        announced.push(guest);
    }
    let harmed = client.times();
    let after = served.memory_kib();
    println!(
        "{connections} connections: p50 and p99 {calm:?}, harmed {harmed:?}; {before} KiB, then {after}"
    );
    assert!(after < before + MOST_KIB, "{before} KiB, then {after}");
    drop((idle, floods, announced));
    assert_eq!(client.say(&["GET", "small"]), Reply::from("1"));
}
