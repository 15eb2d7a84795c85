//! A client's connection: what it has said so far, and what is to be done for it now.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rota_multiring::Place;
use rota_resp::{Reply, Version};

use super::admin::admin;
use super::parse::{error, is, number, syntax, wrong_count};
use super::queue::Queue;
use super::scan::scan;
use super::session::{self, Identity};
use super::table::{Entry, find};
use super::view::View;
use super::work::{Task, Walk, Work};
use super::{cluster, work};
use crate::access::User;
use crate::map::Partition;
use crate::slots::Slots;
use crate::store::MOST_BATCH_BYTES;

/// So many keys are watched at most.
const MOST_WATCHED: usize = 10_000;

/// What is to be done.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// This is told.
    Reply(Reply),
    /// This is told, and then the connection ends.
    End(Reply),
    /// Somebody has said who it is: user and password. What is told if that holds.
    Login(Bytes, Bytes, Reply),
    /// This is ordered, and then told.
    Order(Work),
    /// Where a walk with this number is, has to be known first: then [`Work::Walk`] from there.
    Walk(u64, Walk),
    /// How the process is: these sections, or all.
    Info(Vec<Bytes>),
    /// Which partition has which slots now: [`shown`](super::shown).
    Map,
    /// Slots are to have another partition.
    Move(Slots, Partition),
}

/// See the module's page.
#[derive(Debug)]
pub struct Connection {
    identity: Identity,
    /// It knows where keys are, and is told when it asks in the wrong place.
    is_cluster: bool,
    /// Before it said who it is, which has to be proved.
    before: Option<Identity>,
    is_open: bool,
    has_logged_in: bool,
    /// What it may do; none: everything.
    user: Option<Arc<User>>,
    queue: Option<Queue>,
    watched: BTreeMap<Bytes, Option<Place>>,
    watched_bytes: usize,
}

impl Connection {
    /// One that begins. `is_open`: nobody has to say who it is.
    pub fn new(id: u64, is_cluster: bool, is_open: bool) -> Self {
        Self {
            identity: Identity {
                id,
                ..Identity::default()
            },
            is_cluster,
            before: None,
            is_open,
            has_logged_in: is_open,
            user: None,
            queue: None,
            watched: BTreeMap::new(),
            watched_bytes: 0,
        }
    }

    /// Which protocol it speaks.
    pub const fn version(&self) -> Version {
        self.identity.version
    }

    /// Whether it is content with what the replica here has.
    pub const fn reads_near(&self) -> bool {
        self.identity.reads_near
    }

    /// It has proved who it is.
    pub fn log_in(&mut self, user: Arc<User>) {
        (self.has_logged_in, self.user) = (true, Some(user));
    }

    /// It has not: what it has said of itself with that does not count.
    pub fn refuse_login(&mut self) {
        if let Some(before) = self.before.take() {
            self.identity = before;
        }
    }

    /// Whether it has, or need not.
    pub const fn has_logged_in(&self) -> bool {
        self.has_logged_in
    }

    /// How keys are that it watches.
    pub fn on_watched(&mut self, keys: Vec<(Bytes, Option<Place>)>) {
        for (key, version) in keys {
            self.watched_bytes += work::bytes_of([&key]);
            // What it saw first counts.
            self.watched.entry(key).or_insert(version);
        }
    }

    /// What it keeps here, in bytes.
    pub fn bytes(&self) -> usize {
        let queued = self.queue.as_ref().map_or(0, Queue::bytes);
        queued + self.watched_bytes
    }

    /// Nothing is watched any more.
    fn unwatch(&mut self) -> BTreeMap<Bytes, Option<Place>> {
        self.watched_bytes = 0;
        std::mem::take(&mut self.watched)
    }

    /// What a request asks for.
    pub fn take(&mut self, request: Vec<Bytes>, view: &View) -> Step {
        let mut arguments = request.into_iter();
        let name = arguments.next().unwrap_or_default();
        let arguments: Vec<Bytes> = arguments.collect();
        if is(&name, "POST") || is(&name, "HOST:") {
            // A browser was led here: what follows would be taken for commands.
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
        let is_first = matches!(entry.name, "auth" | "hello" | "quit" | "reset");
        if !self.has_logged_in && !is_first {
            return Step::Reply(error("NOAUTH Authentication required."));
        }
        let user = self.user.as_ref();
        if let Some(refusal) = user.and_then(|user| user.refusal(entry, &arguments)) {
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

    /// A request was too large, and nobody has seen all of it.
    pub fn refuse_large(&mut self) -> Reply {
        self.break_queue();
        error("ERR the command is too large: a value has 768 KiB at most, and a command 3 MiB")
    }

    fn break_queue(&mut self) {
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
        let id = self.identity.id;
        self.identity = Identity {
            id,
            ..Identity::default()
        };
        self.queue = None;
        self.unwatch();
        (self.has_logged_in, self.user) = (self.is_open, None);
        Step::Reply(Reply::Simple("RESET"))
    }

    fn enqueue(&mut self, entry: &'static Entry, arguments: Vec<Bytes>, view: &View) -> Step {
        if let Some(elsewhere) = self.elsewhere(entry, &arguments, view) {
            self.break_queue();
            return Step::Reply(elsewhere);
        }
        if entry.name == "unwatch" {
            // What is watched counts until the transaction is done.
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

    /// Who knows where keys are is told where they are, if not here.
    fn elsewhere(&self, entry: &Entry, arguments: &[Bytes], view: &View) -> Option<Reply> {
        let key = entry.keys(arguments).next().filter(|_| self.is_cluster)?;
        let slot = rota_resp::slot::of(key);
        // Each replica answers. Where none is there, what is asked for here waits for one.
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
            ("hello", _) => self.hello(&arguments),
            ("auth", [_]) if self.is_open => Step::Reply(error(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            )),
            ("auth", [password]) => Step::Login("default".into(), password.clone(), Reply::OK),
            ("auth", [user, password]) => Step::Login(user.clone(), password.clone(), Reply::OK),
            ("auth", _) => Step::Reply(syntax()),
            _ => match self.known(entry.name, &arguments, view) {
                Some(reply) => Step::Reply(reply),
                None => Step::Order(Work::One(Task::Store {
                    name: entry.name,
                    arguments,
                })),
            },
        }
    }

    fn hello(&mut self, arguments: &[Bytes]) -> Step {
        self.before = Some(self.identity.clone());
        let login = session::hello(&mut self.identity, arguments);
        let welcome = session::welcome(&self.identity, self.is_cluster);
        match login {
            Err(reply) => {
                self.refuse_login();
                Step::Reply(reply)
            }
            Ok(Some((user, password))) => Step::Login(user, password, welcome),
            Ok(None) if !self.has_logged_in => {
                self.refuse_login();
                Step::Reply(error(
                    "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                     HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                     select the RESP protocol version at the same time",
                ))
            }
            Ok(None) => Step::Reply(welcome),
        }
    }

    /// What changes no key.
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
            ("client", _) => session::client(&mut self.identity, arguments),
            ("command", _) => session::command(arguments),
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
                self.identity.reads_near = name == "readonly";
                Reply::OK
            }
            // What is answered has a majority of its partition's acceptors already: nobody has to wait for that.
            ("wait", [wanted, time]) => match (number(wanted), number(time)) {
                (Ok(_), Ok(0..)) => Reply::Integer(view.others() as i64),
                _ => error("ERR timeout is not an integer or out of range"),
            },
            _ => return None,
        })
    }
}

fn unknown(name: &[u8], arguments: &[Bytes]) -> Reply {
    let shown = |bytes: &[u8]| {
        let most = bytes.len().min(128);
        String::from_utf8_lossy(&bytes[..most]).into_owned()
    };
    let mut text = format!(
        "ERR unknown command '{}', with args beginning with: ",
        shown(name)
    );
    for argument in arguments.iter().take(8) {
        text += &format!("'{}' ", shown(argument));
    }
    Reply::Error(text)
}
