//! Trace files: written events are read back, and a line that is none of a trace is reported.

use std::fs;
use std::path::{Path, PathBuf};

use rota_check::event::{Cause, ClientEvent, ClientSaw, Gid, GroupView, Post};
use rota_check::event::{Conf, Event, EventKind, Placed, Sent};
use rota_check::trace::{Trace, TraceError, TraceWriter};
use rota_check::{Options, check_all};
use rota_core::contract::ConfigurationKind::{Regular, Transitional};
use rota_core::contract::{Incarnation, MessageId, NodeId, Process, RingId, Service, Time};

/// A trace as nodes write it: two processes, one of which dies within a line and lives again.
const NODE_1: &str = r#"{"t":123,"node":1,"inc":7,"ev":"start"}
{"t":124,"node":1,"inc":7,"ev":"conf","kind":"regular","id":"1.1.7","members":[[1,7]]}
{"t":129,"node":1,"inc":7,"ev":"conf","kind":"transitional","id":"1.1.7>12.1.7","old":"1.1.7","new":"12.1.7","members":[[1,7]]}
{"t":130,"node":1,"inc":7,"ev":"conf","kind":"regular","id":"12.1.7","members":[[1,7],[2,3]]}
{"t":135,"node":1,"inc":7,"ev":"send","msg":"1.7.42","conf":"12.1.7","service":"safe","hash":"9f2c000000000001"}
{"t":140,"node":1,"inc":7,"ev":"orig","msg":"1.7.42","conf":"12.1.7","seq":9,"service":"safe","hash":"9f2c000000000001"}
{"t":150,"node":1,"inc":7,"ev":"deliver","msg":"1.7.42","conf":"12.1.7","seq":9,"service":"safe","hash":"9f2c000000000001"}
"#;
const NODE_2: &str = r#"{"t":3,"node":2,"inc":3,"ev":"start"}
{"t":4,"node":2,"inc":3,"ev":"conf","kind":"regular","id":"1.2.3","members":[[2,3]]}
{"t":5,"node":2,"inc":3,"ev":"conf","kind":"transitional","id":"1.2.3>12.1.7","old":"1.2.3","new":"12.1.7","members":[[2,3]]}
{"t":5,"node":2,"inc":3,"ev":"conf","kind":"regular","id":"12.1.7","members":[[1,7],[2,3]]}
"#;
const TORN: &str = "{\"t\":6,\"node\":2,\"inc\":3,\"ev\":\"deli";

fn read(text: &str) -> Result<Trace, TraceError> {
    let mut trace = Trace::new();
    trace.read(Path::new("node-1.jsonl"), text.as_bytes())?;
    Ok(trace)
}

fn process(node: u16, incarnation: u64) -> Process {
    Process {
        node: NodeId::new(node).expect("not 0"),
        incarnation: Incarnation(incarnation),
    }
}

fn written(events: &[Event]) -> String {
    let mut writer = TraceWriter::new(Vec::new());
    for event in events {
        writer.event(event).expect("memory");
    }
    writer.quiesce(Time(180)).expect("memory");
    String::from_utf8(writer.finish().expect("memory")).expect("UTF-8")
}

/// The events of [`NODE_1`].
fn node_1() -> Vec<Event> {
    let me = process(1, 7);
    let ring = |ring_seq| RingId {
        ring_seq,
        rep: me.node,
        incarnation: me.incarnation,
    };
    let message = MessageId {
        process: me,
        counter: 42,
    };
    let hash = 0x9f2c_0000_0000_0001;
    let service = Service::Safe;
    let conf = |id, members: &[Process]| {
        EventKind::Configuration(Conf {
            id,
            members: members.to_vec(),
        })
    };
    let placed = Placed {
        message,
        conf: Regular(ring(12)),
        position: 9,
        service,
        hash,
    };
    let between = Transitional {
        old: ring(1),
        new: ring(12),
    };
    let sent = Sent {
        message,
        service,
        hash,
    };
    let kinds = [
        (123, EventKind::Start),
        (124, conf(Regular(ring(1)), &[me])),
        (129, conf(between, &[me])),
        (130, conf(Regular(ring(12)), &[me, process(2, 3)])),
        (135, EventKind::Send(sent)),
        (140, EventKind::Originated(placed)),
        (150, EventKind::Delivered(placed)),
    ];
    let event = |(time, kind)| Event {
        time: Time(time),
        process: me,
        kind,
    };
    kinds.into_iter().map(event).collect()
}

#[test]
fn what_is_written_is_what_nodes_write() {
    let quiesce = "{\"t\":180,\"ev\":\"quiesce\"}\n";
    assert_eq!(written(&node_1()), format!("{NODE_1}{quiesce}"));
}

#[test]
fn what_was_written_is_read_back() {
    let mut events = node_1();
    let me = events[0].process;
    for (time, kind) in [(170, EventKind::Crash), (171, EventKind::Leave)] {
        let time = Time(time);
        let process = me;
        events.push(Event {
            time,
            process,
            kind,
        });
    }
    let text = written(&events);
    let trace = read(&text).expect("our own");
    let pushed: Trace = events.iter().collect();
    assert_eq!(trace.events(), events.len());
    let options = Options {
        quiescent: true,
        ..Options::default()
    };
    let judged = check_all(&trace, &Options::default());
    assert_eq!(judged, check_all(&pushed, &options));
    assert!(judged.violations[0].detail.contains("process 1.7 crashed"));
}

#[test]
fn a_broadcast_has_no_place_and_perhaps_no_configuration() {
    let send = |ev: &str, conf: &str| {
        format!(
            "{{\"t\":3,\"node\":1,\"inc\":7,\"ev\":\"{ev}\",\"msg\":\"1.7.1\",\"conf\":\"{conf}\",\
            \"service\":\"fifo\",\"hash\":\"00000000000000ff\"}}\n"
        )
    };
    let process = process(1, 7);
    let sent = Sent {
        message: MessageId {
            process,
            counter: 1,
        },
        service: Service::Fifo,
        hash: 0xff,
    };
    let event = |kind| Event {
        time: Time(3),
        process,
        kind,
    };
    let mut events = vec![
        event(EventKind::Send(sent)),
        event(EventKind::Broadcast(sent)),
    ];
    let lines = |conf: &str| send("send", conf) + &send("orig", conf);
    let text = written(&events);
    assert_eq!(
        text.strip_suffix("{\"t\":180,\"ev\":\"quiesce\"}\n"),
        Some(&*lines(""))
    );
    let read_back = check_all(&read(&text).expect("our own"), &Options::default());
    let mut pushed: Trace = events.iter().collect();
    pushed.quiesce();
    assert_eq!(read_back, check_all(&pushed, &Options::default()));
    assert_eq!(read_back.counters.originated, 1);
    // Within a configuration it names that.
    events.insert(0, node_1().swap_remove(3));
    assert!(written(&events).contains(&lines("12.1.7")));
}

#[test]
fn files_together_are_one_trace() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| -> PathBuf {
        let path = dir.path().join(name);
        fs::write(&path, text).expect("room");
        path
    };
    let again = "{\"t\":200,\"node\":2,\"inc\":5,\"ev\":\"start\"}\n\
        {\"t\":201,\"node\":2,\"inc\":5,\"ev\":\"conf\",\"kind\":\"regular\",\"id\":\"13.2.5\",\"members\":[[2,5]]}\n";
    // A life has a file of its own, and its name comes first.
    let files = [
        file("2-again.jsonl", again),
        file("2.jsonl", &format!("{NODE_2}{TORN}")),
        file("1.jsonl", NODE_1),
    ];
    let report = check_all(
        &Trace::from_files(&files).expect("sound"),
        &Options::default(),
    );
    assert!(report.holds(), "{:?}", report.violations);
    assert_eq!(report.counters.processes, 3);
    assert_eq!((report.counters.restarts, report.counters.crashed), (1, 1));
    // All in one.
    let one = file("all.jsonl", &format!("{NODE_2}{TORN}\n{again}{NODE_1}"));
    let one = check_all(
        &Trace::from_files(&[one]).expect("sound"),
        &Options::default(),
    );
    assert_eq!(one, report);
    let missing = Trace::from_files(&[dir.path().join("none.jsonl")]);
    assert!(
        missing
            .expect_err("no file")
            .to_string()
            .contains("none.jsonl")
    );
}

#[test]
fn half_a_line_is_passed_over_where_a_process_was_killed() {
    let crash = "{\"t\":7,\"node\":2,\"inc\":3,\"ev\":\"crash\"}\n";
    for text in [
        format!("{NODE_2}{TORN}"),
        format!("{NODE_2}{TORN}\n{crash}"),
        // Cut right before the line's end: nothing is missing.
        format!("{NODE_2}{}", crash.trim_end()),
    ] {
        let events = 4 + usize::from(text.contains("crash"));
        assert_eq!(read(&text).expect("sound").events(), events, "{text}");
    }
    let go_on = format!("{NODE_2}{TORN}\n{NODE_2}").replacen("start", "leave", 2);
    let error = read(&go_on)
        .expect_err("a torn line amid others")
        .to_string();
    assert!(error.starts_with("node-1.jsonl line 5: "), "{error}");
    let last = format!("{NODE_2}{TORN}\n");
    assert!(read(&last).is_err());
}

#[test]
fn what_is_no_line_of_a_trace_is_said() {
    let wrong = [
        ("123", "invalid type"),
        ("{}", "\"t\" is missing"),
        ("", "EOF"),
        (r#"{"t":1,"node":1,"inc":7}"#, "\"ev\" is missing"),
        (r#"{"t":1,"node":1,"inc":7,"ev":"dance"}"#, "\"dance\""),
        (r#"{"t":1,"inc":7,"ev":"start"}"#, "have to name a process"),
        (
            r#"{"t":1,"node":0,"inc":7,"ev":"start"}"#,
            "have to name a process",
        ),
        (
            r#"{"t":1,"node":1,"inc":9007199254740992,"ev":"start"}"#,
            "have to name a process",
        ),
        (r#"{"t":-1,"node":1,"inc":7,"ev":"start"}"#, "invalid value"),
        (
            r#"{"t":1,"node":1,"inc":7,"ev":"conf","kind":"regular","id":"5.1","members":[[1,7]]}"#,
            "\"id\" cannot be \"5.1\"",
        ),
        (
            r#"{"t":1,"node":1,"inc":7,"ev":"conf","kind":"regular","id":"5.1.7>6.1.7","members":[[1,7]]}"#,
            "do not fit",
        ),
        (
            r#"{"t":1,"node":1,"inc":7,"ev":"conf","kind":"regular","id":"5.1.7","members":[]}"#,
            "\"members\"",
        ),
        (
            r#"{"t":1,"node":1,"inc":7,"ev":"conf","kind":"regular","id":"5.1.7"}"#,
            "\"members\"",
        ),
        (
            r#"{"t":1,"node":1,"inc":7,"ev":"deliver","msg":"1.7.1","conf":"5.1.7","service":"safe","hash":"0000000000000000"}"#,
            "\"seq\" is missing",
        ),
        (
            r#"{"t":1,"node":1,"inc":7,"ev":"orig","msg":"1.7.1","conf":"5.1.7","seq":1,"service":"best","hash":"0000000000000000"}"#,
            "\"service\" cannot be",
        ),
        (
            r#"{"t":1,"node":1,"inc":7,"ev":"orig","msg":"1.7.+1","conf":"5.1.7","seq":1,"service":"safe","hash":"0000000000000000"}"#,
            "\"msg\" cannot be",
        ),
        (
            r#"{"t":1,"node":1,"inc":7,"ev":"orig","msg":"1.7.1","conf":"5.1.7","seq":1,"service":"safe","hash":"abc"}"#,
            "\"hash\" cannot be",
        ),
        (
            r#"{"t":1,"node":1,"inc":7,"ring":2,"ev":"start"}"#,
            "several rings",
        ),
    ];
    for (line, what) in wrong {
        let error = read(&format!("{NODE_1}{line}\n"))
            .expect_err(line)
            .to_string();
        assert!(error.starts_with("node-1.jsonl line 8: "), "{error}");
        assert!(error.contains(what), "{error}, not {what}");
    }
}

#[test]
fn other_writers_may_order_and_escape_as_they_like() {
    let line = r#"{"ev":"conf", "id":"1.1.7\u003e12.1.7", "node":1, "inc":7, "more":{"a":[1]},
        "members":[[1,7]], "kind":"transitional", "new":"12.1.7", "old":"1.1.7", "t":129}"#;
    let line = line.replace('\n', " ");
    assert_eq!(read(&line).expect("the same").events(), 1);
}

/// What clients of node 1 saw, as it writes it.
const CLIENTS: &str = r##"{"t":151,"node":1,"inc":7,"ev":"join","client":"#a#n1","group":"g"}
{"t":152,"node":1,"inc":7,"ev":"view","client":"#a#n1","group":"g","gid":"12.1.7/1","cause":"join","members":["#a#n1"],"vs_sets":[["#a#n1"]]}
{"t":153,"node":1,"inc":7,"ev":"send","client":"#a#n1","group":["g","h \"2\""],"msg":"1.7.1","service":"safe","hash":"9f2c000000000001","discard":true}
{"t":154,"node":1,"inc":7,"ev":"trans","client":"#a#n1","group":"g","gid":"12.1.7/1"}
{"t":155,"node":1,"inc":7,"ev":"deliver","client":"#a#n1","group":"g","msg":"2.3.9","service":"fifo","hash":"9f2c000000000002"}
{"t":156,"node":1,"inc":7,"ev":"view","client":"#a#n1","group":"g","gid":"12.1.7>16.2.3/4","cause":"network","members":["#a#n1","#b#n2"],"vs_sets":[["#a#n1"],["#b#n2"]]}
{"t":157,"node":1,"inc":7,"ev":"leave","client":"#a#n1","group":"g"}
{"t":158,"node":1,"inc":7,"ev":"self_leave","client":"#a#n1","group":"g"}
{"t":159,"node":1,"inc":7,"ev":"excluded","client":"#a#n1"}
{"t":160,"node":1,"inc":7,"ev":"included","client":"#a#n1","missed":true}
{"t":161,"node":1,"inc":7,"ev":"disconnect","client":"#a#n1"}
"##;

/// The events of [`CLIENTS`].
fn clients() -> Vec<Event> {
    let rings = [(12, process(1, 7)), (16, process(2, 3))].map(|(ring_seq, rep)| RingId {
        ring_seq,
        rep: rep.node,
        incarnation: rep.incarnation,
    });
    let [old, new] = rings;
    let (g, a) = ("g".to_owned(), "#a#n1".to_owned());
    let gid = |conf, index| Gid { conf, index };
    let first = gid(Regular(old), 1);
    let view = |gid, cause, members: &[&str]| {
        ClientSaw::View(GroupView {
            group: g.clone(),
            gid,
            cause,
            members: members.iter().map(ToString::to_string).collect(),
            vs_sets: members.iter().map(|one| vec![one.to_string()]).collect(),
        })
    };
    let post = |process, counter, groups: &[&str], service| Post {
        message: MessageId { process, counter },
        groups: groups.iter().map(ToString::to_string).collect(),
        service,
        hash: 0x9f2c_0000_0000_0001,
    };
    let later = gid(Transitional { old, new }, 4);
    let given = post(process(2, 3), 9, &["g"], Service::Fifo);
    let saw = [
        ClientSaw::Join(g.clone()),
        view(first, Cause::Join, &["#a#n1"]),
        ClientSaw::Send {
            post: post(process(1, 7), 1, &["g", "h \"2\""], Service::Safe),
            discard: true,
        },
        ClientSaw::Transition {
            group: g.clone(),
            gid: first,
        },
        ClientSaw::Deliver(Post {
            hash: 0x9f2c_0000_0000_0002,
            ..given
        }),
        view(later, Cause::Network, &["#a#n1", "#b#n2"]),
        ClientSaw::Leave(g.clone()),
        ClientSaw::SelfLeave(g.clone()),
        ClientSaw::Excluded,
        ClientSaw::Included { missed: true },
        ClientSaw::Disconnect,
    ];
    let event = |(time, saw)| Event {
        time: Time(time),
        process: process(1, 7),
        kind: EventKind::Client(ClientEvent {
            client: a.clone(),
            saw,
        }),
    };
    (151..).zip(saw).map(event).collect()
}

#[test]
fn what_clients_saw_is_written_and_read_back() {
    let quiesce = "{\"t\":180,\"ev\":\"quiesce\"}\n";
    assert_eq!(written(&clients()), format!("{CLIENTS}{quiesce}"));
    let both = [node_1(), clients()].concat();
    let trace = read(&written(&both)).expect("our own");
    assert_eq!(trace.events(), both.len());
    let options = Options {
        quiescent: true,
        ..Options::default()
    };
    let pushed: Trace = both.iter().collect();
    let judged = check_all(&trace, &options);
    assert_eq!(judged, check_all(&pushed, &options));
    assert!(
        judged
            .verdicts
            .iter()
            .any(|v| v.property == "K2" && v.checked == 2)
    );
    assert_eq!(judged.violations, []);
}

#[test]
fn what_is_no_line_of_a_client_is_said() {
    let wrong = [
        (r#""ev":"dance""#, "\"dance\""),
        (r#""ev":"join""#, "\"group\" has to be one name"),
        (
            r#""ev":"join","group":["g"]"#,
            "\"group\" has to be one name",
        ),
        (r#""ev":"send","msg":"1.7.1""#, "\"group\" is missing"),
        (r#""ev":"deliver","group":"g""#, "\"msg\" is missing"),
        (
            r#""ev":"trans","group":"g","gid":"12.1.7""#,
            "\"gid\" cannot be",
        ),
        (
            r#""ev":"view","group":"g""#,
            "\"members\" have to be names of clients",
        ),
        (
            r#""ev":"view","group":"g","members":[[1,7]]"#,
            "names of clients",
        ),
        (
            r#""ev":"view","group":"g","members":["c"]"#,
            "\"vs_sets\" is missing",
        ),
        (
            r#""ev":"view","group":"g","gid":"12.1.7/1","cause":"fun","members":["c"],"vs_sets":[]"#,
            "\"cause\" cannot be",
        ),
        (r#""group":"g""#, "\"ev\" is missing"),
        (r#""ev":"included""#, "\"missed\" is missing"),
    ];
    for (fields, what) in wrong {
        let line = format!(r#"{{"t":1,"node":1,"inc":7,"client":"c",{fields}}}"#);
        let error = read(&format!("{line}\n")).expect_err(fields).to_string();
        assert!(error.contains(what), "{error}, not {what}");
    }
    // Half of one is passed over.
    let half = &CLIENTS[..CLIENTS.len() - 20];
    assert_eq!(read(half).expect("torn").events(), 10);
}
