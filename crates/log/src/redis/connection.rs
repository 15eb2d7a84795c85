//! A client's connection: its state so far, and the next step for it.

use bytes::Bytes;
use rota_front::command::{Entry, error, is, number, syntax, unknown, wrong_count};
use rota_front::{Hello, Who, rings, session};
use rota_resp::Reply;

use super::change::Change;
use super::parse;
use super::read::{Names, Read};
use super::table::{TABLE, find};
use crate::machine::{MOST_BATCH_BYTES, MOST_OPERATIONS};

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
    Change(Change),
    /// Order all of this, to be done as a whole or not at all.
    Transaction(Vec<Task>),
    /// Read this.
    Read(Read),
    /// Reply with the state of the process: these sections, or all.
    Info(Vec<Bytes>),
    /// Show the rings, or order something about what they keep.
    Rings(rings::Ask),
}

/// A command of a transaction.
#[derive(Clone, PartialEq, Debug)]
pub enum Task {
    /// The command is ordered.
    Change(Change),
    /// Its reply is known.
    Known(Reply),
}

/// A transaction that has begun.
#[derive(Debug, Default)]
struct Queue {
    tasks: Vec<Task>,
    bytes: usize,
    operations: usize,
    /// A command was refused: no command of the transaction is done.
    is_broken: bool,
}

/// The state of a client's connection.
#[derive(Debug)]
pub struct Connection {
    /// The client.
    pub who: Who,
    queue: Option<Queue>,
    /// The number of other processes that have all logs.
    others: usize,
}

impl Connection {
    /// A connection that begins. `is_open`: no client has to prove who it is. `others`: the number of other processes
    /// that have all logs.
    pub fn new(id: u64, is_open: bool, others: usize) -> Self {
        Self {
            who: Who::new(id, is_open),
            queue: None,
            others,
        }
    }

    /// The bytes that the connection keeps.
    pub fn bytes(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.bytes)
    }

    /// Refuses a request that was too large, and of which most was thrown away.
    pub fn refuse_large(&mut self) -> Reply {
        self.break_queue();
        error("ERR the command is too large: an entry has 768 KiB at most, and a command 3 MiB")
    }

    /// Has the transaction that has begun refused, if one has.
    pub fn break_queue(&mut self) {
        if let Some(queue) = &mut self.queue {
            *queue = Queue {
                is_broken: true,
                ..Queue::default()
            };
        }
    }

    /// The step for a request.
    pub fn take(&mut self, request: Vec<Bytes>) -> Step {
        let mut arguments = request.into_iter();
        let name = arguments.next().unwrap_or_default();
        let arguments: Vec<Bytes> = arguments.collect();
        if is(&name, "POST") || is(&name, "HOST:") {
            // A browser was led here: its body would be taken for commands.
            return Step::End(error("ERR this is not HTTP"));
        }
        if let (Some(foreign), Some(key)) = (parse::foreign(&name), arguments.first())
            && self.look_up(b"type", std::slice::from_ref(key)).is_ok()
            && self.queue.is_none()
        {
            return Step::Read(Read::Foreign(foreign, key.clone()));
        }
        match self.look_up(&name, &arguments) {
            Ok(entry) => self.begin(entry, arguments),
            Err(refusal) => {
                self.break_queue();
                Step::Reply(refusal)
            }
        }
    }

    fn look_up(&self, name: &[u8], arguments: &[Bytes]) -> Result<&'static Entry, Reply> {
        let none = || match parse::missing(name) {
            Some(why) => error(why),
            None => unknown(name, arguments),
        };
        let entry = find(name).ok_or_else(none)?;
        if !entry.takes(arguments.len() + 1) {
            return Err(wrong_count(entry.name));
        }
        if let Some(refusal) = self.who.refusal(entry, arguments) {
            return Err(refusal);
        }
        // The logs of these commands stand behind a word.
        if matches!(entry.name, "xread" | "xmerge")
            && let Ok(read) = parse::streams(arguments, entry.name)
        {
            let logs: Vec<Bytes> = read.logs().into_iter().cloned().collect();
            let named = find(b"exists").and_then(|entry| self.who.refusal(entry, &logs));
            return named.map_or(Ok(entry), Err);
        }
        Ok(entry)
    }

    fn begin(&mut self, entry: &'static Entry, arguments: Vec<Bytes>) -> Step {
        match entry.name {
            "multi" if self.queue.is_some() => {
                Step::Reply(error("ERR MULTI calls can not be nested"))
            }
            "multi" => {
                self.queue = Some(Queue::default());
                Step::Reply(Reply::OK)
            }
            "exec" => self.exec(),
            "discard" => Step::Reply(match self.queue.take() {
                Some(_) => Reply::OK,
                None => error("ERR DISCARD without MULTI"),
            }),
            "quit" => Step::End(Reply::OK),
            "reset" => {
                self.who.reset();
                self.queue = None;
                Step::Reply(Reply::Simple("RESET"))
            }
            _ if self.queue.is_some() => Step::Reply(self.enqueue(entry, &arguments)),
            _ => self.step(entry, arguments),
        }
    }

    fn exec(&mut self) -> Step {
        match self.queue.take() {
            None => Step::Reply(error("ERR EXEC without MULTI")),
            Some(queue) if queue.is_broken => Step::Reply(error(
                "EXECABORT Transaction discarded because of previous errors.",
            )),
            Some(queue) => Step::Transaction(queue.tasks),
        }
    }

    fn enqueue(&mut self, entry: &'static Entry, arguments: &[Bytes]) -> Reply {
        let task = match self.step(entry, arguments.to_vec()) {
            Step::Change(change) => Task::Change(change),
            Step::Reply(reply) if !reply.is_error() => Task::Known(reply),
            Step::Reply(refusal) => {
                self.break_queue();
                return refusal;
            }
            _ => {
                self.break_queue();
                return error(
                    "ERR Command not allowed inside a transaction: entries are appended together, and read before or behind",
                );
            }
        };
        let Some(queue) = &mut self.queue else {
            return error("ERR EXEC without MULTI");
        };
        if queue.is_broken {
            return Reply::Simple("QUEUED");
        }
        match &task {
            Task::Change(change) => {
                queue.bytes += change.bytes();
                queue.operations += change.count();
            }
            Task::Known(reply) => queue.bytes += reply.memory_bytes(),
        }
        let is_long = queue.operations > MOST_OPERATIONS || queue.tasks.len() >= MOST_OPERATIONS;
        if is_long || queue.bytes > MOST_BATCH_BYTES {
            self.break_queue();
            return error("ERR a transaction has no more than 4096 commands, and 1 MiB");
        }
        queue.tasks.push(task);
        Reply::Simple("QUEUED")
    }

    fn step(&mut self, entry: &'static Entry, arguments: Vec<Bytes>) -> Step {
        let read = |read: Result<Read, Reply>| read.map_or_else(Step::Reply, Step::Read);
        let change = |change: Result<Change, Reply>| change.map_or_else(Step::Reply, Step::Change);
        let one = || arguments.first().cloned().unwrap_or_default();
        match entry.name {
            "xadd" => change(parse::add(&arguments)),
            "xtrim" => change(parse::trim(&arguments)),
            "del" | "unlink" => match arguments.len() <= MOST_OPERATIONS {
                true => Step::Change(Change::Delete(arguments)),
                false => Step::Reply(error("ERR no more than 4096 logs at once")),
            },
            "rota" => match parse::rota(&arguments) {
                Ok(Ok(change)) => Step::Change(change),
                Ok(Err(read)) => Step::Read(read),
                Err(refusal) => Step::Reply(refusal),
            },
            "xrange" => read(parse::range(&arguments, false)),
            "xrevrange" => read(parse::range(&arguments, true)),
            "xread" | "xmerge" => read(parse::streams(&arguments, entry.name)),
            "xinfo" => read(parse::info(&arguments)),
            "xlen" => Step::Read(Read::Length(one())),
            "type" => Step::Read(Read::Type(one())),
            "exists" => Step::Read(Read::Exist(arguments)),
            "dbsize" => Step::Read(Read::Size),
            "scan" => read(parse::scan(&arguments)),
            "keys" => Step::Read(Read::Names(Names {
                cursor: 0,
                count: None,
                pattern: Some(one()),
                kind: None,
            })),
            "info" => Step::Info(arguments),
            "rings" => rings::ask(&arguments).map_or_else(Step::Reply, Step::Rings),
            "hello" => said(self.who.hello(&arguments, false)),
            "auth" => said(self.who.auth(&arguments)),
            name => Step::Reply(self.known(name, &arguments)),
        }
    }

    /// The reply to a command that concerns no log.
    fn known(&mut self, name: &str, arguments: &[Bytes]) -> Reply {
        match (name, arguments) {
            ("ping", []) => Reply::Simple("PONG"),
            ("ping" | "echo", [text]) => Reply::Bulk(text.clone()),
            ("select", [number_of]) => match number(number_of) {
                Ok(0) => Reply::OK,
                Ok(_) => error("ERR DB index is out of range"),
                Err(_) => error("ERR invalid DB index"),
            },
            ("client", _) => session::client(&mut self.who.identity, arguments),
            ("command", _) => session::command(TABLE, arguments),
            ("config", _) => session::config(arguments),
            ("cluster", _) => error("ERR This instance has cluster support disabled"),
            // An answer tells that a majority of the acceptors has the command: no client has to wait for that.
            ("wait", [wanted, time]) => match (number(wanted), number(time)) {
                (Ok(_), Ok(0..)) => Reply::Integer(self.others as i64),
                _ => error("ERR timeout is not an integer or out of range"),
            },
            ("ping", _) => wrong_count("ping"),
            _ => syntax(),
        }
    }
}

fn said(hello: Hello) -> Step {
    match hello {
        Hello::Reply(reply) => Step::Reply(reply),
        Hello::Login(user, password, welcome) => Step::Login(user, password, welcome),
    }
}
