//! The rights of clients.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rota_client::{Client, Code, ConnectError, Envelope, Event, RequestError};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::bad_clients::status;
use crate::both_protocols::{is_as_it_should_be, spread};
use crate::cluster::Cluster;
use crate::native::{PATIENCE, builder, client, next, next_text};

/// Whom the tests run as.
fn me() -> u32 {
    geteuid().as_raw()
}

/// A TCP address that nobody has.
pub fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    free.local_addr().expect("it is bound")
}

pub fn counter(cluster: &Cluster, name: &str) -> u64 {
    let status = status(cluster, 1);
    let count = status["counters"][name].as_u64();
    count.unwrap_or_else(|| panic!("{name} is not in {status}"))
}

/// Waits until the daemons have said so.
pub fn await_line(cluster: &Cluster, text: &str) {
    let until = Instant::now() + PATIENCE;
    while cluster.said(text) == 0 {
        assert!(Instant::now() < until, "they never say: {text}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[track_caller]
pub fn not_allowed<T: std::fmt::Debug>(answer: Result<T, RequestError>) {
    let code = match &answer {
        Err(RequestError::Failed { code, .. }) => Some(*code),
        _ => None,
    };
    assert_eq!(code, Some(Code::NotAllowed), "{answer:?}");
}

#[test]
fn a_client_may_what_its_rules_give_and_is_told_what_it_may_not() {
    let tcp = free_address();
    let cluster = Cluster::start(
        1,
        &format!(
            "tcp = [\"{tcp}\"]\n\
             [[daemon.access]]\nwho = {{ uid = {} }}\njoin = [\"orders*\"]\nsend = [\"orders*\"]\n\
             [[daemon.access]]\nwho = {{ address = \"127.0.0.0/8\" }}\njoin = [\"trades\"]\n\
             send = [\"#ann#*\"]\n",
            me()
        ),
    );
    let mut ann = client(&cluster, 1, "ann");
    ann.join("orders.eu").expect("it may");
    not_allowed(ann.join("trades"));
    not_allowed(ann.join("order"));
    // Nothing has changed by that: what it may comes as before.
    ann.join("orders.us").expect("it may");
    let mut far = builder("far").connect(tcp).expect("it may");
    far.join("trades").expect("it may");
    not_allowed(far.join("orders.eu"));
    not_allowed(far.members("orders.eu"));
    not_allowed(ann.members("trades"));
    let seen: Vec<String> = ann
        .groups()
        .expect("a list")
        .iter()
        .map(|(name, _)| name.to_string())
        .collect();
    assert_eq!(seen, ["orders.eu", "orders.us"]);
    assert_eq!(
        far.groups().expect("a list").len(),
        1,
        "the one it may join"
    );

    // A message to a group that it may not send to goes to none.
    let both = Envelope::to_all(["orders.eu", "trades"]).expect("groups");
    ann.send(both.kind(77), b"nobody gets this").expect("sent");
    let event = next(&mut ann);
    let Event::NotSent { kind, to, code, .. } = &event else {
        panic!("{event:?}");
    };
    assert_eq!(
        (*kind, &*to.to_string(), *code),
        (77, "trades", Code::NotAllowed)
    );
    far.send("#far#n1", b"not even to itself").expect("sent");
    assert!(matches!(next(&mut far), Event::NotSent { .. }));
    far.send("#ann#n1", b"from far").expect("sent");
    assert_eq!(next_text(&mut ann), "from far");
    ann.send("orders.eu", b"still connected").expect("sent");
    assert_eq!(next_text(&mut ann), "still connected");
    assert_eq!(counter(&cluster, "requests_not_allowed"), 7);
    assert_eq!(counter(&cluster, "clients_not_allowed"), 0);
}

#[test]
fn refused_messages_cost_no_credit_are_counted_and_said_once_in_a_while() {
    const SENT: usize = 2000;
    let rule = format!(
        "[[daemon.access]]\nwho = {{ uid = {} }}\nsend = [\"#*\"]\n",
        me()
    );
    let cluster = Cluster::start(1, &rule);
    let started = Instant::now();
    let mut ann = client(&cluster, 1, "ann");
    // Eight times the credit.
    let payload = [b'x'; 1024];
    let mut refused = 0;
    for _ in 0..SENT {
        ann.send("g", &payload).expect("sent");
        while let Some(event) = ann.try_recv().expect("connected") {
            assert!(matches!(event, Event::NotSent { .. }), "{event:?}");
            refused += 1;
        }
    }
    while refused < SENT {
        let event = next(&mut ann);
        assert!(matches!(event, Event::NotSent { .. }), "{event:?}");
        refused += 1;
    }
    ann.send("#ann#n1", b"still connected").expect("sent");
    assert_eq!(next_text(&mut ann), "still connected");
    assert_eq!(counter(&cluster, "requests_not_allowed"), SENT as u64);
    let reason = "may not send what it sends";
    await_line(&cluster, reason);
    let lines = cluster.said(reason) as u64;
    let most = 1 + started.elapsed().as_secs() / 10;
    assert!(lines <= most, "{lines} lines, {most} at most");
    assert_eq!(cluster.said(&format!("who=uid {}", me())) as u64, lines);
}

#[test]
fn who_is_in_no_rule_is_not_let_in_by_either_protocol() {
    let cluster = Cluster::start(
        1,
        "[[daemon.access]]\nwho = { uid = 54321 }\njoin = [\"*\"]\n",
    );
    let refused = builder("ann").connect(cluster.socket(1));
    let Err(ConnectError::Refused { code, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(*code, Code::NotAllowed);
    assert!(
        !refused.expect_err("refused").may_pass(),
        "nobody tries again"
    );
    let output = spread(&cluster, 1, SPREAD_REFUSED).wait_with_output();
    let output = output.expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(counter(&cluster, "clients_not_allowed"), 2);
    await_line(&cluster, "nothing allows it to connect");
    let output = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["sub", "g", "--socket"])
        .arg(cluster.socket(1))
        .output()
        .expect("the binary");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("refused: not allowed"), "{said}");
}

const SPREAD_REFUSED: &str = r#"
import sys
sys.path.insert(0, sys.argv[1])
from spread_client import *

for name in b"ann", b"":
    try:
        Client(sys.argv[2], name)
    except Refused as refused:
        assert refused.args == (-9,), refused.args
    else:
        raise AssertionError("it was let in")
    break
"#;

#[test]
fn spreads_clients_get_back_what_they_may_not() {
    let rule = format!(
        "[[daemon.access]]\nwho = {{ uid = {} }}\njoin = [\"orders\"]\nsend = [\"orders\"]\n",
        me()
    );
    let cluster = Cluster::start(1, &rule);
    let output = spread(&cluster, 1, SPREAD_REJECTED).wait_with_output();
    is_as_it_should_be(&output.expect("it ends"));
    assert_eq!(counter(&cluster, "requests_not_allowed"), 2);
}

const SPREAD_REJECTED: &str = r##"
import sys
sys.path.insert(0, sys.argv[1])
from spread_client import *

ben = Client(sys.argv[2], b"ben", ">")
ben.send(JOIN, [b"trades"])
got = ben.expect(REJECT, b"#ben#n1", [b"trades", b"#ben#n1"], b"")
assert got.old == BY_JOIN, hex(got.old)
ben.send(FIFO | SELF_DISCARD, [b"orders", b"trades"], b"data", mess_type=0x1234)
got = ben.expect(REJECT | SELF_DISCARD, b"#ben#n1", [b"orders", b"trades", b"#ben#n1"], b"data")
assert got.old == FIFO, hex(got.old)
assert got.mess_type == 0x1234 and not got.mismatch
ben.send(JOIN, [b"orders"])
ben.expect(VIEW | BY_JOIN, b"orders", [b"#ben#n1"])
ben.send(AGREED, [b"orders"], b"allowed")
ben.expect(AGREED, b"#ben#n1", [b"orders"], b"allowed")
print("as it should be")
"##;

#[test]
fn pub_fails_if_its_lines_may_not_be_sent() {
    let rule = format!(
        "[[daemon.access]]\nwho = {{ uid = {} }}\nsend = [\"orders\"]\n",
        me()
    );
    let cluster = Cluster::start(1, &rule);
    for (group, expected) in [("orders", Some(0)), ("trades", Some(1)), ("#a#n1", Some(1))] {
        let command = format!(
            "printf 'one\\ntwo\\n' | '{}' pub '{group}' --socket '{}'",
            env!("CARGO_BIN_EXE_rota"),
            cluster.socket(1).display()
        );
        let output = Command::new("sh").args(["-c", &command]).output();
        let output = output.expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), expected, "{group}: {said}");
        if expected == Some(1) {
            assert!(
                said.contains(&format!("not sent to {group}: not allowed")),
                "{said}"
            );
        }
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o777
}

#[test]
fn without_a_list_sockets_are_for_owner_and_group_and_with_one_the_list_decides() {
    let modes = |settings: &str| {
        let cluster = Cluster::start(1, settings);
        [cluster.socket(1), cluster.spread(1), cluster.admin(1)].map(|path| mode(&path))
    };
    assert_eq!(modes(""), [0o660, 0o660, 0o600]);
    let rule = "[[daemon.access]]\nwho = { uid = 54321 }\n";
    assert_eq!(modes(rule), [0o666, 0o666, 0o600]);
    assert_eq!(modes(&format!("{rule}admin = true\n")), [0o666; 3]);
}

/// What this does as user `uid` of the group `gid` and these other groups.
fn as_user<T: Send + 'static>(
    uid: u32,
    gid: u32,
    groups: &[u32],
    does: impl FnOnce() -> T + Send + 'static,
) -> T {
    let groups: Vec<Gid> = groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    let thread = thread::spawn(move || {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        set_thread_groups(&groups).expect("root may");
        set_thread_res_gid(gid, gid, gid).expect("root may");
        set_thread_res_uid(uid, uid, uid).expect("root may");
        does()
    });
    thread.join().expect("no panic")
}

fn is_let_in(socket: &Path, uid: u32, gid: u32, groups: &[u32]) -> Result<(), ConnectError> {
    let socket = PathBuf::from(socket);
    as_user(uid, gid, groups, move || {
        Client::connect(&*socket).map(drop)
    })
}

/// What `rota status` would be answered.
fn answer(socket: &Path, uid: u32) -> String {
    let socket = PathBuf::from(socket);
    as_user(uid, uid, &[], move || {
        let mut stream = UnixStream::connect(&socket).expect("the list decides");
        let mut line = String::new();
        std::io::Read::read_to_string(&mut stream, &mut line).expect("an answer");
        line
    })
}

#[test]
#[ignore = "needs root, to be other users"]
fn users_are_known_by_what_the_kernel_says_of_them() {
    assert_eq!(me(), 0, "this test has to be root's");
    let open_dir = |cluster: &Cluster| {
        let rights = fs::Permissions::from_mode(0o755);
        fs::set_permissions(cluster.dir(), rights).expect("it is ours");
    };
    let cluster = Cluster::start(1, "");
    open_dir(&cluster);
    let refused = is_let_in(&cluster.socket(1), 54321, 54321, &[]);
    let is_denied = |error: &ConnectError| matches!(error, ConnectError::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied);
    assert!(refused.as_ref().is_err_and(is_denied), "{refused:?}");

    let cluster = Cluster::start(
        1,
        "[[daemon.access]]\nwho = { uid = 54321 }\n\
         [[daemon.access]]\nwho = { gid = 60001 }\nadmin = true\n\
         [[daemon.access]]\nwho = { uid = 54322, gid = 60002 }\nadmin = true\n",
    );
    open_dir(&cluster);
    let socket = cluster.socket(1);
    let may = |uid, gid, groups: &[u32]| match is_let_in(&socket, uid, gid, groups) {
        Ok(()) => true,
        Err(ConnectError::Refused {
            code: Code::NotAllowed,
            ..
        }) => false,
        Err(other) => panic!("{other}"),
    };
    assert!(may(54321, 54321, &[]));
    assert!(!may(54322, 54322, &[]));
    assert!(may(54322, 60002, &[]), "by its own group");
    assert!(may(54323, 54323, &[60001]), "by one of its groups");
    let many: Vec<u32> = (61000..61200).chain([60001]).collect();
    assert!(may(54323, 54323, &many), "by one of its many groups");
    assert!(!may(54323, 60002, &[60002]), "the user is another");
    assert!(!may(0, 0, &[]), "root is in no rule");

    let told = answer(&cluster.admin(1), 54321);
    assert_eq!(told, "{\"refused\":\"not allowed\"}\n");
    assert!(answer(&cluster.admin(1), 0).contains("\"node\":1"));
    assert_eq!(counter(&cluster, "admins_not_allowed"), 1);
}
