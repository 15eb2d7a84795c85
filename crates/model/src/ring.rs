//! A ring, the time of a rotation of its token, and its throughput.

use core::fmt;

/// The two protocols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// The token leaves when all of a visit's messages have left.
    Original,
    /// The token leaves before the last of them, as many as the accelerated window has.
    Accelerated,
}

/// A ring (thesis §4.1). All participants send at one speed, all pairs are equally far apart, the global window bounds
/// nothing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ring {
    /// Participants.
    pub nodes: u32,
    /// Messages of a visit, at most.
    pub personal_window: u32,
    /// The messages of a visit that may leave behind the token, at most.
    pub accelerated_window: u32,
    /// Payload of a message, in bytes.
    pub message_bytes: u32,
    /// The time to send a full personal window and the token, in microseconds (the thesis's *B*).
    pub burst_us: f64,
    /// The time from sending to receipt by all, in microseconds (the thesis's *P*).
    pub hop_us: f64,
}

/// The reason for which there can be no such ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Fewer than two participants, or nothing to send.
    Empty,
    /// The accelerated window is larger than the personal window.
    Window,
    /// A time is no positive number.
    Time,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a ring has two participants or more, a window of one message or more, and messages of one byte or more",
            Self::Window => "the accelerated window is at most the personal window",
            Self::Time => "times are positive numbers of microseconds",
        })
    }
}

impl core::error::Error for Error {}

impl Ring {
    /// Whether there can be such a ring.
    ///
    /// # Errors
    /// [`Error`].
    pub fn check(&self) -> Result<(), Error> {
        if self.nodes < 2 || self.personal_window == 0 || self.message_bytes == 0 {
            return Err(Error::Empty);
        }
        if self.accelerated_window > self.personal_window {
            return Err(Error::Window);
        }
        let is_time = |time: f64| time.is_finite() && time > 0.0;
        if is_time(self.burst_us) && is_time(self.hop_us) {
            Ok(())
        } else {
            Err(Error::Time)
        }
    }

    /// Participants, to reckon with.
    pub(crate) fn n(&self) -> f64 {
        f64::from(self.nodes)
    }

    /// The part of a window that leaves behind the token.
    fn behind(&self) -> f64 {
        f64::from(self.accelerated_window) / f64::from(self.personal_window)
    }

    /// The time to send one message, in microseconds.
    pub fn message_us(&self) -> f64 {
        self.burst_us / f64::from(self.personal_window)
    }

    /// The time of a rotation of the token at full load, in microseconds (thesis §4.2). A rotation of an accelerated
    /// ring takes at least as long as a window takes to leave: a participant has sent all of one visit before the next.
    pub fn rotation_us(&self, protocol: Protocol) -> f64 {
        let visit = match protocol {
            Protocol::Original => self.burst_us,
            Protocol::Accelerated => (1.0 - self.behind()) * self.burst_us,
        };
        let rotation = (visit + self.hop_us) * self.n();
        match protocol {
            Protocol::Original => rotation,
            Protocol::Accelerated => rotation.max(self.burst_us),
        }
    }

    /// The time of a rotation while no participant sends more than a message now and then, in microseconds: the token
    /// is only forwarded.
    pub fn idle_rotation_us(&self) -> f64 {
        self.n() * self.hop_us
    }

    /// The payload that is ordered per time if a rotation takes `rotation_us` microseconds, in Mbit/s (thesis §4.2).
    pub fn throughput_mbps(&self, rotation_us: f64) -> f64 {
        let messages = self.n() * f64::from(self.personal_window);
        messages * f64::from(self.message_bytes) * 8.0 / rotation_us
    }
}
