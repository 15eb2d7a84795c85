//! Processes on this host.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rota_core::contract::NodeId;
use rota_log::{LogConfig, LogProcess};
use rota_node::VoteStorage;
use rota_resp::Reply;

use crate::common::{Client, PATIENCE, tcp};

pub fn node(number: u16) -> NodeId {
    NodeId::new(number).expect("not 0")
}

pub struct Cluster {
    pub config: LogConfig,
    processes: Vec<Option<LogProcess>>,
}

impl Cluster {
    /// So many rings, and so many processes.
    pub fn start(of: (u16, u16), port: u16, directory: &Path) -> Self {
        Self::with((of, port, directory), |_| {})
    }

    pub fn with(
        (of, port, directory): ((u16, u16), u16, &Path),
        change: impl FnOnce(&mut LogConfig),
    ) -> Self {
        let mut config = LogConfig::loopback(of, port, (directory, VoteStorage::Async));
        change(&mut config);
        for name in ["votes", "logs"] {
            fs::create_dir_all(directory.join(name)).expect("it is ours");
        }
        let mut cluster = Self {
            config,
            processes: Vec::new(),
        };
        for number in 1..=of.1 {
            cluster.processes.push(None);
            cluster.begin(number);
        }
        cluster
    }

    /// Rings keep no more messages than these for those who are away, if others have states behind them.
    pub fn with_short_memory(port: u16, directory: &Path) -> Self {
        Self::with(((1, 3), port, directory), |config| {
            for ring in &mut config.rings.rings {
                let paxos = ring.paxos.get_or_insert_default();
                paxos.kept_instances = NonZeroU64::new(400);
            }
        })
    }

    pub fn begin(&mut self, number: u16) {
        let process = LogProcess::start(&self.config, node(number)).expect("it starts");
        self.processes[usize::from(number) - 1] = Some(process);
    }

    pub fn end(&mut self, number: u16) {
        self.processes[usize::from(number) - 1] = None;
    }

    /// A client that has said nothing yet.
    pub fn stranger(&self, number: u16) -> Client {
        let process = self.config.process(node(number)).expect("a process");
        Client::new(tcp(self.config.clients_of(process).expect("a port")))
    }

    /// Has a process take the users of the configuration.
    pub fn reload(&self, number: u16) -> bool {
        let process = self.processes[usize::from(number) - 1].as_ref();
        let reloaded = process.expect("it runs").reload(&self.config);
        reloaded.expect("they are users")
    }

    pub fn client(&self, number: u16) -> Client {
        let mut client = self.stranger(number);
        // Until it has caught up.
        client.insist("DBSIZE");
        client
    }

    /// The directory of a process.
    pub fn directory(&self, number: u16) -> PathBuf {
        self.config.log.state_dir.join(format!("node-{number}"))
    }

    /// What a process says of itself.
    pub fn metrics(&self, number: u16) -> String {
        let process = self.config.process(node(number)).expect("a process");
        let address = ([127, 0, 0, 1], process.metrics_port.expect("a port"));
        let mut stream = TcpStream::connect(SocketAddr::from(address)).expect("it is served");
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is heard");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    /// One of its metrics.
    pub fn metric(&self, number: u16, name: &str) -> u64 {
        let text = self.metrics(number);
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|line| line.trim().parse().ok());
        value.unwrap_or_else(|| panic!("{name}: {text}"))
    }

    /// Until a metric is as it should be.
    pub fn wait_for(&self, number: u16, name: &str, is: impl Fn(u64) -> bool) {
        let began = Instant::now();
        while !is(self.metric(number, name)) {
            let text = self.metrics(number);
            assert!(began.elapsed() < PATIENCE, "{name}: {text}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Positions and values of entries.
pub fn entries(reply: &Reply) -> Vec<(u64, String)> {
    let text = |reply: &Reply| match reply {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    };
    let Reply::Array(entries) = reply else {
        panic!("{reply:?}");
    };
    let entry = |entry: &Reply| match entry {
        Reply::Array(parts) => match &parts[..] {
            [id, Reply::Array(fields)] => {
                let id = text(id);
                let position = id.strip_suffix("-0").expect("a position");
                (position.parse().expect("a position"), text(&fields[1]))
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    entries.iter().map(entry).collect()
}
