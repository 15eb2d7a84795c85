//! The page that Prometheus reads of a running daemon.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::access::{await_line, counter};
use crate::cluster::Cluster;
use crate::native::{PATIENCE, client, meet, next_text};
use crate::operate::rota;
use crate::reload::{configuration, reload};

/// Two daemons, the first of which serves metrics.
fn cluster() -> (Cluster, SocketAddr) {
    let mut cluster = Cluster::start(2, "");
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = free.local_addr().expect("it is bound");
    drop(free);
    let metrics = format!("[daemon]\nmetrics = \"{address}\"\n");
    cluster.restart_with(1, |text| text.replacen("[daemon]\n", &metrics, 1));
    meet(&cluster, &[1, 2]);
    (cluster, address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

/// Code and body of a page.
pub fn get(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let length = format!("Content-Length: {}", body.len());
    assert!(head.lines().any(|line| line == length), "{head}");
    (
        head.split(' ').nth(1).expect("a code").to_owned(),
        body.to_owned(),
    )
}

fn metrics(address: SocketAddr) -> BTreeMap<String, f64> {
    let (code, text) = get(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(code, "200");
    parse(&text)
}

/// All samples by name and labels; every one of a metric with a type and a text, all names with the prefix.
fn parse(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with("# EOF\n"), "{text}");
    let (mut kinds, mut helps) = (BTreeMap::new(), BTreeMap::new());
    let mut samples = BTreeMap::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a text");
            assert!(help.len() > 3 && help != "A counter", "{line}");
            assert!(helps.insert(name, help).is_none(), "{name} comes twice");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            kinds.insert(name, kind);
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            let plain = name.split('{').next().expect("a name");
            assert!(plain.starts_with("rota_"), "{line}");
            let endings = ["_total", "_bucket", "_sum", "_count", ""];
            let family = endings.iter().filter_map(|end| plain.strip_suffix(end));
            let family: Vec<&str> = family.filter(|family| kinds.contains_key(family)).collect();
            assert!(
                !family.is_empty() && helps.contains_key(family[0]),
                "{line}"
            );
            let value: f64 = value.parse().expect("a number");
            assert!(samples.insert(name.to_owned(), value).is_none(), "{line}");
        }
    }
    samples
}

#[test]
fn a_scrape_of_a_running_daemon_can_be_read_and_says_what_was_done() {
    let (cluster, address) = cluster();
    let mut ann = client(&cluster, 1, "ann");
    let before = metrics(address);
    for at in 0..200 {
        ann.send("#ann#n1", format!("{at}").as_bytes())
            .expect("sent");
    }
    for at in 0..200 {
        assert_eq!(next_text(&mut ann), at.to_string());
    }
    let until = Instant::now() + PATIENCE;
    let mut now = metrics(address);
    // An answer may be some milliseconds old.
    while now["rota_message_latency_seconds_count"] == before["rota_message_latency_seconds_count"]
    {
        assert!(Instant::now() < until, "no message was timed: {now:?}");
        now = metrics(address);
    }
    assert!(now["rota_packets_sent_total"] > before["rota_packets_sent_total"]);
    assert_eq!(now["rota_ring_members"], 2.0);
    assert_eq!(now["rota_ring_operational"], 1.0);
    assert_eq!(now["rota_clients_now"], 1.0);
    assert_eq!(
        now["rota_daemon{node=\"1\",name=\"n1\",version=\"0.1.0\"}"],
        1.0
    );
    let lag = "rota_client_waiting_bytes{client=\"#ann#n1\",protocol=\"native\"}";
    assert!(now.contains_key(lag), "{now:?}");
    for name in [
        "rota_token_rotation_seconds",
        "rota_token_held_seconds",
        "rota_message_latency_seconds",
    ] {
        let count = now[&format!("{name}_count")];
        assert!(count > 0.0, "{name}");
        assert!(now[&format!("{name}_sum")] > 0.0, "{name}");
        assert_eq!(
            now[&format!("{name}_bucket{{le=\"+Inf\"}}")],
            count,
            "{name}"
        );
        let bucket = format!("{name}_bucket{{le=");
        let buckets = now.iter().filter(|(sample, _)| sample.starts_with(&bucket));
        let buckets: Vec<f64> = buckets.map(|(_, value)| *value).collect();
        assert_eq!(buckets.len(), 89, "{name}");
        assert!(
            buckets.iter().all(|value| (0.0..=count).contains(value)),
            "{name}"
        );
    }
}

#[test]
fn rules_say_who_may_read_them_by_address() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = free.local_addr().expect("it is bound");
    drop(free);
    // Clients of 127.0.0.2 are of this host, too.
    let rule = |net: &str| {
        format!(
            "[[daemon.access]]\nwho = {{ address = \"{net}\" }}\nconnect = false\nadmin = true\n"
        )
    };
    let first = rule("127.0.0.2/32");
    let cluster = Cluster::start(1, &format!("metrics = \"{address}\"\n{first}"));
    let page = |page: &str| get(address, &format!("GET {page} HTTP/1.0\r\n\r\n"));
    for name in ["/metrics", "/status"] {
        assert_eq!(page(name), ("403".to_owned(), "not allowed\n".to_owned()));
    }
    assert_eq!(counter(&cluster, "admins_not_allowed"), 2);
    await_line(&cluster, "somebody is not told the metrics");
    let socket = format!("http://{address}");
    let output = rota(&["status", "--socket", &socket]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("403 Forbidden"), "{said}");

    let text = configuration(&cluster, 1);
    let ours = text.replace(&first, &rule("127.0.0.1/32"));
    assert_eq!(reload(&cluster, 1, &ours).0, Some(0));
    assert_eq!(metrics(address)["rota_admins_not_allowed_total"], 3.0);
    // Rules that let nobody read them are a mistake, and change nothing.
    let nobody = text.replace(
        &first,
        "[[daemon.access]]\nwho = { uid = 0 }\nadmin = true\n",
    );
    let (code, said) = reload(&cluster, 1, &nobody);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("no rule lets anybody read the metrics"),
        "{said}"
    );
    let unreachable = text.replace(&first, &rule("10.0.0.0/8"));
    let (code, said) = reload(&cluster, 1, &unreachable);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("where `metrics` are served"), "{said}");
    assert_eq!(page("/metrics").0, "200");
}

#[test]
fn there_are_a_few_pages_and_nothing_else() {
    let (_cluster, address) = cluster();
    let (code, body) = get(address, "GET /status HTTP/1.0\r\n\r\n");
    assert_eq!(code, "200");
    let status: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(status["node"], 1);
    assert_eq!(status["members"], serde_json::json!([1, 2]));
    let (code, page) = get(address, "GET / HTTP/1.0\r\n\r\n");
    assert_eq!(code, "200");
    assert!(page.starts_with("<!doctype html>"), "{page}");
    let shown = || {
        let (code, body) = get(address, "GET /page HTTP/1.0\r\n\r\n");
        assert_eq!(code, "200");
        serde_json::from_str::<serde_json::Value>(&body).expect("JSON")
    };
    let first = shown();
    assert_eq!(
        (&first["status"]["node"], &first["over_us"]),
        (&1.into(), &0.into())
    );
    std::thread::sleep(Duration::from_millis(1300));
    let next = shown();
    assert!(
        next["over_us"]
            .as_u64()
            .is_some_and(|over| over >= 1_000_000),
        "{next}"
    );
    let findings = next["findings"].as_array().expect("a list");
    assert!(!findings.is_empty(), "all well is a sentence, too: {next}");
    assert_eq!(get(address, "GET /pages HTTP/1.0\r\n\r\n").0, "404");
    assert_eq!(get(address, "POST /metrics HTTP/1.0\r\n\r\n").0, "405");
    assert_eq!(get(address, "nonsense\r\n\r\n").0, "400");
    let long = format!("GET /metrics HTTP/1.0\r\nX: {}", "y".repeat(8192));
    assert_eq!(get(address, &long).0, "431");
}

#[test]
fn scrapers_that_hang_take_few_connections_for_a_few_seconds_and_clients_do_not_notice() {
    let (cluster, address) = cluster();
    let mut ann = client(&cluster, 1, "ann");
    let mut hanging: Vec<TcpStream> = (0..8).map(|_| connect(address)).collect();
    for stream in &mut hanging {
        stream.write_all(b"GET /metr").expect("written");
    }
    // They have all places: one more is closed without an answer.
    let mut more = connect(address);
    let mut answer = Vec::new();
    let ended = more.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{ended:?}");
    for at in 0..100 {
        ann.send("#ann#n1", format!("{at}").as_bytes())
            .expect("sent");
        assert_eq!(next_text(&mut ann), at.to_string());
    }
    // Each is closed in the end, and then others have their turn.
    for stream in &mut hanging {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let mut stream = connect(address);
        let mut answer = String::new();
        let asked = stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n");
        let read = asked.and_then(|()| stream.read_to_string(&mut answer));
        if read.is_ok() && answer.starts_with("HTTP/1.1 200") {
            break;
        }
        assert!(Instant::now() < until, "nobody has a turn any more");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Names of metrics in a text: `rota_` and what follows.
fn named(text: &str) -> std::collections::BTreeSet<String> {
    let mut names = std::collections::BTreeSet::new();
    for (at, _) in text.match_indices("rota_") {
        let is_inside = text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let rest = &text[at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        if !is_inside {
            names.insert(rest[..end.unwrap_or(rest.len())].to_owned());
        }
    }
    names
}

/// Names of all samples that a scrape may have, by the types that it declares: some are of other nodes or clients, and none
/// may be there.
fn families(text: &str) -> std::collections::BTreeSet<String> {
    let mut names = std::collections::BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a type");
        let endings: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        names.extend(endings.iter().map(|end| format!("{name}{end}")));
    }
    names
}

#[test]
fn every_metric_of_the_dashboard_and_the_alerts_is_in_a_scrape() {
    let scraped = |cluster: &mut Cluster, change: &dyn Fn(String) -> String| {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = free.local_addr().expect("it is bound");
        drop(free);
        let setting = format!("[daemon]\nmetrics = \"{address}\"\n");
        cluster.restart_with(1, |text| change(text.replacen("[daemon]\n", &setting, 1)));
        let (code, text) = get(address, "GET /metrics HTTP/1.0\r\n\r\n");
        assert_eq!(code, "200");
        families(&text)
    };
    let mut there = scraped(&mut Cluster::sealed(1), &|text| text);
    // Votes on disk have metrics that those in memory have not.
    let dir = tempfile::tempdir().expect("a directory");
    let on_disk = |text: String| {
        let text = text.replace("storage = \"memory\"", "storage = \"sync\"");
        format!("state_dir = \"{}\"\n{text}", dir.path().display())
    };
    let mut voting = Cluster::voting(1, rota_node::EngineName::URingPaxos);
    there.extend(scraped(&mut voting, &on_disk));
    let packaging = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    for file in [
        "grafana/rota.json",
        "prometheus/rota.rules.yml",
        "prometheus/rota.tests.yml",
    ] {
        let text = std::fs::read_to_string(packaging.join(file)).expect("it is there");
        let names = named(&text);
        assert!(names.len() > 15, "{file}: {names:?}");
        let missing: Vec<_> = names.difference(&there).collect();
        assert!(
            missing.is_empty(),
            "{file} names what no daemon has: {missing:?}"
        );
    }
}
