//! One end of a link between two processes: its messages on their way, and the news for its process.

use std::collections::VecDeque;

use bytes::Bytes;
use rota_core::contract::Process;

/// News of a link for a process, in the order of events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// It is up, with this process at its other end.
    Up(Process),
    /// A message arrived.
    Message(Bytes),
    /// There is more room than the process was told of.
    Room,
    /// It is gone.
    Down,
}

/// One end of a link.
#[derive(Default, Debug)]
pub struct End {
    /// The session that its process knows of, or will when it has read everything.
    pub session: Option<u64>,
    /// A session that it is about to know of: its number, and the process at the other end.
    pub opening: Option<(u64, Process)>,
    /// The time at which it notices that the session is over, if it is: nothing that it sends arrives.
    pub closes: Option<u64>,
    /// The time since when nothing passes.
    pub silent_since: Option<u64>,
    /// Bytes that its process may still send, as it was told.
    pub granted: usize,
    /// Bytes that its process has sent and the other has not read.
    pub unread: usize,
    /// Messages under way to the other end, each with its time of arrival.
    pub flight: VecDeque<(u64, Bytes)>,
    /// The time at which the last of them arrives.
    pub last: u64,
    /// News that its process has not been told, each with its session.
    pub inbox: VecDeque<(u64, Told)>,
}

impl End {
    /// The session over which what it sends now arrives.
    pub fn live(&self) -> Option<u64> {
        self.session.filter(|_| self.closes.is_none())
    }

    /// Its process is to be told of something in its session.
    pub fn tell(&mut self, told: Told) {
        if let Some(session) = self.session {
            self.inbox.push_back((session, told));
        }
    }

    /// Its process is to be told that there is room, if that has grown by a sixteenth of a queue since.
    pub fn tell_room(&mut self, queue_bytes: usize) {
        let room = queue_bytes.saturating_sub(self.unread);
        // Waiting news of an earlier session say nothing about this one.
        let mut inbox = self.inbox.iter();
        let waits = inbox.any(|(of, told)| self.session == Some(*of) && *told == Told::Room);
        if self.live().is_some() && !waits && room >= self.granted + queue_bytes / 16 {
            self.tell(Told::Room);
        }
    }

    /// Its session ends here: its process is told, and whatever is under way is lost.
    pub fn close(&mut self) {
        self.tell(Told::Down);
        let inbox = std::mem::take(&mut self.inbox);
        *self = Self {
            inbox,
            ..Self::default()
        };
    }

    /// A session begins here.
    pub fn open(&mut self, session: u64, peer: Process, queue_bytes: usize) {
        self.close();
        self.session = Some(session);
        self.tell(Told::Up(peer));
        self.tell_room(queue_bytes);
    }
}
