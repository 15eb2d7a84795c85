//! Daemons of one cluster, each a process.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use rota_net::{NodeConfig, Transport, probe_multicast};
use tempfile::TempDir;

/// Clusters of this process take their ports one after the other.
static CLUSTERS: AtomicU16 = AtomicU16::new(0);

/// Daemons `n1`, `n2` and so on, with a directory for their sockets.
pub struct Cluster {
    dir: TempDir,
    daemons: Vec<Child>,
}

impl Cluster {
    /// Starts so many daemons; `settings` go into the section `[daemon]` of their configuration.
    pub fn start(nodes: u16, settings: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let base = 21_000 + 40 * CLUSTERS.fetch_add(1, Ordering::Relaxed);
        let mut config = NodeConfig::loopback(nodes, base);
        if probe_multicast(Ipv4Addr::LOCALHOST.into()).is_err() {
            config.transport = Transport::Unicast;
        }
        for node in &mut config.nodes {
            node.name = Some(format!("n{}", node.id));
        }
        let text = config.to_toml().expect("TOML");
        let path = dir.path().join("rota.toml");
        let sockets = dir.path().display();
        let section = format!(
            "{text}\n[daemon]\nsocket = \"{sockets}/{{node}}.sock\"\n{settings}\n[daemon.spread]\n\
             socket = \"{sockets}/{{node}}.spread\"\n"
        );
        std::fs::write(&path, section).expect("a file");
        let mut cluster = Self {
            dir,
            daemons: Vec::new(),
        };
        for id in 1..=nodes {
            let daemon = cluster.spawn(id);
            cluster.daemons.push(daemon);
        }
        cluster
    }

    /// Starts a daemon, and waits until clients can connect.
    fn spawn(&self, id: u16) -> Child {
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(["daemon", "--node", &id.to_string(), "--config"])
            .arg(self.dir.path().join("rota.toml"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary");
        let log = daemon.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(log).lines().map_while(Result::ok);
        let started = lines.find(|line| line.contains("a daemon has started"));
        assert!(started.is_some(), "daemon {id} did not start");
        // Its log must not fill the pipe; what it says is shown where a test fails.
        thread::spawn(move || lines.for_each(|line| println!("{id}: {line}")));
        daemon
    }

    /// The socket for clients of daemon `id`.
    #[expect(dead_code, reason = "for the clients of the next commit")]
    pub fn socket(&self, id: u16) -> PathBuf {
        self.dir.path().join(format!("{id}.sock"))
    }

    /// The socket for Spread's clients of daemon `id`.
    pub fn spread(&self, id: u16) -> PathBuf {
        self.dir.path().join(format!("{id}.spread"))
    }

    /// The process of daemon `id`.
    pub fn pid(&self, id: u16) -> u32 {
        self.daemons[usize::from(id) - 1].id()
    }

    /// Starts daemon `id`, which has ended, again.
    pub fn restart(&mut self, id: u16) {
        let place = usize::from(id) - 1;
        self.kill(id);
        self.daemons[place] = self.spawn(id);
    }

    /// Kills daemon `id`.
    pub fn kill(&mut self, id: u16) {
        let daemon = &mut self.daemons[usize::from(id) - 1];
        let _ = daemon.kill();
        let _ = daemon.wait();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
