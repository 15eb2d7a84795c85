//! The bounds that the model lacks: a link and a processor (ours).

use crate::ring::Ring;

/// The other things that a rotation of the accelerated ring waits for. A time of 0 bounds nothing.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Bounds {
    /// The time of a packet on the wire, in microseconds. Each participant receives the packets of all others over one
    /// link.
    pub wire_us: f64,
    /// A processor's time to send a packet, in microseconds.
    pub send_us: f64,
    /// A processor's time to receive a packet, in microseconds.
    pub receive_us: f64,
    /// A processor's time for a rotation, in microseconds, in addition to its packets.
    pub token_us: f64,
}

impl Bounds {
    /// The least time of a rotation, in microseconds, if all participants send a full window.
    pub fn rotation_us(&self, ring: &Ring) -> f64 {
        let (others, window) = (ring.n() - 1.0, f64::from(ring.personal_window));
        let link = others * window * self.wire_us;
        let processor = window * (self.send_us + others * self.receive_us) + self.token_us;
        link.max(processor)
    }
}
