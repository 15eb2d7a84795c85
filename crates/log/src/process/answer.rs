//! Replies about logs, beside those with their entries.

use std::io;

use bytes::Bytes;
use rota_front::command::error;
use rota_resp::Reply;

use super::client::Client;
use super::names::names;
use super::parts::Part;
use super::reading::ReadFailed;
use crate::machine::{Log, Logs, Position};
use crate::redis::{Read, id_of};

fn no_key() -> Reply {
    error("ERR no such key")
}

fn pair(name: &str, reply: Reply) -> (Reply, Reply) {
    (Reply::from(name), reply)
}

fn number(number: u64) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn limit(limit: Option<u64>) -> Reply {
    limit.map_or(Reply::Null, number)
}

impl Client<'_> {
    /// Answers a command about logs as they are now.
    pub(super) async fn answer(&mut self, read: &Read) -> io::Result<()> {
        let head = |log: &Bytes| self.server.head(log);
        let reply = match read {
            Read::Length(log) => number(head(log).map_or(0, |head| head.len())),
            Read::Type(log) => Reply::Simple(match head(log) {
                Some(_) => "stream",
                None => "none",
            }),
            Read::Exist(logs) => {
                let heads = self.server.heads(logs.iter());
                number(heads.iter().flatten().count() as u64)
            }
            Read::Size => number(self.server.view.look(Logs::len) as u64),
            Read::Names(wanted) => names(&self.server.view.now(), wanted),
            Read::Foreign(name, log) => match head(log) {
                Some(_) => {
                    error("WRONGTYPE Operation against a key holding the wrong kind of value")
                }
                None => error(&format!(
                    "ERR unknown command '{name}': there are only streams"
                )),
            },
            Read::Groups(log) => match head(log) {
                Some(_) => Reply::Array(Vec::new()),
                None => no_key(),
            },
            Read::About(log) => match head(log) {
                Some(head) => self.about(&head),
                None => no_key(),
            },
            Read::Stream(log, full) => match head(log) {
                Some(head) => return self.stream(&head, *full).await,
                None => no_key(),
            },
            Read::Range { .. } | Read::Streams(_) => no_key(),
        };
        self.say(&reply);
        Ok(())
    }

    fn about(&self, head: &Log) -> Reply {
        let limits = head.limits;
        Reply::Map(vec![
            pair("id", number(head.id)),
            pair("first", Reply::from(id_of(head.first))),
            pair("next", Reply::from(id_of(head.next))),
            pair("length", number(head.len())),
            pair("bytes", number(self.server.store.bytes(head.id))),
            pair("sealed", Reply::Integer(i64::from(head.is_sealed))),
            pair("maxlen", limit(limits.entries)),
            pair("maxbytes", limit(limits.bytes)),
            pair("maxage", limit(limits.millis)),
        ])
    }

    /// An entry in the form for clients, if it is there.
    async fn entry(&self, log: u64, at: Position) -> Result<Vec<u8>, ReadFailed> {
        let run = self.server.entries(log, (at, at + 1)).await?;
        let payload = run.iter().next().map(|record| record.payload.to_vec());
        payload.ok_or(ReadFailed::Nowhere)
    }

    /// Answers `XINFO STREAM`, with the fields that clients know.
    async fn stream(&mut self, head: &Log, full: Option<u64>) -> io::Result<()> {
        let count = if full.is_some() { 9 } else { 10 };
        let version = self.connection.who.version();
        let mut of = Vec::new();
        let last = Reply::from(id_of(head.next - 1));
        let first = Reply::from(id_of(if head.is_empty() { 0 } else { head.first }));
        for (name, reply) in [
            ("length", number(head.len())),
            ("radix-tree-keys", number(head.len().min(1))),
            ("radix-tree-nodes", number(1 + head.len().min(1))),
            ("last-generated-id", last),
            // Trimmed entries were not deleted, in Redis' words.
            ("max-deleted-entry-id", Reply::from(id_of(0))),
            ("entries-added", number(head.next - 1)),
            ("recorded-first-entry-id", first),
        ] {
            of.push((name, reply));
        }
        let kind = match version {
            rota_resp::Version::Resp2 => format!("*{}\r\n", 2 * count),
            rota_resp::Version::Resp3 => format!("%{count}\r\n"),
        };
        self.wire.out.extend_from_slice(kind.as_bytes());
        for (name, reply) in of {
            self.say(&Reply::from(name));
            self.say(&reply);
        }
        let Some(most) = full else {
            self.say(&Reply::from("groups"));
            self.say(&Reply::Integer(0));
            for (name, at) in [("first-entry", head.first), ("last-entry", head.next - 1)] {
                self.say(&Reply::from(name));
                match head.is_empty() {
                    true => self.say(&Reply::Null),
                    false => {
                        let entry = self.entry(head.id, at).await;
                        let entry = entry.map_err(|_| io::Error::other("an entry is gone"))?;
                        self.wire.out.extend_from_slice(&entry);
                    }
                }
            }
            return Ok(());
        };
        let most = if most == 0 { u64::MAX } else { most };
        let told = head.len().min(most);
        self.say(&Reply::from("entries"));
        let line = format!("*{told}\r\n");
        self.wire.out.extend_from_slice(line.as_bytes());
        self.tell(Part {
            log: head.id,
            from: head.first,
            to: head.first + told,
        })
        .await?;
        self.say(&Reply::from("groups"));
        self.say(&Reply::Array(Vec::new()));
        Ok(())
    }
}
