//! Native and Spread's clients in the same groups.

use std::process::{Child, Command, Output, Stdio};

use rota_client::{Cause, Destination, Envelope, Event, Service};

use crate::cluster::Cluster;
use crate::native::{client, meet, member, names, next, next_message, next_text, next_view};

/// One of Spread's clients, which says on standard output what it is told.
const SPREAD: &str = r##"
import sys
sys.path.insert(0, sys.argv[1])
from spread_client import *

ben = Client(sys.argv[2], b"ben", ">")
ben.send(JOIN, [b"both"])
view = ben.expect(VIEW | BY_JOIN, b"both", [b"#ann#n1", b"#ben#n2"])
assert view.view()[1:] == (1, [b"#ben#n2"]), view.view()
ben.send(SAFE, [b"both", b"nobody-here"], b"from spread", mess_type=0x1234)
ben.expect(SAFE, b"#ben#n2", [b"both", b"nobody-here"], b"from spread")
got = ben.expect(AGREED, b"#ann#n1", [b"both", b"#ben#n2"], b"from native")
assert got.mess_type == 0x4321, got.mess_type
got = ben.expect(FIFO | SELF_DISCARD, b"#ann#n1", [b"#ben#n2"], b"")
ben.send(AGREED, [b"#ann#n1", b"#gone#n9", b"bad name"], b"private")
ben.expect(BY_LEAVE | VIEW, b"both", [b"#ben#n2"])
ben.send(KILL, [ben.own])
assert ben.closed()
print("as it should be")
"##;

/// One that has no time: it does not read, and closes its socket right after it has said that it goes.
const HASTY: &str = r##"
import sys
sys.path.insert(0, sys.argv[1])
from spread_client import *

hasty = Client(sys.argv[2], b"hasty")
hasty.send(JOIN, [b"both"])
for at in range(3000):
    hasty.send(AGREED, [b"both"], b"%d" % at)
hasty.send(KILL, [hasty.own])
hasty.socket.close()
"##;

/// A client in another language has said at its end that all was as it should be.
pub fn is_as_it_should_be(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    assert_eq!(output.stdout, b"as it should be\n");
}

/// Starts one of Spread's clients at daemon `id`.
pub fn spread(cluster: &Cluster, id: u16, script: &str) -> Child {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../daemon/tests");
    // -B: no compiled copies beside the sources.
    Command::new("python3")
        .args(["-B", "-c", script, path])
        .arg(cluster.spread(id))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test needs python3: `cargo xtask setup`")
}

#[test]
fn what_a_client_of_spread_sent_before_it_closed_arrives() {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let mut ann = client(&cluster, 1, "ann");
    ann.join("both").expect("it joins");
    let output = spread(&cluster, 2, HASTY).wait_with_output();
    let output = output.expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for at in 0..3000 {
        assert_eq!(next_text(&mut ann), at.to_string());
    }
}

#[test]
fn native_and_spreads_clients_meet_in_one_group() {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let mut ann = member(&cluster, 1, "ann");
    ann.join("both").expect("it joins");
    assert_eq!(names(&next_view(&mut ann).members), ["#ann#n1"]);
    let spread = spread(&cluster, 2, SPREAD);

    let view = next_view(&mut ann);
    assert_eq!(names(&view.members), ["#ann#n1", "#ben#n2"]);
    assert!(matches!(view.cause, Cause::Join(who) if who.to_string() == "#ben#n2"));
    let message = next_message(&mut ann);
    assert_eq!(message.payload, &b"from spread"[..]);
    assert_eq!((message.service, message.kind), (Service::Safe, 0x1234));
    assert_eq!(message.sender.to_string(), "#ben#n2");
    let to: Vec<_> = message.to.iter().map(Destination::to_string).collect();
    assert_eq!(to, ["both", "nobody-here"]);

    let both = Envelope::to_all(["both", "#ben#n2"]).expect("destinations");
    ann.send(both.kind(0x4321), b"from native").expect("sent");
    assert_eq!(next_message(&mut ann).payload, &b"from native"[..]);
    let empty = Envelope::to("#ben#n2").expect("a client");
    ann.send(empty.service(Service::Fifo).self_discard(), b"")
        .expect("sent");
    let message = next_message(&mut ann);
    assert_eq!(message.payload, &b"private"[..]);
    // Whom nobody can have, nobody is told of.
    let to: Vec<_> = message.to.iter().map(Destination::to_string).collect();
    assert_eq!(to, ["#ann#n1"]);
    ann.leave("both").expect("it leaves");
    assert!(matches!(next(&mut ann), Event::SelfLeave { .. }));

    let output = spread.wait_with_output().expect("it ends");
    is_as_it_should_be(&output);
}
