//! The incremental checker: it finds each violation, finds nothing else, and forgets.

use std::fmt::Write as _;

use rota_check::Violation;
use rota_check::online::Online;

use super::story::events;

fn observe(text: &str) -> Result<Online, Violation> {
    let mut online = Online::new();
    let (events, _) = events(text);
    events.iter().try_for_each(|event| online.observe(event))?;
    Ok(online)
}

#[track_caller]
fn red(property: &str, text: &str) {
    let violation = observe(text)
        .err()
        .unwrap_or_else(|| panic!("not seen: {text}"));
    assert_eq!(violation.property, property, "{violation}");
}

#[track_caller]
fn green(text: &str) {
    if let Err(violation) = observe(text) {
        panic!("{violation}: {text}");
    }
}

#[test]
fn basic_delivery() {
    red("E1", "form 5ab\n a: a1");
    red("E1", "form 5ab\n a: !a1#1\n b: a1#2");
    red("E1", "form 5ab\n a: !a1g\n b: a1c");
    red("E2", "form 5a\n a: !a1 a1 5a>9a:a a1");
    red("E3", "form 5a\n a: !a1 a1 5a>9a:a 9a !a1");
    red("E3", "form 5ab\n b: !a1");
    red("E3", "form 5a\n a: 5a>9a:a !a1");
    red("E3", "form 5a\n a: !a1/1a");
    red("E4", "a: start !a1");
    red("E4", "a: start a1");
    red("E4", "a: start 1a crash start");
    red("E4", "a: start 1a start");
    red("E4", "form 5a\n a: !a1 5a>9a:a a1/5a");
    red("E4", "a: start 1a\n A: start 2A\n a: 1a>3a:a");
    green("form 5ab\n a: ?a1 !a1 a1 5ab>9ab:ab 9ab !a2 a2 leave crash");
}

#[test]
fn configurations() {
    red("C1", "form 5ab\n b: 5ab>9a:a");
    red("C1", "form 5ab\n a: 5ab>9ab:a\n b: 5ab>9ab:ab");
    red(
        "C1",
        "form 5abc\n a: 5abc>9ab:ab 9ab\n b: 5abc>9ab:ab 9ab=abc",
    );
    red("C2", "form 5ab\n a: 5ab");
    red("C2", "form 5ab\n a: 5ab>9a:a 5ab>9a:a");
    red("C2", "form 5ab\n a: 5ab>9a:a 5ab");
    red("C3", "a: start 5ab");
    red("C3", "a: start 1a>5ab:a");
    red("C3", "form 5ab\n a: 9a");
    red("C3", "form 5ab\n a: 5ab>9a:a 13a");
    red("C3", "form 5ab\n a: 1a>9a:a");
    red("C3", "form 5ab\n form 6c\n a: 5ab>9ac:ac");
    red("C3", "form 5ab\n form 6c\n c: 6c>9ac:c 9ac\n a: 5ab>9ac:ab");
    red("C3", "form 5ab\n form 6c\n a: 5ab>9ac:ab 9ac");
    red("C7", "form 5ab\n a: 5ab>4a:a 4a");
    red("C7", "form 5ab\n b: 5ab>5b:b 5b");
    red("C7", "form 5ab\n a: crash\n A: start 5A");
    green("form 5ab\n form 6c\n a: 5ab>9ac:a 9ac\n c: 6c>9ac:c 9ac\n b: crash\n B: start 6B");
}

#[test]
fn order() {
    red("O4", "form 5ab\n a: !a1@3\n b: !b1@3");
    red("O4", "form 5ab\n a: !a1@3\n b: !b1@4 a1@4");
    red("O4", "form 5ab\n a: !a1 !a2\n b: a2 a1");
    red("prefix", "form 5ab\n a: !a1 !a2 a1\n b: a2");
    green("form 5ab\n a: !a1 !a2 a1\n b: a1 a2\n a: a2");
    // In the transitional configuration there may be holes, and early messages come early.
    green("form 5ab\n a: !a1 !a2r !a3 a1 a2\n b: a2 5ab>9b:b a3 9b");
}

/// Two members, of which `b` lags behind, send and deliver `count` messages of a service.
fn run(count: usize, service: char) -> String {
    let mut text = String::from("form 5ab\n");
    for n in 1..=count {
        let lagging = n.saturating_sub(50);
        let _ = writeln!(text, "a: !a{n}{service} a{n}");
        if lagging > 0 {
            let _ = writeln!(text, "b: a{lagging}");
        }
    }
    text
}

#[test]
fn what_all_have_passed_is_forgotten() {
    for service in ['g', 'r'] {
        let online = observe(&run(20_000, service)).expect("legal");
        assert!(online.remembered() < 3000, "{}", online.remembered());
        assert_eq!(online.rings(), 1);
    }
}

#[test]
fn a_forgotten_place_is_still_taken() {
    red("O4", &(run(5000, 'g') + "a: !a9999@17"));
    red("E2", &(run(5000, 'g') + "a: a17"));
    red("E2", &(run(5000, 'r') + "a: a17"));
}

#[test]
fn rings_that_nobody_is_in_are_forgotten() {
    let mut text = String::from("form 5abc\n");
    let mut last = "5abc".to_owned();
    for number in 6..200 {
        // c, dead, owes nothing; b sometimes does not reach the ring that a goes to first.
        if number == 20 {
            text += "c: crash\n";
        }
        let members = if number < 20 { "abc" } else { "ab" };
        let next = format!("{number}{members}");
        for who in members.chars() {
            let _ = writeln!(text, "{who}: {last}>{next}:{members} {next}");
        }
        last = next;
    }
    let online = observe(&text).expect("legal");
    assert_eq!(online.rings(), 1);
    let online = observe(&(text + "a: leave\n b: crash")).expect("legal");
    assert_eq!(online.rings(), 0);
}

#[test]
fn clients() {
    let two = "form 5ab\n ax: +g g@5ab/1=ax+ax g@5ab/2=axbx+bx";
    let ax = |words: &str| format!("{two}\n ax: {words}");
    let bx = |words: &str| format!("{two}\n bx: {words}");
    green(&bx("g@5ab/2=axbx+bx"));
    red("K1", &bx("g@5ab/2=bxax+bx"));
    red("K2", &ax("g@5ab/3=bx-ax"));
    red("K2", &ax("g@5ab/2=axbx+bx"));
    red("K3", &ax("g!5ab/2 g@9ab/1=axbx:ax"));
    red("K3", &bx("g@5ab/2=axbx-cx"));
    green(&ax(
        "g!5ab/2 g@9ab/1=axbx:bx|ax ?a1 a1 -g a1 --g a1>ax g@9ab/2=ax+ax",
    ));
    red("K5", &ax("--g a1"));
    red("K5", &bx("--g"));
    red("K6", &ax("g@9ab/1=axbx:bx|ax"));
    red("K6", &ax("g!5ab/1"));
    red("K6", &ax("g!5ab/2 g!5ab/2"));
    red("K6", &ax("g!5ab/2 g@5ab/3=ax-bx"));
    red("K6", &bx("g!5ab/2"));
    red("K10", &ax("in"));
    red("K10", &ax("out out"));
    red("K10", &ax("out a1"));
    red("K10", &ax("out --g"));
    red("K10", &ax("out in... a1"));
    // Somebody else of the same name, in the next life of the process and in this.
    green(&ax("gone g@5ab/4=axbx+ax"));
    red("K5", &ax("gone a1"));
    red("E4", &format!("{two}\n a: crash\n ax: a1"));
}

#[test]
fn views_that_all_have_passed_are_forgotten() {
    let mut text = String::from("form 5ab\n ax: g@5ab/1=ax+ax\n");
    for number in 1..1000 {
        let (came, left) = (2 * number, 2 * number + 1);
        let _ = writeln!(text, "ax: g@5ab/{came}=axbx+bx g@5ab/{left}=ax-bx");
    }
    let online = observe(&text).expect("legal");
    assert!(online.views() < 100, "{}", online.views());
}

#[test]
fn a_ring_gives_every_message_its_place() {
    let (events, _) = super::uniform_story::events("a: 5a !a1");
    let last = events.last().expect("a broadcast");
    let violation = Online::new().observe(last).expect_err("no place");
    assert_eq!(violation.property, "E3");
    let report = rota_check::check_all(&events.iter().collect(), &rota_check::Options::default());
    assert!(super::story::names(&report).contains(&"E3"));
}
