//! The voters that have lost what they knew, and the end of all that voters knew.

use std::collections::BTreeMap;

use rota_paxos::{AcceptorId, Round};

/// The losses since all were well the last time.
#[derive(Default, Debug)]
pub struct Losses {
    /// By host: the acceptor name that it had then.
    lost: BTreeMap<usize, Option<AcceptorId>>,
    /// The configuration in which all are well, and the time since when, as far as anybody has looked.
    well_since: Option<(Round, u64)>,
    foundation: Foundation,
}

/// Whether all voters have lost what they knew, which happens once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Foundation {
    #[default]
    First,
    /// They do so now, whatever a majority has to keep.
    Ends,
    Anew,
}

impl Losses {
    /// A host loses what it knows.
    pub fn note(&mut self, host: usize, name: Option<AcceptorId>) {
        self.lost.insert(host, name);
    }

    /// Whether a host has lost what it knew.
    pub fn has(&self, host: usize) -> bool {
        self.lost.contains_key(&host)
    }

    /// Whether any host has.
    pub fn has_any(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether something holds for all hosts that have, each with the name that it had then.
    pub fn are_all(&self, mut holds: impl FnMut(usize, Option<AcceptorId>) -> bool) -> bool {
        self.lost.iter().all(|(host, name)| holds(*host, *name))
    }

    /// All are well, and a majority has everything: earlier losses do not count any more.
    pub fn forget(&mut self) {
        self.lost.clear();
    }

    /// Somebody has looked, and all are well in a configuration. Returns since when.
    pub fn on_well(&mut self, number: Round, now: u64) -> u64 {
        let since = match self.well_since {
            Some((of, since)) if of == number => since,
            _ => now,
        };
        self.well_since = Some((number, since));
        since
    }

    /// Somebody has looked, and not all are well.
    pub fn on_unwell(&mut self) {
        self.well_since = None;
    }

    /// All voters lose what they know, from now on.
    pub fn end_foundation(&mut self) {
        self.foundation = Foundation::Ends;
    }

    /// All of them have.
    pub fn found_anew(&mut self) {
        self.foundation = Foundation::Anew;
        self.lost.clear();
    }

    /// Whether all voters lose what they know just now.
    pub fn all_lose(&self) -> bool {
        self.foundation == Foundation::Ends
    }

    /// Whether all voters have lost what they knew, or do so.
    pub fn is_founded_anew(&self) -> bool {
        self.foundation != Foundation::First
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_well_since_the_first_look_in_the_same_configuration() {
        let mut losses = Losses::default();
        assert_eq!(losses.on_well(3, 100), 100);
        assert_eq!(losses.on_well(3, 150), 100);
        assert_eq!(losses.on_well(4, 200), 200);
        losses.on_unwell();
        assert_eq!(losses.on_well(4, 300), 300);
    }

    #[test]
    fn a_new_foundation_forgets_what_was_lost_before() {
        let mut losses = Losses::default();
        losses.note(2, None);
        losses.end_foundation();
        assert!(losses.all_lose() && losses.is_founded_anew() && losses.has(2));
        losses.found_anew();
        assert!(!losses.all_lose() && losses.is_founded_anew() && !losses.has_any());
    }
}
