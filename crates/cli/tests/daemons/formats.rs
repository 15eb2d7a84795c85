//! Formats of `rota sub` and `rota pub`, and lists of groups and members.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::lines::{publish, rota, sub, text};
use crate::native::{client, meet, member};

/// Sends these bytes as one message.
fn publish_raw(socket: &Path, bytes: &[u8]) -> std::process::Output {
    let mut child = rota(&["pub", "g-one", "--format", "raw"], socket)
        .stdin(Stdio::piped())
        .spawn()
        .expect("the binary");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(bytes).expect("written");
    drop(input);
    child.wait_with_output().expect("it ends")
}

fn objects(bytes: &[u8]) -> Vec<Value> {
    let line =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    text(bytes).lines().map(line).collect()
}

#[test]
fn what_is_in_a_payload_passes_as_json_and_raw_and_can_be_sent_again() {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let payloads = [
        &b"two\nlines\n"[..],
        b"",
        b"\0\xff\xfe\n",
        "h\u{e9}".as_bytes(),
    ];
    let count = payloads.len().to_string();
    let arguments = |format| vec!["g-one", "--format", format, "--count", &count];
    let as_json = sub(&cluster, 1, &arguments("json"));
    let as_is = sub(&cluster, 2, &arguments("raw"));
    for payload in payloads {
        let sent = publish_raw(&cluster.socket(1), payload);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
    }
    let raw = as_is.wait_with_output().expect("it ends");
    assert_eq!(raw.stdout, payloads.concat());
    let output = as_json.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let seen = objects(&output.stdout);
    assert_eq!(seen.len(), payloads.len());
    assert_eq!(seen[0]["payload"], "two\nlines\n");
    assert_eq!(seen[2]["payload_base64"], "AP/+Cg==");
    for object in &seen {
        assert_eq!(object["event"], "message");
        assert_eq!(object["to"], json!(["g-one"]));
        assert_eq!(
            (&object["service"], &object["kind"]),
            (&json!("agreed"), &json!(0))
        );
        assert!(
            object["from"]
                .as_str()
                .is_some_and(|name| name.ends_with("#n1")),
            "{object}"
        );
    }

    let again = sub(
        &cluster,
        2,
        &["g-two", "--format", "raw", "--count", &count],
    );
    let sent = publish(
        &cluster,
        1,
        &["g-two", "--format", "json"],
        &text(&output.stdout),
    );
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let raw = again.wait_with_output().expect("it ends");
    assert_eq!(raw.stdout, payloads.concat());
}

#[test]
fn a_line_of_json_may_ask_for_a_service_and_the_command_line_may_overrule_it() {
    let cluster = Cluster::start(1, "message_bytes = 1000");
    let seen = sub(&cluster, 1, &["g-one", "--format", "json", "--count", "4"]);
    let lines = "{\"payload\":\"a\",\"service\":\"safe\",\"kind\":7}\n{\"payload\":\"b\"}\n";
    for arguments in [
        &["g-one", "--format", "json"][..],
        &["g-one", "--format", "json", "--service", "fifo"],
    ] {
        let sent = publish(&cluster, 1, arguments, lines);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
    }
    let output = seen.wait_with_output().expect("it ends");
    let service = |object: &Value| (object["service"].clone(), object["kind"].clone());
    let seen: Vec<_> = objects(&output.stdout).iter().map(service).collect();
    let expected = [("safe", 7), ("agreed", 0), ("fifo", 7), ("fifo", 0)];
    assert_eq!(
        seen,
        expected.map(|(name, kind)| (json!(name), json!(kind)))
    );

    let wrong = publish(
        &cluster,
        1,
        &["g-one", "--format", "json"],
        "{\"payload\":\"a\"}\n{\"pay\":1}\n",
    );
    assert_eq!(wrong.status.code(), Some(1));
    let said = "rota: line 2: it needs one of payload and payload_base64\n";
    assert_eq!(text(&wrong.stderr), said);
    let long = publish_raw(&cluster.socket(1), &[b'x'; 1001]);
    assert_eq!(long.status.code(), Some(1));
    assert_eq!(
        text(&long.stderr),
        "rota: a message may have at most 1000 bytes\n"
    );
}

#[test]
fn views_are_objects_too_and_raw_has_no_place_for_them() {
    let cluster = Cluster::start(1, "");
    let arguments = [
        "g-one",
        "--members",
        "--name",
        "ann",
        "--count",
        "1",
        "--format",
        "json",
    ];
    let seen = sub(&cluster, 1, &arguments);
    let mut ben = client(&cluster, 1, "ben");
    ben.join("g-one").expect("it joins");
    ben.leave("g-one").expect("it leaves");
    ben.send("g-one", b"bye").expect("sent");
    let output = seen.wait_with_output().expect("it ends");
    let seen = objects(&output.stdout);
    let view = |at: usize| {
        let view: &Value = &seen[at];
        assert_eq!(
            (&view["event"], &view["group"]),
            (&json!("view"), &json!("g-one"))
        );
        (
            view["cause"].clone(),
            view["who"].clone(),
            view["members"].clone(),
        )
    };
    let [ann, ben] = ["#ann#n1", "#ben#n1"];
    assert_eq!(view(0), (json!("join"), json!(ann), json!([ann])));
    assert_eq!(view(1), (json!("join"), json!(ben), json!([ann, ben])));
    assert_eq!(view(2), (json!("leave"), json!(ben), json!([ann])));
    assert_eq!(seen[3]["payload"], "bye");
    let refused = rota(
        &["sub", "g-one", "--members", "--format", "raw"],
        &cluster.socket(1),
    )
    .output()
    .expect("the binary");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn groups_and_members_are_listed_for_people_and_for_programs() {
    let cluster = Cluster::start(2, "");
    meet(&cluster, &[1, 2]);
    let asked = |arguments: &[&str]| {
        let output = rota(arguments, &cluster.socket(2))
            .output()
            .expect("the binary");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(asked(&["groups"]), "");
    assert_eq!(asked(&["groups", "--json"]), "{\"groups\":[]}\n");
    let mut ann = member(&cluster, 1, "ann");
    let mut ben = member(&cluster, 2, "ben");
    ann.join("orders").expect("it joins");
    ben.join("orders").expect("it joins");
    ann.join("trades").expect("it joins");
    // What one daemon has answered, the other may not have delivered yet; its own client's join comes behind it.
    ben.join("last").expect("it joins");
    assert_eq!(
        asked(&["groups"]),
        "     1 last\n     2 orders\n     1 trades\n"
    );
    let groups: Value = serde_json::from_str(&asked(&["groups", "--json"])).expect("JSON");
    assert_eq!(
        groups["groups"][1],
        json!({"group": "orders", "members": 2})
    );
    assert_eq!(asked(&["members", "orders"]), "#ann#n1\n#ben#n2\n");
    let members = asked(&["members", "orders", "--json"]);
    assert_eq!(
        members,
        "{\"group\":\"orders\",\"members\":[\"#ann#n1\",\"#ben#n2\"]}\n"
    );
    assert_eq!(asked(&["members", "nobody"]), "");
    let gone = rota(&["groups"], Path::new("/no/such.sock"))
        .output()
        .expect("the binary");
    assert_eq!(gone.status.code(), Some(1));
}
