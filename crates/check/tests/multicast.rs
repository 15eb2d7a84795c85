//! A run of three learners of two partitions over two rings, and the violations found when something of it is wrong.

use rota_check::multicast::{Line, MulticastReport, check_multicast};

/// Ring 1 has `a1`, nothing, `a3`, `a4`; ring 2 `b1`, `b2` and `b4`. Nodes 1 and 2 are of P, which has both rings; node 3 is of Q, which has ring 2.
/// Node 2 was killed, and went on from a checkpoint of node 1.
const RUN: &str = r#"
{"t":1,"node":1,"inc":7,"ev":"start"}
{"t":2,"node":1,"inc":7,"ev":"genesis","ring":1,"rank":1,"m":1,"origin":0,"founded":5}
{"t":2,"node":1,"inc":7,"ev":"genesis","ring":2,"rank":2,"m":1,"origin":0,"founded":6}
{"t":3,"node":1,"inc":7,"ev":"replicas","part":"P","replicas":[11,12],"q_t":1,"q_r":2}
{"t":4,"node":1,"inc":7,"ev":"sub","part":"P","ring":1,"from":0}
{"t":4,"node":1,"inc":7,"ev":"sub","part":"P","ring":2,"from":0}
{"t":5,"node":1,"inc":7,"ev":"send","msg":"a1","to":["P"],"hash":"01"}
{"t":5,"node":1,"inc":7,"ev":"send","msg":"a3","to":["P"],"hash":"03"}
{"t":5,"node":3,"inc":9,"ev":"send","msg":"b1","to":["P","Q"],"hash":"11"}
{"t":5,"node":3,"inc":9,"ev":"send","msg":"b2","to":["Q"],"hash":"12"}
{"t":5,"node":3,"inc":9,"ev":"send","msg":"b4","to":["P","Q"],"hash":"14"}
{"t":6,"node":1,"inc":7,"ev":"skip","ring":1,"from":2,"next":3}
{"t":7,"node":1,"inc":7,"ev":"deliver","msg":"a1","part":"P","ring":1,"founded":5,"inst":1,"idx":0,"round":0,"first":1,"hash":"01"}
{"t":7,"node":1,"inc":7,"ev":"deliver","msg":"b1","part":"P","ring":2,"founded":6,"inst":1,"idx":0,"round":0,"first":1,"hash":"11"}
{"t":8,"node":1,"inc":7,"ev":"checkpoint","part":"P","store":11,"point":{"round":1,"turn":1,"used":0,"next":{"1":2,"2":2},"S":[1,2],"founded":{"1":5,"2":6},"open":false},"digest":"d1"}
{"t":9,"node":1,"inc":7,"ev":"deliver","msg":"a3","part":"P","ring":1,"founded":5,"inst":3,"idx":0,"round":2,"first":3,"hash":"03"}
{"t":9,"node":1,"inc":7,"ev":"deliver","msg":"b4","part":"P","ring":2,"founded":6,"inst":4,"idx":0,"round":3,"first":4,"hash":"14"}
{"t":9,"node":1,"inc":7,"ev":"passed","part":"P","ring":2,"next":5}
{"t":4,"node":2,"inc":3,"ev":"sub","part":"P","ring":1,"from":0}
{"t":4,"node":2,"inc":3,"ev":"sub","part":"P","ring":2,"from":0}
{"t":7,"node":2,"inc":3,"ev":"deliver","msg":"a1","part":"P","ring":1,"founded":5,"inst":1,"idx":0,"round":0,"first":1,"hash":"01"}
{"t":8,"node":2,"inc":3,"ev":"crash"}
{"t":10,"node":2,"inc":4,"ev":"start"}
{"t":10,"node":2,"inc":4,"ev":"install","part":"P","point":{"round":1,"turn":1,"used":0,"next":{"1":2,"2":2},"S":[1,2],"founded":{"1":5,"2":6},"open":false},"digest":"d1","source":"peer"}
{"t":10,"node":2,"inc":4,"ev":"sub","part":"P","ring":1,"from":0}
{"t":10,"node":2,"inc":4,"ev":"sub","part":"P","ring":2,"from":0}
{"t":11,"node":2,"inc":4,"ev":"deliver","msg":"a3","part":"P","ring":1,"founded":5,"inst":3,"idx":0,"round":2,"first":3,"hash":"03"}
{"t":11,"node":2,"inc":4,"ev":"deliver","msg":"b4","part":"P","ring":2,"founded":6,"inst":4,"idx":0,"round":3,"first":4,"hash":"14"}
{"t":12,"node":1,"inc":7,"ev":"trim","ring":1,"below":2}
{"t":4,"node":3,"inc":9,"ev":"sub","part":"Q","ring":2,"from":0}
{"t":7,"node":3,"inc":9,"ev":"deliver","msg":"b1","part":"Q","ring":2,"founded":6,"inst":1,"idx":0,"round":0,"first":1,"hash":"11"}
{"t":7,"node":3,"inc":9,"ev":"deliver","msg":"b2","part":"Q","ring":2,"founded":6,"inst":2,"idx":0,"round":1,"first":2,"hash":"12"}
{"t":7,"node":3,"inc":9,"ev":"deliver","msg":"b4","part":"Q","ring":2,"founded":6,"inst":4,"idx":0,"round":3,"first":4,"hash":"14"}
{"t":20,"ev":"quiesce"}
"#;

fn check(text: &str) -> MulticastReport {
    let lines = text.lines().filter(|line| !line.is_empty());
    let lines: Vec<Line> = lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    check_multicast(&lines)
}

/// The properties that are violated.
fn violated(text: &str) -> Vec<&'static str> {
    let mut names: Vec<_> = check(text)
        .violations
        .iter()
        .map(|violation| violation.property)
        .collect();
    names.dedup();
    names
}

/// The run without the lines that have all of these words.
fn without(words: &[&str]) -> String {
    let keep = |line: &&str| !words.iter().all(|word| line.contains(word));
    let lines: Vec<&str> = RUN.lines().filter(keep).collect();
    assert!(lines.len() < RUN.lines().count(), "{words:?}");
    lines.join("\n")
}

/// The run with something else in the lines that have all of these words.
fn changed(words: &[&str], from: &str, to: &str) -> String {
    let change = |line: &str| match words.iter().all(|word| line.contains(word)) {
        true => {
            assert!(line.contains(from), "{line}");
            line.replace(from, to)
        }
        false => line.to_owned(),
    };
    let lines: Vec<String> = RUN.lines().map(change).collect();
    let text = lines.join("\n");
    assert_ne!(text, RUN.trim_end_matches('\n'), "{words:?}");
    text
}

fn with(line: &str) -> String {
    format!("{RUN}{line}\n")
}

#[test]
fn a_good_run_holds_and_nothing_is_vacuous() {
    let report = check(RUN);
    assert_eq!(report.violations, []);
    let vacuous: Vec<_> = report
        .verdicts
        .iter()
        .filter(|verdict| verdict.checked == 0)
        .collect();
    let names: Vec<_> = vacuous.iter().map(|verdict| verdict.property).collect();
    assert_eq!(names, [""; 0]);
    let counters = report.counters;
    assert_eq!(
        (counters.rings, counters.learners, counters.deliveries),
        (2, 4, 10)
    );
    assert_eq!(
        (counters.installed_local, counters.installed_remote),
        (0, 1)
    );
    assert_eq!(counters.trims, 1);
}

#[test]
fn delivered_twice_or_changed() {
    let again = changed(
        &["\"node\":3", "deliver", "b4"],
        "\"msg\":\"b4\"",
        "\"msg\":\"b2\"",
    );
    assert!(violated(&again).contains(&"AM-I"), "{:?}", violated(&again));
    let payload = changed(
        &["\"node\":3", "deliver", "b2"],
        "\"hash\":\"12\"",
        "\"hash\":\"13\"",
    );
    assert_eq!(violated(&payload), ["AM-I"]);
    let sent = with(r#"{"t":5,"node":1,"inc":7,"ev":"send","msg":"a1","to":["P"],"hash":"01"}"#);
    assert_eq!(violated(&sent), ["AM-I"]);
}

#[test]
fn a_place_with_two_messages() {
    let place = changed(
        &["\"node\":3", "deliver", "b2"],
        "\"inst\":2,\"idx\":0,\"round\":1,\"first\":2",
        "\"inst\":3,\"idx\":0,\"round\":2,\"first\":3",
    );
    assert_eq!(violated(&place), [""; 0], "one place is as good as another");
    let one = changed(
        &["\"node\":2", "deliver", "b4"],
        "\"inst\":4,\"idx\":0,\"round\":3",
        "\"inst\":5,\"idx\":0,\"round\":4",
    );
    assert!(violated(&one).contains(&"AM-P"), "{:?}", violated(&one));
    let skipped = with(r#"{"t":6,"node":1,"inc":7,"ev":"skip","ring":2,"from":3,"next":9}"#);
    assert_eq!(violated(&skipped), ["AM-P"]);
    let twice = with(
        r#"{"t":2,"node":2,"inc":4,"ev":"genesis","ring":2,"rank":2,"m":2,"origin":0,"founded":6}"#,
    );
    assert_eq!(violated(&twice), ["AM-P"]);
    let other = changed(&["\"node\":3", "deliver"], "\"founded\":6", "\"founded\":8");
    assert!(violated(&other).contains(&"AM-P"));
}

/// `b4` is for both partitions: P has a copy of it in a ring of its own, where it stands as well as anywhere.
#[test]
fn a_message_copied_into_a_ring_of_each_partition() {
    let copied = changed(
        &["\"part\":\"P\"", "deliver", "b4"],
        "\"ring\":2,\"founded\":6,\"inst\":4",
        "\"ring\":1,\"founded\":5,\"inst\":4",
    );
    // Two places, and nothing at the one of the common ring.
    assert_eq!(violated(&copied), ["AM-P", "AM-C"]);
}

#[test]
fn against_the_order_of_rounds() {
    // Node 2 goes on in turn: ring 2 first.
    let lines: Vec<&str> = RUN.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.contains("\"inc\":4") && line.contains("\"a3\""))
        .expect("it is there");
    let mut swapped = lines.clone();
    swapped.swap(at, at + 1);
    let names = violated(&swapped.join("\n"));
    assert_eq!(names, ["AM-M", "AM-O"]);
    let round = changed(
        &["\"inc\":4", "deliver", "a3"],
        "\"round\":2",
        "\"round\":1",
    );
    assert_eq!(violated(&round), ["AM-M"]);
}

#[test]
fn left_out_or_not_its_own() {
    let left_out = without(&["\"inc\":4", "deliver", "a3"]);
    assert_eq!(violated(&left_out), ["AM-C", "AM-A"]);
    let passed = without(&["\"inc\":7", "deliver", "b4"]);
    assert_eq!(
        violated(&passed),
        ["AM-C", "AM-A"],
        "it says that it has passed it"
    );
    let for_others = with(
        r#"{"t":12,"node":3,"inc":9,"ev":"deliver","msg":"a9","part":"Q","ring":1,"founded":5,"inst":9,"idx":0,"round":8,"first":9,"hash":"01"}"#,
    );
    assert!(violated(&for_others).contains(&"AM-C"));
}

#[test]
fn replicas_that_subscribe_at_different_rounds() {
    let text = changed(
        &["\"inc\":4", "\"sub\"", "\"ring\":1"],
        "\"from\":0",
        "\"from\":3",
    );
    let names = violated(&text);
    assert!(names.contains(&"AM-S"), "{names:?}");
}

#[test]
fn states_that_differ() {
    let text = changed(&["install"], "\"digest\":\"d1\"", "\"digest\":\"d2\"");
    assert_eq!(violated(&text), ["AM-D"]);
}

#[test]
fn from_before_the_checkpoint() {
    let text = with(
        r#"{"t":10,"node":2,"inc":4,"ev":"deliver","msg":"a1","part":"P","ring":1,"founded":5,"inst":1,"idx":0,"round":0,"first":1,"hash":"01"}"#,
    );
    let names = violated(&text);
    assert!(
        names.contains(&"AM-R") && names.contains(&"AM-M"),
        "{names:?}"
    );
}

#[test]
fn trimmed_too_early() {
    let early = changed(&["\"trim\""], "\"below\":2", "\"below\":3");
    assert_eq!(violated(&early), ["AM-T"]);
    let before = changed(&["\"trim\""], "\"t\":12", "\"t\":7");
    assert_eq!(violated(&before), ["AM-T"]);
    let both = changed(&["replicas"], "\"q_t\":1", "\"q_t\":2");
    assert_eq!(violated(&both), ["AM-T"]);
}

/// A partition needs a ring until it has checkpoints that say that it has left it, whatever becomes of it later.
#[test]
fn trimmed_before_a_partition_had_left() {
    let early = changed(&["\"trim\""], "\"below\":2", "\"below\":9");
    let later = r#"{"t":15,"node":1,"inc":7,"ev":"unsub","part":"P","ring":1,"from":9}"#;
    let both = format!(
        "{early}\n{later}\n{}\n",
        later
            .replace("\"inc\":7,", "\"inc\":4,")
            .replace("\"node\":1", "\"node\":2")
    );
    assert!(violated(&both).contains(&"AM-T"), "it left later");
    let (has, left) = (
        r#""next":{"1":2,"2":2},"S":[1,2]"#,
        r#""next":{"2":2},"S":[2]"#,
    );
    assert!(early.contains(has));
    assert!(!violated(&early.replace(has, left)).contains(&"AM-T"));
}

#[test]
fn at_rest_nothing_is_missing() {
    let missing = without(&["\"node\":3", "deliver", "b4"]);
    assert_eq!(violated(&missing), ["AM-A"]);
    let lost = with(r#"{"t":5,"node":3,"inc":9,"ev":"send","msg":"b9","to":["Q"],"hash":"19"}"#);
    assert_eq!(violated(&lost), ["AM-V"]);
    let of_the_dead =
        with(r#"{"t":5,"node":2,"inc":3,"ev":"send","msg":"a9","to":["P"],"hash":"19"}"#);
    assert_eq!(violated(&of_the_dead), [""; 0]);
    let running: String = lost.replace("quiesce", "other");
    assert_eq!(violated(&running), [""; 0], "more may come");
}
