//! The datagrams of one sender that have come: a counter that was accepted once is never accepted again.
//!
//! Counters need not come in order. A window of [`WIDTH`] below the highest one remembers each that has
//! come, in a ring of words of which whole ones are cleared as the window moves on (RFC 6479).

/// The number of counters below the highest that are told apart: 51 visits of a token with the default window of
/// packets. Older ones are refused unseen.
pub const WIDTH: u64 = (WORDS as u64 - 1) * BITS;

const BITS: u64 = u64::BITS as u64;

/// One word more than the window has, so that clearing whole words never takes some of it.
const WORDS: usize = 33;

/// Why a counter is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stale {
    /// Below the window.
    Old,
    /// The counter has come before.
    Seen,
}

/// The counters that have come.
#[derive(Clone, Debug)]
pub(super) struct Window {
    top: u64,
    words: [u64; WORDS],
}

impl Window {
    pub const fn new() -> Self {
        Self {
            top: 0,
            words: [0; WORDS],
        }
    }

    /// Whether a counter, from 1, may be accepted. Changes nothing: it may be forged.
    pub const fn check(&self, counter: u64) -> Result<(), Stale> {
        if counter > self.top {
            return Ok(());
        }
        if counter == 0 || self.top - counter >= WIDTH {
            return Err(Stale::Old);
        }
        if self.words[place(counter / BITS)] & bit(counter) == 0 {
            Ok(())
        } else {
            Err(Stale::Seen)
        }
    }

    /// Remembers a counter that [`Self::check`] lets through and whose datagram is authentic.
    pub fn accept(&mut self, counter: u64) {
        let (old, new) = (self.top / BITS, counter / BITS);
        for word in (old..new).rev().take(WORDS) {
            self.words[place(word + 1)] = 0;
        }
        self.top = self.top.max(counter);
        self.words[place(new)] |= bit(counter);
    }
}

const fn place(word: u64) -> usize {
    (word % WORDS as u64) as usize
}

const fn bit(counter: u64) -> u64 {
    1 << (counter % BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn take(window: &mut Window, counter: u64) -> Result<(), Stale> {
        window.check(counter)?;
        window.accept(counter);
        Ok(())
    }

    #[test]
    fn the_window_reaches_from_the_highest_counter_to_2047_below_it() {
        assert_eq!(WIDTH, 2048);
        for top in [2048, 5000, 6399, 6400, 6401, u64::MAX - 1] {
            let mut window = Window::new();
            assert_eq!(take(&mut window, top), Ok(()));
            assert_eq!(take(&mut window, top), Err(Stale::Seen));
            assert_eq!(take(&mut window, top - WIDTH), Err(Stale::Old));
            assert_eq!(take(&mut window, top - WIDTH + 1), Ok(()));
            assert_eq!(take(&mut window, top - WIDTH + 1), Err(Stale::Seen));
            assert_eq!(take(&mut window, top + 1), Ok(()));
            assert_eq!(take(&mut window, top - WIDTH + 1), Err(Stale::Old));
            assert_eq!(take(&mut window, 0), Err(Stale::Old));
        }
    }

    /// The answer of a window, by a set of all counters that have come.
    fn model(come: &BTreeSet<u64>, counter: u64) -> Result<(), Stale> {
        let top = come.last().copied().unwrap_or(0);
        if counter == 0 || (counter <= top && top - counter >= WIDTH) {
            Err(Stale::Old)
        } else if come.contains(&counter) {
            Err(Stale::Seen)
        } else {
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn a_window_is_a_set_of_what_has_come(
            steps in prop::collection::vec((0_u64..6000, any::<bool>()), 1..400)
        ) {
            let (mut window, mut come, mut base) = (Window::new(), BTreeSet::new(), 1_u64 << 40);
            for (step, far) in steps {
                // Mostly near the last counter, seldom far ahead of it.
                let counter = (base + step).saturating_sub(if far { 0 } else { 4500 });
                let expected = model(&come, counter);
                prop_assert_eq!(take(&mut window, counter), expected);
                if expected.is_ok() {
                    come.insert(counter);
                    base = base.max(counter);
                }
            }
        }
    }
}
