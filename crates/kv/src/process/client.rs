//! One client: the commands that it has sent are ordered together, and answered in their order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rota_front::{Stream, Wire, rings};
use rota_resp::{Limits, Reply, Version};

use super::info::info;
use super::listen::Server;
use super::pipeline::Pipeline;
use crate::redis::{Connection, Done, Step, Walk, Work, shown};
use crate::store::MOST_VALUE_BYTES;

/// The bytes that are ordered together, at most, unless it is one command that is larger.
const BATCH_BYTES: usize = 32 << 10;
/// The number of commands that are ordered together, at most.
const BATCH_COMMANDS: usize = 128;
/// The number of replies that may wait for one that is not known.
const MOST_ITEMS: usize = 512;
/// The bytes of replies at which these leave, though more are to come.
const REPLY_BYTES: usize = 256 << 10;
/// The reply to who walks on from a place that this process does not know.
const UNKNOWN_WALK: &str =
    "ERR invalid cursor: this process has not given it, or has forgotten it; begin with 0 again";

fn limits() -> Limits {
    Limits {
        arguments: 64 << 10,
        argument_bytes: 2 * MOST_VALUE_BYTES,
        request_bytes: 4 * MOST_VALUE_BYTES,
    }
}

/// A reply, in the order of the commands.
enum Item {
    Known(Reply, Version),
    Ordered(Version),
}

pub(super) struct Client<'a> {
    pub(super) server: &'a Server,
    pub(super) wire: Wire,
    pub(super) connection: Connection,
    is_cluster: bool,
    /// The work that is to be ordered.
    works: Vec<Work>,
    /// The client was content with the state of the replica here when it asked for this work.
    reads_near: bool,
    bytes: usize,
    items: Vec<Item>,
    /// The bytes of answers that are known and not written yet.
    answered: usize,
    /// The number of the place from which a walk goes on that is being answered; 0: the beginning.
    walks_from: u64,
}

/// Serves a client until it goes.
pub(super) async fn serve(
    server: Arc<Server>,
    (stream, who): (Stream, SocketAddr),
    (number, is_cluster): (u64, bool),
) -> io::Result<()> {
    let guests = Arc::clone(&server.guests);
    let mut client = Client {
        server: &server,
        connection: Connection::new(number, is_cluster, guests.users.now().is_open()),
        wire: Wire::new(guests, (stream, who), limits()),
        is_cluster,
        works: Vec::new(),
        reads_near: false,
        bytes: 0,
        items: Vec::new(),
        answered: 0,
        walks_from: 0,
    };
    loop {
        let is_on = client.take_all().await?;
        client.flush().await?;
        client.write().await?;
        let kept = client.connection.bytes();
        if !is_on || client.wire.has_too_much(kept).await || !client.wire.read().await? {
            return Ok(());
        }
    }
}

impl Client<'_> {
    /// Takes all requests that have come. `false`: the connection ends.
    async fn take_all(&mut self) -> io::Result<bool> {
        let view = self.server.view();
        loop {
            let request = match self.wire.requests.next() {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(true),
                Err(error) => {
                    self.server
                        .guests
                        .counted
                        .protocol_errors
                        .fetch_add(1, SeqCst);
                    self.say(Reply::Error(format!("ERR {error}")));
                    return Ok(false);
                }
            };
            self.server.guests.counted.commands.fetch_add(1, SeqCst);
            self.make_room().await?;
            let had_logged_in = self.connection.who.has_logged_in();
            if self.connection.who.look(&self.server.guests.users) {
                self.connection.break_queue();
            }
            if request.is_too_large() {
                let reply = self.connection.refuse_large();
                self.say(reply);
                continue;
            }
            let step = self.connection.take(request.into_arguments(), &view);
            if !self.step(step).await? {
                return Ok(false);
            }
            let has_logged_in = self.connection.who.has_logged_in();
            if had_logged_in != has_logged_in {
                // The client has to prove again who it is, or need not any more.
                self.wire.log_in(has_logged_in);
            }
        }
    }

    /// Does a step. `false`: the connection ends.
    async fn step(&mut self, step: Step) -> io::Result<bool> {
        match step {
            Step::Reply(reply) => self.say(reply),
            Step::End(reply) => {
                self.say(reply);
                return Ok(false);
            }
            Step::Login(user, password, welcome) => {
                let reply = self.log_in((&user, &password), welcome);
                self.say(reply);
            }
            Step::Order(work) => self.order(work).await?,
            Step::Walk(at, walk) => {
                let Some(from) = self.server.walks.of(at) else {
                    self.say(Reply::error(UNKNOWN_WALK));
                    return Ok(true);
                };
                self.walks_from = at;
                self.order(Work::Walk(Walk { from, ..walk })).await?;
                self.walks_from = 0;
            }
            Step::Map => self.say(shown(&self.server.gateway.maps.now())),
            Step::Move(slots, to) => {
                self.flush().await?;
                let gateway = &self.server.gateway;
                let moved = gateway.carrier.move_slots(gateway, &slots, to).await;
                let moved = moved.map(|report| report.reply());
                self.say(moved.unwrap_or_else(|error| Reply::Error(format!("ERR {error}"))));
            }
            Step::Rings(ask) => {
                self.flush().await?;
                let orders = &self.server.gateway.orders;
                let (of, lookout) = (orders.clone(), self.server.lookout.clone());
                let looks = (move || of.rings(), move |of| lookout.look(of));
                let order = |ring, command| orders.order(ring, command);
                let reply = rings::answer(ask, looks, order).await;
                self.say(reply);
            }
            Step::Changes(asked) => {
                self.flush().await?;
                let reply = self.watch(&asked).await?;
                self.say(reply);
            }
            Step::Info(sections) => {
                let text = info(self.server, &sections, self.is_cluster);
                self.say(Reply::Text(text));
            }
        }
        Ok(true)
    }

    /// The reply to a client that claims to be a user.
    fn log_in(&mut self, login: (&[u8], &[u8]), welcome: Reply) -> Reply {
        let guests = &self.server.guests;
        let turn_away = |what| guests.turn_away(self.wire.who(), &what);
        let who = &mut self.connection.who;
        let reply = who.login(&guests.users.now(), login, welcome, turn_away);
        self.wire.log_in(who.has_logged_in());
        reply
    }

    /// Answers many commands that have come at once in parts.
    async fn make_room(&mut self) -> io::Result<()> {
        if self.items.len() >= MOST_ITEMS {
            self.flush().await?;
        }
        match self.wire.out.len() >= REPLY_BYTES {
            true => self.write().await,
            false => Ok(()),
        }
    }

    fn say(&mut self, reply: Reply) {
        let version = self.connection.who.version();
        match self.works.is_empty() {
            true => reply.write(version, &mut self.wire.out),
            false => self.items.push(Item::Known(reply, version)),
        }
    }

    async fn order(&mut self, work: Work) -> io::Result<()> {
        let (is_free, bytes) = (work.is_free(), work.bytes());
        let is_full = self.works.len() >= BATCH_COMMANDS || self.bytes + bytes > BATCH_BYTES;
        if !is_free || is_full || self.reads_near != self.connection.reads_near() {
            self.flush().await?;
        }
        self.reads_near = self.connection.reads_near();
        self.works.push(work);
        self.bytes += bytes;
        self.items
            .push(Item::Ordered(self.connection.who.version()));
        match is_free {
            true => Ok(()),
            // The answer may change the meaning of the next command.
            false => self.flush().await,
        }
    }

    /// Has the waiting work ordered, and answers it.
    async fn flush(&mut self) -> io::Result<()> {
        if self.works.is_empty() {
            return Ok(());
        }
        let works = std::mem::take(&mut self.works);
        self.bytes = 0;
        // A client that knows a cluster asks each of its processes for its own keys.
        let of = self.is_cluster.then_some(self.server.gateway.own);
        let pipeline = Pipeline {
            server: self.server,
            works: &works,
            reads_near: self.reads_near,
            of,
        };
        let done = pipeline.answers().await;
        let mut done = done.into_iter();
        for item in std::mem::take(&mut self.items) {
            match item {
                Item::Known(reply, version) => reply.write(version, &mut self.wire.out),
                Item::Ordered(version) => {
                    let reply = done.next().map_or(Reply::Null, |done| self.reply(done));
                    reply.write(version, &mut self.wire.out);
                }
            }
            if self.wire.out.len() >= REPLY_BYTES {
                self.answered = done.as_slice().iter().map(Done::bytes).sum();
                self.write().await?;
            }
        }
        self.answered = 0;
        Ok(())
    }

    fn reply(&mut self, done: Done) -> Reply {
        match done {
            Done::Reply(reply) => reply,
            Done::Watched(keys) => {
                self.connection.on_watched(keys);
                Reply::OK
            }
            Done::Walked(keys, next) => {
                let at = next.map_or(0, |next| self.server.walks.keep(self.walks_from, next));
                let keys = keys.into_iter().map(Reply::Bulk).collect();
                Reply::Array(vec![Reply::from(at.to_string()), Reply::Array(keys)])
            }
        }
    }

    async fn write(&mut self) -> io::Result<()> {
        let kept = self.answered + self.connection.bytes();
        self.wire.write(kept).await
    }
}
