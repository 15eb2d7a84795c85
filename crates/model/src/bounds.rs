//! The bounds that the model lacks: a link and a processor (ours).

use crate::ring::Ring;

/// What else a rotation of the accelerated ring waits for. Whatever is 0 bounds nothing.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Bounds {
    /// A packet on the wire, in microseconds. Everybody receives what the others send over one link.
    pub wire_us: f64,
    /// A processor's time to send a packet, in microseconds.
    pub send_us: f64,
    /// A processor's time to receive one.
    pub receive_us: f64,
    /// A processor's time for a rotation, whatever is sent in it.
    pub token_us: f64,
}

impl Bounds {
    /// How long a rotation takes at least, in microseconds, if all send a full window.
    pub fn rotation_us(&self, ring: &Ring) -> f64 {
        let (others, window) = (ring.n() - 1.0, f64::from(ring.personal_window));
        let link = others * window * self.wire_us;
        let processor = window * (self.send_us + others * self.receive_us) + self.token_us;
        link.max(processor)
    }
}
