//! Certificates of clients that are revoked.

use std::net::SocketAddr;
use std::time::Instant;

use rota_client::{Client, Code, ConnectError, ConnectionLost};
use tempfile::tempdir;

use crate::access::{await_line, counter, free_address};
use crate::cluster::Cluster;
use crate::native::{builder, client, end_of, next_text};
use crate::operate::rota;
use crate::pki::{Pki, root};
use crate::reload::{configuration, reload};

/// A daemon with a list of revoked certificates, and clients with good ones.
struct Listed {
    cluster: Cluster,
    pki: Pki,
    listen: SocketAddr,
    /// The number of alice's certificate.
    alice: u64,
}

impl Listed {
    /// The list is made by `make`, which gets the number of alice's certificate.
    fn new(make: impl FnOnce(&Pki, u64)) -> Self {
        let (pki, listen) = (Pki::new(), free_address());
        let alice = pki.issue("alice", "alice.example", &pki.ca, (2000, 4000));
        pki.issue("carol", "carol.example", &pki.ca, (2000, 4000));
        make(&pki, alice);
        let crl = format!("client_crl = \"{}\"", pki.path("revoked.pem").display());
        let section = pki.section(listen, &format!("{}\n{crl}", pki.client_ca()));
        Self {
            cluster: Cluster::start(1, &section),
            pki,
            listen,
            alice,
        }
    }

    fn connect(&self, file: &str) -> Result<Client, ConnectError> {
        let builder = builder(file).tls(self.pki.tls(file));
        builder.connect(format!("tls:{}", self.listen))
    }

    /// Has the daemon read its files again.
    fn reload(&self) -> (Option<i32>, String) {
        reload(&self.cluster, 1, &configuration(&self.cluster, 1))
    }
}

#[track_caller]
fn refused(answer: Result<Client, ConnectError>) -> String {
    match answer {
        Err(error @ ConnectError::Tls(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_revoked_certificate_is_refused_counted_and_said_once_in_a_while() {
    const TIMES: u64 = 5;
    let listed = Listed::new(|pki, alice| pki.revoke("revoked.pem", &pki.ca, &[7, alice], 4000));
    let started = Instant::now();
    for _ in 0..TIMES {
        let told = refused(listed.connect("alice"));
        assert!(told.to_lowercase().contains("revoked"), "{told}");
    }
    listed.connect("carol").expect("it is not in the list");
    assert_eq!(counter(&listed.cluster, "tls_revoked"), TIMES);
    assert_eq!(counter(&listed.cluster, "tls_refused"), TIMES);
    // The first second of the year 4000.
    assert_eq!(counter(&listed.cluster, "tls_crl_expires"), 64_060_588_800);
    let reason = "is refused: its certificate has been revoked";
    await_line(&listed.cluster, reason);
    let most = 1 + started.elapsed().as_secs() / 10;
    let lines = listed.cluster.said(reason) as u64;
    assert!(lines <= most, "{lines} lines, {most} at most");
}

#[test]
fn who_is_revoked_while_connected_is_told_and_the_others_go_on() {
    let listed = Listed::new(|pki, _| pki.revoke("revoked.pem", &pki.ca, &[], 4000));
    let mut alice = listed.connect("alice").expect("it is good");
    let mut carol = listed.connect("carol").expect("it is good");
    carol.join("g").expect("it joins");
    alice.send("g", b"before").expect("sent");
    assert_eq!(next_text(&mut carol), "before");
    let Listed { pki, alice: no, .. } = &listed;
    pki.revoke("revoked.pem", &pki.ca, &[*no], 4000);
    assert_eq!(
        listed.reload(),
        (Some(0), "certificates: read again\n".to_owned())
    );
    let ConnectionLost::Goodbye { code, .. } = end_of(&mut alice) else {
        panic!("it is not told");
    };
    assert_eq!(code, Code::NotAllowed);
    assert_eq!(counter(&listed.cluster, "tls_revoked"), 1);
    await_line(
        &listed.cluster,
        "is disconnected: its certificate has been revoked",
    );
    refused(listed.connect("alice"));
    carol.send("g", b"after").expect("sent");
    assert_eq!(next_text(&mut carol), "after");
}

#[test]
fn lists_that_are_no_good_are_not_taken_by_a_daemon_that_runs() {
    let listed = Listed::new(|pki, _| pki.revoke("revoked.pem", &pki.ca, &[7], 4000));
    let Listed { pki, cluster, .. } = &listed;
    let file = cluster.file_of(1).display().to_string();
    let check = |node: &[&str]| {
        let output = rota(&[&["config", "check", &file][..], node].concat());
        let said =
            [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        (output.status.code(), said.concat())
    };
    let (code, said) = check(&["--node", "1"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("revoked.pem (good until 4000-01-01T00:00:00Z)"),
        "{said}"
    );
    let bad: [(&dyn Fn(), &str); 4] = [
        (
            &|| pki.revoke("revoked.pem", &pki.ca, &[listed.alice], 2001),
            "has expired on 2001-01-01T00:00:00Z",
        ),
        (
            &|| pki.revoke("revoked.pem", &pki.other_ca, &[], 4000),
            "there is no list of 1 of the roots",
        ),
        (
            &|| {
                std::fs::copy(pki.path("ca.pem"), pki.path("revoked.pem")).expect("files");
            },
            "there is no list of revoked certificates in it",
        ),
        (
            &|| std::fs::remove_file(pki.path("revoked.pem")).expect("it is there"),
            "revoked.pem",
        ),
    ];
    for (make, why) in bad {
        make();
        for (code, said) in [listed.reload(), check(&["--node", "1"])] {
            assert!(matches!(code, Some(1 | 2)), "{why}: {said}");
            assert!(said.contains(why), "{why}: {said}");
        }
        listed.connect("alice").expect("the old list holds");
    }
    assert_eq!(counter(cluster, "reloads_failed"), 4);
}

#[test]
fn with_an_expired_list_a_daemon_starts_and_lets_nobody_in_by_tls_until_there_is_another() {
    let listed = Listed::new(|pki, _| pki.revoke("revoked.pem", &pki.ca, &[7], 2001));
    refused(listed.connect("alice"));
    await_line(
        &listed.cluster,
        "the list of revoked certificates has expired",
    );
    let mut local = client(&listed.cluster, 1, "local");
    local.send("#local#n1", b"as ever").expect("sent");
    assert_eq!(next_text(&mut local), "as ever");
    let pki = &listed.pki;
    pki.revoke("revoked.pem", &pki.ca, &[7], 4000);
    assert_eq!(listed.reload().0, Some(0));
    listed.connect("alice").expect("the list is good");
}

#[test]
fn a_list_that_somebody_else_has_made_in_a_roots_name_lets_nobody_in() {
    let elsewhere = tempdir().expect("a directory");
    let forger = root(&elsewhere, "ca");
    let listed = Listed::new(|pki, _| pki.revoke("revoked.pem", &forger, &[], 4000));
    refused(listed.connect("alice"));
    await_line(
        &listed.cluster,
        "the list of revoked certificates is not its issuer's",
    );
    assert_eq!(counter(&listed.cluster, "tls_revoked"), 0);
}
