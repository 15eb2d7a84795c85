//! One client: whatever it has sent is ordered together, and answered in its order.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rota_resp::{Limits, Reply, Requests, Version};
use tokio::time::{Instant, timeout};

use super::gateway::OrderError;
use super::held::Share;
use super::info::info;
use super::listen::Server;
use super::now;
use super::sealed::Stream;
use crate::redis::{Connection, Done, Step, Walk, Work, assemble, done, shown};
use crate::store::{Batch, MOST_VALUE_BYTES, Outcome};

/// Whoever has to say who it is has so long to do so.
const LOGIN: Duration = Duration::from_secs(10);
/// So much is ordered together, if it is not one command that is larger.
const BATCH_BYTES: usize = 32 << 10;
/// So many commands are.
const BATCH_COMMANDS: usize = 128;
/// Room for replies that a client keeps while it says nothing.
const KEPT_BYTES: usize = 16 << 10;
/// So many replies may wait for one that is not known.
const MOST_ITEMS: usize = 512;
/// So much is told at once, and has to be taken in so long a time; sooner where all clients together keep too much.
const PART_BYTES: usize = 64 << 10;
const TAKES: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(1);
/// Replies leave when they are so many bytes, though more are to come.
const REPLY_BYTES: usize = 256 << 10;

fn limits() -> Limits {
    Limits {
        arguments: 64 << 10,
        argument_bytes: 2 * MOST_VALUE_BYTES,
        request_bytes: 4 * MOST_VALUE_BYTES,
    }
}

/// What is answered, in the order of what was asked.
enum Item {
    Known(Reply, Version),
    Ordered(Version),
}

struct Client<'a> {
    server: &'a Server,
    stream: Stream,
    who: SocketAddr,
    began: Instant,
    connection: Connection,
    is_cluster: bool,
    /// To be ordered.
    works: Vec<Work>,
    /// It was content with what the replica here has when it asked for these.
    reads_near: bool,
    bytes: usize,
    items: Vec<Item>,
    /// What is answered and not to be told yet takes so many bytes.
    answered: usize,
    /// To be told.
    out: Vec<u8>,
    share: Share,
}

/// Until it goes.
pub(super) async fn serve(
    server: &Server,
    (stream, who): (Stream, SocketAddr),
    is_cluster: bool,
) -> io::Result<()> {
    let id = server.connections.fetch_add(1, SeqCst) + 1;
    let mut client = Client {
        server,
        stream,
        who,
        began: Instant::now(),
        connection: Connection::new(id, is_cluster, server.users.is_open()),
        is_cluster,
        works: Vec::new(),
        reads_near: false,
        bytes: 0,
        items: Vec::new(),
        answered: 0,
        out: Vec::new(),
        share: server.held.share(),
    };
    let mut requests = match server.users.is_open() {
        true => Requests::new(limits()),
        false => Requests::before_login(limits()),
    };
    loop {
        let is_on = client.take_all(&mut requests).await?;
        client.flush().await?;
        client.write().await?;
        if !is_on || client.has_too_much(&requests).await || !client.read(&mut requests).await? {
            return Ok(());
        }
    }
}

impl Client<'_> {
    /// `false`: it has ended.
    async fn read(&mut self, requests: &mut Requests) -> io::Result<bool> {
        if self.connection.has_logged_in() {
            return Ok(self.stream.read(requests).await? > 0);
        }
        // Whoever does not say who it is keeps no place from others.
        let left = LOGIN.saturating_sub(self.began.elapsed());
        if !left.is_zero()
            && let Ok(read) = timeout(left, self.stream.read(requests)).await
        {
            return Ok(read? > 0);
        }
        let what = "it has not said who it is in time";
        self.server.turn_away(self.who, &what);
        Ok(false)
    }

    /// All that has come. `false`: the connection ends.
    async fn take_all(&mut self, requests: &mut Requests) -> io::Result<bool> {
        let view = self.server.view();
        loop {
            let request = match requests.next() {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(true),
                Err(error) => {
                    self.server.protocol_errors.fetch_add(1, SeqCst);
                    self.say(Reply::Error(format!("ERR {error}")));
                    return Ok(false);
                }
            };
            self.server.commands.fetch_add(1, SeqCst);
            self.make_room().await?;
            let had_logged_in = self.connection.has_logged_in();
            if request.is_too_large() {
                let reply = self.connection.refuse_large();
                self.say(reply);
                continue;
            }
            match self.connection.take(request.into_arguments(), &view) {
                Step::Reply(reply) => self.say(reply),
                Step::End(reply) => {
                    self.say(reply);
                    return Ok(false);
                }
                Step::Login(user, password, welcome) => {
                    let reply = self.log_in((&user, &password), welcome, requests);
                    self.say(reply);
                }
                Step::Order(work) => self.order(work).await?,
                Step::Walk(at, walk) => {
                    let from = self.server.walks.of(at);
                    self.order(Work::Walk(Walk { from, ..walk })).await?;
                }
                Step::Map => self.say(shown(&self.server.gateway.maps.now())),
                Step::Move(slots, to) => {
                    self.flush().await?;
                    let moved = self.server.gateway.move_slots(&slots, to).await;
                    let moved = moved.map(|report| report.reply());
                    self.say(moved.unwrap_or_else(|error| Reply::Error(format!("ERR {error}"))));
                }
                Step::Info(sections) => {
                    let text = info(self.server, &sections, self.is_cluster);
                    self.say(Reply::Text(text));
                }
            }
            if had_logged_in && !self.connection.has_logged_in() {
                // It has to say again who it is.
                self.began = Instant::now();
                requests.log_in(false);
            }
        }
    }

    /// It keeps too much where all do: it is told so, and ends.
    async fn has_too_much(&mut self, requests: &Requests) -> bool {
        let own = requests.waiting_bytes() + self.connection.bytes();
        self.share.set(own + self.out.capacity());
        let is_too_much = self.share.is_too_much();
        if is_too_much {
            self.say(Reply::error(
                "ERR clients have sent more than is kept of what is not whole yet",
            ));
            let _ = self.write().await;
        }
        is_too_much
    }

    /// What is told to who has said who it is.
    fn log_in(
        &mut self,
        (user, password): (&[u8], &[u8]),
        welcome: Reply,
        requests: &mut Requests,
    ) -> Reply {
        if self.server.users.is_open() && user == b"default" {
            return welcome;
        }
        let Some(user) = self.server.users.login(user, password) else {
            let what = "no user has this name and this password";
            self.server.turn_away(self.who, &what);
            let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
            self.connection.refuse_login();
            return Reply::error(wrong);
        };
        self.connection.log_in(user);
        requests.log_in(true);
        welcome
    }

    /// Many commands that have come at once are answered in parts.
    async fn make_room(&mut self) -> io::Result<()> {
        if self.items.len() >= MOST_ITEMS {
            self.flush().await?;
        }
        match self.out.len() >= REPLY_BYTES {
            true => self.write().await,
            false => Ok(()),
        }
    }

    fn say(&mut self, reply: Reply) {
        let version = self.connection.version();
        match self.works.is_empty() {
            true => reply.write(version, &mut self.out),
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
        self.items.push(Item::Ordered(self.connection.version()));
        match is_free {
            true => Ok(()),
            // What it is answered may change what the next one means.
            false => self.flush().await,
        }
    }

    /// Has ordered what is to be ordered, and answers that.
    async fn flush(&mut self) -> io::Result<()> {
        if self.works.is_empty() {
            return Ok(());
        }
        let works = std::mem::take(&mut self.works);
        self.bytes = 0;
        // Who knows a cluster asks each of its servers for its own keys.
        let of = self.is_cluster.then_some(self.server.gateway.own);
        let (mut batch, answering) = assemble(&works, now(), of);
        let done = match self.outcomes(&mut batch).await {
            Ok(outcomes) => done(&works, answering, outcomes),
            Err(error) => {
                if matches!(error, OrderError::Unknown(_)) {
                    self.server.unknown.fetch_add(1, SeqCst);
                }
                let failed = Done::Reply(Reply::Error(error.to_string()));
                vec![failed; works.len()]
            }
        };
        let mut done = done.into_iter();
        for item in std::mem::take(&mut self.items) {
            match item {
                Item::Known(reply, version) => reply.write(version, &mut self.out),
                Item::Ordered(version) => {
                    let reply = done.next().map_or(Reply::Null, |done| self.reply(done));
                    reply.write(version, &mut self.out);
                }
            }
            if self.out.len() >= REPLY_BYTES {
                self.answered = done.as_slice().iter().map(Done::bytes).sum();
                self.write().await?;
            }
        }
        self.answered = 0;
        Ok(())
    }

    async fn outcomes(
        &self,
        batch: &mut Batch<'_>,
    ) -> Result<Option<Vec<Vec<Outcome>>>, OrderError> {
        if batch.is_empty() {
            return Ok(Some(Vec::new()));
        }
        if self.reads_near
            && let Some(outcomes) = self.server.gateway.look(batch)
        {
            return Ok(Some(outcomes));
        }
        self.server.batches.fetch_add(1, SeqCst);
        self.server.gateway.order(batch).await
    }

    fn reply(&mut self, done: Done) -> Reply {
        match done {
            Done::Reply(reply) => reply,
            Done::Watched(keys) => {
                self.connection.on_watched(keys);
                Reply::OK
            }
            Done::Walked(keys, next) => {
                let at = next.map_or(0, |next| self.server.walks.keep(next));
                let keys = keys.into_iter().map(Reply::Bulk).collect();
                Reply::Array(vec![Reply::from(at.to_string()), Reply::Array(keys)])
            }
        }
    }

    async fn write(&mut self) -> io::Result<()> {
        let kept = self.out.len() + self.answered + self.connection.bytes();
        self.share.set(kept);
        for part in self.out.chunks(PART_BYTES) {
            // Whoever takes nothing for long is gone, or keeps memory from others.
            let patience = match self.share.is_too_much() {
                true => SOON,
                false if self.connection.has_logged_in() => TAKES,
                false => LOGIN,
            };
            let written = timeout(patience, self.stream.write(part)).await;
            written.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        }
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        Ok(())
    }
}
