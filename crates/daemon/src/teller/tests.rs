use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};

use rota_client::protocol::{Inbox, Reply, Request, Welcome, request_limit};

use super::*;
use crate::status::ClientStatus;

fn name(text: &str) -> PrivateName {
    let (client, daemon) = text[1..].split_once('#').expect("two parts");
    PrivateName {
        client: rota_core::groups::Name::new(client).expect("a name"),
        daemon: rota_core::groups::Name::new(daemon).expect("a name"),
    }
}

fn answer(from: &str, payload: &str) -> Event {
    Event::Message(Message {
        sender: name(from),
        service: rota_client::Service::Agreed,
        self_discard: true,
        kind: ANSWER,
        to: Arc::new([Destination::Client(name("#asks#n1"))]),
        payload: bytes::Bytes::copy_from_slice(payload.as_bytes()),
    })
}

#[test]
fn each_daemon_answers_once_and_nobody_for_another() {
    let of = ["#rota-tell#n1", "#rota-tell#n2", "#rota-tell#n3"].map(name);
    let mut asked = Asked::of(&of);
    let mut take = |from: &str, payload: &str| {
        asked.take(answer(from, payload));
        asked.missing.len()
    };
    assert_eq!(take("#ann#n1", r#"{"name":"n1","pid":1}"#), 3);
    assert_eq!(take("#rota-tell#n4", r#"{"name":"n4","pid":1}"#), 3);
    assert_eq!(take("#rota-tell#n1", r#"{"name":"n2","pid":1}"#), 3);
    assert_eq!(take("#rota-tell#n1", "no status"), 3);
    assert_eq!(take("#rota-tell#n1", r#"{"name":"n1","pid":1}"#), 2);
    assert_eq!(take("#rota-tell#n1", r#"{"name":"n1","pid":2}"#), 2);
    let not_sent = |to| Event::NotSent {
        kind: QUESTION,
        to: Destination::Client(to),
        code: Code::NotAllowed,
        text: String::new(),
    };
    asked.take(not_sent(of[1]));
    assert_eq!(asked.missing, [of[2]]);
    asked.take(answer("#rota-tell#n2", r#"{"name":"n2"}"#));
    assert!(!asked.is_over());
    asked.take(answer("#rota-tell#n3", r#"{"name":"n3"}"#));
    assert!(asked.is_over());
    let first = asked.answers[&of[0]].as_ref().expect("it was sent");
    assert!(first.text.ends_with(b"\"pid\":1}"), "{first:?}");
    assert_eq!(first.status.pid, 1);
    let refused = asked.answers[&of[1]].as_ref();
    assert_eq!(refused.map(|_| ()), Err(&Code::NotAllowed));
}

#[test]
fn the_log_has_a_line_of_ten_failures_in_a_row_and_no_more() {
    let mut failures = Failures::default();
    let short = Duration::from_millis(3);
    let mut said = |lasted| failures.are_many(lasted);
    let lines: Vec<usize> = (1..=30).filter(|_| said(short)).collect();
    assert_eq!(lines, [10]);
    // It has worked meanwhile.
    assert!(!said(LASTING));
    let lines: Vec<usize> = (2..=30).filter(|_| said(short)).collect();
    assert_eq!(lines, [10]);
}

#[test]
fn whoever_joins_the_group_is_no_daemon_by_that() {
    assert!(is_teller(&name("#rota-tell#n1")));
    assert!(!is_teller(&name("#ann#n1")) && !is_teller(&name("#rota-tel#n1")));
}

#[test]
fn an_answer_is_as_long_as_a_message_may_be_and_keeps_who_lags_most() {
    let client = |at: usize| ClientStatus {
        name: format!("#client{at}#n1"),
        waiting_bytes: at,
        ..ClientStatus::default()
    };
    let status = DaemonStatus {
        node: 3,
        clients: (0..1000).map(client).collect(),
        ..DaemonStatus::default()
    };
    let read = |most| -> DaemonStatus {
        let text = text(&status, most);
        assert!(text.len() <= most, "{} of {most}", text.len());
        serde_json::from_str(&text).expect("JSON")
    };
    let whole = read(1 << 20);
    assert_eq!((whole.node, whole.clients.len()), (3, CLIENTS));
    assert_eq!(whole.clients[0].name, "#client999#n1");
    let short = read(4000);
    assert!((1..CLIENTS).contains(&short.clients.len()));
    assert_eq!(short.clients[0].name, "#client999#n1");
    let mut none = status.clone();
    none.clients.clear();
    let least = text(&none, 0).len();
    assert_eq!(read(least).clients.len(), 0);
}

/// The daemon's side of a client's connection.
struct Connection {
    stream: UnixStream,
    inbox: Inbox<Request>,
}

impl Connection {
    /// Lets a client in, with credit for one message at a time.
    fn welcome(listener: &UnixListener) -> Self {
        let (stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(LONG)).expect("not zero");
        let inbox = Inbox::new(request_limit(1000));
        let mut connection = Self { stream, inbox };
        assert!(matches!(connection.next(), Request::Hello(_)));
        connection.tell(&Reply::Welcome(Welcome {
            version: 1,
            name: name("#asks#n1"),
            credit: 1,
            largest_payload: 1000,
            memory: 0,
        }));
        connection
    }

    fn next(&mut self) -> Request {
        loop {
            if let Some(request) = self.inbox.pull().expect("requests") {
                return request;
            }
            let mut buffer = [0; 1024];
            let bytes = self.stream.read(&mut buffer).expect("in time");
            assert!(bytes > 0, "the client has gone");
            self.inbox.feed(&buffer[..bytes]);
        }
    }

    /// The daemon that is asked next.
    fn next_asked(&mut self) -> PrivateName {
        match self.next() {
            Request::Send(send) => match send.to[..] {
                [Destination::Client(teller)] => teller,
                ref others => panic!("{others:?}"),
            },
            other => panic!("{other:?} is no question"),
        }
    }

    fn tell(&mut self, reply: &Reply) {
        let mut bytes = Vec::new();
        reply.encode(&mut bytes).expect("it fits");
        self.stream.write_all(&bytes).expect("the client listens");
    }
}

/// Nothing takes longer, unless it hangs.
const LONG: Duration = Duration::from_secs(20);

#[test]
fn neither_events_of_others_nor_little_credit_keep_questions_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s");
    let listener = UnixListener::bind(&path).expect("a free path");
    let of = ["#rota-tell#n1", "#rota-tell#n2"].map(name);
    let (go_on, goes_on) = std::sync::mpsc::channel();
    let daemon = thread::spawn(move || {
        let mut connection = Connection::welcome(&listener);
        let Event::Message(of_another) = answer("#eve#n9", "no status") else {
            panic!("it is a message");
        };
        connection.tell(&Reply::Message(of_another));
        assert_eq!(connection.next_asked(), of[0]);
        let () = goes_on.recv().expect("it is told");
        for at in [0, 1] {
            let status = format!("{{\"name\":\"n{}\"}}", at + 1);
            if let Event::Message(status) = answer(&of[at].to_string(), &status) {
                connection.tell(&Reply::Message(status));
            }
            connection.tell(&Reply::Credit { bytes: u32::MAX });
            if at == 0 {
                while connection.next_asked() != of[1] {
                    connection.tell(&Reply::Credit { bytes: u32::MAX });
                }
            }
        }
        connection
    });
    let builder = Client::builder().unread_bytes(0);
    let mut client = builder.connect(path.as_path()).expect("let in");
    // The first question takes the credit, and the other one waits.
    let soon = Instant::now() + Duration::from_millis(20);
    let answers = ask(&mut client, &of, soon).expect("it can be asked on");
    assert_eq!(answers.len(), 0);
    go_on.send(()).expect("it waits");
    let answers = ask(&mut client, &of, Instant::now() + LONG).expect("it can be asked");
    assert!(answers.values().all(Result::is_ok) && answers.len() == 2);
    daemon.join().expect("no failure");
}

#[test]
fn one_that_never_answers_keeps_no_other_from_being_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s");
    let listener = UnixListener::bind(&path).expect("a free path");
    let of = ["#rota-tell#n1", "#rota-tell#n2", "#rota-tell#n3"].map(name);
    let daemon = thread::spawn(move || {
        let mut connection = Connection::welcome(&listener);
        // There is credit for one question at a time.
        for (at, teller) in of.into_iter().enumerate() {
            assert_eq!(connection.next_asked(), teller);
            let status = format!("{{\"name\":\"n{}\"}}", at + 1);
            match answer(&teller.to_string(), &status) {
                Event::Message(status) if at > 0 => connection.tell(&Reply::Message(status)),
                _ => {}
            }
            connection.tell(&Reply::Credit { bytes: u32::MAX });
        }
        assert_eq!(connection.next_asked(), of[0]);
        connection
    });
    let builder = Client::builder().unread_bytes(0);
    let mut client = builder.connect(path.as_path()).expect("let in");
    let told = thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&mut client, &of, Instant::now() + LONG));
        let mut connection = daemon.join().expect("all are asked in turn");
        let Event::Message(status) = answer("#rota-tell#n1", "{\"name\":\"n1\"}") else {
            panic!("it is a message");
        };
        connection.tell(&Reply::Message(status));
        asking.join().expect("no panic")
    });
    assert_eq!(told.expect("it can be asked").len(), 3);
}
