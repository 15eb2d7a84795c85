//! The requests of operators about the nodes of the cluster, on their way to the ring's thread. Without I/O.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::Sender;

use rota_core::contract::Time;

use crate::members::{MemberReply, MemberRequest};

/// Requests that wait at one time, at most: as many as operators can be connected.
const MOST: usize = 8;

/// Where a request is answered, or said why it is not.
pub(crate) type Answer = Sender<Result<MemberReply, NotAnswered>>;

/// A request, and where it is answered.
#[derive(Debug)]
pub(crate) struct MemberAsking {
    pub request: MemberRequest,
    pub answer: Answer,
    /// It is not begun after this time; whoever asks gives up soon after.
    pub until: Time,
}

/// Why a request has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAnswered {
    /// Too many wait already; it was not begun.
    Many,
    /// The daemon stops.
    Stops,
    /// The daemon has not got to it in time: it was not begun.
    Late,
    /// The daemon's loop does not turn.
    Silent,
}

impl fmt::Display for NotAnswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Many => "too many others wait for an answer of this daemon: ask again",
            Self::Stops => "the daemon stops: ask another one",
            Self::Late => {
                "the daemon has not got to it in time, and has not begun it: ask again"
            }
            Self::Silent => {
                "the daemon does not answer: its loop does not turn; look at the list before you ask again"
            }
        })
    }
}

/// The requests that wait.
#[derive(Debug, Default)]
pub(super) struct AskingQueue {
    waiting: VecDeque<MemberAsking>,
    is_closed: bool,
}

impl AskingQueue {
    /// One more, at its end.
    ///
    /// # Errors
    /// It is not taken.
    pub fn push(&mut self, asking: MemberAsking, now: Time) -> Result<(), NotAnswered> {
        if self.is_closed {
            return Err(NotAnswered::Stops);
        }
        self.waiting.retain(|waiting| {
            let is_in_time = now < waiting.until;
            if !is_in_time {
                turn_away(waiting);
            }
            is_in_time
        });
        if self.waiting.len() >= MOST {
            return Err(NotAnswered::Many);
        }
        self.waiting.push_back(asking);
        Ok(())
    }

    /// The oldest for which it is not too late.
    pub fn next(&mut self, now: Time) -> Option<MemberAsking> {
        while let Some(asking) = self.waiting.pop_front() {
            if now < asking.until {
                return Some(asking);
            }
            turn_away(&asking);
        }
        None
    }

    /// Takes no more, and answers none of those that wait.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.waiting.clear();
    }

    /// Whether it takes no more.
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }
}

/// Says that it is too late; whoever asked may have gone.
fn turn_away(asking: &MemberAsking) {
    let _ = asking.answer.send(Err(NotAnswered::Late));
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};

    use super::*;

    fn asking(until: u64) -> (MemberAsking, Receiver<Result<MemberReply, NotAnswered>>) {
        let (answer, answered) = channel();
        let asking = MemberAsking {
            request: MemberRequest::List,
            answer,
            until: Time(until),
        };
        (asking, answered)
    }

    #[test]
    fn a_request_whose_time_is_over_is_never_begun() {
        let mut queue = AskingQueue::default();
        let (late, gone) = asking(10);
        let (in_time, answered) = asking(20);
        queue.push(late, Time(1)).expect("there is room");
        queue.push(in_time, Time(2)).expect("there is room");
        let next = queue.next(Time(10)).expect("one is in time");
        assert_eq!(next.until, Time(20));
        assert_eq!(gone.try_recv(), Ok(Err(NotAnswered::Late)));
        assert_eq!(answered.try_recv(), Err(TryRecvError::Empty));
        assert!(queue.next(Time(10)).is_none());
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let mut queue = AskingQueue::default();
        let mut waiting = Vec::new();
        for until in 0..MOST {
            let (asking, answered) = asking(10 + until as u64);
            queue.push(asking, Time(1)).expect("there is room");
            waiting.push(answered);
        }
        let full = queue.push(asking(99).0, Time(9));
        assert_eq!(full, Err(NotAnswered::Many));
        // The time of one is over.
        assert_eq!(queue.push(asking(99).0, Time(10)), Ok(()));
        assert_eq!(waiting[0].try_recv(), Ok(Err(NotAnswered::Late)));
        assert_eq!(waiting[1].try_recv(), Err(TryRecvError::Empty));
    }

    #[test]
    fn whoever_waits_for_a_daemon_that_stops_is_told_at_once() {
        let mut queue = AskingQueue::default();
        let (waits, answered) = asking(10);
        queue.push(waits, Time(1)).expect("there is room");
        queue.close();
        let told = answered.recv_timeout(std::time::Duration::ZERO);
        assert_eq!(told, Err(RecvTimeoutError::Disconnected));
        assert_eq!(queue.push(asking(10).0, Time(1)), Err(NotAnswered::Stops));
        assert!(queue.next(Time(1)).is_none());
    }
}
