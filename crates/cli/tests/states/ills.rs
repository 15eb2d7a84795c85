//! The ways to make each state, and to undo it.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rota_client::Client;
use rota_net::KeyRing;
use rota_node::{NodeConfig, TimingName};
use rustix::process::Signal;

use crate::cluster::{Cluster, NODES};

/// Who is ill.
pub const ILL: u16 = 3;

pub fn nothing(_: &mut Cluster<'_>) {}

pub fn restart(cluster: &mut Cluster<'_>) {
    cluster.restart(ILL);
}

pub fn kill_one(cluster: &mut Cluster<'_>) {
    cluster.kill(ILL);
}

pub fn kill_two(cluster: &mut Cluster<'_>) {
    cluster.kill(2);
    cluster.kill(3);
}

pub fn restart_two(cluster: &mut Cluster<'_>) {
    cluster.restart(2);
    cluster.restart(3);
}

/// An interface that leads nowhere, for what is not to pass.
const SINK: &str = "ip link add sink0 type veth peer name sink1 && ip link set sink0 up && ip link set sink1 up && \
                    tc qdisc add dev eth0 clsact";

fn lose(cluster: &Cluster<'_>, node: u16, direction: &str, what: &str) {
    let filter = format!(
        "{SINK} && tc filter add dev eth0 {direction} protocol ip prio 1 u32 match ip {what} \
         action mirred egress redirect dev sink0"
    );
    cluster.run_at(node, &filter);
}

fn lose_no_more(cluster: &Cluster<'_>, node: u16) {
    cluster.run_at(node, "tc qdisc del dev eth0 clsact; ip link del sink0");
}

pub fn mute(cluster: &mut Cluster<'_>) {
    lose(cluster, ILL, "egress", "dst 239.192.0.0/16");
}

pub fn deaf(cluster: &mut Cluster<'_>) {
    lose(cluster, ILL, "ingress", "dst 239.192.0.0/16");
}

/// What the second node sends does not reach the third; all else passes.
pub fn one_way(cluster: &mut Cluster<'_>) {
    let from = format!("src {}/32", cluster.address(2));
    lose(cluster, ILL, "ingress", &from);
}

pub fn hears_again(cluster: &mut Cluster<'_>) {
    lose_no_more(cluster, ILL);
}

pub fn no_multicast(cluster: &mut Cluster<'_>) {
    for node in 1..=NODES {
        lose(cluster, node, "egress", "dst 239.192.0.0/16");
    }
}

pub fn never_multicast(cluster: &mut Cluster<'_>) {
    (1..=NODES).for_each(|node| cluster.kill(node));
    no_multicast(cluster);
    (1..=NODES).for_each(|node| cluster.start_with(node, |_| ()));
}

pub fn multicast_again(cluster: &mut Cluster<'_>) {
    (1..=NODES).for_each(|node| lose_no_more(cluster, node));
}

pub fn pause(cluster: &mut Cluster<'_>) {
    cluster.signal(ILL, Signal::STOP);
}

pub fn go_on(cluster: &mut Cluster<'_>) {
    cluster.signal(ILL, Signal::CONT);
}

/// It runs a sixth of the time.
pub fn slow(cluster: &mut Cluster<'_>) {
    let pid = cluster.pid(ILL).as_raw_nonzero();
    let line = format!("while kill -STOP {pid}; do sleep 0.05; kill -CONT {pid}; sleep 0.01; done");
    let helper = Command::new("bash").args(["-c", &line]).spawn();
    cluster.helpers.push(helper.expect("bash"));
}

pub fn fast_again(cluster: &mut Cluster<'_>) {
    end_helpers(cluster);
    cluster.signal(ILL, Signal::CONT);
}

pub fn end_helpers(cluster: &mut Cluster<'_>) {
    for mut helper in cluster.helpers.drain(..) {
        let _ = helper.kill();
        let _ = helper.wait();
    }
}

fn trouble(cluster: &Cluster<'_>, what: &str) {
    fs::write(cluster.path(&format!("trouble-{ILL}")), what).expect("room");
}

pub fn disk_well(cluster: &mut Cluster<'_>) {
    fs::remove_file(cluster.path(&format!("trouble-{ILL}"))).expect("it is there");
}

pub fn disk_hangs(cluster: &mut Cluster<'_>) {
    trouble(cluster, "hang");
}

pub fn disk_fails(cluster: &mut Cluster<'_>) {
    trouble(cluster, "fail");
}

/// It has room for nothing.
pub fn disk_full(cluster: &mut Cluster<'_>) {
    cluster.kill(ILL);
    cluster.disk_is_full = true;
    cluster.start_with(ILL, |_| ());
}

pub fn disk_has_room(cluster: &mut Cluster<'_>) {
    cluster.disk_is_full = false;
    cluster.restart(ILL);
}

pub fn disk_forgotten(cluster: &mut Cluster<'_>) {
    cluster.kill(ILL);
    fs::remove_dir_all(cluster.path(&format!("state-{ILL}"))).expect("it is there");
    cluster.start_with(ILL, |_| ());
}

pub fn wrong_key(cluster: &mut Cluster<'_>) {
    cluster.kill(ILL);
    let key = cluster.path("other.key");
    let made = KeyRing::generate().and_then(|ring| ring.create(&key));
    made.expect("a key file");
    cluster.start_with(ILL, |config| config.key_file = Some(key));
}

pub fn other_cluster(cluster: &mut Cluster<'_>) {
    cluster.kill(ILL);
    let own = cluster.path("state-other");
    cluster.start_with(ILL, |config| {
        config.cluster += 50;
        config.state_dir = Some(own);
    });
}

fn swap(config: &mut NodeConfig) {
    let (second, third) = (config.nodes[1].address, config.nodes[2].address);
    (config.nodes[1].address, config.nodes[2].address) = (third, second);
}

/// The second was shut out as an earlier life of itself.
pub fn single(cluster: &mut Cluster<'_>) {
    restart_two(cluster);
}

/// At the third place a node starts that calls itself the second.
pub fn double(cluster: &mut Cluster<'_>) {
    cluster.kill(ILL);
    let own = cluster.path("state-double");
    cluster.start_as(ILL, 2, |config| {
        swap(config);
        config.state_dir = Some(own);
    });
}

pub fn other_settings(cluster: &mut Cluster<'_>) {
    cluster.kill(ILL);
    cluster.start_with(ILL, |config| {
        config.timing = TimingName::Default;
        config.global_window = Some(20);
    });
}

/// The kernel of the third refuses whatever goes to the first.
pub fn refused(cluster: &mut Cluster<'_>) {
    let line = format!("ip route add prohibit {}/32", cluster.address(1));
    cluster.run_at(ILL, &line);
}

pub fn refused_no_more(cluster: &mut Cluster<'_>) {
    let line = format!("ip route del prohibit {}/32", cluster.address(1));
    cluster.run_at(ILL, &line);
}

/// A client of the second reads nothing of some megabytes.
pub fn client_reads_nothing(cluster: &mut Cluster<'_>) {
    let child = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["sub", "flood", "--name", "sleeper", "--socket"])
        .arg(cluster.path("2.sock"))
        .stdout(Stdio::null())
        .spawn();
    let child: Child = child.expect("the binary");
    let pid = rustix::process::Pid::from_child(&child);
    cluster.helpers.push(child);
    thread::sleep(Duration::from_millis(500));
    rustix::process::kill_process(pid, Signal::STOP).expect("it runs");
    let client = Client::builder()
        .name("flood")
        .connect(cluster.path("1.sock"));
    let mut client = client.expect("it is let in");
    for _ in 0..64 {
        client.send("flood", &[7; 1 << 16]).expect("sent");
    }
    client.close().expect("it has sent all");
}

/// The clock of the third goes an hour back while it runs.
pub fn clock_back(cluster: &mut Cluster<'_>) {
    cluster.set_clock(ILL, -3600);
}

pub fn clock_right(cluster: &mut Cluster<'_>) {
    cluster.set_clock(ILL, 0);
}

/// The clock of the third has been set back when it starts.
pub fn starts_in_the_past(cluster: &mut Cluster<'_>) {
    cluster.kill(ILL);
    cluster.set_clock(ILL, -3600);
    cluster.start_with(ILL, |_| ());
}

pub fn starts_now(cluster: &mut Cluster<'_>) {
    cluster.set_clock(ILL, 0);
    cluster.restart(ILL);
}
