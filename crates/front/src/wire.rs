//! A client's connection: its requests, and the replies to it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rota_resp::{Limits, Reply, Requests, Version};
use tokio::time::{Instant, timeout};

use crate::{Guests, Share, Stream};

/// The time that a client has to prove who it is.
const LOGIN: Duration = Duration::from_secs(10);
/// The size of a part of the replies, and the time in which the client has to take a part: less where all clients
/// together have too much kept.
const PART_BYTES: usize = 64 << 10;
const TAKES: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(1);
/// The room for replies that stays while the client asks for nothing.
const KEPT_BYTES: usize = 16 << 10;

/// A client's connection.
pub struct Wire {
    guests: Arc<Guests>,
    stream: Stream,
    who: SocketAddr,
    began: Instant,
    has_logged_in: bool,
    share: Share,
    /// The requests that have come.
    pub requests: Requests,
    /// The replies that are to be sent.
    pub out: Vec<u8>,
}

impl Wire {
    /// A connection that begins.
    pub fn new(guests: Arc<Guests>, (stream, who): (Stream, SocketAddr), limits: Limits) -> Self {
        let is_open = guests.users.now().is_open();
        Self {
            share: guests.held.share(),
            guests,
            stream,
            who,
            began: Instant::now(),
            has_logged_in: is_open,
            requests: match is_open {
                true => Requests::new(limits),
                false => Requests::before_login(limits),
            },
            out: Vec::new(),
        }
    }

    /// The address of the client.
    pub const fn who(&self) -> SocketAddr {
        self.who
    }

    /// Sets whether the client has proved who it is: `false` gives it the time of a login again.
    pub fn log_in(&mut self, has_logged_in: bool) {
        if self.has_logged_in && !has_logged_in {
            self.began = Instant::now();
        }
        self.has_logged_in = has_logged_in;
        self.requests.log_in(has_logged_in);
    }

    /// Reads more of the client's requests. `false`: the connection has ended, or the client has not proved in time who
    /// it is.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn read(&mut self) -> io::Result<bool> {
        if self.has_logged_in {
            return Ok(self.stream.read(&mut self.requests).await? > 0);
        }
        // A client that does not prove who it is must not keep a place from others.
        let left = LOGIN.saturating_sub(self.began.elapsed());
        if !left.is_zero()
            && let Ok(read) = timeout(left, self.stream.read(&mut self.requests)).await
        {
            return Ok(read? > 0);
        }
        let what = "it has not said who it is in time";
        self.guests.turn_away(self.who, &what);
        Ok(false)
    }

    /// Sends all replies. `kept`: the bytes that are kept for the client beside them.
    ///
    /// # Errors
    /// The connection is broken, or the client takes nothing for too long.
    pub async fn write(&mut self, kept: usize) -> io::Result<()> {
        self.share.set(self.out.len() + kept);
        for part in self.out.chunks(PART_BYTES) {
            // A client that takes nothing for long is gone, or keeps memory from others.
            let patience = match self.share.is_too_much() {
                true => SOON,
                false if self.has_logged_in => TAKES,
                false => LOGIN,
            };
            let written = timeout(patience, self.stream.write(part)).await;
            written.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        }
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        Ok(())
    }

    /// Whether the client has too much kept where all together have: then it is told so, and has to end.
    pub async fn has_too_much(&mut self, kept: usize) -> bool {
        let own = self.requests.waiting_bytes() + kept;
        self.share.set(own + self.out.capacity());
        let is_too_much = self.share.is_too_much();
        if is_too_much {
            let why = "ERR clients have sent more than is kept of what is not whole yet";
            Reply::error(why).write(Version::Resp2, &mut self.out);
            let _ = self.write(kept).await;
        }
        is_too_much
    }
}
