//! The delay of a message until its delivery: tables 4.1 and 4.2 of the thesis.

use crate::ring::{Protocol, Ring};

/// The time from the generation of a message until all participants have delivered it, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delays {
    /// The delay of a message generated at the best moment.
    pub best: f64,
    /// The mean over all moments.
    pub average: f64,
    /// The delay of a message generated at the worst moment.
    pub worst: f64,
}

/// The load of a ring. The time of a rotation may be the model's, or a measured one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// A message now and then.
    Light,
    /// Each visit sends a full window, and a rotation takes so long, in microseconds.
    Full(f64),
}

impl Load {
    /// Full load, with the rotation that the model has.
    pub fn full(ring: &Ring, protocol: Protocol) -> Self {
        Self::Full(ring.rotation_us(protocol))
    }

    fn rotation_us(self, ring: &Ring) -> f64 {
        match self {
            Self::Light => ring.idle_rotation_us(),
            Self::Full(rotation) => rotation,
        }
    }
}

/// The time for which an accelerated participant still sends when the next one begins, in microseconds (the thesis's
/// *X*, §4.4.4). The thesis has a second formula for it, `f·B − P`, which is the same while a rotation takes longer
/// than a window; this one is right otherwise, too.
pub fn head_start(ring: &Ring, rotation_us: f64) -> f64 {
    (ring.burst_us - rotation_us / ring.n()).max(0.0)
}

/// The mean time from the receipt of the token until a message and all before it have left, in microseconds (thesis
/// §4.4.4). Between half a window and a whole one.
pub fn average_broadcast(ring: &Ring, rotation_us: f64) -> f64 {
    let (burst, ahead) = (ring.burst_us, head_start(ring, rotation_us));
    burst / 2.0 + ahead * ahead / (2.0 * burst)
}

/// The delays of agreed delivery (table 4.1).
pub fn agreed(ring: &Ring, protocol: Protocol, load: Load) -> Delays {
    let (rotation, hop) = (load.rotation_us(ring), ring.hop_us);
    let (ahead, broadcast, burst) = match (load, protocol) {
        (Load::Light, _) => (0.0, 0.0, 0.0),
        (Load::Full(_), Protocol::Original) => (0.0, ring.burst_us / 2.0, ring.burst_us),
        (Load::Full(_), Protocol::Accelerated) => (
            head_start(ring, rotation),
            average_broadcast(ring, rotation),
            ring.burst_us,
        ),
    };
    Delays {
        best: ahead + hop,
        average: rotation / 2.0 + broadcast + hop,
        worst: rotation + burst + hop,
    }
}

/// The delays of safe delivery (table 4.2, from §4.5.1 to §4.5.6), as the thesis has them: where it says "two rounds"
/// and "three rounds" the way from one participant to the next is left out. With no accelerated window the token
/// carries the same as in the original protocol (§4.5.4).
pub fn safe(ring: &Ring, protocol: Protocol, load: Load) -> Delays {
    rounds(ring, protocol, load, 0.0)
}

/// The delays of safe delivery with the way that the thesis leaves out: the token is received, takes a round and a hop
/// to raise the aru, and another round until it is seen again (§4.5.6.2, reckoned step by step).
pub fn safe_exact(ring: &Ring, protocol: Protocol, load: Load) -> Delays {
    rounds(ring, protocol, load, 1.0)
}

fn rounds(ring: &Ring, protocol: Protocol, load: Load, hops: f64) -> Delays {
    let (rotation, hop) = (load.rotation_us(ring), ring.hop_us);
    let step = rotation / ring.n();
    if protocol == Protocol::Original || ring.accelerated_window == 0 {
        return Delays {
            best: rotation,
            average: 2.0 * rotation,
            worst: 3.0 * rotation - step,
        };
    }
    match load {
        Load::Light => Delays {
            best: 2.0 * rotation + hops * step,
            average: 3.0 * rotation + hops * step,
            worst: 4.0 * rotation,
        },
        Load::Full(_) => Delays {
            best: head_start(ring, rotation) + hop + rotation,
            average: 2.5 * rotation + average_broadcast(ring, rotation) + hop,
            worst: 4.0 * rotation + ring.burst_us + hop - step,
        },
    }
}
