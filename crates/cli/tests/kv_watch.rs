//! `rota kv watch` beside real processes, which are killed while it prints.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rota_kv::KvConfig;
use rota_node::VoteStorage;
use rota_resp::{Replies, Reply, Request};

const PATIENCE: Duration = Duration::from_secs(60);
const KEYS: usize = 6;

/// Ends when this is dropped.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Store {
    config: KvConfig,
    file: PathBuf,
    processes: Vec<Option<Ends>>,
}

impl Store {
    fn start(of: (u16, u16), port: u16, directory: &Path) -> Self {
        let config = KvConfig::loopback(of, port, (directory, VoteStorage::Async));
        let file = directory.join("rota.toml");
        std::fs::write(&file, config.to_toml().expect("a file")).expect("it is ours");
        for name in ["votes", "states"] {
            std::fs::create_dir(directory.join(name)).expect("it is ours");
        }
        let count = config.kv.process.len();
        let mut store = Self {
            config,
            file,
            processes: (0..count).map(|_| None).collect(),
        };
        (0..count).for_each(|at| store.begin(at));
        store
    }

    fn begin(&mut self, at: usize) {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_rota"));
        serve.args(["kv", "serve", "--node", &(at + 1).to_string(), "--config"]);
        let serve = serve.arg(&self.file).stderr(Stdio::null()).spawn();
        self.processes[at] = Some(Ends(serve.expect("it starts")));
    }

    fn kill(&mut self, at: usize) {
        self.processes[at] = None;
    }

    /// A client of a process, once that serves clients.
    fn client(&self, at: usize) -> Client {
        let port = self.config.kv.process[at].redis_port.expect("a port");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let began = Instant::now();
        loop {
            if let Ok(stream) = TcpStream::connect(address) {
                stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
                return Client(stream, Replies::new(4 << 20));
            }
            assert!(began.elapsed() < PATIENCE, "it does not listen");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What is printed of changes: on standard output, and whatever else is said.
    fn watch(&self, more: &[&str]) -> (Ends, ChildStdout, Receiver<String>) {
        let mut watch = Command::new(env!("CARGO_BIN_EXE_rota"));
        watch
            .args(["kv", "watch", "w:", "--config"])
            .arg(&self.file);
        watch
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = watch.spawn().expect("it starts");
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(err.expect("piped"))
                .lines()
                .map_while(Result::ok)
            {
                let _ = tell.send(line);
            }
        });
        (Ends(child), out.expect("piped"), told)
    }
}

struct Client(TcpStream, Replies);

impl Client {
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

    /// Sets a key; how often that was asked for again, as nobody knew whether it was done.
    fn set(&mut self, key: &str, value: &str) -> usize {
        let began = Instant::now();
        for again in 0.. {
            if self.say(&["SET", key, value]) == Reply::OK {
                return again;
            }
            assert!(began.elapsed() < PATIENCE, "nothing is ordered");
            thread::sleep(Duration::from_millis(50));
        }
        unreachable!("it has asked for ever")
    }
}

/// The parts of a line.
fn parts(line: &str) -> Vec<&str> {
    line.split('\t').collect()
}

#[test]
fn nothing_is_left_out_or_printed_twice_where_processes_are_killed() {
    const LAST: usize = 120;
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = Store::start((2, 3), 31_500, directory.path());
    // One process of each partition, which are not killed.
    let mut clients = [2, 5].map(|at| store.client(at));
    for client in &mut clients {
        client.set("ready:{foo}", "1");
        client.set("ready:{bar}", "1");
    }
    let (mut watch, out, said) = store.watch(&[]);
    for _ in 0..2 {
        let line = said.recv_timeout(PATIENCE).expect("it says from where");
        assert!(line.contains(": from ") && line.ends_with(" on"), "{line}");
    }
    let mut again = [0; KEYS];
    for value in 1..=LAST {
        // The first of each partition is the one that is asked.
        match value {
            30 => store.kill(0),
            60 => store.begin(0),
            75 => store.kill(3),
            _ => {}
        }
        for (key, again) in again.iter_mut().enumerate() {
            let client = &mut clients[(key + value) % 2];
            *again += client.set(&format!("w:{key}"), &value.to_string());
        }
    }
    clients[0].set("w:end:{foo}", "1");
    clients[0].set("w:end:{bar}", "1");
    let mut values: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let (mut ends, mut lines) = (0, 0);
    for line in BufReader::new(out).lines() {
        let line = line.expect("text");
        let [of, place, "set", key, value] = parts(&line)[..] else {
            panic!("{line}");
        };
        lines += 1;
        places.insert(of.to_owned(), place.to_owned());
        match key.starts_with("w:end") {
            true => ends += 1,
            false => values
                .entry(key.to_owned())
                .or_default()
                .push(value.parse().expect("a number")),
        }
        if ends == 2 {
            break;
        }
    }
    let _ = watch.0.kill();
    let expected: Vec<usize> = (1..=LAST).collect();
    assert_eq!(values.len(), KEYS);
    for (key, mut of) in values {
        let count = of.len();
        of.dedup();
        assert_eq!(of, expected, "{key}");
        let at: usize = key[2..].parse().expect("a number");
        assert!(count - of.len() <= again[at], "{key} was printed twice");
    }
    // It goes on from the last place of each, at whatever process; and all of it is there from the beginning.
    let from: Vec<String> = places
        .iter()
        .map(|(of, place)| format!("{of}={place}"))
        .collect();
    clients[1].set("w:0", "last");
    let last = printed(&store, &["--from", &from.join(","), "--count", "1"]);
    assert_eq!(parts(&last[0])[2..], ["set", "w:0", "last"], "{last:?}");
    let count = (lines + 1).to_string();
    assert_eq!(
        printed(&store, &["--from", "0", "--count", &count]).len(),
        lines + 1
    );
    refusals(&store);
}

/// All lines until it ends by itself.
fn printed(store: &Store, more: &[&str]) -> Vec<String> {
    let (mut watch, out, _said) = store.watch(more);
    let lines = BufReader::new(out).lines();
    let lines = lines.map(|line| line.expect("text")).collect();
    assert!(watch.0.wait().expect("it ends").success());
    lines
}

fn refusals(store: &Store) {
    for (more, status) in [
        (&["--from", "7"][..], 2),
        (&["--from", "1=7"], 2),
        (&["--partition", "9"], 2),
        (&["--count", "0"], 2),
    ] {
        let (mut watch, _out, _said) = store.watch(more);
        let ended = watch.0.wait().expect("it ends");
        assert_eq!(ended.code(), Some(status), "{more:?}");
    }
}
