//! One client: a writer, or one that is told.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rota_resp::Reply;

use super::report::Measured;
use crate::service::connection::Connection;

/// Before somebody connects again.
const PAUSE: Duration = Duration::from_millis(20);
/// An answer takes no longer.
const PATIENCE: Duration = Duration::from_secs(15);

/// The plan of all clients.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of entries at once.
    pub pipeline: usize,
    /// The size of an entry's value, in bytes.
    pub bytes: usize,
    /// The time from one request to the next, whether it is answered or not; none: the next when it is answered.
    pub pause: Option<Duration>,
    /// The time from which on times are counted, and the begin and the end of the measured time.
    pub times: (Instant, Instant, Instant),
}

/// See the module's page.
#[derive(Debug)]
pub struct Client {
    pub plan: Plan,
    pub server: SocketAddr,
    pub log: String,
    pub number: u32,
    pub measured: Rc<RefCell<Measured>>,
}

/// An entry begins with when it was asked for, in nanoseconds.
const STAMP: usize = 16;

impl Client {
    /// Appends until the time is over.
    pub async fn write(self) {
        let (origin, begins, ends) = self.plan.times;
        let mut connection = None;
        // Clients do not ask all at the same time.
        let part = f64::from(self.number % 64) / 64.0;
        let mut due = Instant::now() + self.plan.pause.unwrap_or_default().mul_f64(part);
        loop {
            let began = match self.plan.pause {
                Some(_) => {
                    tokio::time::sleep_until(due.into()).await;
                    due
                }
                None => Instant::now(),
            };
            if Instant::now() >= ends {
                return;
            }
            let stamp = (began - origin).as_nanos();
            let told = tokio::time::timeout(PATIENCE, self.append(&mut connection, stamp)).await;
            let told = told.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            let now = Instant::now();
            if told.is_err() {
                connection = None;
            }
            if began >= begins && now <= ends {
                let mut measured = self.measured.borrow_mut();
                match told {
                    Ok(replies) => replies.iter().for_each(|reply| match reply {
                        Reply::Error(error) => measured.refused(error),
                        _ => measured.done(now - began),
                    }),
                    Err(_) => measured.broken += 1,
                }
            } else if told.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
            due += self.plan.pause.unwrap_or_default();
        }
    }

    async fn append(
        &self,
        connection: &mut Option<Connection>,
        stamp: u128,
    ) -> io::Result<Vec<Reply>> {
        let connection = match connection {
            Some(connection) => connection,
            none => none.insert(Connection::to(self.server).await?),
        };
        let mut value = format!("{stamp:0width$}", width = STAMP).into_bytes();
        value.resize(self.plan.bytes.max(STAMP), b'v');
        for _ in 0..self.plan.pipeline {
            let words: [&[u8]; 5] = [b"XADD", self.log.as_bytes(), b"*", b"v", &value];
            connection.say(&words);
        }
        connection.flush().await?;
        let mut replies = Vec::with_capacity(self.plan.pipeline);
        for _ in 0..self.plan.pipeline {
            replies.push(connection.hear().await?);
        }
        Ok(replies)
    }

    /// Is told of all that is appended from now on, until the time is over.
    pub async fn tail(self) {
        let (_, _, ends) = self.plan.times;
        let mut after = "$".to_owned();
        while Instant::now() < ends {
            if self.told(&mut after).await.is_err() {
                self.measured.borrow_mut().broken += 1;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn told(&self, after: &mut String) -> io::Result<()> {
        let (_, _, ends) = self.plan.times;
        let mut connection = Connection::to(self.server).await?;
        while Instant::now() < ends {
            let words = [
                "XREAD", "COUNT", "1000", "BLOCK", "500", "STREAMS", &self.log, after,
            ];
            connection.say(&words);
            connection.flush().await?;
            let reply = connection.hear().await?;
            let now = Instant::now();
            let Some(entries) = entries(&reply) else {
                continue;
            };
            for entry in entries {
                self.note(entry, (now, after));
            }
        }
        Ok(())
    }

    fn note(&self, entry: &Reply, (now, after): (Instant, &mut String)) {
        let (origin, begins, ends) = self.plan.times;
        let Reply::Array(parts) = entry else { return };
        let [Reply::Bulk(id), Reply::Array(fields)] = &parts[..] else {
            return;
        };
        *after = String::from_utf8_lossy(id).into_owned();
        let Some(Reply::Bulk(value)) = fields.get(1) else {
            return;
        };
        let stamp = value
            .get(..STAMP)
            .and_then(|stamp| std::str::from_utf8(stamp).ok());
        let stamp: Option<u64> = stamp.and_then(|stamp| stamp.parse().ok());
        let asked = origin + Duration::from_nanos(stamp.unwrap_or(0));
        if asked >= begins && now <= ends {
            let mut measured = self.measured.borrow_mut();
            measured.told.record((now - asked).as_nanos() as u64);
        }
    }
}

/// The entries of one stream.
fn entries(reply: &Reply) -> Option<&[Reply]> {
    let Reply::Array(streams) = reply else {
        return None;
    };
    match streams.first()? {
        Reply::Array(parts) => match parts.get(1)? {
            Reply::Array(entries) => Some(entries),
            _ => None,
        },
        _ => None,
    }
}
