use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rota_daemon::{ClientStatus, DaemonStatus};

use super::super::history::Key;
use super::*;
use crate::ask::Place;

fn status(node: u16, seconds: u64) -> DaemonStatus {
    let mut status = DaemonStatus {
        node,
        name: format!("n{node}"),
        pid: 100 + u32::from(node),
        uptime_us: seconds * 1_000_000,
        nodes: vec![1, 2, 3],
        members: vec![1, 2, 3],
        ring: "operational: 1, 2, 3".to_owned(),
        groups_ready: true,
        ..DaemonStatus::default()
    };
    status
        .counters
        .insert("net_submissions".into(), 1000 * seconds);
    status
        .counters
        .insert("net_deliveries".into(), 3000 * seconds);
    status.token.rotation.count = 500 * seconds;
    status.token.rotation.sum_us = 100_000 * seconds;
    let client = ClientStatus {
        name: format!("#ann#n{node}"),
        messages: 2500 * seconds,
        waiting_bytes: if node == 2 { 5000 } else { 0 },
        unread_ms: 20,
        ..ClientStatus::default()
    };
    status.clients = vec![client];
    status
}

/// Three daemons, of which the third does not answer, after so many intervals.
fn history(intervals: u64) -> History {
    let places = ["/a", "/b", "/c"].map(|path| path.parse::<Place>().expect("a path"));
    let mut history = History::new(3, 1000);
    let said = |seconds| {
        [
            Ok(status(1, seconds)),
            Ok(status(2, seconds)),
            Err("/c: No such file or directory".to_owned()),
        ]
    };
    for at in 0..intervals {
        history.take(Interval::between(&places, &said(at), &said(at + 1)));
    }
    history
}

fn drawn(history: &History, (width, height): (u16, u16)) -> Vec<String> {
    let look = Look { colours: false };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
    terminal
        .draw(|frame| draw(frame, history, look))
        .expect("drawn");
    let buffer = terminal.backend().buffer();
    let cells = buffer.content.chunks(usize::from(width));
    cells
        .map(|line| line.iter().map(ratatui::buffer::Cell::symbol).collect())
        .collect()
}

#[test]
fn a_usual_screen_has_daemons_plots_clients_and_what_is_wrong() {
    let screen = drawn(&history(40), (80, 24));
    let whole = screen.join("\n");
    assert!(
        screen[0].starts_with("rota top every 1.0 s   q quit"),
        "{whole}"
    );
    let words: Vec<&str> = screen[2].split_whitespace().collect();
    assert_eq!(
        words[..6],
        ["1", "n1", "1-3", "500", "0.20", "ms"],
        "{whole}"
    );
    assert!(
        screen[4].contains("- /c: No such file or directory"),
        "{whole}"
    );
    assert!(whole.contains("told/s 2500, most 2500"), "{whole}");
    assert!(whole.contains("round 0.20 ms, most 0.20 ms"), "{whole}");
    // The plots are full of what has been the same all the time.
    assert!(
        screen
            .iter()
            .any(|line| line.contains(&"\u{2588}".repeat(30))),
        "{whole}"
    );
    assert!(
        whole.contains("#ann#n2") && whole.contains("5000 bytes"),
        "{whole}"
    );
    let last = screen.iter().rev().find(|line| !line.trim().is_empty());
    assert!(
        last.is_some_and(|line| line.contains("all well")),
        "{whole}"
    );
}

#[test]
fn what_a_daemon_says_tells_the_terminal_nothing() {
    let evil = "a\u{1b}[2J\u{9b}31m\nb".to_owned();
    let places = ["/a".parse::<Place>().expect("a path")];
    let said = |seconds| {
        let mut status = status(1, seconds);
        status.name.clone_from(&evil);
        status.notes = vec![evil.clone()];
        status.clients[0].name.clone_from(&evil);
        status.clients[0].waiting_bytes = 5000;
        [Ok(status)]
    };
    let interval = Interval::between(&places, &said(1), &said(2));
    let text = interval.text();
    let is_plain = |line: &str| !line.contains(char::is_control) && !line.starts_with('b');
    assert!(text.lines().all(is_plain), "{text:?}");
    let mut history = History::new(1, 1000);
    history.take(interval);
    let screen = drawn(&history, (200, 40));
    assert!(screen.iter().all(|line| is_plain(line)), "{screen:?}");
    // The daemon, its note and its client.
    for said in [text, screen.concat()] {
        let said = said.matches(r"a\x1b[2J\xc2\x9b31m\nb").count();
        assert_eq!(said, 3);
    }
}

#[test]
fn what_an_interval_shows_is_judged_once() {
    let mut history = history(3);
    let before = drawn(&history, (80, 24));
    let newest = history.newest.as_mut().expect("an interval");
    // Drawing looks at nothing of this again.
    newest.seen.clear();
    assert_eq!(drawn(&history, (80, 24)), before);
}

#[test]
fn no_size_of_a_screen_is_too_small_or_too_large() {
    let history = history(3);
    for size in [
        (1, 1),
        (10, 3),
        (40, 10),
        (79, 12),
        (300, 100),
        (80, 1),
        (1, 80),
    ] {
        let screen = drawn(&history, size);
        assert_eq!(screen.len(), usize::from(size.1));
    }
    drawn(&History::new(0, 1000), (80, 24));
    assert!(
        drawn(&history, (300, 100))
            .join("\n")
            .contains("/c: No such file")
    );
}

#[test]
fn the_daemon_that_is_looked_at_is_always_in_the_table() {
    let places: Vec<Place> = (0..40)
        .map(|at| format!("/{at}").parse().expect("a path"))
        .collect();
    let said = |seconds| {
        (0..40)
            .map(|node| Ok(status(node + 1, seconds)))
            .collect::<Vec<_>>()
    };
    let mut history = History::new(40, 1000);
    history.take(Interval::between(&places, &said(1), &said(2)));
    for _ in 0..29 {
        history.press(Key::Down);
    }
    let screen = drawn(&history, (80, 24));
    let rows = screen
        .iter()
        .filter(|line| line.split_whitespace().nth(1) == Some("n30"));
    assert_eq!(rows.count(), 1, "{}", screen.join("\n"));
    history.press(Key::Pause);
    assert!(drawn(&history, (80, 24))[0].contains("paused"));
}
