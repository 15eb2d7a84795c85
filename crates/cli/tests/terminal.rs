//! What others say is printed so that a terminal shows it, and does nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rota_client::Service;
use rota_client::protocol::{
    Code, Destination, Inbox, Message, PrivateName, Reply, Request, Welcome, request_limit,
};
use rota_daemon::teller::{ANSWER, QUESTION};

/// Clears a screen, colours what follows, and begins another line.
const EVIL: &str = "a\u{1b}[2J\u{9b}31m\u{7f}\r\nb";

/// How that is shown.
const SHOWN: &str = r"a\x1b[2J\xc2\x9b31m\x7f\r\nb";

/// How it is in the reasons that clients are given.
const IN_REASON: &str = r"a\u{1b}[2J\u{9b}31m\u{7f}\r\nb";

/// The status of a daemon with this name, all of whose other words are evil.
fn status(name: &str) -> serde_json::Value {
    let client = serde_json::json!({
        "name": EVIL, "protocol": EVIL, "held_for": EVIL, "throttles": [EVIL], "waiting_bytes": 5000,
    });
    serde_json::json!({
        "node": 1, "name": name, "version": EVIL, "ring": EVIL, "notes": [EVIL],
        "clients": [client], "holds": [{"to": EVIL, "client": EVIL}], "uptime_us": 1,
    })
}

/// A daemon that gives this answer to whoever connects, or who has asked.
fn answer(path: &Path, is_asked: bool, answer: &serde_json::Value) {
    let listener = UnixListener::bind(path).expect("a free path");
    let answer = answer.to_string();
    thread::spawn(move || {
        for mut asks in listener.incoming().flatten() {
            if is_asked {
                let mut line = String::new();
                BufReader::new(&asks).read_line(&mut line).expect("a line");
            }
            // Whoever asked may have gone.
            let _ = asks.write_all(answer.as_bytes());
        }
    });
}

/// What a command prints about the daemon at this socket: it says so many words of others, and they tell a terminal nothing.
fn check(command: &[&str], (option, socket): (&str, &Path), words: usize) -> String {
    let rota = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(command)
        .arg(option)
        .arg(socket)
        .output()
        .expect("the binary");
    let printed = [rota.stdout, rota.stderr].concat();
    let text = String::from_utf8(printed).expect("text");
    let is_plain = |line: &str| !line.contains(char::is_control) && !line.starts_with('b');
    assert!(text.split('\n').all(is_plain), "{command:?}: {text:?}");
    let said = text.matches(SHOWN).count() + text.matches(IN_REASON).count();
    assert!(said >= words, "{command:?}: {text}");
    text
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
    answer(&socket, false, &status(EVIL));
    for command in COMMANDS {
        check(command, ("--socket", &socket), 3);
    }
}

#[test]
fn nor_does_the_reason_of_one_that_refuses() {
    let house = tempfile::tempdir().expect("a directory");
    let socket = house.path().join("admin.sock");
    answer(&socket, false, &serde_json::json!({ "refused": EVIL }));
    for command in COMMANDS {
        check(command, ("--socket", &socket), 1);
    }
}

/// The socket at which clients ask a daemon for its cluster.
#[derive(Clone, Copy)]
enum Daemon {
    /// It lets clients in, lists itself, and tells how it is.
    Tells,
    /// It lets nobody in.
    Refuses,
    /// It lists nobody.
    Fails,
    /// It ends when it is asked how it is.
    Ends,
    /// It may not be asked how it is.
    Forbids,
}

impl Daemon {
    fn listen(self, path: &Path) {
        let listener = UnixListener::bind(path).expect("a free path");
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                thread::spawn(move || self.serve(client));
            }
        });
    }

    fn serve(self, mut stream: UnixStream) {
        let mut inbox: Inbox<Request> = Inbox::new(request_limit(1000));
        let mut buffer = [0; 1024];
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            inbox.feed(&buffer[..bytes]);
            while let Some(request) = inbox.pull().expect("requests") {
                let mut bytes = Vec::new();
                for reply in self.replies(request) {
                    reply.encode(&mut bytes).expect("it fits");
                }
                // A client may have gone.
                let _ = stream.write_all(&bytes);
            }
        }
    }

    fn replies(self, request: Request) -> Vec<Reply> {
        let (code, text) = (Code::NotAllowed, EVIL.to_owned());
        let teller = name("#rota-tell#n1");
        match (request, self) {
            (Request::Hello(_), Self::Refuses) => vec![Reply::Refused { code, text }],
            (Request::Hello(_), _) => vec![Reply::Welcome(Welcome {
                version: 1,
                name: name("#asks#n1"),
                credit: 100_000,
                largest_payload: 1000,
                memory: 0,
            })],
            (Request::List { request, .. }, Self::Fails) => vec![Reply::Failed {
                request,
                code,
                text,
            }],
            (Request::List { request, .. }, _) => vec![Reply::Members {
                request,
                members: vec![teller],
            }],
            (Request::Send(_), Self::Ends) => vec![Reply::Goodbye { code, text }],
            (Request::Send(send), Self::Forbids) => vec![Reply::NotSent {
                kind: send.kind,
                to: Destination::Client(teller),
                code,
                text,
            }],
            (Request::Send(send), _) => {
                assert_eq!(send.kind, QUESTION);
                vec![Reply::Message(Message {
                    sender: teller,
                    service: Service::Agreed,
                    self_discard: true,
                    kind: ANSWER,
                    to: Arc::new([Destination::Client(name("#asks#n1"))]),
                    payload: status("n1").to_string().into_bytes().into(),
                })]
            }
            _ => Vec::new(),
        }
    }
}

fn name(text: &str) -> PrivateName {
    text.parse().expect("a name")
}

#[test]
fn nor_does_what_a_daemon_says_through_another_one() {
    let house = tempfile::tempdir().expect("a directory");
    for (socket, daemon, words, said) in [
        ("tells", Daemon::Tells, 3, SHOWN),
        ("refuses", Daemon::Refuses, 1, "refuses: "),
        ("fails", Daemon::Fails, 1, "fails: "),
        ("ends", Daemon::Ends, 1, "daemon n1 through "),
        // Its code says it all.
        ("forbids", Daemon::Forbids, 0, "not sent"),
    ] {
        let socket = house.path().join(socket);
        daemon.listen(&socket);
        for command in COMMANDS {
            let text = check(command, ("--cluster", &socket), words);
            assert!(text.contains(said), "{command:?}: {text}");
        }
    }
}

/// `rota member` in each of its ways.
const OF_MEMBERS: [&[&str]; 4] = [
    &["member", "list"],
    &["member", "add", "4", "10.0.0.4"],
    &["member", "remove", "4"],
    &["member", "replace", "4", "10.0.0.4"],
];

#[test]
fn nor_do_nodes_of_a_cluster_and_what_has_become_of_a_change() {
    let house = tempfile::tempdir().expect("a directory");
    let node = serde_json::json!({ "id": 1, "name": EVIL, "address": EVIL });
    for done in [true, false] {
        let admin = house.path().join(format!("{done}.sock"));
        // It may have lines.
        let text = EVIL.replace("\r\n", "");
        let reply = serde_json::json!({ "done": done, "text": text, "nodes": [node] });
        answer(&rota_daemon::members_socket(&admin), true, &reply);
        for command in OF_MEMBERS {
            let words = if done { 2 } else { 0 };
            let text = check(command, ("--socket", &admin), words);
            let is_list = command.contains(&"list");
            let says = text.contains(r"a\x1b[2J\xc2\x9b31m\x7fb");
            assert_eq!(says, !(done && is_list), "{command:?}: {text}");
        }
    }
}
