//! Exclusion, over engines that order in primary views alone: a daemon that is in no view is *excluded*, gets nothing,
//! and misses the deliveries of the others.
//!
//! Its clients are told of the beginning ([`Event::Excluded`]) and of the end ([`Event::Included`]). Their requests
//! meanwhile wait, within the bounds of each client, and go out afterwards. If views were missed, the daemon comes back
//! like one from another side of a split: the others saw its clients leave by network, and the clients come back by
//! network, in a set of their own, as no other client has got the same; each group with clients of this daemon gets a
//! view.
//!
//! The others may have delivered a part of the requests that the daemon had handed to its engine, while the daemon
//! missed them. The engine says which ([`Delivery::Missed`](crate::contract::Delivery::Missed)):
//!
//! * Messages have been delivered for good, so they are not sent again, and nobody waits for them any more.
//! * A client that disconnected has gone, with all its requests: others must not see it once more.
//! * Joins and leaves ended for the others with the view in which they were ordered, as all clients of this daemon left
//!   by network. Its own clients have been told nothing. So the daemon asks for them again.

/// The progress of this daemon's exclusion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exclusion {
    /// The engine has said that this daemon is in no view, and it has been in none since.
    out: bool,
    /// Clients have been told of the exclusion, and not of its end.
    told: bool,
    /// Views have been missed that clients have not been told of yet.
    missed: bool,
}

impl Exclusion {
    /// Whether the daemon is in no view.
    pub const fn is_out(&self) -> bool {
        self.out
    }

    /// Whether clients have been told of the exclusion, and not of its end.
    pub const fn is_told(&self) -> bool {
        self.told
    }

    /// Whether views have been missed that clients have not been told of yet.
    pub const fn has_missed(&self) -> bool {
        self.missed
    }

    /// The daemon is in no view from now on.
    pub const fn begin(&mut self) {
        self.out = true;
    }

    /// The daemon is in a view again.
    pub const fn come_in(&mut self) {
        self.out = false;
    }

    /// Views are missed.
    pub const fn miss(&mut self) {
        self.missed = true;
    }

    /// Clients are told of the exclusion, unless they have been. Returns whether they are to be.
    pub const fn tell(&mut self) -> bool {
        !core::mem::replace(&mut self.told, true)
    }

    /// Deliveries go on. Returns whether views were missed, if clients are to be told of the end.
    pub fn end(&mut self) -> Option<bool> {
        let (told, missed) = (self.told, self.missed);
        (self.told, self.missed) = (false, false);
        told.then_some(missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_once_of_the_beginning_and_once_of_the_end() {
        let mut exclusion = Exclusion::default();
        exclusion.begin();
        assert!(exclusion.tell() && !exclusion.tell());
        assert_eq!((exclusion.end(), exclusion.end()), (Some(false), None));
        assert!(exclusion.is_out(), "the engine says when that is over");
    }

    #[test]
    fn missed_views_are_told_with_the_end_and_only_then() {
        let mut exclusion = Exclusion::default();
        exclusion.miss();
        assert_eq!(exclusion.end(), None, "nobody was told of the beginning");
        exclusion.miss();
        assert!(exclusion.tell());
        assert_eq!(exclusion.end(), Some(true));
    }
}
