//! The upkeep of a node's sockets: the world around them changes while they are open.

use rota_core::contract::Time;

use super::{Seal, Sockets};

/// The time between two looks whether the sockets need something, in nanoseconds.
const EVERY_NANOS: u64 = 1_000_000_000;

impl Sockets {
    /// Joins the multicast group again where the interface was made anew, and follows a clock that was set forward. May
    /// be called at any time, and does nothing most of the time.
    #[inline]
    pub fn tend(&mut self, now: Time) {
        if now >= self.tend_at {
            self.tend_at = now.after(EVERY_NANOS);
            self.follow_interface();
            self.follow_clock();
        }
    }

    fn follow_interface(&mut self) {
        if let (Some(joined), Some(sender)) = (&mut self.joined, &self.sender)
            && let Some(again) = joined.again(&self.data, sender)
        {
            match again {
                Ok(()) => tracing::warn!(
                    "the interface of the multicast group was made anew: the group is joined again"
                ),
                Err(error) => tracing::error!(
                    %error,
                    "the interface of the multicast group was made anew, and the group cannot be joined: restart this node"
                ),
            }
        }
    }

    fn follow_clock(&mut self) {
        let Seal::Keyed(seal) = &mut self.seal else {
            return;
        };
        match seal.follow_clock() {
            Ok(None) => {}
            Ok(Some(nanos)) => {
                let seconds = nanos / 1_000_000_000;
                tracing::warn!(
                    seconds,
                    "the clock was set forward since this node started: it seals its datagrams in a new life"
                );
            }
            Err(error) => {
                tracing::error!(%error, "the clock was set forward, and no new life can be begun");
            }
        }
    }
}
