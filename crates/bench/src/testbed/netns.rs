//! Network namespaces: one for each node with an interface `eth0`, and one for the bridge.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Values, cleanup};
use crate::error::BenchError;
use crate::options::Offload;

/// Address of a node, from 1.
pub(super) fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, node as u8)
}

/// Test beds of this process so far.
static BEDS: AtomicU32 = AtomicU32::new(0);

/// Namespaces that exist until this is dropped.
#[derive(Debug)]
pub(super) struct Namespaces {
    /// The beginning of their names: a process may have several test beds.
    prefix: String,
    names: Vec<String>,
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.names.iter().for_each(|name| cleanup::remove(name));
    }
}

impl Namespaces {
    /// Creates the bridge and `nodes` nodes.
    pub(super) fn create(nodes: usize, values: &Values) -> Result<Self, BenchError> {
        if !rustix::process::geteuid().is_root() {
            let hint = "the netns testbed needs root (or use --testbed loopback)";
            return Err(BenchError::Testbed(hint.into()));
        }
        cleanup::remove_stale();
        let mut prefix = format!("{}{}", cleanup::PREFIX, std::process::id());
        match BEDS.fetch_add(1, Ordering::Relaxed) {
            0 => {}
            more => prefix.push_str(&format!(".{more}")),
        }
        let mut made = Self {
            prefix,
            names: Vec::new(),
        };
        let switch = made.add("sw")?;
        let mut batch = String::new();
        // Snooping would need a querier on the bridge before it forwards our groups.
        let _ = writeln!(batch, "link add br0 type bridge mcast_snooping 0");
        let _ = writeln!(batch, "link set br0 mtu {} up", values.mtu);
        run_batch(&["ip", "-n", &switch], &batch)?;
        for node in 1..=nodes {
            let own = made.add(&node.to_string())?;
            connect(&own, &switch, node, values)?;
        }
        Ok(made)
    }

    /// The bridge's.
    pub(super) fn switch(&self) -> String {
        self.name("sw")
    }

    /// A node's.
    pub(super) fn of_node(&self, node: usize) -> String {
        self.name(&node.to_string())
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.prefix)
    }

    fn add(&mut self, suffix: &str) -> Result<String, BenchError> {
        let name = self.name(suffix);
        cleanup::register(&name);
        self.names.push(name.clone());
        run_batch(&["ip"], &format!("netns add {name}\n"))?;
        Ok(name)
    }
}

/// Joins a node to the bridge and shapes both directions of its link.
fn connect(own: &str, switch: &str, node: usize, values: &Values) -> Result<(), BenchError> {
    let (mtu, address) = (values.mtu, address(node));
    let inside = format!(
        "link set lo up\n\
         link add eth0 mtu {mtu} type veth peer name port{node} mtu {mtu} netns {switch}\n\
         addr add {address}/24 dev eth0\n\
         link set eth0 up\n\
         route add 239.0.0.0/8 dev eth0\n"
    );
    run_batch(&["ip", "-n", own], &inside)?;
    let outside = format!("link set port{node} master br0\nlink set port{node} up\n");
    run_batch(&["ip", "-n", switch], &outside)?;
    if let (Some(rate), Some(burst), Some(queue)) = (values.link_rate, values.burst, values.queue) {
        let shape = format!("root tbf rate {}bit burst {burst} limit {queue}\n", rate.0);
        run_batch(&["tc", "-n", own], &format!("qdisc add dev eth0 {shape}"))?;
        run_batch(
            &["tc", "-n", switch],
            &format!("qdisc add dev port{node} {shape}"),
        )?;
    } else if values.offload == Offload::Split {
        // A device that takes one segment at most makes the kernel split before it.
        let limit = "gso_max_size 1500 gso_max_segs 1";
        run_batch(&["ip", "-n", own], &format!("link set dev eth0 {limit}\n"))?;
        run_batch(
            &["ip", "-n", switch],
            &format!("link set dev port{node} {limit}\n"),
        )?;
    }
    Ok(())
}

/// Runs lines of `ip` or `tc` in one process; the first that fails is the error.
pub(super) fn run_batch(tool: &[&str], lines: &str) -> Result<(), BenchError> {
    let failed = |what: String| BenchError::Testbed(format!("cannot build the testbed: {what}"));
    let mut child = Command::new(tool[0])
        .args(&tool[1..])
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("`{}` (package iproute2): {error}", tool[0])))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(lines.as_bytes())
            .map_err(|error| failed(error.to_string()))?;
    }
    let output = child
        .wait_with_output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!(
        "`{}` said: {}; it was told: {}",
        tool.join(" "),
        said.trim(),
        lines.trim()
    )))
}
