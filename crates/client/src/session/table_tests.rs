//! The table of a client's session (`testdata/tables/session.txt`), cell by cell: what a client makes of each frame of its
//! daemon, and of the end of the stream, in each state.

#[path = "../../../core/tests/table/mod.rs"]
mod table;

use rota_core::contract::Service;
use rota_core::groups::{ClientName, GroupName};

use super::{Handshake, Incoming, Outgoing, OutstandingRequests, Settled, Taken};
use crate::envelope::Envelope;
use crate::error::{ConnectError, ConnectionLost};
use crate::protocol::{Code, Credit, Hello, Reply, VERSION, Welcome};

const STATES: [&str; 5] = [
    "handshake",
    "open",
    "waiting for an answer",
    "without credit",
    "closed",
];

const EVENTS: [&str; 15] = [
    "WELCOME comes",
    "a WELCOME with another version comes",
    "REFUSED comes",
    "GOODBYE comes",
    "a self-leave comes",
    "EXCLUDED comes",
    "CREDIT comes",
    "DONE comes",
    "FAILED comes",
    "a half of a frame comes",
    "bytes that are no frame come",
    "the stream ends",
    "the stream ends within a frame",
    "the application sends",
    "the application asks",
];

const CREDIT: u32 = 200;

fn welcome(version: u16) -> Reply {
    Reply::Welcome(Welcome {
        version,
        name: "#anna#one".parse().expect("a private name"),
        credit: CREDIT,
        largest_payload: 100,
        memory: 0,
    })
}

fn bytes_of(reply: &Reply) -> Vec<u8> {
    let mut bytes = Vec::new();
    reply.encode(&mut bytes).expect("it fits");
    bytes
}

fn group() -> GroupName {
    GroupName::new("chat").expect("a name")
}

/// A client at some point of its session.
enum Client {
    Greeting(Handshake),
    Open(Box<Open>),
    Gone(String),
}

struct Open {
    incoming: Incoming,
    outgoing: Outgoing,
    account: OutstandingRequests,
    /// The request whose answer is awaited.
    asked: Option<u32>,
}

fn greeting() -> Handshake {
    let name = ClientName::new("anna").expect("a name");
    Handshake::new(Hello::new(Some(name), true)).0
}

fn shake(handshake: Handshake, bytes: &[u8]) -> Client {
    match handshake.feed((bytes, None)) {
        Ok(Err(goes_on)) => Client::Greeting(goes_on),
        Ok(Ok(taken)) => Client::Open(Box::new(open(taken))),
        Err(error) => Client::Gone(match error {
            ConnectError::Refused { code, .. } => format!("refused ({code:?})"),
            ConnectError::Version(version) => format!("version {version} was not offered"),
            ConnectError::Lost(lost) => lost_because(&lost),
            error => error.to_string(),
        }),
    }
}

fn open(taken: Taken) -> Open {
    let Taken {
        welcome, incoming, ..
    } = taken;
    Open {
        incoming,
        outgoing: Outgoing::new(&welcome, Service::Agreed),
        account: OutstandingRequests::new(Credit::new(welcome.credit)),
        asked: None,
    }
}

fn lost_because(lost: &ConnectionLost) -> String {
    match lost {
        ConnectionLost::Goodbye { code, .. } => format!("goodbye ({code:?})"),
        ConnectionLost::Ended => "ended in order".to_owned(),
        ConnectionLost::Io(error) => format!("cut off ({:?})", error.kind()),
        ConnectionLost::Protocol(_) => "no protocol".to_owned(),
        ConnectionLost::Unexpected => "a frame that does not belong there".to_owned(),
    }
}

fn ask(open: &mut Open) -> Result<u32, ConnectionLost> {
    let request = open.account.expect();
    let join = crate::protocol::Request::Join {
        request,
        group: group(),
    };
    open.outgoing.ask(&open.account, &join)?;
    Ok(request)
}

fn send(open: &mut Open) -> String {
    let envelope = Envelope::to("chat").expect("a destination");
    match open.outgoing.put(&mut open.account, &envelope, &[7; 60]) {
        Ok(true) => "sends it".to_owned(),
        Ok(false) => "waits for credit".to_owned(),
        Err(error) => format!("refuses: {error}"),
    }
}

fn in_state(state: &str) -> Client {
    let greeting = greeting();
    if state == "handshake" {
        return Client::Greeting(greeting);
    }
    let mut client = shake(greeting, &bytes_of(&welcome(VERSION)));
    let Client::Open(open) = &mut client else {
        panic!("it is let in");
    };
    match state {
        "waiting for an answer" => open.asked = Some(ask(open).expect("it is open")),
        "without credit" => while send(open) == "sends it" {},
        "closed" => {
            let code = Code::ShuttingDown;
            let text = String::new();
            let settled = open
                .incoming
                .feed(&bytes_of(&Reply::Goodbye { code, text }));
            open.account.settle(settled);
        }
        _ => {}
    }
    client
}

/// The bytes that an event brings; `None` if it is none of the daemon's.
fn bytes_for(event: &str) -> Option<Vec<u8>> {
    let (code, text) = (Code::NotAllowed, "no".to_owned());
    let whole = bytes_of(&Reply::SelfLeave { group: group() });
    Some(match event {
        "WELCOME comes" => bytes_of(&welcome(VERSION)),
        "a WELCOME with another version comes" => bytes_of(&welcome(VERSION + 1)),
        "REFUSED comes" => bytes_of(&Reply::Refused { code, text }),
        "GOODBYE comes" => bytes_of(&Reply::Goodbye { code, text }),
        "a self-leave comes" => whole,
        "EXCLUDED comes" => bytes_of(&Reply::Excluded),
        "CREDIT comes" => bytes_of(&Reply::Credit { bytes: 100 }),
        "DONE comes" => bytes_of(&Reply::Done { request: 1 }),
        "FAILED comes" => bytes_of(&Reply::Failed {
            request: 1,
            code,
            text,
        }),
        "a half of a frame comes" | "the stream ends within a frame" => {
            whole[..whole.len() / 2].to_vec()
        }
        "bytes that are no frame come" => vec![0xff; 64],
        _ => return None,
    })
}

fn settle(open: &mut Open, settled: Settled, effects: &mut Vec<String>) {
    if settled.credit > 0 {
        effects.push(format!("{} bytes of credit", settled.credit));
    }
    open.account.settle(settled);
    if let Some(answer) = open.asked.and_then(|request| open.account.answer(request)) {
        effects.push(match answer.done() {
            Ok(()) => "the answer is: done".to_owned(),
            Err(error) => format!("the answer is: {error}"),
        });
    }
}

fn at_open(open: &mut Open, event: &str) -> Vec<String> {
    let mut effects = Vec::new();
    if let Some(bytes) = bytes_for(event) {
        let settled = open.incoming.feed(&bytes);
        settle(open, settled, &mut effects);
    }
    match event {
        "the stream ends" | "the stream ends within a frame" => {
            let settled = open.incoming.end();
            settle(open, settled, &mut effects);
        }
        "the application sends" => effects.push(send(open)),
        "the application asks" => effects.push(match ask(open) {
            Ok(_) => "asks".to_owned(),
            Err(lost) => format!("refuses: {lost}"),
        }),
        _ => {}
    }
    while let Some(event) = open.incoming.next() {
        let event = format!("{event:?}");
        let name = event.split([' ', '(', '{']).next().unwrap_or_default();
        effects.push(format!("the application is told: {name}"));
    }
    effects
}

fn cell(event: &str, state: &str) -> String {
    let (now, effects) = match in_state(state) {
        Client::Gone(why) => (format!("closed: {why}"), Vec::new()),
        Client::Greeting(handshake) => match bytes_for(event) {
            // The caller that waits for the handshake sees the end itself.
            None | Some(_) if event.starts_with("the ") => {
                return "(not before WELCOME)".to_owned();
            }
            None => return "(not before WELCOME)".to_owned(),
            Some(bytes) => match shake(handshake, &bytes) {
                Client::Greeting(_) => ("handshake".to_owned(), Vec::new()),
                Client::Open(_) => ("open".to_owned(), Vec::new()),
                Client::Gone(why) => (format!("closed: {why}"), Vec::new()),
            },
        },
        Client::Open(mut open) => {
            let effects = at_open(&mut open, event);
            let state = match &open.account.lost {
                Some(lost) => format!("closed: {}", lost_because(lost)),
                None => "open".to_owned(),
            };
            (state, effects)
        }
    };
    let effects = match effects.is_empty() {
        true => "nothing".to_owned(),
        false => effects.join(", "),
    };
    format!("{now}; {effects}")
}

#[test]
fn every_cell_of_a_session_is_as_written() {
    table::check(
        env!("CARGO_MANIFEST_DIR"),
        "session",
        (&EVENTS, &STATES),
        cell,
    );
}
