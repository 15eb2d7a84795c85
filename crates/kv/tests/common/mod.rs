//! A client of Redis' protocol, for tests.

#![allow(dead_code, reason = "each test uses some of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rota_resp::{Replies, Reply, Request};

/// An answer takes no longer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A connection, by TLS or not.
pub struct Client<S = TcpStream> {
    pub stream: S,
    replies: Replies,
}

pub fn tcp(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_nodelay(true).expect("a socket");
    stream
}

impl<S: Read + Write> Client<S> {
    pub fn new(stream: S) -> Self {
        let replies = Replies::new(64 << 20);
        Self { stream, replies }
    }

    /// Says a command; `false`: the connection has ended.
    pub fn send(&mut self, words: &[&str]) -> bool {
        let mut out = Vec::new();
        Request::write(words, &mut out);
        self.stream.write_all(&out).is_ok()
    }

    /// Says several commands at once, the words of each with spaces between.
    pub fn send_all(&mut self, lines: &[&str]) {
        let mut out = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            Request::write(&words, &mut out);
        }
        self.stream.write_all(&out).expect("it is heard");
    }

    /// The next reply; `None`: the connection has ended, or what comes is none.
    fn try_hear(&mut self) -> Option<Reply> {
        let mut buffer = [0; 65_536];
        loop {
            if let Some(reply) = self.replies.next().ok()? {
                return Some(reply);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.replies.push(&buffer[..read]),
            }
        }
    }

    /// A command, its words with spaces between, and its reply; `None`: the connection has ended.
    pub fn try_say(&mut self, line: &str) -> Option<Reply> {
        let words: Vec<&str> = line.split(' ').collect();
        self.send(&words).then(|| self.try_hear()).flatten()
    }

    pub fn hear(&mut self) -> Reply {
        self.try_hear().expect("a reply in time")
    }

    pub fn say(&mut self, line: &str) -> Reply {
        self.try_say(line).expect("a reply in time")
    }

    /// Until nothing is said against it.
    pub fn insist(&mut self, line: &str) -> Reply {
        let began = Instant::now();
        loop {
            let reply = self.say(line);
            if !reply.is_error() {
                return reply;
            }
            assert!(began.elapsed() < PATIENCE, "{line}: {reply:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}
