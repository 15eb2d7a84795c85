//! Work that goes on where other work cannot: parts of a reload, and a daemon's work beside its clients.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::access::{await_line, counter, not_allowed};
use crate::bad_clients::{Others, connect, status};
use crate::cluster::Cluster;
use crate::native::{PATIENCE, client, next_text};
use crate::operate::rota;
use crate::pki::Served;
use crate::reload::{configuration, reload};

/// A leaked key is replaced though somebody is just writing rules, and rules come into force though a key file cannot be
/// read.
#[test]
fn keys_and_the_rest_are_taken_each_for_itself() {
    let cluster = Cluster::sealed(1);
    let text = configuration(&cluster, 1);
    let key = cluster.dir().join("cluster.key").display().to_string();
    let keys = || status(&cluster, 1)["keys"]["takes"].clone();
    let change = |arguments: &[&str]| {
        let output = rota(&[&["key"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
    };
    let fails = |text: &str, what: &str| {
        let (code, said) = reload(&cluster, 1, text);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(what), "{said}");
        said
    };
    change(&["add", &key]);
    let wrong = text.replace("[daemon]", "[daemon]\nclients = 0");
    let said = fails(&wrong, "taken: keys: sends 1, takes [1, 2]; not taken: ");
    assert!(said.contains("clients"), "{said}");
    assert_eq!(keys(), Value::from(vec![1, 2]));

    // What cannot be read names no key file: it is the one there was.
    change(&["use", &key, "2"]);
    change(&["remove", &key, "1"]);
    fails("half", "taken: keys: sends 2, takes [2]; not taken: ");
    assert_eq!(keys(), Value::from(vec![2]));
    fails("half", "nothing was changed: ");

    let mode = |mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(&key, mode).expect("it is ours");
    };
    mode(0o644);
    let rule = "[[daemon.access]]\nwho = { anyone = true }\njoin = [\"a\"]\n";
    let ruled = text.clone() + rule;
    let said = fails(&ruled, "taken: changed: daemon.access; not taken: ");
    assert!(said.contains("its permissions are 0644"), "{said}");
    let mut ann = client(&cluster, 1, "ann");
    ann.join("a").expect("it may");
    not_allowed(ann.join("b"));
    mode(0o600);
    assert_eq!(reload(&cluster, 1, &ruled).0, Some(0));
    assert_eq!(counter(&cluster, "reloads_failed"), 4);
}

#[test]
fn clients_that_take_all_descriptors_leave_some_to_those_who_look_after_the_daemon() {
    let cluster = Cluster::limited(1, "handshake_ms = 60000", Some(100));
    let mut others = Others::of(&cluster, 1);
    let silent: Vec<_> = (0..150).map(|_| connect(&cluster.socket(1))).collect();
    await_line(&cluster, "a client cannot be let in");
    let socket = cluster.admin(1).display().to_string();
    for command in ["status", "reload"] {
        let began = Instant::now();
        let output = rota(&[command, "--socket", &socket]);
        assert!(output.status.success(), "{output:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{command}");
    }
    others.go_on(3);
    drop(silent);
    client(&cluster, 1, "late");
}

#[test]
fn a_trace_that_takes_no_more_ends_and_the_daemon_goes_on() {
    let mut cluster = Cluster::traced_nowhere(1);
    let mut ann = client(&cluster, 1, "ann");
    ann.send("#ann#n1", b"it works").expect("sent");
    assert_eq!(next_text(&mut ann), "it works");
    // What it did at its start, and what its client did.
    assert!(counter(&cluster, "net_trace_lines_lost") > 4);
    assert!(cluster.terminate(1).success());
}

#[test]
fn a_certificate_that_has_expired_is_said_before_a_client_comes() {
    let served = Served::new("");
    let Served { cluster, pki, .. } = &served;
    // The years 4000 and 2001.
    assert_eq!(counter(cluster, "tls_certificate_expires"), 64_060_588_800);
    pki.issue("daemon", "daemon.example", &pki.ca, (2000, 2001));
    let text = configuration(cluster, 1);
    assert_eq!(reload(cluster, 1, &text).0, Some(0));
    await_line(cluster, "the certificate for TLS has expired");
    let until = Instant::now() + PATIENCE;
    while counter(cluster, "tls_certificate_expires") != 978_307_200 {
        assert!(
            Instant::now() < until,
            "the thread of TLS clients has not got it"
        );
    }
}
