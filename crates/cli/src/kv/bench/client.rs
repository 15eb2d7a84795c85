//! One client: what it asks, and how long answers take.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rota_core::random::Random;
use rota_resp::Reply;

use super::keys::Keys;
use super::measured::Measured;
use super::route::Route;
use super::workload::{Work, Workload};
use crate::service::connection::Connection;

/// Before somebody connects again.
const PAUSE: Duration = Duration::from_millis(20);
/// An answer takes no longer.
const PATIENCE: Duration = Duration::from_secs(15);
/// A scan reads so many at most.
const SCAN: u64 = 100;

/// The plan of all clients.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The workload.
    pub workload: Workload,
    /// The number of requests at once.
    pub pipeline: usize,
    /// The size of a value, in bytes.
    pub value_bytes: usize,
    /// The number of servers to WAIT for.
    pub wait: Option<u8>,
    /// The time from one request to the next, whether it is answered or not; none: the next when it is answered.
    pub pause: Option<Duration>,
}

/// See the module's page.
#[derive(Debug)]
pub struct Client {
    plan: Plan,
    number: u32,
    random: Random,
    route: Route,
    keys: Rc<RefCell<Keys>>,
    connections: Vec<Option<Connection>>,
}

/// One thing that is asked: of a server, in commands of which the last is answered with what matters.
struct Asked {
    work: Work,
    key: String,
    commands: Vec<Vec<Vec<u8>>>,
}

fn words(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

impl Client {
    /// A client with a number and a seed of its own.
    pub fn new(
        plan: Plan,
        (number, seed): (u32, u64),
        route: Route,
        keys: Rc<RefCell<Keys>>,
    ) -> Self {
        Self {
            plan,
            number,
            random: Random::new(seed),
            route,
            keys,
            connections: Vec::new(),
        }
    }

    /// Writes keys until all are there, so many at once.
    pub async fn fill(&mut self, next: &RefCell<u64>, at_once: usize) -> Result<(), String> {
        loop {
            let (first, all) = (*next.borrow(), self.keys.borrow().first());
            let end = all.min(first + at_once as u64);
            if first == end {
                return Ok(());
            }
            *next.borrow_mut() = end;
            let asked: Vec<Asked> = (first..end)
                .map(|number| self.write(Work::Insert, Keys::name(number)))
                .collect();
            let replies = self.ask(&asked).await.map_err(|error| error.to_string())?;
            for reply in replies {
                if let Reply::Error(error) = reply {
                    return Err(error);
                }
            }
        }
    }

    /// Asks until the time is over; what is asked for after it began is measured.
    pub async fn run(&mut self, measured: &RefCell<Measured>, (begins, ends): (Instant, Instant)) {
        let mut due = Instant::now();
        if let Some(pause) = self.plan.pause {
            // Clients do not ask all at the same time.
            due += pause.mul_f64(self.random.below(1_000) as f64 / 1e3);
        }
        loop {
            if self.plan.pause.is_some() {
                tokio::time::sleep_until(due.into()).await;
            }
            let began = match self.plan.pause {
                Some(_) => due,
                None => Instant::now(),
            };
            if Instant::now() >= ends {
                return;
            }
            let asked: Vec<Asked> = (0..self.plan.pipeline).map(|_| self.draw()).collect();
            let told = self.all(&asked).await;
            let now = Instant::now();
            let is_measured = began >= begins && now <= ends;
            if is_measured {
                note(&mut measured.borrow_mut(), &asked, told, now - began);
            } else if told.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
            due += self.plan.pause.unwrap_or_default();
        }
    }

    /// Asks, and asks again who was named where a slot has moved; then writes what was read to be written.
    async fn all(&mut self, asked: &[Asked]) -> io::Result<Vec<Reply>> {
        let mut replies = self.in_time(asked).await?;
        for (asked, reply) in asked.iter().zip(&mut replies) {
            if let Reply::Error(error) = &*reply
                && self.route.moved(error).is_some()
            {
                let again = self.in_time(std::slice::from_ref(asked)).await?;
                *reply = again.into_iter().next().unwrap_or(Reply::Null);
            }
            if asked.work == Work::Modify && !reply.is_error() {
                let write = self.write(Work::Modify, asked.key.clone());
                let written = self.in_time(&[write]).await?;
                *reply = written.into_iter().next().unwrap_or(Reply::Null);
            }
        }
        Ok(replies)
    }

    async fn in_time(&mut self, asked: &[Asked]) -> io::Result<Vec<Reply>> {
        let told = tokio::time::timeout(PATIENCE, self.ask(asked)).await;
        let told = told.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        if told.is_err() {
            self.connections.clear();
        }
        told
    }

    /// Asks all at once, and hears what each is answered.
    async fn ask(&mut self, asked: &[Asked]) -> io::Result<Vec<Reply>> {
        let servers = self.route.servers.len();
        self.connections
            .resize_with(servers.max(self.connections.len()), || None);
        let of: Vec<usize> = asked
            .iter()
            .map(|asked| self.route.of(&asked.key, self.number))
            .collect();
        for (asked, at) in asked.iter().zip(&of) {
            let connection = match &mut self.connections[*at] {
                Some(connection) => connection,
                none => none.insert(Connection::to(self.route.servers[*at]).await?),
            };
            for command in &asked.commands {
                connection.say(command);
            }
        }
        for connection in self.connections.iter_mut().flatten() {
            connection.flush().await?;
        }
        let mut replies = Vec::with_capacity(asked.len());
        for (asked, at) in asked.iter().zip(&of) {
            let Some(connection) = &mut self.connections[*at] else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            let mut first = None;
            for _ in &asked.commands {
                let reply = connection.hear().await?;
                if first.is_none() || reply.is_error() {
                    first = Some(reply);
                }
            }
            replies.push(first.unwrap_or(Reply::Null));
        }
        Ok(replies)
    }

    /// Draws the next request.
    fn draw(&mut self) -> Asked {
        let work = self.plan.workload.draw(&mut self.random);
        let keys = Rc::clone(&self.keys);
        let mut keys = keys.borrow_mut();
        let mut key = || Keys::name(keys.draw(self.plan.workload.choice, &mut self.random));
        match work {
            Work::Read | Work::Modify => Asked::one(work, |key| words(&[b"GET", key]), key()),
            Work::Update => {
                let key = key();
                self.write(work, key)
            }
            Work::Insert => self.write(work, Keys::name(keys.insert())),
            Work::Scan => {
                let key = key();
                let most = (1 + self.random.below(SCAN)).to_string();
                let command = |key: &[u8]| words(&[b"RANGE", key, b"+", b"LIMIT", most.as_bytes()]);
                Asked::one(work, command, key)
            }
            Work::Batch => {
                let keys = [key(), key(), key()];
                let mut command = words(&[b"MSET"]);
                for key in &keys {
                    command.extend([key.clone().into_bytes(), self.value()]);
                }
                let [key, ..] = keys;
                Asked::one(work, |_| command.clone(), key).then_wait(self.plan.wait)
            }
        }
    }

    fn write(&mut self, work: Work, key: String) -> Asked {
        let value = self.value();
        Asked::one(work, |key| words(&[b"SET", key, &value]), key).then_wait(self.plan.wait)
    }

    fn value(&mut self) -> Vec<u8> {
        let mut value = vec![b'v'; self.plan.value_bytes];
        let drawn = self.random.below(u64::MAX).to_le_bytes();
        let count = drawn.len().min(value.len());
        value[..count].copy_from_slice(&drawn[..count]);
        value
    }
}

impl Asked {
    fn one(work: Work, command: impl Fn(&[u8]) -> Vec<Vec<u8>>, key: String) -> Self {
        let commands = vec![command(key.as_bytes())];
        Self {
            work,
            key,
            commands,
        }
    }

    fn then_wait(mut self, replicas: Option<u8>) -> Self {
        if let Some(replicas) = replicas {
            let replicas = replicas.to_string();
            self.commands
                .push(words(&[b"WAIT", replicas.as_bytes(), b"0"]));
        }
        self
    }
}

/// Writes down what came of it.
fn note(measured: &mut Measured, asked: &[Asked], told: io::Result<Vec<Reply>>, took: Duration) {
    let Ok(replies) = told else {
        measured.broken += 1;
        return;
    };
    for (asked, reply) in asked.iter().zip(replies) {
        match reply {
            Reply::Error(error) => measured.refused(&error),
            reply => {
                measured.missing += u64::from(asked.work == Work::Read && reply == Reply::Null);
                measured.done(asked.work, took);
            }
        }
    }
}
