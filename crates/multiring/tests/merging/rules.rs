//! Rules of merge, leveling and subscriptions.

use super::rule;
use super::world::ring;
use rota_multiring::level::{Leveler, Mode, Standing};

#[test]
fn subscriptions() {
    assert!(rule::a_subscription_begins_where_it_is_ordered_to());
    assert!(rule::changes_follow_each_other());
}

#[test]
fn needs() {
    assert!(rule::who_is_idle_needs_its_ring_for_what_others_skip());
    assert!(rule::a_round_that_is_waited_for_is_needed());
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
    assert!(level.on_need(20));
    assert_eq!(level.skip_to(at(41, 1)), None, "the first is not decided");
    assert_eq!(level.skip_to(at(41, 41)), Some(85));
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

/// Behind a value, and when half of it is used, a seldom used ring is ahead of the others; while nothing is said of them it is not.
#[test]
fn a_horizon_is_ahead() {
    let mut level = Leveler::new(ring(1, 1, 0), Mode::Horizon);
    let at = |next| Standing {
        now: 0,
        next,
        decided: next,
    };
    level.on_value(1);
    assert_eq!(level.skip_to(at(2)), None);
    for _ in 0..100 {
        level.on_others(500, 0);
    }
    let to = level.skip_to(at(2)).expect("it is due");
    assert!((990..1010).contains(&to), "{to}");
    level.on_announced(400);
    assert_eq!(level.skip_to(at(to)), None, "less than half is used");
    level.on_announced(600);
    let further = level.skip_to(at(to)).expect("half is used");
    assert!((1590..=2010).contains(&further), "{further}");
    assert!(level.on_need(5000), "and a need is answered as with pull");
    assert_eq!(level.skip_to(at(further)), Some(5002));
}
