//! The phases of a daemon's life.

/// A phase of a daemon's life, as other threads see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Phase {
    /// It is opened: logs are read, sockets are made. Its loop does not turn yet.
    Starting,
    /// Its loop turns.
    Running,
    /// It leaves the ring.
    Stopping,
}

impl Phase {
    /// The phase with this number.
    pub(super) const fn of(number: u8) -> Self {
        match number {
            0 => Self::Starting,
            1 => Self::Running,
            _ => Self::Stopping,
        }
    }
}
