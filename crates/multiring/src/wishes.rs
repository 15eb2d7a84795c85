//! The wishes of a process: the rings that its partition is to subscribe to, and to leave, and the next notice that has
//! to be ordered for the first of them.
//!
//! A wish is looked at again and again until it is true, whatever becomes of notices: one that is void since another
//! change was pending is given again, and so is one that was ordered in a ring which the partition had left by then.

use alloc::collections::VecDeque;
use core::{error, fmt};
use rota_paxos::uring::accounts::Partition;

use crate::notice::{Command, Notice};
use crate::order::{Constants, Instance, Rank};
use crate::subscribe::{Subscriptions, Void};

/// The most wishes that wait.
const MOST: usize = 64;
/// The holds that are ordered for one wish, one after the other, and serve nobody. Some do not where the partition has just
/// left the ring, or where another process lets go what it holds.
const MOST_HOLDS: u32 = 16;

/// A change of the subscriptions that a process wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// The partition has the ring.
    Subscribe(Rank),
    /// The partition does not have the ring; a hold that waits there is let go.
    Leave(Rank),
}

/// The reason why a wish is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The learner is of no partition: it has the rings with which it began.
    NoPartition,
    /// This process is not on that ring.
    NotOnRing,
    /// The learner delivers nothing any more, and changes nothing.
    Over,
    /// Many wishes wait. There is room for this one when one of them has come true.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPartition => "this process is of no partition",
            Self::NotOnRing => "this process is not on that ring",
            Self::Over => "this process delivers nothing any more",
            Self::Full => "many wishes wait",
        })
    }
}

impl error::Error for Refusal {}

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    waiting: VecDeque<Wish>,
    /// The notice that was given last and is on its way, and the ring that orders it.
    given: Option<(Rank, Notice)>,
    /// The ring orders that notice in this instance, or behind it.
    behind: Instance,
    /// The holds for the first wish that came to nothing, since the last one that serves.
    spent_holds: u32,
}

impl Wishes {
    /// Takes a wish, if there is room.
    pub fn push(&mut self, wish: Wish) -> Result<(), Refusal> {
        if self.waiting.len() >= MOST {
            return Err(Refusal::Full);
        }
        self.waiting.push_back(wish);
        Ok(())
    }

    /// The ring that orders the next notice, and the notice. `of`: the constants of the rings that this process is on;
    /// `held`: the last hold since which a ring is kept here.
    pub fn next(
        &mut self,
        partition: Partition,
        subscriptions: &Subscriptions,
        (of, held): (
            impl Fn(Rank) -> Option<Constants>,
            impl Fn(Rank) -> Option<Instance>,
        ),
    ) -> Option<(Rank, Notice)> {
        // Whatever is ordered while a change is pending is void.
        if subscriptions.pending().is_some() {
            return None;
        }
        let own = subscriptions.rings().next()?;
        while let Some(wish) = self.waiting.front() {
            let (Wish::Subscribe(rank) | Wish::Leave(rank)) = *wish;
            let (is_there, hold) = (subscriptions.has(rank), held(rank));
            let next = match (*wish, of(rank)) {
                (Wish::Subscribe(_), Some(of)) if !is_there => Some(match hold {
                    Some(hold) => (own, Command::Subscribe(of, hold)),
                    None => (rank, Command::Hold),
                }),
                (Wish::Leave(_), _) if is_there => Some((own, Command::Leave(rank))),
                (Wish::Leave(_), _) => hold.map(|hold| (own, Command::Cancel(rank, hold))),
                _ => None,
            };
            let Some((ring, command)) = next else {
                self.done();
                continue;
            };
            let next = (ring, Notice { partition, command });
            return (self.given != Some(next)).then_some(next);
        }
        None
    }

    /// A ring orders this notice, in this instance or behind it.
    pub const fn on_given(&mut self, given: (Rank, Notice), behind: Instance) {
        self.given = Some(given);
        self.behind = behind;
    }

    /// A hold was ordered in an instance of a ring, and may serve, or does not. Where the one that was given comes to
    /// nothing, another one is given; but not for ever. Returns the ring that this process wanted and is not looked at any
    /// more.
    pub fn on_hold(&mut self, (ring, instance): (Rank, Instance), serves: bool) -> Option<Rank> {
        // A ring that the partition does not have tells all that is kept of it to a process that begins: any number of
        // holds that are spent, before the one that was given.
        let is_old = !serves && instance < self.behind;
        let is_it = |(of, given): &(Rank, Notice)| *of == ring && given.command == Command::Hold;
        self.given.take_if(|given| is_it(given) && !is_old)?;
        self.spent_holds = match serves {
            true => 0,
            false => self.spent_holds + 1,
        };
        let is_over = self.spent_holds >= MOST_HOLDS;
        is_over.then(|| {
            self.done();
            ring
        })
    }

    /// A hold was let go by this command. A later one is the wish of somebody else: two that cancelled and held the same
    /// ring in turns would never come to an end.
    pub fn on_cancelled(&mut self, command: Command) {
        if self
            .given
            .is_some_and(|(_, given)| given.command == command)
        {
            self.done();
        }
    }

    /// A notice was ordered in a round in which the partition does not have that ring: nobody is told of it.
    pub fn on_lost(&mut self, notice: (Rank, Notice)) {
        self.given = self.given.filter(|given| *given != notice);
    }

    /// Some of a ring is missed: the notice that the ring was given may be in there.
    pub fn on_missed(&mut self, ring: Rank) {
        self.given = self.given.filter(|(of, _)| *of != ring);
    }

    /// The wishes that have not come true.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// What was given may be of no use any more: the partition has other rings now.
    pub const fn on_change(&mut self) {
        self.given = None;
    }

    /// A command was ordered, and is void. Returns the ring that this process wants to leave and never will.
    pub fn on_void(&mut self, command: Command, void: Void) -> Option<Rank> {
        let is_own = self
            .given
            .is_some_and(|(_, given)| given.command == command);
        if !is_own {
            return None;
        }
        self.given = None;
        let last = match (command, void) {
            (Command::Leave(rank), Void::LastRing) => Some(rank),
            _ => None,
        };
        if last.is_some() {
            self.done();
        }
        last
    }

    fn done(&mut self) {
        self.waiting.pop_front();
        self.given = None;
        self.spent_holds = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Place;

    fn at(round: u64) -> Place {
        Constants::new(Rank(1)).place(round + 1)
    }

    fn next(
        wishes: &mut Wishes,
        of: &Subscriptions,
        hold: Option<Instance>,
    ) -> Option<(u16, Command)> {
        let next = wishes.next(
            9,
            of,
            (|rank: Rank| Some(Constants::new(rank)), |_: Rank| hold),
        );
        next.map(|(ring, notice)| {
            wishes.on_given((ring, notice), 1);
            (ring.0, notice.command)
        })
    }

    #[test]
    fn a_hold_comes_first_and_each_notice_is_given_once() {
        let (mut wishes, mut of) = (Wishes::default(), Subscriptions::new([Rank(1)]));
        let third = Constants::new(Rank(3));
        assert_eq!(wishes.push(Wish::Subscribe(Rank(3))), Ok(()));
        assert_eq!(next(&mut wishes, &of, None), Some((3, Command::Hold)));
        assert_eq!(next(&mut wishes, &of, None), None, "it is on its way");
        let subscribe = Command::Subscribe(third, 20);
        assert_eq!(next(&mut wishes, &of, Some(20)), Some((1, subscribe)));
        assert_eq!(next(&mut wishes, &of, Some(20)), None);
        let hold = crate::subscribe::Hold {
            rank: Rank(3),
            instance: 20,
        };
        of.subscribe(at(5), third, (hold, 19)).expect("it is held");
        assert_eq!(next(&mut wishes, &of, Some(20)), None);
        of.reach(20);
        wishes.on_change();
        assert_eq!(next(&mut wishes, &of, None), None);
        assert!(wishes.waiting.is_empty(), "it is true");
    }

    #[test]
    fn what_was_void_as_another_change_was_pending_is_given_again() {
        let (mut wishes, mut of) = (Wishes::default(), Subscriptions::new([Rank(1), Rank(2)]));
        let second = Rank(2);
        wishes.push(Wish::Leave(second)).expect("there is room");
        let leave = Some((1, Command::Leave(second)));
        assert_eq!(next(&mut wishes, &of, None), leave);
        let change = of.leave(at(7), Constants::new(Rank(1))).expect("it has it");
        assert_eq!(
            wishes.on_void(Command::Leave(second), Void::Pending(change)),
            None
        );
        assert_eq!(
            next(&mut wishes, &of, None),
            None,
            "not while that is pending"
        );
        of.reach(8);
        wishes.on_change();
        let leave = Some((2, Command::Leave(second)));
        assert_eq!(next(&mut wishes, &of, None), leave, "in a ring that it has");
        let last = wishes.on_void(Command::Leave(second), Void::LastRing);
        assert_eq!(last, Some(Rank(2)));
        assert!(wishes.waiting.is_empty());
    }

    #[test]
    fn a_hold_that_was_let_go_is_given_again() {
        let (mut wishes, of) = (Wishes::default(), Subscriptions::new([Rank(1)]));
        wishes
            .push(Wish::Subscribe(Rank(3)))
            .expect("there is room");
        let hold = Some((3, Command::Hold));
        assert_eq!(next(&mut wishes, &of, None), hold);
        wishes.on_hold((Rank(2), 7), true);
        assert_eq!(next(&mut wishes, &of, None), None, "it is on its way");
        wishes.on_hold((Rank(3), 7), true);
        assert_eq!(next(&mut wishes, &of, None), hold);
    }

    #[test]
    fn what_was_ordered_before_the_partition_had_the_ring_is_given_again() {
        let (mut wishes, of) = (Wishes::default(), Subscriptions::new([Rank(1), Rank(2)]));
        wishes.push(Wish::Leave(Rank(2))).expect("there is room");
        let command = Command::Leave(Rank(2));
        assert_eq!(next(&mut wishes, &of, None), Some((1, command)));
        let notice = Notice {
            partition: 9,
            command,
        };
        wishes.on_lost((Rank(2), notice));
        assert_eq!(
            next(&mut wishes, &of, None),
            None,
            "it is on its way in another"
        );
        wishes.on_lost((Rank(1), notice));
        assert_eq!(next(&mut wishes, &of, None), Some((1, command)));
    }

    #[test]
    fn who_leaves_a_ring_that_it_is_about_to_have_lets_the_hold_go() {
        let (mut wishes, of) = (Wishes::default(), Subscriptions::new([Rank(1)]));
        wishes.push(Wish::Leave(Rank(3))).expect("there is room");
        let cancel = Some((1, Command::Cancel(Rank(3), 20)));
        assert_eq!(next(&mut wishes, &of, Some(20)), cancel);
        assert_eq!(next(&mut wishes, &of, Some(20)), None);
        wishes.on_cancelled(Command::Cancel(Rank(3), 20));
        assert_eq!(next(&mut wishes, &of, Some(24)), None, "another one's hold");
        assert!(wishes.waiting.is_empty());
    }

    #[test]
    fn wishes_are_bounded() {
        let mut wishes = Wishes::default();
        let taken = (0..100)
            .map_while(|_| wishes.push(Wish::Leave(Rank(2))).ok())
            .count();
        assert_eq!(taken, MOST);
        assert_eq!(wishes.push(Wish::Leave(Rank(2))), Err(Refusal::Full));
    }
}
