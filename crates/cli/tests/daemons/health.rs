//! What probes are told of daemons that start, work, are excluded, have no majority, hang and come back.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use rota_node::{EngineName, PaxosConfig, VoteStorage};

use crate::cluster::{Cluster, changed_config};
use crate::metrics::get;
use crate::native::{PATIENCE, client, meet, next_text};

/// How many ports the tests of this process have looked at.
static LOOKED_AT: AtomicU16 = AtomicU16::new(0);

/// An address that nobody has, below the ports that the system hands out by itself.
fn free_address() -> SocketAddr {
    let first = 28_300 + (std::process::id() % 20) as u16 * 30;
    let next = || first + LOOKED_AT.fetch_add(1, Ordering::Relaxed) % 30;
    let mut ports = std::iter::repeat_with(next).take(30);
    let free = ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    (Ipv4Addr::LOCALHOST, free.expect("a free port")).into()
}

/// Starts daemon 1 again, with pages for probes.
fn with_pages(cluster: &mut Cluster) -> SocketAddr {
    let address = free_address();
    let metrics = format!("[daemon]\nmetrics = \"{address}\"\n");
    cluster.restart_with(1, |text| text.replacen("[daemon]\n", &metrics, 1));
    address
}

fn probe(address: SocketAddr, page: &str) -> (String, String) {
    get(address, &format!("GET {page} HTTP/1.0\r\n\r\n"))
}

/// Asks until the answer has this code and begins with these words.
fn becomes(address: SocketAddr, page: &str, code: &str, words: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let (found, text) = probe(address, page);
        if found == code && text.starts_with(words) {
            return;
        }
        assert!(Instant::now() < until, "{page} stays {found}: {text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is(address: SocketAddr, page: &str, code: &str, words: &str) {
    let (found, text) = probe(address, page);
    assert_eq!((found.as_str(), text.as_str()), (code, words), "{page}");
}

/// A thread of another process that stands still until this is dropped.
struct Stopped(Pid);

impl Stopped {
    /// Stops the thread with this number, and no other of its process.
    fn thread(number: u32) -> Self {
        let thread = Pid::from_raw(number.cast_signed());
        ptrace::seize(thread, ptrace::Options::empty()).expect("it is a child");
        ptrace::interrupt(thread).expect("it is traced");
        waitpid(thread, Some(WaitPidFlag::__WALL)).expect("it stops");
        Self(thread)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = ptrace::detach(self.0, None);
    }
}

#[test]
fn a_daemon_whose_ring_hangs_is_told_from_one_that_works_and_is_well_when_it_goes_on() {
    let mut cluster = Cluster::start(2, "");
    let address = with_pages(&mut cluster);
    meet(&cluster, &[1, 2]);
    becomes(address, "/readyz", "200", "ok\n");
    is(address, "/livez", "200", "ok\n");
    // The first thread is the ring's.
    let stopped = Stopped::thread(cluster.pid(1));
    let hangs = "hangs: the ring's thread does not turn\n";
    is(address, "/livez", "503", hangs);
    is(address, "/readyz", "503", hangs);
    drop(stopped);
    becomes(address, "/livez", "200", "ok\n");
    becomes(address, "/readyz", "200", "ok\n");
    let mut ann = client(&cluster, 1, "ann");
    ann.send("#ann#n1", b"still here").expect("sent");
    assert_eq!(next_text(&mut ann), "still here");
}

#[test]
fn a_daemon_in_no_primary_view_is_alive_and_not_ready() {
    let mut cluster = Cluster::over(3, EngineName::FastCast);
    let address = with_pages(&mut cluster);
    becomes(address, "/readyz", "200", "ok\n");
    cluster.kill(2);
    cluster.kill(3);
    becomes(address, "/readyz", "503", "excluded: in no primary view; ");
    is(address, "/livez", "200", "ok\n");
}

#[test]
fn a_daemon_without_a_majority_of_acceptors_is_alive_and_not_ready() {
    let mut cluster = Cluster::voting(3, EngineName::URingPaxos);
    let address = with_pages(&mut cluster);
    becomes(address, "/readyz", "200", "ok\n");
    cluster.kill(2);
    cluster.kill(3);
    becomes(address, "/readyz", "503", "nothing is ordered: no majority");
    is(address, "/livez", "200", "ok\n");
}

#[test]
fn probes_need_no_right_where_metrics_do() {
    let address = free_address();
    let rule =
        "[[daemon.access]]\nwho = { address = \"127.0.0.2/32\" }\nconnect = false\nadmin = true\n";
    let _cluster = Cluster::start(1, &format!("metrics = \"{address}\"\n{rule}"));
    assert_eq!(probe(address, "/metrics").0, "403");
    becomes(address, "/readyz", "200", "ok\n");
    // Alone it has nothing else to wake up for: no question may find it just before it sleeps, and be forgotten.
    for _ in 0..300 {
        is(address, "/livez", "200", "ok\n");
    }
}

/// A daemon whose log somebody else has, which stands for one that takes long to be read.
struct Starting(Child);

impl Drop for Starting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_daemon_that_reads_its_log_is_alive_and_not_ready_yet() {
    let dir = tempfile::tempdir().expect("a directory");
    let votes = dir.path().join("node-1.votes");
    fs::create_dir(&votes).expect("a directory");
    let [socket, admin] = ["sock", "admin"].map(|name| dir.path().join(name).display().to_string());
    let address = free_address();
    let section =
        format!("[daemon]\nsocket = \"{socket}\"\nadmin = \"{admin}\"\nmetrics = \"{address}\"\n");
    let text = changed_config(1, &section, |config| {
        config.engine = EngineName::URingPaxos;
        config.state_dir = Some(dir.path().to_owned());
        let storage = VoteStorage::Sync;
        config.paxos = Some(PaxosConfig {
            storage,
            ..PaxosConfig::default()
        });
    });
    let path = dir.path().join("rota.toml");
    fs::write(&path, text).expect("a file");
    let lock = File::create(votes.join("lock")).expect("a file");
    lock.lock().expect("nobody has it");
    let daemon = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["daemon", "--node", "1", "--config"])
        .arg(&path)
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary");
    let _daemon = Starting(daemon);
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < until, "nobody listens at {address}");
        std::thread::sleep(Duration::from_millis(10));
    }
    is(address, "/livez", "200", "starting\n");
    is(address, "/readyz", "503", "starting\n");
    drop(lock);
    becomes(address, "/readyz", "200", "ok\n");
    is(address, "/livez", "200", "ok\n");
}
