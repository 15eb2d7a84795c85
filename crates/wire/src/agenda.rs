//! What happens next: each of many things has one next time, which changes very often.
//!
//! A tree of winners: a change costs a few comparisons, and the first of all is known at once. Of two things at one time
//! the one with the lower number comes first, so that the same setup always gives the same run.

/// No time at all.
pub const NEVER: u64 = u64::MAX;

/// See the module page.
#[derive(Debug)]
pub struct Agenda {
    /// A power of two.
    leaves: usize,
    times: Vec<u64>,
    /// By inner node of the tree, from 1, the thing that comes first below it.
    winners: Vec<u32>,
}

impl Agenda {
    pub fn new(things: usize) -> Self {
        let leaves = things.max(2).next_power_of_two();
        let mut agenda = Self {
            leaves,
            times: vec![NEVER; leaves],
            winners: vec![0; leaves],
        };
        for thing in (0..leaves).step_by(2).rev() {
            agenda.set(thing, NEVER);
        }
        agenda
    }

    /// The time of a thing.
    pub fn time(&self, thing: usize) -> u64 {
        self.times[thing]
    }

    /// Sets the time of a thing.
    #[inline]
    pub fn set(&mut self, thing: usize, time: u64) {
        self.times[thing] = time;
        let mut at = (self.leaves + thing) / 2;
        while at > 0 {
            let (left, right) = (self.winner(2 * at), self.winner(2 * at + 1));
            let is_right = self.times[right as usize] < self.times[left as usize];
            self.winners[at] = if is_right { right } else { left };
            at /= 2;
        }
    }

    #[inline]
    fn winner(&self, at: usize) -> u32 {
        if at >= self.leaves {
            (at - self.leaves) as u32
        } else {
            self.winners[at]
        }
    }

    /// The thing that comes first, and its time.
    #[inline]
    pub fn first(&self) -> (usize, u64) {
        let thing = self.winners[1] as usize;
        (thing, self.times[thing])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_the_lower_number_among_equals() {
        for things in [1, 2, 3, 16, 33] {
            let mut agenda = Agenda::new(things);
            assert_eq!(agenda.first().1, NEVER);
            for thing in 0..things {
                agenda.set(thing, 1000 - (thing as u64 % 7) * 10);
            }
            let expected = (0..things).min_by_key(|thing| (agenda.time(*thing), *thing));
            assert_eq!(Some(agenda.first().0), expected);
        }
    }

    #[test]
    fn times_may_be_put_off_and_brought_forward() {
        let mut agenda = Agenda::new(5);
        agenda.set(3, 50);
        agenda.set(4, 40);
        assert_eq!(agenda.first(), (4, 40));
        agenda.set(4, NEVER);
        assert_eq!(agenda.first(), (3, 50));
        agenda.set(0, 50);
        assert_eq!(agenda.first(), (0, 50));
        agenda.set(0, 51);
        assert_eq!(agenda.first(), (3, 50));
    }
}
