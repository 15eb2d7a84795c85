//! Rules and certificates that change while daemons run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rota_check::trace::Trace;
use rota_check::{Options, check_all};
use rota_client::{Client, Code, ConnectError, ConnectionLost, Event};
use rustix::process::geteuid;
use serde_json::Value;

use crate::access::{await_line, counter, free_address, not_allowed};
use crate::bad_clients::status;
use crate::both_protocols::{is_as_it_should_be, spread};
use crate::cluster::Cluster;
use crate::native::{builder, client, end_of, member, next, next_text, next_view};
use crate::operate::rota;
use crate::pki::Served;

/// Gives daemon `id` this configuration, and has it read it: the exit status, and what is said.
pub fn reload(cluster: &Cluster, id: u16, text: &str) -> (Option<i32>, String) {
    fs::write(cluster.file_of(id), text).expect("a file");
    let socket = cluster.admin(id).display().to_string();
    let output = rota(&["reload", "--socket", &socket]);
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    (output.status.code(), said.concat())
}

/// What daemon `id` was started with.
pub fn configuration(cluster: &Cluster, id: u16) -> String {
    fs::read_to_string(cluster.file_of(id)).expect("a file")
}

/// A rule for whom the tests run as.
fn mine(gives: &str) -> String {
    let uid = geteuid().as_raw();
    format!("[[daemon.access]]\nwho = {{ uid = {uid} }}\n{gives}\n")
}

fn by_address(gives: &str) -> String {
    format!("[[daemon.access]]\nwho = {{ address = \"127.0.0.0/8\" }}\n{gives}\n")
}

fn left(client: &mut Client) -> String {
    match next(client) {
        Event::SelfLeave { group } => group.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn new_rules_hold_for_clients_that_are_connected_and_those_who_may_not_are_told() {
    let tcp = free_address();
    let all = "join = [\"*\"]\nsend = [\"*\"]";
    let (mine_before, far_before) = (mine(all), by_address(all));
    let settings = format!("tcp = [\"{tcp}\"]\n{mine_before}{far_before}");
    let cluster = Cluster::start(1, &settings);
    let mut ann = client(&cluster, 1, "ann");
    let mut far = builder("far").connect(tcp).expect("it may");
    for client in [&mut ann, &mut far] {
        client.join("orders").expect("it may");
        client.join("trades").expect("it may");
    }

    let text = configuration(&cluster, 1);
    let orders = mine("join = [\"orders\"]\nsend = [\"orders\"]");
    let elsewhere = "[[daemon.access]]\nwho = { address = \"10.0.0.0/8\" }\n";
    let wrong = text.replace(&mine_before, &orders);
    let (code, said) = reload(&cluster, 1, &wrong.replace(&far_before, elsewhere));
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("rule 2: it can never match: nobody can connect from 10.0.0.0/8"),
        "{said}"
    );
    far.send("trades", b"still there").expect("sent");
    for client in [&mut ann, &mut far] {
        assert_eq!(next_text(client), "still there");
    }

    let fewer = text.replace(&mine_before, &orders).replace(&far_before, "");
    assert_eq!(
        reload(&cluster, 1, &fewer),
        (Some(0), "changed: daemon.access\n".to_owned())
    );
    // One that may not connect any more.
    let ConnectionLost::Goodbye { code, .. } = end_of(&mut far) else {
        panic!("it is not told why");
    };
    assert_eq!(code, Code::NotAllowed);
    assert!(is_refused(builder("far").connect(tcp)));
    // One that may not be in a group, and is told though it wants no membership.
    assert_eq!(left(&mut ann), "trades");
    not_allowed(ann.join("trades"));
    ann.leave("trades").expect("it is out already");
    ann.send("trades", b"not from it").expect("sent");
    assert!(matches!(next(&mut ann), Event::NotSent { .. }));
    assert_eq!(counter(&cluster, "clients_dismissed"), 1);
    assert_eq!(counter(&cluster, "memberships_ended"), 1);
    await_line(&cluster, "new rules do not let it connect");
    await_line(&cluster, "new rules do not let it be there");

    // They get it back, and others come again.
    assert_eq!(reload(&cluster, 1, &text).0, Some(0));
    ann.join("trades").expect("it may again");
    builder("far").connect(tcp).expect("it may again");
    assert_eq!(counter(&cluster, "reloads"), 3);
    assert_eq!(counter(&cluster, "reloads_failed"), 1);
}

#[test]
fn sub_fails_if_it_may_not_be_in_its_group_any_more() {
    let all = mine("join = [\"*\"]\nsend = [\"*\"]");
    let cluster = Cluster::start(1, &all);
    let mut watcher = member(&cluster, 1, "watcher");
    watcher.join("trades").expect("it may");
    next_view(&mut watcher);
    let sub = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["sub", "trades", "--socket"])
        .arg(cluster.socket(1))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary");
    assert_eq!(next_view(&mut watcher).members.len(), 2);
    watcher.send("trades", b"before").expect("sent");
    assert_eq!(next_text(&mut watcher), "before");
    let text = configuration(&cluster, 1);
    let fewer = text.replace(&all, &mine("join = [\"orders\"]"));
    assert_eq!(reload(&cluster, 1, &fewer).0, Some(0));
    let output = sub.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"before\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("do not let this client be there any more"),
        "{said}"
    );
}

fn is_refused(answer: Result<Client, ConnectError>) -> bool {
    let code = Code::NotAllowed;
    matches!(answer, Err(ConnectError::Refused { code: told, .. }) if told == code)
}

#[test]
fn who_has_to_leave_a_group_leaves_it_at_one_place_of_the_order() {
    let all = mine("join = [\"*\"]\nsend = [\"*\"]");
    let mut cluster = Cluster::traced(2, &all);
    crate::native::meet(&cluster, &[1, 2]);
    let mut witness = member(&cluster, 2, "witness");
    witness.join("trades").expect("it joins");
    next_view(&mut witness);
    let mut ann = client(&cluster, 1, "ann");
    let mut ben = member(&cluster, 1, "ben");
    for client in [&mut ann, &mut ben] {
        client.join("trades").expect("it may");
        client.join("orders").expect("it may");
    }
    while next_view(&mut witness).members.len() < 3 {}
    for at in 0..100 {
        witness
            .send("trades", format!("{at}").as_bytes())
            .expect("sent");
    }
    let text = configuration(&cluster, 1);
    let fewer = text.replace(&all, &mine("join = [\"orders\"]\nsend = [\"orders\"]"));
    assert_eq!(reload(&cluster, 1, &fewer).0, Some(0));
    let hears_that_it_is_out = |client: &mut Client| loop {
        match next(client) {
            Event::SelfLeave { group } => return assert_eq!(group.to_string(), "trades"),
            Event::Message(_) | Event::View(_) | Event::Transitional { .. } => {}
            other => panic!("{other:?}"),
        }
    };
    hears_that_it_is_out(&mut ann);
    hears_that_it_is_out(&mut ben);
    let is_alone = |event| matches!(event, Event::View(view) if view.members.len() == 1);
    while !is_alone(next(&mut witness)) {}
    witness.send("trades", b"not for them").expect("sent");
    witness.send("orders", b"for them").expect("sent");
    assert_eq!(next_text(&mut ann), "for them");
    not_allowed(ben.join("trades"));
    assert_eq!(reload(&cluster, 1, &text).0, Some(0));
    ben.join("trades").expect("it may again");
    drop((ann, ben, witness));
    are_sound(&mut cluster);
}

/// Stops both daemons: what they wrote down is as it has to be.
fn are_sound(cluster: &mut Cluster) {
    for id in [1, 2] {
        assert!(cluster.terminate(id).success());
    }
    let files = [1, 2].map(|id| cluster.dir().join(format!("{id}.jsonl")));
    let trace = Trace::from_files(&files).expect("sound traces");
    let report = check_all(&trace, &Options::default());
    assert!(report.holds(), "{:#?}", report.violations);
}

#[test]
fn a_client_of_spreads_is_told_that_it_has_left_and_one_that_may_not_be_there_is_closed() {
    let cluster = Cluster::start(1, &mine("join = [\"*\"]\nsend = [\"*\"]"));
    let text = configuration(&cluster, 1);
    let mut watcher = member(&cluster, 1, "watcher");
    watcher.join("trades").expect("it may");
    next_view(&mut watcher);
    let told = spread(&cluster, 1, TOLD);
    assert_eq!(next_view(&mut watcher).members.len(), 2);
    let more = mine("join = [\"*\"]\nsend = [\"*\"]");
    let orders = text.replace(&more, &mine("join = [\"orders\"]\nsend = [\"*\"]"));
    assert_eq!(reload(&cluster, 1, &orders).0, Some(0));
    assert_eq!(left(&mut watcher), "trades");
    // It says so in the group that it may still be in, and then has to go.
    watcher.join("orders").expect("it may");
    loop {
        match next(&mut watcher) {
            Event::Message(message) if message.payload == b"told"[..] => break,
            Event::View(_) | Event::Message(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let nobody = text.replace(&more, "[[daemon.access]]\nwho = { uid = 54321 }\n");
    assert_eq!(reload(&cluster, 1, &nobody).0, Some(0));
    is_as_it_should_be(&told.wait_with_output().expect("it ends"));
    assert_eq!(counter(&cluster, "clients_dismissed"), 2);
}

const TOLD: &str = r##"
import sys, time
sys.path.insert(0, sys.argv[1])
from spread_client import *

ben = Client(sys.argv[2], b"ben", ">")
ben.send(JOIN, [b"trades"])
ben.expect(VIEW | BY_JOIN, b"trades", [b"#ben#n1", b"#watcher#n1"])
while True:
    got = ben.receive()
    if got.bits & BY_LEAVE and got.sender == b"trades" and not got.groups:
        break
try:
    while True:
        ben.send(AGREED, [b"orders"], b"told")
        time.sleep(0.05)
except OSError:
    print("as it should be")
"##;

fn mode(cluster: &Cluster) -> [u32; 2] {
    [cluster.socket(1), cluster.admin(1)].map(|path| {
        let found = fs::metadata(path).expect("it is there");
        found.permissions().mode() & 0o777
    })
}

#[test]
fn a_daemon_gets_its_first_rules_while_it_runs_and_loses_its_last_only_with_a_restart() {
    let cluster = Cluster::start(1, "");
    let text = configuration(&cluster, 1);
    let mut ann = client(&cluster, 1, "ann");
    ann.join("trades").expect("it may");
    assert_eq!(mode(&cluster), [0o660, 0o600]);
    let ruled = |gives: &str| format!("{text}{}", mine(gives));
    let (code, said) = reload(&cluster, 1, &ruled("join = [\"orders\"]"));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(mode(&cluster), [0o666, 0o600], "the rules decide");
    assert_eq!(left(&mut ann), "trades");
    // What somebody has made of a socket stays, unless the rules want something else of it.
    let narrow = fs::Permissions::from_mode(0o600);
    fs::set_permissions(cluster.socket(1), narrow).expect("it is ours");
    assert_eq!(reload(&cluster, 1, &ruled("admin = true")).0, Some(0));
    assert_eq!(mode(&cluster), [0o600, 0o666]);
    not_allowed(ann.join("orders"));

    for (wrong, why) in [
        (text.clone(), "without rules all who are connected"),
        (
            format!(
                "{}[[daemon.access]]\nwho = {{ user = \"no-such-name\" }}\n",
                ruled("join = [\"*\"]")
            ),
            "this host has no user `no-such-name`",
        ),
        (
            format!(
                "{}[[daemon.access]]\nwho = {{ certificate = \"a\" }}\n",
                ruled("join = [\"*\"]")
            ),
            "it can never match",
        ),
    ] {
        let (code, said) = reload(&cluster, 1, &wrong);
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("nothing was changed: ") && said.contains(why),
            "{said}"
        );
        not_allowed(ann.join("orders"));
        assert_eq!(mode(&cluster), [0o600, 0o666]);
    }
    assert_eq!(counter(&cluster, "reloads_failed"), 3);
    let last = &status(&cluster, 1)["reload"];
    assert_eq!(last["done"], Value::from(false));
}

#[test]
fn new_certificates_hold_for_new_handshakes_and_a_bad_file_changes_nothing() {
    let served = Served::new("");
    let Served { cluster, pki, .. } = &served;
    let text = configuration(cluster, 1);
    let mut before = served.client("before");
    pki.issue("bob", "bob.example", &pki.other_ca, (2000, 4000));
    pki.issue("next", "next.example", &pki.ca, (2000, 4000));
    let bob = || {
        let tls = pki.tls("bob").server_name("next.example");
        builder("bob").tls(tls).connect(served.address())
    };
    let refused = bob();
    assert!(matches!(refused, Err(ConnectError::Tls(_))), "{refused:?}");

    let moved = text
        .replace("daemon.pem", "next.pem")
        .replace("daemon.key", "next.key")
        .replace("/ca.pem", "/other-ca.pem");
    for (file, why) in [("next.key", "next.key"), ("other-ca.pem", "other-ca.pem")] {
        // With rules that would let nobody in, if anything counted.
        let wrong = moved.replace(file, "missing.pem")
            + "[[daemon.access]]\nwho = { certificate = \"nobody.example\" }\n";
        let (code, said) = reload(cluster, 1, &wrong);
        assert_eq!(code, Some(1), "{why}: {said}");
        assert!(said.contains("missing.pem"), "{said}");
        served
            .client("still")
            .close()
            .expect("everything is as it was");
    }
    let (code, said) = reload(cluster, 1, &moved);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        said,
        "certificates: read again; changed: daemon.tls.certificate, daemon.tls.client_ca, daemon.tls.key\n"
    );
    let mut bob = bob().expect("its root is taken now");
    let alice = pki.tls("alice").server_name("next.example");
    let refused = builder("alice").tls(alice).connect(served.address());
    assert!(matches!(refused, Err(ConnectError::Tls(_))), "{refused:?}");
    before.send("#bob#n1", b"as before").expect("sent");
    assert_eq!(next_text(&mut bob), "as before");

    // Where it listens cannot change, nor whether it does.
    let elsewhere = moved.replace(
        &served.listen.to_string(),
        &format!("127.0.0.1:{}", served.listen.port() ^ 1),
    );
    let (code, said) = reload(cluster, 1, &elsewhere);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        said,
        "needs a restart, and is as it was: daemon.tls.listen\n"
    );
    assert_eq!(counter(cluster, "reloads_failed"), 2);
    // The same files, written again, are taken up at once.
    pki.issue("next", "daemon.example", &pki.ca, (2000, 4000));
    let (code, said) = reload(cluster, 1, &moved);
    assert_eq!((code, &*said), (Some(0), "certificates: read again\n"));
    let carol = pki.tls("bob");
    builder("carol")
        .tls(carol)
        .connect(served.address())
        .expect("it has the new name");
}
