//! Clients by TLS, and the permissions of users, on real sockets.

mod common;

use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use rota_core::contract::NodeId;
use rota_kv::access::UserSection;
use rota_kv::{ConfigError, Kv, KvConfig, TlsSection};
use rota_node::VoteStorage;
use rota_resp::Reply;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use common::{Client, tcp};

/// Of "secret".
const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

fn config(port: u16, directory: &Path) -> KvConfig {
    for name in ["votes", "states"] {
        fs::create_dir_all(directory.join(name)).expect("it is ours");
    }
    let mut config = KvConfig::loopback((1, 1), port, (directory, VoteStorage::Memory));
    config.kv.tls = Some(TlsSection {
        certificate: directory.join("{node}.pem"),
        key: directory.join("{node}.key"),
        client_ca: None,
    });
    config.kv.user = vec![UserSection {
        name: "app".to_owned(),
        password_sha256: HASH.to_owned(),
        keys: Some(vec!["app:*".to_owned()]),
        read_only: false,
    }];
    config
}

/// A certificate of its own, in the files of node 1.
fn certificate(directory: &Path) -> CertificateDer<'static> {
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned()];
    let params = CertificateParams::new(names).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    fs::write(directory.join("1.pem"), certificate.pem()).expect("it is ours");
    fs::write(directory.join("1.key"), key.serialize_pem()).expect("it is ours");
    certificate.der().clone()
}

fn sealed(
    address: SocketAddr,
    root: &CertificateDer<'static>,
) -> Client<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    Client::new(StreamOwned::new(connection, tcp(address)))
}

fn error(reply: Option<Reply>) -> String {
    match reply {
        Some(Reply::Error(text)) => text,
        other => panic!("{other:?} is no error"),
    }
}

#[test]
fn clients_speak_tls_and_do_what_their_user_may() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = config(24_300, directory.path());
    let root = certificate(directory.path());
    let process = Kv::start(&config, NodeId::new(1).expect("not 0")).expect("it starts");
    let port = config.kv.process[0].redis_port.expect("a port");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    // Whoever says nothing of itself is not kept: looked at in the end.
    let mut silent = sealed(address, &root);
    assert!(error(silent.try_say("PING")).starts_with("NOAUTH"));
    let plain = Client::new(tcp(address)).try_say("PING");
    assert_eq!(plain, None, "what is no TLS is not answered");
    let mut client = sealed(address, &root);
    assert!(error(client.try_say("SET app:1 x")).starts_with("NOAUTH"));
    assert!(error(client.try_say("AUTH app Secret")).starts_with("WRONGPASS"));
    assert!(error(client.try_say("AUTH secret")).starts_with("WRONGPASS"));
    assert!(error(client.try_say("GET app:1")).starts_with("NOAUTH"));
    assert_eq!(client.try_say("AUTH app secret"), Some(Reply::OK));
    assert_eq!(client.insist("SET app:1 x"), Reply::OK);
    assert_eq!(client.try_say("GET app:1"), Some(Reply::from("x")));
    assert!(error(client.try_say("GET other")).starts_with("NOPERM"));
    assert!(error(client.try_say("FLUSHALL")).starts_with("NOPERM"));
    // Another certificate is used for who comes then; who is there goes on.
    let other = certificate(directory.path());
    thread::sleep(Duration::from_millis(1_200));
    let mut later = sealed(address, &other);
    assert_eq!(later.try_say("AUTH app secret"), Some(Reply::OK));
    assert_eq!(later.try_say("GET app:1"), Some(Reply::from("x")));
    assert_eq!(sealed(address, &root).try_say("PING"), None);
    assert_eq!(client.try_say("GET app:1"), Some(Reply::from("x")));
    // Other users are in force at once, also for who is there; and never nobody.
    let mut changed = config.clone();
    changed.kv.user[0].read_only = true;
    assert_eq!(process.reload(&changed), Ok(true));
    assert!(error(client.try_say("SET app:1 y")).starts_with("NOPERM"));
    assert_eq!(client.try_say("GET app:1"), Some(Reply::from("x")));
    changed.kv.user[0].name = "other".to_owned();
    assert_eq!(process.reload(&changed), Ok(true));
    assert!(error(client.try_say("GET app:1")).starts_with("NOAUTH"));
    assert!(error(client.try_say("AUTH app secret")).starts_with("WRONGPASS"));
    assert_eq!(client.try_say("AUTH other secret"), Some(Reply::OK));
    changed.kv.user.clear();
    process.reload(&changed).expect_err("everybody could come");
    assert_eq!(process.reload(&config), Ok(true));
    assert_eq!(client.try_say("AUTH app secret"), Some(Reply::OK));
    assert_eq!(client.try_say("SET app:1 z"), Some(Reply::OK));
    let mut rest = Vec::new();
    let _ = silent.stream.read_to_end(&mut rest);
    assert_eq!(silent.try_say("PING"), None, "it has not said who it is");
    drop(process);
}

#[test]
fn clients_come_from_other_hosts_only_sealed_and_with_a_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = config(24_350, directory.path());
    for node in &mut config.rings.common.nodes {
        node.address = [10, 0, 0, 1].into();
    }
    let read = |config: &KvConfig| KvConfig::from_toml(&config.to_toml().expect("a file"));
    assert!(matches!(read(&config), Err(ConfigError::OpenMetrics(_))));
    config.kv.process[0].metrics_port = None;
    assert_eq!(read(&config).expect("it is sound"), config);
    let mut nobody = config.clone();
    nobody.kv.user = Vec::new();
    assert!(matches!(read(&nobody), Err(ConfigError::Unprotected(_))));
    if let Some(tls) = &mut nobody.kv.tls {
        tls.client_ca = Some("ca.pem".into());
    }
    assert!(read(&nobody).is_ok(), "certificates say who clients are");
    let mut open = config.clone();
    open.kv.tls = None;
    assert!(matches!(read(&open), Err(ConfigError::Unprotected(_))));
    let mut twice = config;
    twice.kv.user.push(twice.kv.user[0].clone());
    assert!(matches!(read(&twice), Err(ConfigError::User(_))));
}
