//! `rota pub`, `rota sub` and `rota status` with a real daemon.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rota_client::PrivateName;

use crate::cluster::Cluster;
use crate::native::{PATIENCE, client, meet};

pub fn rota(arguments: &[&str], socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(arguments).arg("--socket").arg(socket);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts `rota sub` and waits until it is in the group.
pub fn sub(cluster: &Cluster, id: u16, arguments: &[&str]) -> Child {
    let mut command = rota(&[&["sub"], arguments].concat(), &cluster.socket(id));
    let child = command.spawn().expect("the binary");
    let mut observer = client(cluster, id, "observer");
    let until = Instant::now() + PATIENCE;
    // The groups are joined in turn; others may be in them at other daemons.
    let last = arguments.iter().rfind(|text| text.starts_with("g-"));
    let daemon = format!("n{id}");
    let has_joined = |members: Vec<PrivateName>| {
        let mut members = members.iter();
        members.any(|member| member.daemon.as_str() == daemon)
    };
    while !has_joined(observer.members(last.expect("a group")).expect("a list")) {
        assert!(Instant::now() < until, "it does not join");
        thread::sleep(Duration::from_millis(10));
    }
    child
}

pub fn publish(cluster: &Cluster, id: u16, arguments: &[&str], input: &str) -> Output {
    let child = rota(&[&["pub"], arguments].concat(), &cluster.socket(id))
        .stdin(Stdio::piped())
        .spawn();
    let mut child = child.expect("the binary");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    // It may end before it has read all.
    let writing = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let _ = writing.join().expect("no panic");
    output
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn lines_go_in_at_one_daemon_and_come_out_at_another() {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let lines: String = (0..20_000).map(|at| format!("line {at}\n")).collect();
    let subs = [1, 2].map(|id| sub(&cluster, id, &["g-one", "g-two", "--count", "20000"]));
    let sent = publish(&cluster, 1, &["g-one", "g-two"], &lines);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    for sub in subs {
        let output = sub.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout) == lines, "other lines came out");
    }
}

#[test]
fn sub_says_who_is_in_the_group_in_lines_that_can_be_found() {
    let cluster = Cluster::start(1, "");
    let sub = sub(
        &cluster,
        1,
        &["g-one", "--members", "--name", "ann", "--count", "1"],
    );
    let mut ben = client(&cluster, 1, "ben");
    ben.join("g-one").expect("it joins");
    ben.leave("g-one").expect("it leaves");
    let sent = publish(
        &cluster,
        1,
        &["g-one", "--service", "safe"],
        "no end of line",
    );
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let output = sub.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let words: Vec<Vec<&str>> = said.lines().map(|line| line.split(' ').collect()).collect();
    let expected = [
        "# view g-one ID join #ann#n1 members #ann#n1",
        "# view g-one ID join #ben#n1 members #ann#n1 #ben#n1",
        "# view g-one ID leave #ben#n1 members #ann#n1",
        "no end of line",
    ];
    assert_eq!(words.len(), expected.len(), "{said}");
    for (line, expected) in words.iter().zip(expected) {
        let mut line = line.clone();
        if line[0] == "#" {
            line[3] = "ID";
        }
        assert_eq!(line.join(" "), expected);
    }
}

#[test]
fn a_line_that_is_too_long_ends_pub_and_what_came_before_is_sent() {
    let cluster = Cluster::start(1, "message_bytes = 1000");
    let sub = sub(&cluster, 1, &["g-one", "--count", "2"]);
    let longest = "x".repeat(1000);
    let sent = publish(
        &cluster,
        1,
        &["g-one"],
        &format!("short\n{longest}\nx{longest}\nnever\n"),
    );
    assert_eq!(sent.status.code(), Some(1));
    let said = text(&sent.stderr);
    assert_eq!(
        said,
        "rota: line 3: a message may have at most 1000 bytes\n"
    );
    let output = sub.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stdout), format!("short\n{longest}\n"));
}

#[test]
fn status_is_for_people_or_for_programs() {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let mut ann = client(&cluster, 1, "ann");
    ann.join("g").expect("it joins");
    let output = rota(&["status"], &cluster.admin(1))
        .output()
        .expect("the binary");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for line in [
        &*format!("daemon   n1 (node 1), rota {}", env!("CARGO_PKG_VERSION")),
        "ring     operational: 1, 2",
        "groups   1, known to all daemons",
        "clients  1",
        "         #ann#n1 (native): 0 messages",
    ] {
        assert!(
            said.lines().any(|said| said == line),
            "{line} is not in {said}"
        );
    }
    let output = rota(&["status", "--json"], &cluster.admin(2))
        .output()
        .expect("the binary");
    let said = text(&output.stdout);
    let last = said.lines().last().expect("a line");
    let status: serde_json::Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(status["name"], "n2");
    assert_eq!(status["groups"], 1);
    assert_eq!(status["counters"]["clients_now"], 0);
}

#[test]
fn commands_say_why_they_end() {
    let mut cluster = Cluster::start(1, "");
    let sub = sub(&cluster, 1, &["g-one"]);
    assert!(cluster.terminate(1).success());
    let output = sub.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("shutting down"), "{said}");

    let nobody = cluster.dir().join("nobody.sock");
    for (arguments, code) in [
        (&["sub", "g"][..], 1),
        (&["pub", "g"], 1),
        (&["status"], 1),
        (&["sub"], 2),
        (&["sub", "#ann#n1"], 2),
        (&["sub", "g", "--name", "elevenchars"], 2),
        (&["sub", "g", "--count", "0"], 2),
        (&["pub", "#ann"], 2),
        (&["pub", "g", "--service", "best"], 2),
    ] {
        let output = rota(arguments, &nobody).stdin(Stdio::null()).output();
        let output = output.expect("the binary");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(code == 2 || said.contains("nobody.sock"), "{said}");
    }
    for command in ["sub", "pub", "status"] {
        let output = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args([command, "--help"])
            .output()
            .expect("the binary");
        let said = text(&output.stdout);
        assert!(said.contains("Example"), "{said}");
        assert!(said.contains("/run/rota/"), "{said}");
    }
}
