//! Rules of merge, leveling and subscriptions.

use super::rule;
use super::world::{Learner, Ring, ring};
use rota_multiring::level::{Leveler, Mode, Standing};
use rota_multiring::{Merge, Rank};

#[test]
fn subscriptions() {
    assert!(rule::a_subscription_begins_where_it_is_ordered_to());
    assert!(rule::changes_follow_each_other());
    assert!(rule::a_hold_serves_once());
    assert!(rule::a_hold_is_released_when_it_serves_nobody());
    assert!(rule::what_is_forgotten_ends_the_order());
}

/// What was pushed is not pushed again, also when it was delivered.
#[test]
fn nothing_is_pushed_twice() {
    let mut merge = Merge::new([ring(1, 1, 0)]);
    let push = |merge: &mut Merge<u32>, at| merge.push(Rank(1), at, (7, 1));
    assert!(push(&mut merge, (5, 1)).is_ok());
    assert!(merge.poll().is_some());
    for at in [(5, 1), (5, 0), (4, 9)] {
        assert!(push(&mut merge, at).is_err(), "{at:?}");
    }
    assert!(push(&mut merge, (5, 2)).is_ok());
}

/// Two replicas that hear of a ring that they subscribe to, and of one that they leave, at different times, deliver the same.
#[test]
fn subscriptions_change_at_a_round() {
    let rings = [1, 2, 3].map(|rank| Ring {
        of: ring(rank, 1 + u32::from(rank) % 2, 0),
        decided: vec![1; 60],
    });
    let [first, second, third] = &rings;
    let run = |early: u64, late: u64| {
        let mut learner = Learner::new(&[first, second]);
        for step in 0..200 {
            if step == early {
                let next = third.of.first_of(20);
                let added = learner.merge.subscribe(third.of, 20, next);
                added.expect("it has not ended");
                learner.told.insert(Rank(3), next);
            }
            if step == late {
                learner.merge.unsubscribe(Rank(2), 15);
            }
            learner.tell(first);
            if !learner.merge.rings().any(|of| of.rank == Rank(2)) {
                learner.told.remove(&Rank(2));
            } else {
                learner.tell(second);
            }
            if learner.merge.rings().any(|of| of.rank == Rank(3)) {
                learner.tell(third);
            }
            // Round 15 is not reached before both are said.
            if step >= early.max(late) {
                learner.drain();
                learner.merge.take_ended();
            }
        }
        learner.delivered
    };
    let delivered = run(0, 0);
    let of = |rank: u16, rounds: std::ops::Range<u64>| {
        let of = delivered.iter().filter(|place| place.rank == Rank(rank));
        assert!(of.clone().all(|place| rounds.contains(&place.round)));
        of.count()
    };
    assert_eq!(
        (of(2, 0..15), of(1, 0..40) > 40, of(3, 20..40) >= 18),
        (15, true, true)
    );
    for (early, late) in [(0, 9), (9, 0), (5, 8), (12, 12)] {
        assert_eq!(run(early, late), delivered);
    }
    let mut merge: Merge<u32> = Merge::new([first.of]);
    assert!(merge.subscribe(first.of, 9, 10).is_err(), "it is there");
}

/// Skips that are proposed in part, or not at all, are asked for again.
#[test]
fn what_was_not_skipped_is_asked_for_again() {
    let mut level = Leveler::new(ring(1, 2, 0), Mode::Pull);
    let at = |next| Standing {
        now: 0,
        next,
        decided: next,
    };
    assert!(level.on_need(99));
    let to = level.skip_to(at(1));
    assert_eq!(to, Some(201));
    assert_eq!(level.skip_to(at(1)), to, "nobody has proposed it");
    level.on_skipped(1, 50, 0);
    assert_eq!(
        level.skip_to(at(50)),
        to,
        "that was decided, and is not enough"
    );
    level.on_skipped(50, 201, 0);
    assert_eq!(level.skip_to(at(201)), None);
    assert_eq!(level.counters().skipped, 200);
}

/// A value of another ring that is announced is as good as a need, and bounded like one.
#[test]
fn an_announced_round_is_skipped_to() {
    let mut level = Leveler::new(ring(1, 4, 0), Mode::Pull);
    let at = Standing {
        now: 0,
        next: 1,
        decided: 1,
    };
    level.on_announced(Rank(2), u64::MAX, 1);
    assert_eq!((level.skip_to(at), level.counters().refused), (None, 1));
    level.on_announced(Rank(2), 2, 1);
    assert_eq!(level.skip_to(at), Some(13));
}

#[test]
fn needs() {
    assert!(rule::who_is_idle_needs_its_ring_for_what_others_skip());
    assert!(rule::several_that_are_idle_are_all_needed());
    assert!(rule::a_round_that_is_waited_for_is_needed());
    assert!(rule::what_stands_behind_a_message_needs_another_ring());
}

#[test]
fn leveling() {
    assert!(rule::skips_move_no_horizon());
    assert!(rule::a_need_far_ahead_is_granted());
}

/// One skip for each decision, however many wait, and none while nobody does.
#[test]
fn pull_skips_once_for_each_decision() {
    let mut level = Leveler::new(ring(1, 4, 0), Mode::Pull);
    let at = |next, decided| Standing {
        now: 0,
        next,
        decided,
    };
    assert_eq!(level.skip_to(at(1, 1)), None);
    assert_eq!(level.due(), None);
    for round in 0..10 {
        assert!(level.on_need(round));
    }
    assert_eq!(level.skip_to(at(1, 1)), Some(41));
    level.on_skipped(1, 41, 0);
    assert!(level.on_need(20));
    assert_eq!(level.skip_to(at(41, 1)), None, "the first is not decided");
    assert_eq!(level.skip_to(at(41, 41)), Some(85));
    level.on_skipped(41, 85, 0);
    assert_eq!(level.skip_to(at(85, 85)), None);
    assert_eq!(level.counters().skips, 2);
}

/// The paper's rate: what is missing from it, each delta, to the instance, over an hour.
#[test]
fn paper_keeps_its_rate() {
    let (delta, lambda) = (5_000_000, 9000);
    let mut level = Leveler::new(ring(1, 1, 0), Mode::Paper { delta, lambda });
    let (mut next, mut now) = (1, 77);
    assert_eq!(
        level.skip_to(Standing {
            now,
            next,
            decided: 1
        }),
        None
    );
    for _ in 0..720_000 {
        now = level.due().expect("it has a rate");
        next = level
            .skip_to(Standing {
                now,
                next,
                decided: next,
            })
            .unwrap_or(next);
    }
    assert_eq!(next, 1 + 9000 * 3600);
    // Values count, too: a ring that is faster than its rate skips nothing.
    let busy = Standing {
        now: now + delta,
        next: next + 1000,
        decided: next,
    };
    assert_eq!(level.skip_to(busy), None);
}

/// A ring that has decided a hundred times, with a value each, while another one had values in `rounds` rounds: what comes next, and when. A
/// decision takes ten nanoseconds.
fn paced(mode: Mode, rounds: u64) -> (Leveler, u64, u64) {
    let mut level = Leveler::new(ring(1, 1, 0), mode);
    let mut now = 0;
    for value in 1..=100 {
        level.on_value(value, now);
        level.on_announced(Rank(2), 0, rounds);
        now += 10;
        let decided = Standing {
            now,
            next: value + 1,
            decided: value + 1,
        };
        // It sees the decision; what it would skip is left to the tests.
        let _ = level.skip_to(decided);
        now += 1000;
    }
    (level, 101, now)
}

/// Behind a value, and when half of it is used, a seldom used ring is ahead of the others; while nothing is said of them, it
/// is not.
#[test]
fn a_horizon_is_ahead() {
    let at = |now, next| Standing {
        now,
        next,
        decided: next,
    };
    let (mut level, next, now) = paced(Mode::Horizon, 0);
    level.on_value(next, now);
    assert_eq!(level.skip_to(at(now + 10, next + 1)), None);

    let (mut level, next, now) = paced(Mode::Horizon, 500);
    level.on_value(next, now);
    level.on_announced(Rank(2), 0, 500);
    let to = level.skip_to(at(now + 10, next + 1)).expect("it is due");
    assert!((1090..=1110).contains(&to), "{to}");
}

/// Nobody waits behind a value of a horizon for longer than for the value: the skip behind it does not wait until an
/// earlier one is decided. Where eight values come within one decision the next ones are followed by none.
#[test]
fn a_horizon_is_ahead_behind_each_value_unless_they_come_often() {
    for (apart, often) in [(2, false), (1, true)] {
        let (mut level, mut next, mut now) = paced(Mode::Horizon, 500);
        let decided = next;
        for value in 0..16 {
            level.on_value(next, now);
            next += 1;
            let to = level.skip_to(Standing { now, next, decided });
            assert_eq!(to.is_none(), often && value >= 8, "{apart} {value}");
            if let Some(to) = to {
                level.on_skipped(next, to, now);
                next = to;
            }
            now += apart;
        }
    }
}

/// A ring to which nothing was ever sent goes ahead as well, as soon as the others have come to where it is.
#[test]
fn a_horizon_needs_no_value_of_its_own() {
    let mut level = Leveler::new(ring(1, 1, 0), Mode::Horizon);
    let at = |now, next, decided| Standing { now, next, decided };
    level.on_announced(Rank(2), 1, 1);
    let first = level.skip_to(at(0, 1, 1)).expect("it is needed");
    level.on_skipped(1, first, 0);
    // While that is decided the others have a hundred rounds.
    level.on_announced(Rank(2), 101, 100);
    assert_eq!(level.skip_to(at(50, first, 1)), None, "not decided yet");
    let to = level.skip_to(at(100, first, first)).expect("passed");
    assert!((120..=330).contains(&to), "{to}");
}

/// A ring that seldom speaks goes so far ahead of one that is busy that a skip for every other decision will do; not while it is busy itself.
#[test]
fn pull_goes_ahead_of_who_is_busy() {
    let (mut level, next, now) = paced(Mode::Pull, 10);
    let at = |now, next| Standing {
        now,
        next,
        decided: next,
    };
    assert_eq!(
        level.skip_to(at(now, next)),
        None,
        "nobody has come further"
    );
    level.on_announced(Rank(2), 200, 1);
    let to = level.skip_to(at(now, next)).expect("somebody has");
    assert!((240..=243).contains(&to), "{to}");
    level.on_skipped(next, to, now);
    let (mut skips, mut decided) = (0, (now + 10, to));
    let (mut next, mut now) = (to, now);
    for round in 201..=1200 {
        // Ten rounds in each decision, one each nanosecond.
        now += 1;
        level.on_announced(Rank(2), round, 1);
        assert!(next > round, "{round} waits for a skip");
        let standing = Standing {
            decided: if now < decided.0 { 1 } else { decided.1 },
            ..at(now, next)
        };
        if let Some(to) = level.skip_to(standing) {
            level.on_skipped(next, to, now);
            (next, skips, decided) = (to, skips + 1, (now + 10, to));
        }
    }
    assert!((25..=60).contains(&skips), "{skips}");
    level.on_value(next, now);
    level.on_announced(Rank(2), next + 5, 1);
    let to = level.skip_to(at(now + 1, next + 1));
    assert_eq!(to, Some(next + 7), "no further than is needed");
}

/// When others come half as far as was skipped, it skips further; and it answers needs as well.
#[test]
fn a_horizon_stays_ahead() {
    let (mut level, next, now) = paced(Mode::Horizon, 500);
    let at = |next| Standing {
        now: now + 10,
        next,
        decided: next,
    };
    level.on_value(next, now);
    level.on_announced(Rank(2), 0, 500);
    let to = level.skip_to(at(next + 1)).expect("it is due");
    level.on_skipped(next + 1, to, now + 10);
    level.on_announced(Rank(2), 500, 1);
    assert_eq!(level.skip_to(at(to)), None, "less than half is used");
    level.on_announced(Rank(2), 700, 1);
    let further = level.skip_to(at(to)).expect("half is used");
    assert!((1690..=2210).contains(&further), "{further}");
    level.on_skipped(to, further, now + 10);
    assert!(level.on_need(5000), "and a need is answered as with pull");
    assert_eq!(level.skip_to(at(further)), Some(5002));
}

#[test]
fn where_a_ring_that_is_founded_begins() {
    assert!(rule::a_ring_is_founded_behind_what_others_have_passed());
    assert!(rule::a_ring_is_founded_nearby());
}
