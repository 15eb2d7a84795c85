//! A real server of etcd, for as long as a test needs it.

use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;

/// The lines of a server that serves clients, without TLS and with it; since etcd 3.5 the latter two.
const READY: [&str; 4] = [
    "serving insecure client requests",
    "serving client requests on",
    "serving client traffic insecurely",
    "serving client traffic securely",
];

/// See the module. It ends with this value, also when a test panics.
pub struct Server {
    address: IpAddr,
    ports: (u16, u16),
    /// The names and addresses of all members for each other: `NAME=URL`, by commas.
    members: String,
    /// The scheme for clients; how to serve `https` the command has to say.
    pub scheme: &'static str,
    directory: TempDir,
    /// Its process, while it runs.
    pub child: Option<Child>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Server {
    /// One that does not run yet, at this address: ports for clients and for other members.
    pub fn new(address: IpAddr, ports: (u16, u16)) -> Self {
        Self::members(address, &[ports]).remove(0)
    }

    /// The members of one cluster, which do not run yet.
    pub fn members(address: IpAddr, ports: &[(u16, u16)]) -> Vec<Self> {
        let member = |(_, port): &(u16, u16)| format!("at-{port}=http://{address}:{port}");
        let members: Vec<String> = ports.iter().map(member).collect();
        let one = |ports: &(u16, u16)| Self {
            address,
            ports: *ports,
            members: members.join(","),
            scheme: "http",
            directory: tempfile::tempdir().expect("a directory"),
            child: None,
        };
        ports.iter().map(one).collect()
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        let scheme = self.scheme;
        format!("{scheme}://{}:{}", self.address, self.ports.0)
    }

    /// Starts it with `command`, which runs the program `etcd`, on the data that it has left; waits until it serves.
    pub fn start(&mut self, command: Command) {
        let lines = self.launch(command);
        self.expect_ready(&lines);
    }

    /// Starts it, and does not wait; hands back what it says.
    pub fn launch(&mut self, mut command: Command) -> Receiver<String> {
        let port = self.ports.1;
        let (clients, members) = (self.url(), format!("http://{}:{port}", self.address));
        let child = command
            .args(["--name", &format!("at-{port}"), "--data-dir"])
            .arg(self.directory.path())
            .args(["--listen-client-urls", &clients])
            .args(["--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &members])
            .args(["--initial-advertise-peer-urls", &members])
            .args(["--initial-cluster", &self.members])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("`etcd`, of the package etcd-server: `cargo xtask setup`");
        let lines = lines_of(&mut child);
        self.child = Some(child);
        lines
    }

    /// Waits until it serves clients.
    pub fn expect_ready(&self, lines: &Receiver<String>) {
        loop {
            let line = lines.recv_timeout(Duration::from_secs(20));
            let line = line.expect("`etcd` (package etcd-server: `cargo xtask setup`) serves");
            if READY.iter().any(|ready| line.contains(ready)) {
                return;
            }
        }
    }

    /// Ends it as `kill -9` does, if it runs.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The lines of the server, for as long as a test reads them; later ones are read and dropped.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let stderr = child.stderr.take().expect("a pipe");
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}
