//! The counters of the layer, for people.

/// Counters, for people.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Messages of daemons, and configurations, that made no sense.
    pub malformed: u64,
    /// Requests that were ordered in a later configuration than they were sent for.
    pub late: u64,
    /// Requests that were handed to the engine once more, as the configuration had changed.
    pub again: u64,
    /// Exchanges that were begun.
    pub exchanges: u64,
    /// Of these, cut off by the next configuration.
    pub interrupted: u64,
    /// Requests that the engine will not take.
    pub refused: u64,
    /// Parts of large messages.
    pub parts: u64,
    /// Holds that clients of this daemon have waited for as long as anybody has to.
    pub expired: u64,
    /// Times that views were missed, over engines with primary views alone.
    pub missed: u64,
    /// Requests, of which the others delivered all and this daemon nothing, as it was in no view.
    pub elsewhere: u64,
}
