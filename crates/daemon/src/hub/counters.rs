//! What is counted of clients.

/// What is counted, since the start of the daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counter {
    /// Clients let in.
    Connected,
    /// Clients let in that get their frames through memory.
    WithMemory,
    /// Clients not let in: for their name, or for want of room.
    Refused,
    /// Clients that did not say in time who they are.
    Silent,
    /// Clients that sent what is no request.
    Garbled,
    /// Clients disconnected because they did not read.
    Slow,
    /// Clients not let in: nothing allows them to connect.
    NotAllowed,
    /// Joins, messages and questions of clients without the right.
    RequestsNotAllowed,
    /// Peers that asked for the status of the daemon without the right.
    AdminsNotAllowed,
    /// Warnings to clients that read too slowly.
    Lagging,
    /// Times that a client was made to skip.
    Skipped,
    /// Clients disconnected because new rules do not let them connect.
    Dismissed,
    /// Memberships ended because new rules do not let a client be in the group.
    MembershipsEnded,
    /// Times that others were made to wait for a client.
    Throttling,
    /// The time of all throttles that are over, in microseconds.
    ThrottlingMicros,
    /// Clients for whom senders have waited long enough.
    ThrottledLong,
    /// Messages of clients that waited for a client of some daemon.
    Held,
    /// The time that these messages waited, in microseconds.
    HeldMicros,
}

impl Counter {
    const ALL: [Self; 18] = [
        Self::Connected,
        Self::WithMemory,
        Self::Refused,
        Self::Silent,
        Self::Garbled,
        Self::Slow,
        Self::NotAllowed,
        Self::RequestsNotAllowed,
        Self::AdminsNotAllowed,
        Self::Lagging,
        Self::Skipped,
        Self::Dismissed,
        Self::MembershipsEnded,
        Self::Throttling,
        Self::ThrottlingMicros,
        Self::ThrottledLong,
        Self::Held,
        Self::HeldMicros,
    ];

    /// The name in the status and in the metrics.
    const fn name(self) -> &'static str {
        match self {
            Self::Connected => "clients_connected",
            Self::WithMemory => "clients_with_memory",
            Self::Refused => "clients_refused",
            Self::Silent => "clients_silent",
            Self::Garbled => "clients_garbled",
            Self::Slow => "clients_slow",
            Self::NotAllowed => "clients_not_allowed",
            Self::RequestsNotAllowed => "requests_not_allowed",
            Self::AdminsNotAllowed => "admins_not_allowed",
            Self::Lagging => "clients_lagging",
            Self::Skipped => "clients_skipped",
            Self::Dismissed => "clients_dismissed",
            Self::MembershipsEnded => "memberships_ended",
            Self::Throttling => "clients_throttling",
            Self::ThrottlingMicros => "clients_throttling_us",
            Self::ThrottledLong => "clients_throttled_long",
            Self::Held => "messages_held",
            Self::HeldMicros => "messages_held_us",
        }
    }
}

/// The counts so far.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters([u64; Counter::ALL.len()]);

impl Counters {
    pub const fn add(&mut self, counter: Counter, more: u64) {
        self.0[counter as usize] += more;
    }

    #[cfg(test)]
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// All counts, by name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Counter::ALL
            .into_iter()
            .map(|counter| (counter.name(), self.0[counter as usize]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_counter_has_a_place_and_a_name_of_its_own() {
        let mut counters = Counters::default();
        for (at, counter) in Counter::ALL.into_iter().enumerate() {
            counters.add(counter, at as u64 + 1);
        }
        let counts: Vec<u64> = counters.named().map(|(_, count)| count).collect();
        assert_eq!(counts, (1..=18).collect::<Vec<_>>());
        let names: BTreeSet<_> = counters.named().map(|(name, _)| name).collect();
        assert_eq!(names.len(), Counter::ALL.len());
    }
}
