//! The status of all daemons through any one of them.
//!
//! With `cluster_status = true` each daemon has a client of its own, in the group [`TELLERS`]. Whoever may send to such a client
//! asks it with an empty message of the kind [`QUESTION`], and gets the daemon's status in a message of the kind [`ANSWER`]; the
//! members of the group are the daemons that can be asked. So one connection to one daemon is enough to see all, rules say who
//! may, and nothing goes over the ring while nobody asks. A daemon answers a few times a second at most, and with clients
//! left out that make it too long.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use bytes::Bytes;
use rota_client::{
    Client, Code, ConnectionLost, Destination, Envelope, Event, Message, PrivateName, RequestError,
    SendError,
};

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

/// What a daemon has answered.
#[derive(Clone, Debug)]
pub struct Told {
    /// How it is.
    pub status: Box<DaemonStatus>,
    /// The same in its own words.
    pub text: Bytes,
}

/// What came of a question to a daemon: its answer, or why it may not be asked.
pub type Answer = Result<Told, Code>;

/// Asks these daemons, again and again until all have answered or it is that time. Whoever has not answered is not among
/// the answers. What a client says that is not its daemon's status is no answer. Anybody may send to the client that asks:
/// what else lies unread there is dropped, and keeps no question back for good.
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
        for _ in 0..asked.missing.len() {
            match client.try_send(Envelope::from(asked.missing[0]).kind(QUESTION), b"") {
                // Credit comes with events, which are taken next.
                Err(SendError::WouldBlock) => break,
                sent => sent?,
            }
            // With credit for few, one that never answers keeps no other from being asked.
            asked.missing.rotate_left(1);
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
struct Asked {
    /// Those that have not answered; the first of them is asked next.
    missing: VecDeque<PrivateName>,
    answers: BTreeMap<PrivateName, Answer>,
}

impl Asked {
    fn of(of: &[PrivateName]) -> Self {
        Self {
            missing: of.iter().copied().collect(),
            answers: BTreeMap::new(),
        }
    }

    fn is_over(&self) -> bool {
        self.missing.is_empty()
    }

    /// Takes what has come. Whoever is no daemon may send to the client that asks, too.
    fn take(&mut self, event: Event) {
        match event {
            Event::Message(message)
                if message.kind == ANSWER && self.missing.contains(&message.sender) =>
            {
                if let Some(status) = status_in(&message) {
                    let (status, text) = (Box::new(status), message.payload);
                    self.enter(message.sender, Ok(Told { status, text }));
                }
            }
            Event::NotSent {
                to: Destination::Client(teller),
                kind: QUESTION,
                code,
                ..
            } if self.missing.contains(&teller) => self.enter(teller, Err(code)),
            _ => {}
        }
    }

    fn enter(&mut self, teller: PrivateName, answer: Answer) {
        self.missing.retain(|one| *one != teller);
        self.answers.insert(teller, answer);
    }
}

/// The status of the daemon that its sender is at, if it is that.
fn status_in(message: &Message) -> Option<DaemonStatus> {
    let status: DaemonStatus = serde_json::from_slice(&message.payload).ok()?;
    (status.name == message.sender.daemon.to_string()).then_some(status)
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
mod tests;
