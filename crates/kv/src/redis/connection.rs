//! A client's connection: its state so far, and the next step for it.

use std::collections::BTreeMap;

use bytes::Bytes;
use rota_front::command::{Entry, error, is, number, unknown, wrong_count};
use rota_front::{Hello, Who, rings, session};
use rota_multiring::Place;
use rota_resp::Reply;

use super::admin::admin;
use super::changes::{Watching, changes};
use super::queue::Queue;
use super::scan::scan;
use super::table::{TABLE, find};
use super::view::View;
use super::work::{Task, Walk, Work};
use super::{cluster, work};
use crate::map::Partition;
use crate::slots::Slots;
use crate::store::MOST_BATCH_BYTES;

/// The number of watched keys, at most.
const MOST_WATCHED: usize = 10_000;

/// The next step for a client.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Send this reply.
    Reply(Reply),
    /// Send this reply, and end the connection.
    End(Reply),
    /// The client claims to be a user: name and password. The reply if the password is right.
    Login(Bytes, Bytes, Reply),
    /// Order this, and reply then.
    Order(Work),
    /// Find out the place of the walk with this number first; then [`Work::Walk`] from there.
    Walk(u64, Walk),
    /// Reply with the state of the process: these sections, or all.
    Info(Vec<Bytes>),
    /// Reply with the partition of each slot: [`shown`](super::shown).
    Map,
    /// Give slots to another partition.
    Move(Slots, Partition),
    /// Reply with changes of keys, or wait for some.
    Changes(Watching),
    /// Show the rings, or order something about what they keep.
    Rings(rings::Ask),
}

/// The state of a client's connection.
#[derive(Debug)]
pub struct Connection {
    /// The client.
    pub who: Who,
    /// The client knows where keys are, and is sent elsewhere when it asks in the wrong place.
    is_cluster: bool,
    queue: Option<Queue>,
    watched: BTreeMap<Bytes, Option<Place>>,
    watched_bytes: usize,
}

impl Connection {
    /// A connection that begins. `is_open`: no client has to prove who it is.
    pub fn new(id: u64, is_cluster: bool, is_open: bool) -> Self {
        Self {
            who: Who::new(id, is_open),
            is_cluster,
            queue: None,
            watched: BTreeMap::new(),
            watched_bytes: 0,
        }
    }

    /// Whether the client is content with the state of the replica here.
    pub const fn reads_near(&self) -> bool {
        self.who.identity.reads_near
    }

    /// Takes in the versions of the keys that the client watches.
    pub fn on_watched(&mut self, keys: Vec<(Bytes, Option<Place>)>) {
        for (key, version) in keys {
            self.watched_bytes += work::bytes_of([&key]);
            // The version that was seen first counts.
            self.watched.entry(key).or_insert(version);
        }
    }

    /// The bytes that the connection keeps.
    pub fn bytes(&self) -> usize {
        let queued = self.queue.as_ref().map_or(0, Queue::bytes);
        queued + self.watched_bytes
    }

    /// Watches no key any more.
    fn unwatch(&mut self) -> BTreeMap<Bytes, Option<Place>> {
        self.watched_bytes = 0;
        std::mem::take(&mut self.watched)
    }

    /// The step for a request.
    pub fn take(&mut self, request: Vec<Bytes>, view: &View) -> Step {
        let mut arguments = request.into_iter();
        let name = arguments.next().unwrap_or_default();
        let arguments: Vec<Bytes> = arguments.collect();
        if is(&name, "POST") || is(&name, "HOST:") {
            // A browser was led here: its body would be taken for commands.
            return Step::End(error("ERR this is not HTTP"));
        }
        let Some(entry) = find(&name) else {
            self.break_queue();
            return Step::Reply(unknown(&name, &arguments));
        };
        if !entry.takes(arguments.len() + 1) {
            self.break_queue();
            return Step::Reply(wrong_count(entry.name));
        }
        if let Some(refusal) = self.who.refusal(entry, &arguments) {
            self.break_queue();
            return Step::Reply(refusal);
        }
        match (entry.name, &arguments[..]) {
            ("multi", _) if self.queue.is_some() => {
                Step::Reply(error("ERR MULTI calls can not be nested"))
            }
            ("multi", _) => {
                self.queue = Some(Queue::default());
                Step::Reply(Reply::OK)
            }
            ("exec", _) => self.exec(),
            ("discard", _) => self.discard(),
            ("watch", _) if self.queue.is_some() => {
                Step::Reply(error("ERR WATCH inside MULTI is not allowed"))
            }
            ("quit", _) => Step::End(Reply::OK),
            ("reset", _) => self.reset(),
            _ if self.queue.is_some() => self.enqueue(entry, arguments, view),
            _ => self.begin(entry, arguments, view),
        }
    }

    /// Refuses a request that was too large, and of which most is thrown away.
    pub fn refuse_large(&mut self) -> Reply {
        self.break_queue();
        error("ERR the command is too large: a value has 768 KiB at most, and a command 3 MiB")
    }

    /// Has the transaction that has begun refused, if one has.
    pub fn break_queue(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.refuse();
        }
    }

    fn exec(&mut self) -> Step {
        let Some(queue) = self.queue.take() else {
            return Step::Reply(error("ERR EXEC without MULTI"));
        };
        let watched = self.unwatch();
        match queue.tasks() {
            Some(tasks) => Step::Order(Work::Transaction(tasks, watched.into_iter().collect())),
            None => Step::Reply(error(
                "EXECABORT Transaction discarded because of previous errors.",
            )),
        }
    }

    fn discard(&mut self) -> Step {
        self.unwatch();
        Step::Reply(match self.queue.take() {
            Some(_) => Reply::OK,
            None => error("ERR DISCARD without MULTI"),
        })
    }

    fn reset(&mut self) -> Step {
        self.who.reset();
        self.queue = None;
        self.unwatch();
        Step::Reply(Reply::Simple("RESET"))
    }

    fn enqueue(&mut self, entry: &'static Entry, arguments: Vec<Bytes>, view: &View) -> Step {
        if let Some(elsewhere) = self.elsewhere(entry, &arguments, view) {
            self.break_queue();
            return Step::Reply(elsewhere);
        }
        if entry.name == "unwatch" {
            // The watched keys count until the transaction is done.
            return self.queued(Task::Known(Reply::OK));
        }
        if entry.name == "msetnx" {
            // Its conditions would be those of the whole transaction.
            self.break_queue();
            return Step::Reply(error("ERR Command not allowed inside a transaction"));
        }
        let task = match self.begin(entry, arguments, view) {
            Step::Order(Work::One(task)) => task,
            Step::Reply(reply) => Task::Known(reply),
            _ => {
                self.break_queue();
                return Step::Reply(error("ERR Command not allowed inside a transaction"));
            }
        };
        self.queued(task)
    }

    fn queued(&mut self, task: Task) -> Step {
        Step::Reply(match &mut self.queue {
            Some(queue) => queue.push(task),
            None => error("ERR EXEC without MULTI"),
        })
    }

    /// Sends a client that knows where keys are to another process, if they are not here.
    fn elsewhere(&self, entry: &Entry, arguments: &[Bytes], view: &View) -> Option<Reply> {
        let key = entry.keys(arguments).next().filter(|_| self.is_cluster)?;
        let slot = rota_resp::slot::of(key);
        // Each replica answers. If no replica is up, the command waits here for one.
        match view.is_here(slot) {
            true => None,
            false => view.moved(slot).map(Reply::Error),
        }
    }

    fn begin(&mut self, entry: &'static Entry, arguments: Vec<Bytes>, view: &View) -> Step {
        if let Some(elsewhere) = self.elsewhere(entry, &arguments, view) {
            return Step::Reply(elsewhere);
        }
        match (entry.name, &arguments[..]) {
            ("watch", _) if self.watched.len() + arguments.len() > MOST_WATCHED => {
                Step::Reply(error("ERR no more than 10000 keys are watched"))
            }
            ("watch", _) if self.watched_bytes + work::bytes_of(&arguments) > MOST_BATCH_BYTES => {
                Step::Reply(error("ERR no more than 1 MiB of keys is watched"))
            }
            ("watch", _) => Step::Order(Work::Watch(arguments)),
            ("scan", _) => scan(&arguments).map_or_else(Step::Reply, |(at, walk)| match at {
                0 => Step::Order(Work::Walk(walk)),
                at => Step::Walk(at, walk),
            }),
            ("info", _) => Step::Info(arguments),
            ("rota", _) => admin(&arguments),
            ("rota.changes", _) => changes(&arguments).map_or_else(Step::Reply, Step::Changes),
            ("rings", _) => rings::ask(&arguments).map_or_else(Step::Reply, Step::Rings),
            ("hello", _) => said(self.who.hello(&arguments, self.is_cluster)),
            ("auth", _) => said(self.who.auth(&arguments)),
            _ => match self.known(entry.name, &arguments, view) {
                Some(reply) => Step::Reply(reply),
                None => Step::Order(Work::One(Task::Store {
                    name: entry.name,
                    arguments,
                })),
            },
        }
    }

    /// The reply to a command that concerns no key.
    fn known(&mut self, name: &str, arguments: &[Bytes], view: &View) -> Option<Reply> {
        Some(match (name, arguments) {
            ("ping", []) => Reply::Simple("PONG"),
            ("ping" | "echo", [text]) => Reply::Bulk(text.clone()),
            ("ping", _) => wrong_count("ping"),
            ("select", [number_of]) => match number(number_of) {
                Ok(0) => Reply::OK,
                Ok(_) => error("ERR DB index is out of range"),
                Err(_) => error("ERR invalid DB index"),
            },
            ("client", _) => session::client(&mut self.who.identity, arguments),
            ("command", _) => session::command(TABLE, arguments),
            ("config", _) => session::config(arguments),
            ("cluster", _) if !self.is_cluster => {
                error("ERR This instance has cluster support disabled")
            }
            ("cluster", _) => cluster::cluster(view, arguments),
            ("unwatch", _) => {
                self.unwatch();
                Reply::OK
            }
            ("readonly" | "readwrite", _) => {
                self.who.identity.reads_near = name == "readonly";
                Reply::OK
            }
            // An answer tells that a majority of the partition's acceptors has the command: no client has to wait for
            // that.
            ("wait", [wanted, time]) => match (number(wanted), number(time)) {
                (Ok(_), Ok(0..)) => Reply::Integer(view.others() as i64),
                _ => error("ERR timeout is not an integer or out of range"),
            },
            _ => return None,
        })
    }
}

fn said(hello: Hello) -> Step {
    match hello {
        Hello::Reply(reply) => Step::Reply(reply),
        Hello::Login(user, password, welcome) => Step::Login(user, password, welcome),
    }
}
