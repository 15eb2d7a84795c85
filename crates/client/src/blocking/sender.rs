//! The sending half.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use rota_core::groups::GroupName;

use super::shared::{Apart, Need, Shared, Wait};
use crate::envelope::Envelope;
use crate::error::{ConnectionLost, RequestError, SendError};
use crate::protocol::{PrivateName, Request};
use crate::session::{Answer, Outgoing, Stop};

/// The sending half of a [`super::Client`]: its methods mean the same.
///
/// Credit and answers come with the events, so while a call waits here another thread has to take events
/// from the [`super::Receiver`]. When that is dropped, the connection ends.
#[derive(Debug)]
pub struct Sender {
    pub(super) shared: Arc<Shared>,
    pub(super) outgoing: Outgoing,
}

impl Sender {
    /// The private name of this client: `#client#daemon`.
    pub fn name(&self) -> PrivateName {
        self.shared.name
    }

    /// The most bytes of one payload.
    pub const fn largest_payload(&self) -> usize {
        self.outgoing.largest_payload()
    }

    /// As [`super::Client::join`].
    pub fn join(&mut self, group: &str) -> Result<(), RequestError> {
        self.join_by(&mut Apart, group)
    }

    /// As [`super::Client::leave`].
    pub fn leave(&mut self, group: &str) -> Result<(), RequestError> {
        self.leave_by(&mut Apart, group)
    }

    /// As [`super::Client::groups`].
    pub fn groups(&mut self) -> Result<Vec<(GroupName, u32)>, RequestError> {
        self.list_by(&mut Apart, None)?.groups()
    }

    /// As [`super::Client::members`].
    pub fn members(&mut self, group: &str) -> Result<Vec<PrivateName>, RequestError> {
        let group = GroupName::new(group)?;
        self.list_by(&mut Apart, Some(group))?.members()
    }

    /// As [`super::Client::send`].
    pub fn send<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.send_by(&mut Apart, &to.try_into()?, payload)
    }

    /// As [`super::Client::feed`].
    pub fn feed<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.feed_by(&mut Apart, &to.try_into()?, payload)
    }

    /// As [`super::Client::try_send`].
    pub fn try_send<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.try_send_by(&mut Apart, &to.try_into()?, payload)
    }

    /// As [`super::Client::try_feed`].
    pub fn try_feed<E: TryInto<Envelope>>(&mut self, to: E, payload: &[u8]) -> Result<(), SendError>
    where
        SendError: From<E::Error>,
    {
        self.try_feed_by(&mut Apart, &to.try_into()?, payload)
    }

    /// As [`super::Client::flush`].
    pub fn flush(&mut self) -> Result<(), ConnectionLost> {
        self.flush_by(&mut Apart)
    }

    pub(super) fn send_by(
        &mut self,
        by: &mut dyn Wait,
        to: &Envelope,
        payload: &[u8],
    ) -> Result<(), SendError> {
        self.feed_by(by, to, payload)?;
        self.write_all(by)
    }

    pub(super) fn feed_by(
        &mut self,
        by: &mut dyn Wait,
        to: &Envelope,
        payload: &[u8],
    ) -> Result<(), SendError> {
        loop {
            let seen = {
                let mut account = self.shared.account();
                if self.outgoing.put(&mut account, to, payload)? {
                    break;
                }
                account.changes
            };
            if self.outgoing.pending().is_empty() {
                by.wait(&self.shared, Need::Change(seen), None)?;
            } else {
                // The daemon gives no credit back for bytes that were not written, and perhaps only they are in the way.
                self.flush_or_stop(by)?;
            }
        }
        if self.outgoing.is_due() {
            self.write_all(by)?;
        }
        Ok(())
    }

    pub(super) fn try_send_by(
        &mut self,
        by: &mut dyn Wait,
        to: &Envelope,
        payload: &[u8],
    ) -> Result<(), SendError> {
        if !self.try_put(by, to, payload)? {
            return Err(SendError::WouldBlock);
        }
        self.try_flush(by)?;
        Ok(())
    }

    /// Takes a message if there is credit for it now; whether there was. If there was not, all that the socket takes has been
    /// written.
    fn try_put(
        &mut self,
        by: &mut dyn Wait,
        to: &Envelope,
        payload: &[u8],
    ) -> Result<bool, SendError> {
        let taken = self.outgoing.put(&mut self.shared.account(), to, payload)?;
        if taken || self.outgoing.pending().is_empty() {
            return Ok(taken);
        }
        // Perhaps only bytes that were not written are in the way.
        self.try_flush(by)?;
        self.outgoing.put(&mut self.shared.account(), to, payload)
    }

    pub(super) fn try_feed_by(
        &mut self,
        by: &mut dyn Wait,
        to: &Envelope,
        payload: &[u8],
    ) -> Result<(), SendError> {
        if !self.try_put(by, to, payload)? {
            return Err(SendError::WouldBlock);
        }
        if self.outgoing.is_due() {
            self.try_flush(by)?;
        }
        Ok(())
    }

    /// Writes a message that has been taken. If that has to wait for events to be taken first, the
    /// message is written then: it has not failed.
    fn write_all(&mut self, by: &mut dyn Wait) -> Result<(), SendError> {
        match self.flush_or_stop(by) {
            Ok(()) | Err(Stop::Unread(_)) => Ok(()),
            Err(stop) => Err(stop.into()),
        }
    }

    pub(super) fn flush_by(&mut self, by: &mut dyn Wait) -> Result<(), ConnectionLost> {
        match self.write_all(by) {
            Err(SendError::Lost(lost)) => Err(lost),
            _ => Ok(()),
        }
    }

    fn flush_or_stop(&mut self, by: &mut dyn Wait) -> Result<(), Stop> {
        while self.try_flush(by)? {
            by.wait(&self.shared, Need::Write, None)?;
        }
        Ok(())
    }

    /// Writes what the socket takes; whether that has left something.
    pub(super) fn try_flush(&mut self, by: &mut dyn Wait) -> Result<bool, ConnectionLost> {
        if self.outgoing.pending().is_empty() {
            return Ok(false);
        }
        self.shared.mind();
        while !self.outgoing.pending().is_empty() {
            match self.shared.link.write(self.outgoing.pending()) {
                Ok(Some(bytes)) => self.outgoing.wrote(bytes),
                Ok(None) => return Ok(true),
                Err(error) => return Err(by.write_failed(&self.shared, error)),
            }
        }
        Ok(false)
    }

    pub(super) fn join_by(&mut self, by: &mut dyn Wait, group: &str) -> Result<(), RequestError> {
        let group = GroupName::new(group)?;
        let answer = self.ask(by, |request| Request::Join { request, group })?;
        answer.done()
    }

    pub(super) fn leave_by(&mut self, by: &mut dyn Wait, group: &str) -> Result<(), RequestError> {
        let group = GroupName::new(group)?;
        let answer = self.ask(by, |request| Request::Leave { request, group })?;
        answer.done()
    }

    pub(super) fn list_by(
        &mut self,
        by: &mut dyn Wait,
        group: Option<GroupName>,
    ) -> Result<Answer, RequestError> {
        self.ask(by, |request| Request::List { request, group })
    }

    fn ask(
        &mut self,
        by: &mut dyn Wait,
        make: impl FnOnce(u32) -> Request,
    ) -> Result<Answer, RequestError> {
        let request = self.expect(make)?;
        let deadline = Instant::now().checked_add(self.shared.timeout);
        let answer = self.await_answer(by, request, deadline);
        if answer.is_err() {
            self.shared.account().forget(request);
        }
        answer
    }

    /// Asks, without writing it.
    pub(super) fn expect(
        &mut self,
        make: impl FnOnce(u32) -> Request,
    ) -> Result<u32, ConnectionLost> {
        let mut account = self.shared.account();
        let request = account.expect();
        let asked = self.outgoing.ask(&account, &make(request));
        asked.inspect_err(|_| account.forget(request))?;
        Ok(request)
    }

    fn await_answer(
        &mut self,
        by: &mut dyn Wait,
        request: u32,
        deadline: Option<Instant>,
    ) -> Result<Answer, RequestError> {
        while self.try_flush(by)? {
            by.wait(&self.shared, Need::Write, deadline)?;
        }
        loop {
            let seen = {
                let mut account = self.shared.account();
                if let Some(answer) = account.answer(request) {
                    return Ok(answer);
                }
                account.standing()?;
                account.changes
            };
            by.wait(&self.shared, Need::Change(seen), deadline)?;
        }
    }

    /// Says bye, without writing it; nothing more can be sent.
    pub(super) fn say_bye(&mut self) -> Result<(), ConnectionLost> {
        self.outgoing.ask(&self.shared.account(), &Request::Bye)
    }

    /// Writes what the socket takes, and waits until it takes more; whether there is something left.
    pub(super) fn flush_once(
        &mut self,
        by: &mut dyn Wait,
        deadline: Option<Instant>,
    ) -> Result<bool, ConnectionLost> {
        if !self.try_flush(by)? {
            return Ok(false);
        }
        match by.wait(&self.shared, Need::Write, deadline) {
            Ok(()) | Err(Stop::Unread(_)) => Ok(true),
            Err(Stop::TimedOut) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            Err(Stop::Lost(lost)) => Err(lost),
        }
    }

    /// As [`super::Client::close`], but waits only until all is written: the receiver goes on to the end.
    pub fn close(mut self) -> Result<(), ConnectionLost> {
        let deadline = Instant::now().checked_add(self.shared.timeout);
        self.say_bye()?;
        while self.flush_once(&mut Apart, deadline)? {}
        Ok(())
    }
}

impl Drop for Sender {
    /// Writes fed messages, as far as that needs no waiting; not in a child of the process that connected.
    fn drop(&mut self) {
        // The parent writes these bytes, so a child must not.
        if !self.shared.link.is_own() {
            return;
        }
        // No caller can take an error here; `close` returns it.
        let _ = self.try_flush(&mut Apart);
    }
}
