//! The upkeep of a node's sockets: the world around them changes while they are open.

use rota_core::contract::Time;

use super::Seal;
use super::multicast::Joined;
use super::ports::Ports;

/// The time between two looks whether the sockets need something, in nanoseconds.
const EVERY_NANOS: u64 = 1_000_000_000;

/// When the sockets are looked at, and the multicast group that they are in.
#[derive(Debug)]
pub(super) struct Upkeep {
    at: Time,
    /// The way in which the group was joined, if there is one.
    joined: Option<Joined>,
}

impl Upkeep {
    pub(super) const fn new(joined: Option<Joined>) -> Self {
        Self {
            at: Time(0),
            joined,
        }
    }

    /// Whether the sockets are to be looked at: seldom.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        now >= self.at
    }

    /// Joins the multicast group again where the interface was made anew, and follows a clock that was set forward.
    pub(super) fn look(&mut self, now: Time, ports: &Ports, seal: &mut Seal) {
        self.at = now.after(EVERY_NANOS);
        self.follow_interface(ports);
        follow_clock(seal);
    }

    fn follow_interface(&mut self, ports: &Ports) {
        if let (Some(joined), Some((data, sender))) = (&mut self.joined, ports.of_group())
            && let Some(again) = joined.again(data, sender)
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
}

fn follow_clock(seal: &mut Seal) {
    let Seal::Keyed(seal) = seal else {
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
