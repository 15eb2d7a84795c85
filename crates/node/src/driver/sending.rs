//! The burst that is on its way out: the next one leaves only when the kernel has taken all of this one.

use rota_core::contract::{Class, Time};

use super::DriverError;
use super::tokens::{TokenTimes, Tokens};
use rota_net::socket::Progress;
use rota_net::sockets::{Outgoing, Sockets};

/// The burst that the kernel has not taken whole, if there is one; and how long tokens were here until they left.
#[derive(Debug, Default)]
pub(super) struct Sending {
    stuck: Option<Outgoing>,
    /// The kernel said it has no buffers, and not when it will have.
    no_buffers: bool,
    tokens: Tokens,
}

impl Sending {
    /// Sends a burst; what the kernel does not take is stuck.
    pub(super) fn send(
        &mut self,
        sockets: &mut Sockets,
        mut out: Outgoing,
    ) -> Result<(), DriverError> {
        debug_assert!(self.stuck.is_none(), "bursts leave in their order");
        let progress = sockets.send(&mut out).map_err(DriverError::Socket)?;
        self.no_buffers = progress == Progress::NoBuffers;
        if progress == Progress::Done {
            self.tokens
                .left(out.class() == Class::Token, rota_net::monotonic);
        } else {
            self.tokens.blocked(rota_net::monotonic());
            self.stuck = Some(out);
        }
        Ok(())
    }

    /// Sends what is stuck, as far as the kernel takes it now.
    pub(super) fn retry(&mut self, sockets: &mut Sockets) -> Result<(), DriverError> {
        match self.stuck.take() {
            Some(out) => self.send(sockets, out),
            None => Ok(()),
        }
    }

    /// Whether a burst has to leave before anything else does.
    pub(super) const fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }

    /// The kernel said that it has no buffers: nothing tells when it will have.
    pub(super) const fn has_no_buffers(&self) -> bool {
        self.no_buffers
    }

    /// The class of the socket that is full, of which the kernel tells when it has room.
    pub(super) fn waits_for(&self) -> Option<Class> {
        let full = self.stuck.as_ref().filter(|_| !self.no_buffers);
        full.map(Outgoing::class)
    }

    /// A token that arrived then is handed in at `filled`; from `began` on the application had its turn.
    pub(super) fn token_came(&mut self, arrived: Time, began: Time, filled: Time) {
        self.tokens.begin(arrived, began, filled);
    }

    /// Nothing more is to be sent: a token that has not left is kept, unless it is stuck.
    pub(super) const fn drained(&mut self) {
        if self.stuck.is_none() {
            self.tokens.end();
        }
    }

    /// The kernel lacks buffers only for something that is stuck.
    pub(super) fn check(&self) {
        debug_assert!(!self.no_buffers || self.is_stuck());
    }

    /// The times for which this node had the token, and their parts.
    pub(super) const fn token_times(&self) -> &TokenTimes {
        self.tokens.times()
    }
}
