//! Nothing well is called ill: for as long as is asked for, under a light load.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, NODES};

/// How long a cluster may take to be well.
pub const TO_BE_WELL: Duration = Duration::from_secs(30);
/// How often `--explain` looks, in milliseconds.
const INTERVAL: &str = "500";

/// Waits until `rota status --explain` says that all is well, and who is on the ring.
pub fn wait_well(cluster: &Cluster<'_>) {
    let until = Instant::now() + TO_BE_WELL;
    let all = format!("all well: {NODES} on one ring");
    loop {
        let (said, is_well) = cluster.ask(&["--explain", "--interval", INTERVAL]);
        let is_slow = !said.is_empty() && said.lines().all(is_true_of_this_host);
        if is_well && said.starts_with(&all) || is_slow {
            return;
        }
        let engine = cluster.engine.name();
        let log = cluster.log_since(0);
        assert!(
            Instant::now() < until,
            "{engine} is not well: {said}{log:#?}"
        );
    }
}

/// Waits until all daemons say that they are on one ring and know the same groups.
pub fn wait_whole(cluster: &Cluster<'_>) {
    let until = Instant::now() + TO_BE_WELL;
    let ring = "ring     operational: 1, 2, 3";
    loop {
        let (status, _) = cluster.ask(&[]);
        let rings = status
            .lines()
            .filter(|line| line.starts_with(ring) && !line.contains("; "));
        let groups = status.matches(", known to all daemons").count();
        if [rings.count(), groups] == [usize::from(NODES); 2] {
            return;
        }
        let engine = cluster.engine.name();
        assert!(Instant::now() < until, "{engine} is not whole: {status}");
    }
}

/// Whatever would have somebody get up at night, of a cluster that is well since this line of its log.
pub fn alarms(cluster: &Cluster<'_>, line: usize) -> Vec<String> {
    let mut alarms = cluster.log_since(line);
    alarms.retain(|line| line.contains(" WARN ") || line.contains(" ERROR "));
    let (said, is_well) = cluster.ask(&["--explain", "--interval", INTERVAL]);
    if !is_well {
        alarms.extend(
            said.lines()
                .filter(|line| !is_true_of_this_host(line))
                .map(str::to_owned),
        );
    }
    let (status, _) = cluster.ask(&[]);
    let quiet = status
        .matches("counters that ought to stand still have not moved")
        .count();
    let is_ill = |line: &str| line.starts_with("note ") || line.starts_with("missing ");
    if quiet != usize::from(NODES) || status.lines().any(is_ill) {
        alarms.push(status);
    }
    let metrics = cluster.metrics().join("\n");
    let rung = |line: &&str| is_alarm(line);
    alarms.extend(metrics.lines().filter(rung).map(str::to_owned));
    alarms
}

/// Whether a sentence says that somebody is slow, on a host where more wants to run than can: that is so.
fn is_true_of_this_host(line: &str) -> bool {
    let is_slow = [
        "all nodes that were asked",
        "the token takes ",
        " is slow: it has the token ",
    ]
    .iter()
    .any(|words| line.contains(words));
    is_slow && is_crowded()
}

/// Whether more wants to run than there are processors: as a mean of the last minute, or somebody has waited for one for half of the last ten seconds.
fn is_crowded() -> bool {
    let pressure = std::fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let waited = pressure.split("avg10=").nth(1);
    let waited = waited.and_then(|rest| rest.split(' ').next()?.parse().ok());
    if waited.is_some_and(|waited: f64| waited > 50.0) {
        return true;
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse().ok());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    load.is_some_and(|load: f64| load > processors as f64)
}

/// Whether a line of metrics is one that the manual has alerts for.
fn is_alarm(line: &str) -> bool {
    let Some((name, value)) = line.rsplit_once(' ') else {
        return false;
    };
    let value: f64 = value.parse().unwrap_or(0.0);
    match name {
        "rota_ring_members" => value != f64::from(NODES),
        "rota_ring_operational" => value != 1.0,
        "rota_excluded" | "rota_holds" => value != 0.0,
        _ => {
            let name = name
                .strip_prefix("rota_")
                .and_then(|name| name.strip_suffix("_total"));
            let is_watched = |name| rota_node::watched_counters().any(|watched| watched == name);
            name.is_some_and(is_watched) && value != 0.0
        }
    }
}

/// Looks at a cluster for this time, or until another one has failed. In a long time it looks less often: looks of six clusters at once keep a small host
/// busy.
pub fn watch(cluster: &Cluster<'_>, time: Duration, failed: &AtomicBool) {
    wait_well(cluster);
    let (line, until) = (cluster.log_length(), Instant::now() + time);
    let mut looks = 0;
    while Instant::now() < until && !failed.load(SeqCst) {
        let alarms = alarms(cluster, line);
        let engine = cluster.engine.name();
        failed.fetch_or(!alarms.is_empty(), SeqCst);
        assert!(
            alarms.is_empty(),
            "{engine} is well, and this is said of it: {alarms:#?}"
        );
        looks += 1;
        thread::sleep(time / 1000);
    }
    println!("{}: well in {looks} looks", cluster.engine.name());
}
