//! The resources that strangers take of a daemon, and names that are not theirs.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use rcgen::{CertificateParams, KeyPair, SanType, date_time_ymd};
use rota_client::{Client, Code, ConnectError};

use crate::access::free_address;
use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder};
use crate::pki::Served;

/// A certificate that names a host, and one for whom the same text is a URI.
#[test]
fn a_uri_of_a_certificate_does_not_pass_for_the_name_of_a_host() {
    let rules = "[[daemon.access]]\nwho = { certificate = \"desk.example\" }\n\
                 [[daemon.access]]\nwho = { certificate = \"spiffe://desk\" }\n";
    let served = Served::with("", rules);
    let with = |file: &str, name: SanType| {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![name];
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(4000, 1, 1);
        let key = KeyPair::generate().expect("random numbers");
        let certificate = params.signed_by(&key, &served.pki.ca).expect("good");
        let path = |end: &str| served.pki.path(&format!("{file}.{end}"));
        fs::write(path("pem"), certificate.pem()).expect("a file");
        fs::write(path("key"), key.serialize_pem()).expect("a file");
        builder(file)
            .tls(served.pki.tls(file))
            .connect(served.address())
    };
    let text = |text: &str| text.try_into().expect("plain text");
    with("host", SanType::DnsName(text("desk.example"))).expect("it is named");
    with("uri", SanType::URI(text("spiffe://desk"))).expect("it is named");
    let evil = with("evil", SanType::URI(text("desk.example")));
    let Err(ConnectError::Refused { code, .. }) = evil else {
        panic!("it is let in: {evil:?}");
    };
    assert_eq!(code, Code::NotAllowed);
}

/// The first line of the answer, if there is one.
fn ask(address: SocketAddr, host: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let request = format!("GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut answer = String::new();
    let asked = stream.write_all(request.as_bytes());
    let _ = asked.and_then(|()| stream.read_to_string(&mut answer));
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn whoever_holds_connections_to_the_metrics_keeps_nobody_from_reading_them() {
    let address = free_address();
    let _cluster = Cluster::start(
        1,
        &format!("metrics = \"{address}\"\nmetrics_hosts = [\"rota.example\"]"),
    );
    let mut held: Vec<TcpStream> = Vec::new();
    for round in 0..5 {
        for _ in 0..16 {
            let mut silent = TcpStream::connect(address).expect("it listens");
            silent.write_all(b"GET /status HTTP/1.1\r\n").expect("sent");
            held.push(silent);
        }
        assert_eq!(ask(address, "localhost"), "HTTP/1.1 200 OK", "{round}");
    }
    let port = address.port();
    let own = own_name();
    let listed = format!("rota.example:{port}");
    for host in [format!("127.0.0.1:{port}"), "[::1]".to_owned(), own, listed] {
        assert_eq!(ask(address, &host), "HTTP/1.1 200 OK", "{host}");
    }
    let refused = ask(address, "evil.example");
    assert_eq!(refused, "HTTP/1.1 421 Misdirected Request");
}

/// What this host is called.
fn own_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname");
    name.expect("Linux says so").trim().to_owned()
}

/// One client has no more than its part of the memberships of a daemon.
#[test]
fn one_client_is_in_so_many_groups_and_others_can_still_join() {
    let cluster = Cluster::start(1, "");
    let connect = |name: &str| -> Client {
        builder(name)
            .connect(cluster.socket(1))
            .expect("it is let in")
    };
    let mut greedy = connect("greedy");
    for at in 0..1024 {
        greedy.join(&format!("g{at}")).expect("it may");
    }
    greedy.join("more").expect_err("it is in enough");
    connect("other").join("more").expect("there is room");
}
