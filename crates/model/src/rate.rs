//! A load between light and full (ours). Nothing waits for a window here, so it is wrong near the most that a ring orders.

use crate::ring::{Protocol, Ring};

/// The state of a ring at a load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AtRate {
    /// The time of a rotation, in microseconds.
    pub rotation_us: f64,
    /// Messages in a visit, on the mean.
    pub visit: f64,
    /// The mean delay of agreed delivery at all participants, in microseconds.
    pub agreed_us: f64,
    /// The mean delay of safe delivery, in microseconds: the rounds of a light load.
    pub safe_us: f64,
}

/// The ring with this payload of all participants together, in Mbit/s. `None`: a visit would send more than its window.
pub fn at_rate(ring: &Ring, protocol: Protocol, mbps: f64) -> Option<AtRate> {
    // Messages in a microsecond.
    let messages = mbps / (f64::from(ring.message_bytes) * 8.0);
    let (message, hop) = (ring.message_us(), ring.hop_us);
    let idle = ring.idle_rotation_us();
    let behind = f64::from(ring.accelerated_window);
    let is_behind = protocol == Protocol::Accelerated && messages * hop <= behind;
    let rotation_us = if is_behind {
        // All messages of a visit leave behind the token.
        idle
    } else {
        let ahead = match protocol {
            Protocol::Original => hop,
            Protocol::Accelerated => hop - behind * message,
        };
        let free = 1.0 - messages * message;
        if free <= 0.0 || ahead <= 0.0 {
            return None;
        }
        ring.n() * ahead / free
    };
    let visit = messages * rotation_us / ring.n();
    if visit > f64::from(ring.personal_window) || messages * message > 1.0 {
        return None;
    }
    let rounds = match protocol {
        Protocol::Accelerated if ring.accelerated_window > 0 => 3.0,
        _ => 2.0,
    };
    Some(AtRate {
        rotation_us,
        visit,
        agreed_us: rotation_us / 2.0 + visit * message / 2.0 + hop,
        safe_us: rounds * rotation_us,
    })
}
