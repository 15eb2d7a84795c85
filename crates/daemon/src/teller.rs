//! The status of all daemons through any one of them.
//!
//! With `cluster_status = true` each daemon has a client of its own, in the group [`TELLERS`]. Whoever may send to such a client
//! asks it with an empty message of the kind [`QUESTION`], and gets the daemon's status in a message of the kind [`ANSWER`]; the
//! members of the group are the daemons that can be asked. So one connection to one daemon is enough to see all, rules say who
//! may, and nothing goes over the ring while nobody asks. A daemon answers a few times a second at most, and with clients
//! left out that make it too long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use rota_client::{
    Client, Code, ConnectionLost, Destination, Envelope, Event, Message, PrivateName, RequestError,
    SendError,
};

use serde::Deserialize;

use crate::control::Control;
use crate::status::DaemonStatus;

/// The group of the clients that tell how daemons are.
pub const TELLERS: &str = "rota-tell";

/// The kind of a question.
pub const QUESTION: u16 = 0x7e01;

/// The kind of an answer: the status as JSON.
pub const ANSWER: u16 = 0x7e02;

/// The name of such a client at its daemon.
const NAME: &str = "rota-tell";

/// Clients that are told apart in an answer: those for whom most waits.
const CLIENTS: usize = 100;

/// The time between two answers, at least; questions that come sooner get none. Whoever asks, asks again.
const PAUSE: Duration = Duration::from_millis(50);

/// The time that the daemon may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time between two tries to connect, and between two looks whether it is over.
const AGAIN: Duration = Duration::from_millis(500);

/// Tries in a row that are worth a line in the log.
const MANY: u32 = 10;

/// A connection that lasts for so long has not failed: daemons could be told.
const LASTING: Duration = Duration::from_secs(10);

/// The time between two questions to a daemon that has not answered: it answers a few a second.
const ASKED_AGAIN: Duration = Duration::from_millis(300);

/// The clients that tell how their daemons are, by daemon. Others that have joined the group tell nothing.
///
/// # Errors
/// [`RequestError`].
pub fn tellers(client: &mut Client) -> Result<Vec<PrivateName>, RequestError> {
    let mut tellers = client.members(TELLERS)?;
    tellers.retain(is_teller);
    tellers.sort_unstable_by_key(|teller| teller.daemon);
    Ok(tellers)
}

fn is_teller(member: &PrivateName) -> bool {
    member.client.to_string() == NAME
}

/// What came of a question to a daemon: its answer, or why it may not be asked.
pub type Answer = Result<Message, Code>;

/// Asks these daemons, again and again until all have answered or it is that time. Whoever has not answered is not among
/// the answers. What a client says that is not its daemon's status is no answer.
///
/// # Errors
/// Nobody can be asked through this client any more.
pub fn ask(
    client: &mut Client,
    of: &[PrivateName],
    until: Instant,
) -> Result<BTreeMap<PrivateName, Answer>, SendError> {
    let mut asked = Asked::of(of);
    while !asked.is_over() && Instant::now() < until {
        for teller in asked.missing() {
            client.send(Envelope::from(teller).kind(QUESTION), b"")?;
        }
        let again = until.min(Instant::now() + ASKED_AGAIN);
        while !asked.is_over()
            && let Some(left) = again.checked_duration_since(Instant::now())
        {
            if let Some(event) = client.recv_timeout(left)? {
                asked.take(event);
            }
        }
    }
    Ok(asked.answers)
}

/// The answers so far to a question.
struct Asked<'a> {
    of: &'a [PrivateName],
    answers: BTreeMap<PrivateName, Answer>,
}

impl<'a> Asked<'a> {
    const fn of(of: &'a [PrivateName]) -> Self {
        let answers = BTreeMap::new();
        Self { of, answers }
    }

    /// Those that have not answered.
    fn missing(&self) -> Vec<PrivateName> {
        let missing = self.of.iter().filter(|one| self.is_missing(one));
        missing.copied().collect()
    }

    fn is_missing(&self, teller: &PrivateName) -> bool {
        self.of.contains(teller) && !self.answers.contains_key(teller)
    }

    fn is_over(&self) -> bool {
        !self.of.iter().any(|teller| self.is_missing(teller))
    }

    /// Takes what has come. Whoever is no daemon may send to the client that asks, too.
    fn take(&mut self, event: Event) {
        match event {
            Event::Message(message)
                if message.kind == ANSWER
                    && self.is_missing(&message.sender)
                    && is_status_of(&message) =>
            {
                self.answers.insert(message.sender, Ok(message));
            }
            Event::NotSent {
                to: Destination::Client(teller),
                kind: QUESTION,
                code,
                ..
            } if self.is_missing(&teller) => {
                self.answers.insert(teller, Err(code));
            }
            _ => {}
        }
    }
}

/// Whether this is the status of the daemon that its sender is at.
fn is_status_of(message: &Message) -> bool {
    /// The part of a status that says whose it is.
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let named = serde_json::from_slice::<Named>(&message.payload);
    named.is_ok_and(|named| named.name == message.sender.daemon.to_string())
}

/// A thread that tells how its daemon is, until it is dropped.
#[derive(Debug)]
pub(crate) struct Teller {
    stop: Arc<AtomicBool>,
}

impl Teller {
    /// Begins to tell, as a client at `socket`.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(socket: std::path::PathBuf, control: Control) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let tell = move || {
            let mut failures = Failures::default();
            while !stopped.load(Ordering::Relaxed) {
                let mut began = None;
                let told = connect(&socket).and_then(|mut client| {
                    began = Some(Instant::now());
                    tell(&mut client, &control, &stopped).map_err(|error| error.to_string())
                });
                if let Err(error) = told
                    && !stopped.load(Ordering::Relaxed)
                {
                    // To connect in vain may take long, too.
                    let lasted = began.map_or(Duration::ZERO, |began| began.elapsed());
                    failures.say(&error, lasted);
                    thread::sleep(AGAIN);
                }
            }
        };
        let thread = thread::Builder::new().name("rota-tell".to_owned());
        thread.spawn(tell)?;
        Ok(Self { stop })
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Tries in a row that came to nothing.
#[derive(Debug, Default)]
struct Failures(u32);

impl Failures {
    /// A try has ended so, and was connected for so much time. Few are usual, while the daemon starts.
    fn say(&mut self, error: &str, lasted: Duration) {
        match self.are_many(lasted) {
            true => tracing::warn!(
                error,
                "nobody is told through other daemons how this one is: with rules, let the daemon's user join and send to the group \
                 rota-tell and #*"
            ),
            false => tracing::debug!(
                error,
                "nobody is told through other daemons how this one is"
            ),
        }
    }

    /// Counts one more; whether it is the last of as many as are worth a word, which is said once.
    const fn are_many(&mut self, lasted: Duration) -> bool {
        if lasted.as_nanos() >= LASTING.as_nanos() {
            self.0 = 0;
        }
        self.0 = self.0.saturating_add(1);
        self.0 == MANY
    }
}

fn connect(socket: &std::path::Path) -> Result<Client, String> {
    let client = Client::builder().name(NAME).connect(socket);
    let mut client = client.map_err(|error| error.to_string())?;
    client.join(TELLERS).map_err(|error| error.to_string())?;
    Ok(client)
}

/// Answers until it is over.
fn tell(client: &mut Client, control: &Control, stop: &AtomicBool) -> Result<(), ConnectionLost> {
    let mut last: Option<Instant> = None;
    while !stop.load(Ordering::Relaxed) {
        let Some(event) = client.recv_timeout(AGAIN)? else {
            continue;
        };
        let question = match event {
            Event::Message(message) if message.kind == QUESTION => message,
            _ => continue,
        };
        if last.is_some_and(|last| last.elapsed() < PAUSE) {
            continue;
        }
        last = Some(Instant::now());
        if let Some(status) = control.status(PATIENCE) {
            let text = text(&status, client.largest_payload());
            answer(client, &question, &text);
        }
    }
    Ok(())
}

fn answer(client: &mut Client, question: &Message, text: &str) {
    let to = Envelope::from(question.sender).kind(ANSWER).self_discard();
    // Whoever asked may have gone, and this client may not be allowed to: the one who asks notices.
    let sent = client.send(to, text.as_bytes());
    if let Err(error) = sent {
        tracing::debug!(%error, "an answer to a question through another daemon is lost");
    }
}

/// The status, as long as a message may be.
fn text(status: &DaemonStatus, most: usize) -> String {
    let mut status = status.clone();
    status
        .clients
        .sort_by_key(|client| std::cmp::Reverse(client.waiting_bytes));
    let mut clients = status.clients.len().min(CLIENTS);
    loop {
        status.clients.truncate(clients);
        // Strings and numbers are always JSON.
        let text = serde_json::to_string(&status).unwrap_or_default();
        if text.len() <= most || clients == 0 {
            return text;
        }
        clients /= 2;
    }
}

#[cfg(test)]
mod tests {
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
            to: Arc::new([]),
            payload: bytes::Bytes::copy_from_slice(payload.as_bytes()),
        })
    }

    #[test]
    fn each_daemon_answers_once_and_nobody_for_another() {
        let of = ["#rota-tell#n1", "#rota-tell#n2", "#rota-tell#n3"].map(name);
        let mut asked = Asked::of(&of);
        let mut take = |from: &str, payload: &str| {
            asked.take(answer(from, payload));
            asked.missing().len()
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
        assert_eq!(asked.missing(), [of[2]]);
        asked.take(answer("#rota-tell#n2", r#"{"name":"n2"}"#));
        assert!(!asked.is_over());
        asked.take(answer("#rota-tell#n3", r#"{"name":"n3"}"#));
        assert!(asked.is_over());
        let first = asked.answers[&of[0]].as_ref().expect("it was sent");
        assert!(first.payload.ends_with(b"\"pid\":1}"), "{first:?}");
        assert_eq!(asked.answers[&of[1]], Err(Code::NotAllowed));
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
}
