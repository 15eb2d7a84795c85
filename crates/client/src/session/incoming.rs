//! The receiving half: the daemon's bytes as events, and the news for the sending half.

use std::collections::VecDeque;
use std::io;

use super::Answer;
use crate::error::ConnectionLost;
use crate::event::Event;
use crate::protocol::{Inbox, MAX_REPLY_BYTES, Reply};

/// The receiving half: events that the application has not taken yet.
#[derive(Debug)]
pub struct Incoming {
    inbox: Inbox<Reply>,
    events: VecDeque<Event>,
    unread: usize,
}

/// The news for the sending half from the bytes of one read.
#[derive(Default, Debug)]
pub struct Settled {
    /// The credit that the daemon gave back, in bytes.
    pub credit: u64,
    pub answers: Vec<(u32, Answer)>,
    pub lost: Option<ConnectionLost>,
}

impl Settled {
    pub const fn is_nothing(&self) -> bool {
        self.credit == 0 && self.answers.is_empty() && self.lost.is_none()
    }
}

impl From<ConnectionLost> for Settled {
    fn from(lost: ConnectionLost) -> Self {
        Self {
            lost: Some(lost),
            ..Self::default()
        }
    }
}

impl Incoming {
    pub const fn new(inbox: Inbox<Reply>) -> Self {
        Self {
            inbox,
            events: VecDeque::new(),
            unread: 0,
        }
    }

    /// Takes bytes from the daemon. Bytes behind a goodbye or behind a protocol error are dropped.
    pub fn feed(&mut self, bytes: &[u8]) -> Settled {
        let mut settled = Settled::default();
        self.inbox.feed(bytes);
        while settled.lost.is_none() {
            match self.inbox.pull() {
                Ok(Some(reply)) => self.take(reply, &mut settled),
                Ok(None) => break,
                Err(error) => settled.lost = Some(error.into()),
            }
        }
        settled
    }

    /// The stream has ended: within a frame that is not how a daemon ends it.
    pub fn end(&self) -> Settled {
        let lost = if self.inbox.is_within_a_frame() {
            io::Error::from(io::ErrorKind::UnexpectedEof).into()
        } else {
            ConnectionLost::Ended
        };
        lost.into()
    }

    fn take(&mut self, reply: Reply, settled: &mut Settled) {
        let event = match reply {
            Reply::Message(message) => Event::Message(message),
            Reply::View(view) => Event::View(view),
            Reply::Transitional { group, view } => Event::Transitional { group, view },
            Reply::SelfLeave { group } => Event::SelfLeave { group },
            Reply::Lagging { waiting, limit } => Event::Lagging { waiting, limit },
            Reply::NotSent {
                kind,
                to,
                code,
                text,
            } => Event::NotSent {
                kind,
                to,
                code,
                text,
            },
            Reply::Skipped {
                messages,
                bytes,
                groups,
            } => Event::Skipped {
                messages,
                bytes,
                groups,
            },
            Reply::Excluded => Event::Excluded,
            Reply::Included { missed } => Event::Included { missed },
            Reply::Credit { bytes } => {
                settled.credit += u64::from(bytes);
                return;
            }
            Reply::Done { request } => return settled.answers.push((request, Answer::Done)),
            Reply::Failed {
                request,
                code,
                text,
            } => {
                let failed = Answer::Failed { code, text };
                return settled.answers.push((request, failed));
            }
            Reply::Groups { request, groups } => {
                return settled.answers.push((request, Answer::Groups(groups)));
            }
            Reply::Members { request, members } => {
                return settled.answers.push((request, Answer::Members(members)));
            }
            Reply::Goodbye { code, text } => {
                settled.lost = Some(ConnectionLost::Goodbye { code, text });
                return;
            }
            Reply::Welcome(_) | Reply::Refused { .. } => {
                settled.lost = Some(ConnectionLost::Unexpected);
                return;
            }
        };
        self.unread += event.cost();
        self.events.push_back(event);
    }

    /// The next event.
    pub fn next(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.unread -= event.cost();
        Some(event)
    }

    /// Whether there is still room for what had come before a write failed. It is read even if more lies unread than may
    /// otherwise, but not without end.
    pub const fn has_room_behind(&self, most_unread: usize) -> bool {
        self.unread <= most_unread.saturating_add(MAX_REPLY_BYTES)
    }

    /// The memory, about, of the events that the application has not taken yet, in bytes.
    pub const fn unread(&self) -> usize {
        self.unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_failed_write_one_frame_more_than_usual_may_lie_unread() {
        let mut incoming = Incoming::new(Inbox::new(MAX_REPLY_BYTES));
        incoming.unread = 1000 + MAX_REPLY_BYTES;
        assert!(incoming.has_room_behind(1000));
        assert!(!incoming.has_room_behind(999));
        assert!(incoming.has_room_behind(usize::MAX));
    }
}
