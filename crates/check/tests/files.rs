//! Trace files: what is written is read back, and what is none of a trace is said.

use std::fs;
use std::path::{Path, PathBuf};

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
            r#"{"t":1,"node":1,"inc":7,"ev":"orig","msg":"1.7.1","conf":"5.1.7","service":"safe","hash":"0000000000000000"}"#,
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
    let view = r#"{"t":1,"node":1,"inc":7,"ev":"view","client":"c","group":"g"}"#;
    assert_eq!(read(view).expect("for another check").events(), 0);
}
