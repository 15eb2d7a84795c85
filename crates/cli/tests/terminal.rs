//! What others say is printed so that a terminal shows it, and does nothing.

use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::thread;

/// Clears a screen, colours what follows, and begins another line.
const EVIL: &str = "a\u{1b}[2J\u{9b}31m\u{7f}\r\nb";

/// How that is shown.
const SHOWN: &str = r"a\x1b[2J\xc2\x9b31m\x7f\r\nb";

/// A daemon that gives this answer to whoever asks.
fn answer(path: &Path, answer: &serde_json::Value) {
    let listener = UnixListener::bind(path).expect("a free path");
    let answer = answer.to_string();
    thread::spawn(move || {
        for asked in listener.incoming() {
            // Whoever asked may have gone.
            let _ = asked.and_then(|mut asked| asked.write_all(answer.as_bytes()));
        }
    });
}

/// All that a command prints about the daemon at this socket.
fn printed(command: &[&str], socket: &Path) -> String {
    let rota = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(command)
        .arg("--socket")
        .arg(socket)
        .output()
        .expect("the binary");
    let printed = [rota.stdout, rota.stderr].concat();
    String::from_utf8(printed).expect("text")
}

const COMMANDS: [&[&str]; 3] = [
    &["status"],
    &["status", "--explain", "--interval", "10"],
    &["top", "--once", "--interval", "10"],
];

#[test]
fn nothing_that_a_daemon_says_tells_a_terminal_anything() {
    let house = tempfile::tempdir().expect("a directory");
    let socket = house.path().join("admin.sock");
    let client = serde_json::json!({
        "name": EVIL, "protocol": EVIL, "held_for": EVIL, "throttles": [EVIL], "waiting_bytes": 5000,
    });
    let status = serde_json::json!({
        "node": 1, "name": EVIL, "version": EVIL, "ring": EVIL, "notes": [EVIL],
        "clients": [client], "holds": [{"to": EVIL, "client": EVIL}], "uptime_us": 1,
    });
    answer(&socket, &status);
    for command in COMMANDS {
        let text = printed(command, &socket);
        let is_plain = |line: &str| !line.contains(char::is_control) && !line.starts_with('b');
        assert!(text.split('\n').all(is_plain), "{command:?}: {text:?}");
        assert!(text.matches(SHOWN).count() >= 3, "{command:?}: {text}");
    }
}

#[test]
fn nor_does_the_reason_of_one_that_refuses() {
    let house = tempfile::tempdir().expect("a directory");
    let socket = house.path().join("admin.sock");
    answer(&socket, &serde_json::json!({ "refused": EVIL }));
    for command in COMMANDS {
        let text = printed(command, &socket);
        let is_plain = |line: &str| !line.contains(char::is_control) && !line.starts_with('b');
        assert!(text.split('\n').all(is_plain), "{command:?}: {text:?}");
        assert!(text.contains(SHOWN), "{command:?}: {text}");
    }
}
