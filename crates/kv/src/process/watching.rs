//! Watchers: clients that are told what changes, and wait for more.

use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering::SeqCst;

use rota_multiring::Place;
use rota_resp::Reply;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::client::Client;
use super::recent::{News, Waits};
use crate::changes::Part;
use crate::redis::{Behind, Watching, told, trimmed};
use crate::store::Change;

/// The way of a watcher to its reply.
struct Way<'a> {
    asked: &'a Watching,
    /// The watcher has seen everything up to this place that concerns it.
    after: Option<Place>,
    /// There is a reply now, also without changes: the state is as new as any answer that was told before.
    is_last: bool,
    /// The users when the client asked.
    users: u64,
}

/// The next step on it.
enum Next {
    Reply(Reply),
    /// Much was looked at, and there is more.
    Again,
    Wait(Option<Waits>, News),
}

impl Client<'_> {
    /// The changes that a client asks for, when there are some or its time is over.
    pub(super) async fn watch(&mut self, asked: &Watching) -> io::Result<Reply> {
        if let Some(refusal) = self.of_another(asked) {
            return Ok(refusal);
        }
        if !self.server.recent.is_on() {
            let refusal = "ERR this process keeps no changes: its `changes_bytes` is 0";
            return Ok(Reply::error(refusal));
        }
        let until = Instant::now() + asked.block.unwrap_or_default();
        let is_last = asked.block.is_none();
        // A reply without changes needs a state that is as new as any answer, and so does the place of now.
        if (is_last || asked.behind == Behind::Now)
            && let Err(error) = self.server.gateway.catch_up().await
        {
            return Ok(Reply::Error(error.to_string()));
        }
        let mut way = Way {
            asked,
            after: match asked.behind {
                Behind::Place(place) => place,
                Behind::Now => self.server.recent.lock().last(),
            },
            is_last,
            users: self.server.guests.users.number(),
        };
        loop {
            let (waits, news) = match self.look(&mut way) {
                Next::Reply(reply) => return Ok(reply),
                Next::Again => {
                    yield_now().await;
                    continue;
                }
                Next::Wait(waits, news) => (waits, news),
            };
            match self.news(news, until).await? {
                Some(up_to) => way.after = way.after.max(up_to),
                None => {
                    way.is_last = true;
                    if let Err(error) = self.server.gateway.catch_up().await {
                        return Ok(Reply::Error(error.to_string()));
                    }
                }
            }
            drop(waits);
        }
    }

    /// The refusal of a client that takes this process for one of another partition.
    fn of_another(&self, asked: &Watching) -> Option<Reply> {
        let own = self.server.gateway.own;
        let of = asked.partition.filter(|of| *of != own)?;
        Some(Reply::Error(format!(
            "ERR this process has partition {}, and not {}",
            own.0, of.0
        )))
    }

    fn look(&self, way: &mut Way<'_>) -> Next {
        if self.server.guests.users.number() != way.users {
            // What this client may read may be less than when it asked.
            let refusal = Reply::error("UNBLOCKED the users have changed: ask again");
            return Next::Reply(refusal);
        }
        let (recent, desk) = (&self.server.recent, &self.server.gateway.desk);
        let limits = (desk.stable(), way.asked.count);
        let (part, waits) = match recent.read_or_wait(&way.asked.prefix, way.after, limits) {
            Ok(read) => read,
            Err(error) => {
                recent.trimmed.fetch_add(1, SeqCst);
                return Next::Reply(trimmed(error));
            }
        };
        way.after = part.next;
        if !part.told.is_empty() {
            return Next::Reply(self.told(part));
        }
        match (part.waits, waits) {
            (None, None) => Next::Again,
            (None, Some(_)) if let Some(elsewhere) = self.elsewhere(way.asked) => {
                Next::Reply(elsewhere)
            }
            _ if way.is_last => Next::Reply(self.told(part)),
            (None, Some((waits, news))) => Next::Wait(Some(waits), news),
            (behind, _) => {
                let (tell, news) = oneshot::channel();
                desk.tell_when(behind, move || {
                    let _ = tell.send(None);
                });
                Next::Wait(None, news)
            }
        }
    }

    fn told(&self, part: Part) -> Reply {
        let changes = |(_, changes): &(Place, Vec<Change>)| changes.len() as u64;
        let count = part.told.iter().map(changes).sum();
        self.server.recent.told.fetch_add(count, SeqCst);
        told(self.server.gateway.own, part)
    }

    /// Where the slot of all keys that are watched is, if it is not here: all that has changed here was told. A client
    /// that names the partition watches it, whatever slots it has.
    fn elsewhere(&self, asked: &Watching) -> Option<Reply> {
        let (slot, gateway) = (asked.prefix.slot()?, &self.server.gateway);
        if asked.partition.is_some() || gateway.maps.own().of_slot(slot) == gateway.own {
            return None;
        }
        // The view that others use may be from before the move.
        let view = self.server.look();
        let is_known = view.map.of_slot(slot) != gateway.own;
        let moved = view.moved(slot).filter(|_| is_known);
        let later = || "TRYAGAIN its slot has another partition, which does not answer".to_owned();
        Some(Reply::Error(moved.unwrap_or_else(later)))
    }

    /// Waits for news: the place up to which the watcher has seen everything. `None`: its time is over.
    async fn news(&mut self, news: News, until: Instant) -> io::Result<Option<Option<Place>>> {
        let (mut news, mut late) = (pin!(news), pin!(sleep_until(until)));
        loop {
            let kept = self.connection.bytes();
            self.wire.write(kept).await?;
            tokio::select! {
                biased;
                // Nobody knows when what it waits for is stable: it is looked at again.
                news = &mut news => return Ok(Some(news.unwrap_or(None))),
                () = &mut late => return Ok(None),
                read = self.wire.read() => {
                    if !read? || self.wire.has_too_much(kept).await {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                }
            }
        }
    }
}
