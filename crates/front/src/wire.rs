//! A client's connection: what it has said, and what it is told.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rota_resp::{Limits, Reply, Requests, Version};
use tokio::time::{Instant, timeout};

use crate::{Guests, Share, Stream};

/// Whoever has to say who it is has so long to do so.
const LOGIN: Duration = Duration::from_secs(10);
/// So much is told at once, and has to be taken in so long a time; sooner where all clients together keep too much.
const PART_BYTES: usize = 64 << 10;
const TAKES: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(1);
/// Room for replies that a client keeps while it says nothing.
const KEPT_BYTES: usize = 16 << 10;

/// See the module's page.
pub struct Wire {
    guests: Arc<Guests>,
    stream: Stream,
    who: SocketAddr,
    began: Instant,
    has_logged_in: bool,
    share: Share,
    /// What was heard.
    pub requests: Requests,
    /// To be told.
    pub out: Vec<u8>,
}

impl Wire {
    /// One that begins.
    pub fn new(guests: Arc<Guests>, (stream, who): (Stream, SocketAddr), limits: Limits) -> Self {
        let is_open = guests.users.is_open();
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

    /// Where the client is.
    pub const fn who(&self) -> SocketAddr {
        self.who
    }

    /// The client has said who it is, or has to say that again.
    pub fn log_in(&mut self, has_logged_in: bool) {
        if self.has_logged_in && !has_logged_in {
            self.began = Instant::now();
        }
        self.has_logged_in = has_logged_in;
        self.requests.log_in(has_logged_in);
    }

    /// Something more of what it says. `false`: it has ended.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn read(&mut self) -> io::Result<bool> {
        if self.has_logged_in {
            return Ok(self.stream.read(&mut self.requests).await? > 0);
        }
        // Whoever does not say who it is keeps no place from others.
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

    /// Tells it all that is to be told. `kept`: what is kept for it beside that.
    ///
    /// # Errors
    /// The connection is broken, or it takes nothing for too long.
    pub async fn write(&mut self, kept: usize) -> io::Result<()> {
        self.share.set(self.out.len() + kept);
        for part in self.out.chunks(PART_BYTES) {
            // Whoever takes nothing for long is gone, or keeps memory from others.
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

    /// It keeps too much where all do: it is told so, and has to end.
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
