//! An etcd that asks for users and passwords.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use rota_core::contract::NodeId;
use rota_node::{
    Coordination, CoordinationError, CoordinationName, EngineName, Etcd, EtcdLogin, NodeConfig,
    PaxosConfig, VoteStorage,
};
use serde_json::{Value, json};

use super::server::Server;
use super::{Nodes, PATIENCE, etcd, running};

/// An etcd, what its `root` says to it, and files with passwords.
struct Guarded {
    server: Server,
    root: Option<String>,
    files: tempfile::TempDir,
}

impl Guarded {
    /// Nobody has to be somebody yet; `rota` may use what is below the prefix of cluster 7.
    fn new() -> Self {
        let mut this = Self {
            server: running(),
            root: None,
            files: tempfile::tempdir().unwrap(),
        };
        this.user("root", "of all");
        this.say("role/add", &json!({ "name": "root" }));
        this.say("user/grant", &json!({ "user": "root", "role": "root" }));
        this.user("rota", "sesame");
        this.say("role/add", &json!({ "name": "rings" }));
        this.allow(7);
        this.say("user/grant", &json!({ "user": "rota", "role": "rings" }));
        this
    }

    fn say(&self, what: &str, words: &Value) -> Value {
        let mut request = ureq::post(&format!("{}/v3/auth/{what}", self.server.url()));
        if let Some(token) = &self.root {
            request = request.header("authorization", token);
        }
        let mut answer = request.send(words.to_string()).unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }

    fn user(&mut self, name: &str, password: &str) {
        self.say("user/add", &json!({ "name": name, "password": password }));
    }

    fn allow(&self, cluster: u32) {
        let key = |end| BASE64_STANDARD.encode(format!("/rota/{cluster}/configurations{end}"));
        let (first, behind) = (key("/"), key("0"));
        let may = json!({ "permType": "READWRITE", "key": first, "range_end": behind });
        self.say("role/grant", &json!({ "name": "rings", "perm": may }));
    }

    /// From now on everybody has to be somebody.
    fn enable(&mut self) {
        self.say("enable", &json!({}));
        self.log_in();
    }

    fn log_in(&mut self) {
        self.root = None;
        let name = json!({ "name": "root", "password": "of all" });
        let token = self.say("authenticate", &name)["token"].clone();
        self.root = Some(token.as_str().unwrap().to_owned());
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.files.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    fn login(&self, user: &str, password: &str) -> EtcdLogin {
        EtcdLogin {
            user: user.to_owned(),
            password_file: self.file("password", &format!("{password}\n"), 0o600),
        }
    }

    fn client(&self, cluster: u32, login: Option<EtcdLogin>) -> Etcd {
        Etcd::open(&[self.server.url()], cluster, None, login.as_ref()).unwrap()
    }
}

fn ask(client: &mut Etcd, number: u64) -> Result<Bytes, CoordinationError> {
    client.ask(number, &Bytes::from(format!("the {number}th")))
}

fn expect(client: &mut Etcd, number: u64) {
    assert_eq!(ask(client, number), Ok(format!("the {number}th").into()));
}

fn expect_refusal(client: &mut Etcd, number: u64, words: &str) {
    match ask(client, number) {
        Err(CoordinationError::Refused(said)) if said.contains(words) => {
            assert!(!said.contains("sesame"), "{said}");
        }
        other => panic!("{other:?} instead of {words}"),
    }
}

#[test]
fn whoever_logs_in_is_answered_and_nobody_else() {
    let mut guarded = Guarded::new();
    let mut node = guarded.client(7, Some(guarded.login("rota", "sesame")));
    // It may come with a password before it has to.
    expect(&mut node, 1);
    guarded.enable();
    expect(&mut node, 2);
    expect_refusal(&mut guarded.client(7, None), 3, "user name is empty");
    let wrong = Some(guarded.login("rota", "open"));
    expect_refusal(&mut guarded.client(7, wrong), 3, "user rota: 400");
    let nobody = Some(guarded.login("nobody", "sesame"));
    expect_refusal(&mut guarded.client(7, nobody), 3, "user nobody: 400");
    // Another cluster's keys are not its own.
    let mut other = guarded.client(8, Some(guarded.login("rota", "sesame")));
    expect_refusal(&mut other, 1, "permission denied");
    guarded.allow(8);
    expect(&mut other, 1);
    expect(&mut node, 3);
}

/// Tokens end with the process that gave them, and when users change; one that is refused is asked for anew.
#[test]
fn a_token_that_has_ended_is_asked_for_anew() {
    let mut guarded = Guarded::new();
    guarded.enable();
    let mut node = guarded.client(7, Some(guarded.login("rota", "sesame")));
    expect(&mut node, 1);
    guarded.user("another", "secret");
    expect(&mut node, 2);
    guarded.server.kill();
    let away = ask(&mut node, 3);
    assert!(
        matches!(away, Err(CoordinationError::Unreachable(_))),
        "{away:?}"
    );
    guarded.server.start(etcd());
    expect(&mut node, 3);
    guarded.log_in();
    let new = json!({ "name": "rota", "password": "other" });
    guarded.say("user/changepw", &new);
    expect_refusal(&mut node, 4, "user rota: 400");
    guarded.say(
        "user/changepw",
        &json!({ "name": "rota", "password": "sesame" }),
    );
    expect(&mut node, 4);
    // A password that is replaced in its file is read again.
    guarded.say("user/changepw", &new);
    expect_refusal(&mut node, 5, "user rota: 400");
    guarded.login("rota", "other");
    expect(&mut node, 5);
}

#[test]
fn a_password_that_cannot_be_used_is_said_before_anybody_is_asked() {
    let files = Guarded {
        server: Server::new(std::net::Ipv4Addr::LOCALHOST.into(), (1, 2)),
        root: None,
        files: tempfile::tempdir().unwrap(),
    };
    for (name, text, mode, words) in [
        ("open", "sesame", 0o640, "0640: only its owner"),
        ("empty", "\n", 0o600, "empty: there is no password"),
    ] {
        let login = EtcdLogin {
            user: "rota".to_owned(),
            password_file: files.file(name, text, mode),
        };
        let said = Etcd::open(&[], 7, None, Some(&login)).unwrap_err();
        let said = said.to_string();
        assert!(
            said.starts_with("etcd_login: ") && said.contains(words),
            "{said}"
        );
    }
    let mut config = config(
        24_860,
        EtcdLogin {
            user: "node-{node}".to_owned(),
            password_file: files.files.path().join("missing-{node}"),
        },
    );
    let two = NodeId::new(2).unwrap();
    let said = config.check_etcd_files(two).unwrap_err().to_string();
    assert!(said.contains("missing-2: "), "{said}");
    assert_eq!(config.etcd_user(Some(two)).as_deref(), Some("node-2"));
    assert!(config.login_warning().unwrap().contains("in the clear"));
    config.paxos.as_mut().unwrap().etcd_login = None;
    assert_eq!(
        (config.etcd_user(Some(two)), config.login_warning()),
        (None, None)
    );
}

fn config(base_port: u16, login: EtcdLogin) -> NodeConfig {
    let mut config = NodeConfig::loopback(3, base_port);
    config.engine = EngineName::URingPaxos;
    config.paxos = Some(PaxosConfig {
        storage: VoteStorage::Memory,
        coordination: CoordinationName::Etcd,
        etcd: Some(vec!["http://127.0.0.1:2379".to_owned()]),
        etcd_login: Some(login),
        ..PaxosConfig::default()
    });
    config.check().unwrap();
    config
}

/// Nodes, each of which is a user of its own.
#[test]
fn nodes_that_log_in_form_a_ring() {
    let mut guarded = Guarded::new();
    for node in 1..=3 {
        let (user, password) = (format!("node-{node}"), format!("sesame {node}"));
        guarded.user(&user, &password);
        guarded.say("user/grant", &json!({ "user": user, "role": "rings" }));
        guarded.file(&user, &password, 0o400);
    }
    let mut config = config(
        24_880,
        EtcdLogin {
            user: "node-{node}".to_owned(),
            password_file: guarded.files.path().join("node-{node}"),
        },
    );
    guarded.allow(config.cluster);
    guarded.enable();
    config.paxos.as_mut().unwrap().etcd = Some(vec![guarded.server.url()]);
    let mut nodes = Nodes::with_config(config);
    assert!(nodes.all_have(3, PATIENCE));
    let requests = nodes.counters("coordination_requests");
    assert!(requests.iter().sum::<u64>() > 0, "{requests:?}");
    assert_eq!(nodes.counters("coordination_away"), [0; 3]);
}

/// Nobody has to look into a log to see why no ring forms.
#[test]
fn a_node_that_is_refused_says_so_in_its_state() {
    let mut guarded = Guarded::new();
    guarded.enable();
    let mut config = config(24_900, guarded.login("rota", "open"));
    config.paxos.as_mut().unwrap().etcd = Some(vec![guarded.server.url()]);
    let nodes = Nodes::with_config(config);
    let until = Instant::now() + PATIENCE;
    loop {
        let statuses = nodes.nodes.iter().filter_map(|node| node.status());
        let refuses = "the coordination service refuses what this node asks for";
        let mut states = statuses.map(|status| status.engine.state);
        if states.any(|state| state.contains(refuses)) {
            break;
        }
        assert!(Instant::now() < until);
    }
    assert!(nodes.counters("coordination_away").contains(&1));
}
