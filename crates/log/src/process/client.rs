//! One client: its commands are done in their order, and those that change logs are ordered together.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rota_front::{Stream, Wire, now, rings};
use rota_resp::{Limits, Reply};

use super::info::info;
use super::server::Server;
use super::way::OrderError;
use crate::machine::{Answer, Batch, MOST_ENTRY_BYTES, MOST_OPERATIONS, Outcome};
use crate::redis::{Change, Connection, Step, Task};

/// The bytes that are ordered together, at most, unless it is one command that is larger.
const BATCH_BYTES: usize = 32 << 10;
/// The number of commands that are ordered together, at most.
const BATCH_COMMANDS: usize = 512;
/// The bytes of replies at which these leave, though more are to come.
pub(super) const REPLY_BYTES: usize = 256 << 10;

fn limits() -> Limits {
    Limits {
        arguments: 64 << 10,
        argument_bytes: 2 * MOST_ENTRY_BYTES,
        request_bytes: 4 * MOST_ENTRY_BYTES,
    }
}

pub(super) struct Client<'a> {
    pub(super) server: &'a Server,
    pub(super) wire: Wire,
    pub(super) connection: Connection,
    /// The changes that are to be ordered.
    changes: Vec<Change>,
    bytes: usize,
    operations: usize,
}

/// Serves a client until it goes.
pub(super) async fn serve(
    server: Arc<Server>,
    (stream, who): (Stream, SocketAddr),
    number: u64,
) -> io::Result<()> {
    let guests = Arc::clone(&server.guests);
    let is_open = guests.users.now().is_open();
    let mut client = Client {
        server: &server,
        connection: Connection::new(number, is_open, server.others),
        wire: Wire::new(guests, (stream, who), limits()),
        changes: Vec::new(),
        bytes: 0,
        operations: 0,
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
        loop {
            let counted = &self.server.guests.counted;
            let request = match self.wire.requests.next() {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(true),
                Err(error) => {
                    counted.protocol_errors.fetch_add(1, SeqCst);
                    self.flush().await?;
                    self.say(&Reply::Error(format!("ERR {error}")));
                    return Ok(false);
                }
            };
            counted.commands.fetch_add(1, SeqCst);
            let had_logged_in = self.connection.who.has_logged_in();
            if self.connection.who.look(&self.server.guests.users) {
                self.connection.break_queue();
            }
            if request.is_too_large() {
                self.flush().await?;
                let reply = self.connection.refuse_large();
                self.say(&reply);
                continue;
            }
            let step = self.connection.take(request.into_arguments());
            if !self.step(step).await? {
                return Ok(false);
            }
            let has_logged_in = self.connection.who.has_logged_in();
            if had_logged_in != has_logged_in {
                // The client has to prove again who it is, or need not any more.
                self.wire.log_in(has_logged_in);
            }
            self.make_room().await?;
        }
    }

    /// Does a step. `false`: the connection ends.
    async fn step(&mut self, step: Step) -> io::Result<bool> {
        if let Step::Change(change) = step {
            self.order(change).await?;
            return Ok(true);
        }
        // Replies have the order of the commands.
        self.flush().await?;
        match step {
            Step::Change(_) => {}
            Step::Reply(reply) => self.say(&reply),
            Step::End(reply) => {
                self.say(&reply);
                return Ok(false);
            }
            Step::Login(user, password, welcome) => {
                let reply = self.log_in((&user, &password), welcome);
                self.say(&reply);
            }
            Step::Transaction(tasks) => self.transaction(tasks).await,
            Step::Read(read) => self.read(&read).await?,
            Step::Rings(ask) => {
                let orders = &self.server.way.orders;
                let (of, lookout) = (orders.clone(), self.server.source.lookout.clone());
                let looks = (move || of.rings(), move |of| lookout.look(of));
                let order = |ring, command| orders.order(ring, command);
                let reply = rings::answer(ask, looks, order).await;
                self.say(&reply);
            }
            Step::Info(sections) => {
                let text = info(self.server, &sections);
                self.say(&Reply::Text(text));
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

    pub(super) fn say(&mut self, reply: &Reply) {
        reply.write(self.connection.who.version(), &mut self.wire.out);
    }

    /// Sends replies, if there are many, before there are more.
    pub(super) async fn make_room(&mut self) -> io::Result<()> {
        match self.wire.out.len() >= REPLY_BYTES {
            true => self.write().await,
            false => Ok(()),
        }
    }

    async fn write(&mut self) -> io::Result<()> {
        let kept = self.connection.bytes();
        self.wire.write(kept).await
    }

    async fn order(&mut self, change: Change) -> io::Result<()> {
        let (bytes, count) = (change.bytes(), change.count());
        let is_full = self.changes.len() >= BATCH_COMMANDS
            || self.bytes + bytes > BATCH_BYTES
            || self.operations + count > MOST_OPERATIONS;
        if is_full {
            self.flush().await?;
        }
        self.changes.push(change);
        self.bytes += bytes;
        self.operations += count;
        Ok(())
    }

    /// Has the waiting changes ordered, and answers them.
    async fn flush(&mut self) -> io::Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.changes);
        (self.bytes, self.operations) = (0, 0);
        let all: Vec<&Change> = changes.iter().collect();
        match self.done(&all, false).await {
            Ok(Answer::Outcomes(outcomes)) => {
                for (change, outcomes) in dealt(&changes, &outcomes) {
                    self.say(&change.reply(outcomes));
                }
            }
            Ok(Answer::Refused(..) | Answer::Unreadable) => {
                self.say_all(changes.len(), OrderError::Unreadable);
            }
            Err(error) => self.say_all(changes.len(), error),
        }
        self.make_room().await
    }

    fn say_all(&mut self, count: usize, error: OrderError) {
        let reply = Reply::Error(error.to_string());
        (0..count).for_each(|_| self.say(&reply));
    }

    async fn done(&self, changes: &[&Change], is_atomic: bool) -> Result<Answer, OrderError> {
        let batch = Batch {
            stamp: now(),
            is_atomic,
            operations: changes
                .iter()
                .flat_map(|change| change.operations())
                .collect(),
        };
        self.server.batches.fetch_add(1, SeqCst);
        let log = changes.first().map_or(&[][..], |change| change.log());
        let grows = changes.iter().any(|change| change.grows());
        let said = self.server.way.order(&batch, log, grows).await;
        if said == Err(OrderError::Unknown) {
            self.server.unknown.fetch_add(1, SeqCst);
        }
        said
    }

    /// Has a transaction ordered: all of it is done, or nothing.
    async fn transaction(&mut self, tasks: Vec<Task>) {
        let changes: Vec<&Change> = tasks.iter().filter_map(change_of).collect();
        let outcomes = match changes.is_empty() {
            true => Ok(Answer::Outcomes(Vec::new())),
            false => self.done(&changes, true).await,
        };
        let reply = match outcomes {
            Ok(Answer::Outcomes(outcomes)) => {
                let mut left = &outcomes[..];
                let replies = tasks.iter().map(|task| match task {
                    Task::Known(reply) => reply.clone(),
                    Task::Change(change) => {
                        let (own, rest) = left.split_at(change.count().min(left.len()));
                        left = rest;
                        change.reply(own)
                    }
                });
                Reply::Array(replies.collect())
            }
            Ok(Answer::Refused(which, fault)) => refused(&changes, which, fault),
            Ok(Answer::Unreadable) => Reply::Error(OrderError::Unreadable.to_string()),
            Err(error) => Reply::Error(error.to_string()),
        };
        self.say(&reply);
    }
}

fn change_of(task: &Task) -> Option<&Change> {
    match task {
        Task::Change(change) => Some(change),
        Task::Known(_) => None,
    }
}

/// Each change with the outcomes of its operations.
fn dealt<'a>(
    changes: &'a [Change],
    mut outcomes: &'a [Outcome],
) -> impl Iterator<Item = (&'a Change, &'a [Outcome])> {
    changes.iter().map(move |change| {
        let (own, rest) = outcomes.split_at(change.count().min(outcomes.len()));
        outcomes = rest;
        (change, own)
    })
}

/// The reply to a transaction of which nothing was done, since this operation cannot be.
fn refused(changes: &[&Change], which: u32, fault: crate::machine::Fault) -> Reply {
    let mut operations = 0;
    let mut all = changes.iter().enumerate();
    let found = all.find(|(_, change)| {
        operations += change.count();
        operations > which as usize
    });
    match found {
        Some((at, change)) => match change.refused(fault) {
            Reply::Error(why) => Reply::Error(format!(
                "EXECABORT Transaction discarded: nothing was done, since command {} cannot be: {why}",
                at + 1
            )),
            other => other,
        },
        None => Reply::Error(OrderError::Unreadable.to_string()),
    }
}
