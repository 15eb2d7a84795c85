//! A client step by step, for loops that wait for other things as well.
//!
//! None of these calls waits. A loop waits until the descriptor is ready to be read, or, while [`Client::wants_write`],
//! to be written. Then it calls [`Client::try_read`] or [`Client::try_flush`], and looks at the news: events
//! ([`Client::next_read`]), credit ([`Client::try_send`]), answers ([`Client::try_done`]).

use std::os::fd::{AsFd, BorrowedFd};

use rota_core::groups::GroupName;

use super::shared::Apart;
use super::{Client, Receiver};
use crate::error::{ConnectionLost, RequestError};
use crate::event::Event;
use crate::protocol::{PrivateName, Request};
use crate::session::Answer;

/// All groups that a daemon knows of, and how many members each has.
pub type GroupSizes = Vec<(GroupName, u32)>;

/// A request whose answer is looked for now and then.
#[derive(PartialEq, Eq, Debug)]
#[must_use]
pub struct Pending(u32);

impl AsFd for Client {
    /// To wait until it is ready, and for nothing else.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

impl AsFd for Receiver {
    /// The descriptor is for waiting only. Bytes that were read already do not make it ready: take all events before
    /// each wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.link.fd()
    }
}

impl Client {
    /// Whether there is something to write that the socket has not taken yet.
    pub fn wants_write(&self) -> bool {
        !self.sender.outgoing.pending().is_empty()
    }

    /// Writes as much as the socket takes now, and returns whether bytes are left. Bytes that are left of a lost
    /// connection are an error, since nothing can write them any more.
    pub fn try_flush(&mut self) -> Result<bool, ConnectionLost> {
        let left = self.sender.try_flush(&mut self.receiver)?;
        if left {
            self.receiver.shared.account().standing()?;
        }
        Ok(left)
    }

    /// Reads once what the socket has now; whether there was anything, the end included. Events that are
    /// not taken pile up: [`Self::unread`].
    pub fn try_read(&mut self) -> bool {
        self.receiver.read()
    }

    /// The next event of those that have been read. The end of the connection comes after them.
    pub fn next_read(&mut self) -> Result<Option<Event>, ConnectionLost> {
        match self.receiver.incoming.next() {
            Some(event) => Ok(Some(event)),
            None => self.receiver.shared.account().standing().map(|()| None),
        }
    }

    /// About how many bytes of events have been read and not been taken; see
    /// [`super::Builder::unread_bytes`].
    pub const fn unread(&self) -> usize {
        self.receiver.incoming.unread()
    }

    /// The most bytes of events that may lie unread while a call waits.
    pub const fn most_unread(&self) -> usize {
        self.receiver.most_unread
    }

    /// Sets the most bytes of events that may lie unread while a call waits, and returns what it was before.
    pub const fn set_most_unread(&mut self, bytes: usize) -> usize {
        std::mem::replace(&mut self.receiver.most_unread, bytes)
    }

    /// Asks as [`Self::join`] does, for [`Self::try_done`].
    pub fn begin_join(&mut self, group: &str) -> Result<Pending, RequestError> {
        let group = GroupName::new(group)?;
        self.begin(|request| Request::Join { request, group })
    }

    /// Asks as [`Self::leave`] does, for [`Self::try_done`].
    pub fn begin_leave(&mut self, group: &str) -> Result<Pending, RequestError> {
        let group = GroupName::new(group)?;
        self.begin(|request| Request::Leave { request, group })
    }

    /// Asks as [`Self::groups`] does, for [`Self::try_groups`].
    pub fn begin_groups(&mut self) -> Result<Pending, RequestError> {
        let group = None;
        self.begin(|request| Request::List { request, group })
    }

    /// Asks as [`Self::members`] does, for [`Self::try_members`].
    pub fn begin_members(&mut self, group: &str) -> Result<Pending, RequestError> {
        let group = Some(GroupName::new(group)?);
        self.begin(|request| Request::List { request, group })
    }

    /// Whether a join or leave has taken effect. It is asked until that says so or fails, or forgotten.
    pub fn try_done(&mut self, pending: &Pending) -> Result<bool, RequestError> {
        let answer = self.answer(pending)?;
        answer.map_or(Ok(false), |answer| answer.done().map(|()| true))
    }

    /// As [`Self::try_done`], for all groups and how many members each has.
    pub fn try_groups(&mut self, pending: &Pending) -> Result<Option<GroupSizes>, RequestError> {
        self.answer(pending)?.map(Answer::groups).transpose()
    }

    /// As [`Self::try_done`], for the members of a group.
    pub fn try_members(
        &mut self,
        pending: &Pending,
    ) -> Result<Option<Vec<PrivateName>>, RequestError> {
        self.answer(pending)?.map(Answer::members).transpose()
    }

    /// Drops the answer to a request. The request may still take effect.
    pub fn forget(&mut self, pending: Pending) {
        let Pending(request) = pending;
        self.sender.shared.account().forget(request);
    }

    /// Says bye, behind all that was sent. The daemon closes when it has read that: [`Self::next_read`]
    /// says [`ConnectionLost::Ended`] then, and nothing that was sent is lost.
    pub fn begin_close(&mut self) -> Result<(), ConnectionLost> {
        let sender = &mut self.sender;
        sender
            .outgoing
            .ask(&sender.shared.account(), &Request::Bye)?;
        self.try_flush().map(drop)
    }

    fn begin(&mut self, make: impl FnOnce(u32) -> Request) -> Result<Pending, RequestError> {
        let request = self.sender.expect(make)?;
        // A socket that takes nothing more will also say so when it is read, and why.
        let _ = self.sender.try_flush(&mut Apart);
        Ok(Pending(request))
    }

    fn answer(&mut self, pending: &Pending) -> Result<Option<Answer>, RequestError> {
        let mut account = self.sender.shared.account();
        match account.answer(pending.0) {
            Some(answer) => Ok(Some(answer)),
            None => Ok(account.standing().map(|()| None)?),
        }
    }
}
