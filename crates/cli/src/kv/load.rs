//! Clients that load a store, and write down what they ask and are told.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_check::history::{Place, Step};
use rota_core::random::Random;
use rota_resp::Reply;

use crate::service::place;
use crate::service::talk::RpcConnection;

/// An answer may take so long: longer than a process waits for others.
const PATIENCE: Duration = Duration::from_secs(15);
/// Before somebody who was told to try again does.
const PAUSE: Duration = Duration::from_millis(20);

/// Keys, with what they are to have.
type Writes = Vec<(String, Option<String>)>;

/// The kinds of a client's operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads a key.
    Read,
    /// Writes one.
    Write,
    /// Reads and writes several, at one place of the order.
    Several,
}

/// The measurement of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    pub kind: Kind,
    /// The time at which it was told, since the load began.
    pub at: Duration,
    pub took: Duration,
}

/// The state that all clients have in common.
pub struct Load {
    pub addresses: Vec<SocketAddr>,
    pub keys: u64,
    began: Instant,
    stop: AtomicBool,
    /// The number of operations done, for others to look at.
    pub done: AtomicU64,
    /// The number of operations that were refused, and so not done.
    pub refused: AtomicU64,
    history: Mutex<(Vec<Step>, Vec<Took>)>,
}

/// Running clients.
pub struct Clients {
    load: Arc<Load>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Starts this number of clients.
    pub fn start(addresses: Vec<SocketAddr>, (clients, keys, seed): (u64, u64, u64)) -> Self {
        let load = Arc::new(Load {
            addresses,
            keys,
            began: Instant::now(),
            stop: AtomicBool::new(false),
            done: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            history: Mutex::default(),
        });
        let client = |number: u64| {
            let client = Client {
                load: Arc::clone(&load),
                number,
                random: Random::new(seed ^ (number << 32)),
                written: 0,
                talk: None,
                steps: Vec::new(),
                took: Vec::new(),
            };
            thread::spawn(move || client.run())
        };
        let threads = (1..=clients).map(client).collect();
        Self { load, threads }
    }

    /// The state that they have in common.
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// Ends the clients; returns their steps, with requests and answers, and the measurements.
    pub fn end(self) -> (Vec<Step>, Vec<Took>) {
        self.load.stop.store(true, SeqCst);
        for thread in self.threads {
            let _ = thread.join();
        }
        let mut history = self
            .load
            .history
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *history)
    }
}

struct Client {
    load: Arc<Load>,
    number: u64,
    random: Random,
    written: u64,
    talk: Option<RpcConnection>,
    steps: Vec<Step>,
    took: Vec<Took>,
}

impl Client {
    fn run(mut self) {
        while !self.load.stop.load(SeqCst) {
            self.step();
        }
        let mut history = self
            .load
            .history
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        history.0.append(&mut self.steps);
        history.1.append(&mut self.took);
    }

    fn key(&mut self) -> String {
        format!("key{}", self.random.below(self.load.keys))
    }

    fn value(&mut self) -> String {
        self.written += 1;
        format!("{}.{}", self.number, self.written)
    }

    /// Draws the keys that are read, and the values that are written then.
    fn choose(&mut self) -> (Kind, Vec<String>, Writes) {
        match self.random.below(20) {
            0..10 => (Kind::Read, vec![self.key()], Vec::new()),
            10..17 => {
                let key = self.key();
                let is_delete = self.random.below(10) == 0;
                let value = (!is_delete).then(|| self.value());
                (Kind::Write, Vec::new(), vec![(key, value)])
            }
            _ => {
                let mut reads: Vec<String> = Vec::new();
                while reads.len() < 4 {
                    let key = self.key();
                    if !reads.contains(&key) {
                        reads.push(key);
                    }
                }
                let writes = reads.split_off(2);
                let writes = writes.into_iter().map(|key| (key, Some(self.value())));
                let writes = writes.collect();
                (Kind::Several, reads, writes)
            }
        }
    }

    fn step(&mut self) {
        if self.talk.is_none() {
            let all = &self.load.addresses;
            let address = all[self.random.below(all.len() as u64) as usize];
            self.talk = RpcConnection::connect(address, PATIENCE).ok();
        }
        if self.talk.is_none() {
            return thread::sleep(PAUSE);
        }
        let (kind, reads, writes) = self.choose();
        let commands = commands(&reads, &writes);
        let began = self.load.began.elapsed();
        let Some(talk) = &mut self.talk else { return };
        let told = talk.say(&commands);
        let ended = self.load.began.elapsed();
        let mut step = Step {
            client: self.number,
            began: began.as_nanos() as u64,
            ended: None,
            place: None,
            reads: Vec::new(),
            writes,
        };
        let last = told.as_ref().ok().and_then(|replies| replies.last());
        match last {
            Some(Reply::Array(replies)) => {
                let Some((place, found)) = read(replies, reads.len()) else {
                    // A step whose answer cannot be read has no place: the check finds that.
                    step.ended = Some(ended.as_nanos() as u64);
                    self.steps.push(step);
                    return;
                };
                step.ended = Some(ended.as_nanos() as u64);
                step.place = Some(place);
                step.reads = reads.into_iter().zip(found).collect();
                self.steps.push(step);
                self.load.done.fetch_add(1, SeqCst);
                self.took.push(Took {
                    kind,
                    at: ended,
                    took: ended.saturating_sub(began),
                });
            }
            // It is said that it was not done.
            Some(Reply::Error(why)) if !why.contains("unknown") => {
                self.load.refused.fetch_add(1, SeqCst);
                thread::sleep(PAUSE);
            }
            _ => {
                self.steps.push(step);
                self.talk = None;
                thread::sleep(PAUSE);
            }
        }
    }
}

/// All of it at one place, and where that is.
fn commands(reads: &[String], writes: &[(String, Option<String>)]) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut commands: Vec<Vec<String>> = vec![words(&["MULTI"])];
    let first = reads.first().or_else(|| writes.first().map(|(key, _)| key));
    commands.extend(first.map(|key| words(&["PLACE", key])));
    commands.extend(reads.iter().map(|key| words(&["GET", key])));
    commands.extend(writes.iter().map(|(key, value)| match value {
        Some(value) => words(&["SET", key, value]),
        None => words(&["DEL", key]),
    }));
    commands.push(words(&["EXEC"]));
    commands
}

/// The place of a step in the order, and the values that it found.
fn read(replies: &[Reply], reads: usize) -> Option<(Place, Vec<Option<String>>)> {
    let (Reply::Bulk(place), rest) = replies.split_first()? else {
        return None;
    };
    let place = place::of(place)?;
    let found = rest.iter().take(reads).map(|reply| match reply {
        Reply::Bulk(value) => Some(Some(String::from_utf8_lossy(value).into_owned())),
        Reply::Null => Some(None),
        _ => None,
    });
    let found: Option<Vec<Option<String>>> = found.collect();
    if rest.iter().skip(reads).any(Reply::is_error) {
        return None;
    }
    Some((place, found?))
}
