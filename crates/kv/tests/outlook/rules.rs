//! The rules of the outlook, one by one.

use rota_kv::outlook::{Outlook, Past, Signal};
use rota_kv::{Partition, Partitions};
use rota_multiring::{Place, Rank};

use super::node;

fn place(round: u64) -> Place {
    Place {
        round,
        rank: Rank(9),
        instance: round,
        index: 0,
    }
}

fn of<const N: usize>(partitions: [u16; N]) -> Partitions {
    partitions.map(Partition).into()
}

fn signal(delivered: u64, stable: u64) -> Signal {
    let some = |round| (round > 0).then(|| place(round));
    Signal {
        delivered: some(delivered),
        stable: some(stable),
    }
}

fn first() -> Outlook {
    Outlook::new(Partition(1))
}

/// What a state stands behind: the last commands of these partitions.
fn past<const N: usize>(commands: [(u64, Partitions); N]) -> Past {
    let mut past = Past::default();
    for (round, of) in commands {
        past.note(place(round), &of);
    }
    past
}

#[test]
fn what_stands_behind_a_command_waits_for_all_of_its_partitions() {
    let mut outlook = first();
    assert!(outlook.may_tell(None));
    outlook.on_delivered(place(5), &of([1, 2, 3]));
    assert!(outlook.may_tell(None), "what stands before it does not");
    assert!(!outlook.may_tell(Some(place(5))));
    assert_eq!(outlook.waits_for(), of([2, 3]));
    outlook.on_signal(node(4), Partition(2), signal(5, 0));
    assert_eq!(outlook.waits_for(), of([3]));
    // One that is behind says nothing, another one of the same partition does.
    outlook.on_signal(node(7), Partition(3), signal(4, 4));
    assert!(!outlook.may_tell(Some(place(5))));
    outlook.on_signal(node(8), Partition(3), signal(6, 0));
    assert!(outlook.may_tell(Some(place(5))));
    assert_eq!(outlook.own(), signal(5, 5));
}

#[test]
fn what_concerns_others_only_delays_nobody_here() {
    let mut outlook = first();
    outlook.on_delivered(place(5), &of([2, 3]));
    assert_eq!(outlook.own(), signal(5, 5));
    assert!(outlook.may_tell(Some(place(5))));
    assert!(outlook.waits_for().is_empty());
}

/// The first has not heard that what the second had delivered before with the third is stable there.
#[test]
fn a_partition_s_signal_waits_for_what_concerns_others_there() {
    let mut outlook = first();
    outlook.on_delivered(place(5), &of([2, 3]));
    outlook.on_delivered(place(6), &of([1, 2]));
    outlook.on_signal(node(4), Partition(2), signal(6, 0));
    assert!(!outlook.may_tell(Some(place(6))));
    outlook.on_signal(node(4), Partition(2), signal(6, 5));
    assert!(outlook.may_tell(Some(place(6))));
}

/// What both have delivered before waits for nothing: else each command would wait for the one before it, and a lap each.
#[test]
fn commands_of_the_same_partitions_are_signalled_at_once() {
    let mut outlook = first();
    for round in 1..=1_000 {
        outlook.on_delivered(place(round), &of([1, 2]));
    }
    outlook.on_signal(node(4), Partition(2), signal(1_000, 0));
    assert!(outlook.may_tell(Some(place(1_000))));
}

#[test]
fn who_begins_with_a_state_knows_of_nothing_that_it_is_stable() {
    let mut outlook = first();
    outlook.begin(Some(place(8)), &past([(8, of([1, 2, 3]))]));
    assert!(!outlook.may_tell(Some(place(7))));
    assert_eq!(outlook.own(), signal(8, 0));
    outlook.on_signal(node(4), Partition(2), signal(8, 3));
    assert_eq!(outlook.waits_for(), of([3]));
    outlook.on_signal(node(7), Partition(3), signal(9, 9));
    assert!(outlook.may_tell(Some(place(8))));
}

/// Partitions that it had nothing to do with may be away.
#[test]
fn who_begins_with_a_state_waits_for_those_it_had_to_do_with() {
    let mut outlook = first();
    let commands = [
        (3, of([4, 5])),
        (5, of([2, 3])),
        (7, of([1, 2])),
        (9, of([4, 5])),
    ];
    outlook.begin(Some(place(9)), &past(commands));
    // The third has had to do with the second, and what the first delivered stands behind that.
    assert_eq!(outlook.waits_for(), of([2, 3]));
    outlook.on_signal(node(4), Partition(2), signal(9, 0));
    assert!(!outlook.may_tell(Some(place(7))));
    outlook.on_signal(node(6), Partition(3), signal(9, 0));
    assert!(outlook.may_tell(Some(place(9))));
    // What was before a later command at others counts as if it had been there all the time.
    outlook.on_delivered(place(11), &of([1, 4]));
    outlook.on_signal(node(8), Partition(4), signal(11, 3));
    assert!(!outlook.may_tell(Some(place(11))));
    outlook.on_signal(node(8), Partition(4), signal(11, 9));
    assert!(outlook.may_tell(Some(place(11))));
}

/// Each has had to do with its neighbours only, and the power fails for some of them or for all: nobody waits for ever.
#[test]
fn partitions_that_begin_at_once_do_not_wait_for_each_other() {
    let commands = || past([(3, of([1, 2])), (5, of([2, 3])), (7, of([3, 4]))]);
    for begins in [of([2, 3]), of([1, 2, 3, 4])] {
        let begin = |number| {
            let mut outlook = Outlook::new(Partition(number));
            let is_anew = begins.contains(&Partition(number));
            if is_anew {
                outlook.begin(Some(place(7)), &commands());
            }
            outlook
        };
        let mut all = [1, 2, 3, 4].map(begin);
        let kept = |at: usize| match begins.contains(&Partition(at as u16 + 1)) {
            true => None,
            false => Some(signal(7, 7)),
        };
        for _ in 0..4 {
            let said: Vec<Signal> = all.iter().map(Outlook::own).collect();
            for (to, outlook) in all.iter_mut().enumerate() {
                for (from, said) in said.iter().enumerate().filter(|(from, _)| *from != to) {
                    let number = from as u16 + 1;
                    let said = kept(from).unwrap_or(*said);
                    outlook.on_signal(node(number), Partition(number), said);
                }
            }
        }
        for outlook in all
            .iter()
            .filter(|outlook| outlook.own().delivered.is_some())
        {
            assert_eq!(outlook.own(), signal(7, 7), "{begins:?}");
        }
    }
}

#[test]
fn who_begins_with_a_state_of_its_own_commands_only_waits_for_nobody() {
    let mut outlook = first();
    outlook.begin(Some(place(8)), &past([(8, of([2, 3]))]));
    assert!(outlook.may_tell(Some(place(8))));
    outlook.begin(None, &Past::default());
    assert_eq!(outlook.own(), signal(0, 0));
}

#[test]
fn what_is_stable_at_a_replica_of_the_own_partition_is_so_here() {
    let mut outlook = first();
    outlook.begin(Some(place(8)), &past([(8, of([1, 2, 3]))]));
    outlook.on_delivered(place(9), &of([1, 3]));
    outlook.on_signal(node(2), Partition(1), signal(20, 8));
    assert!(outlook.may_tell(Some(place(8))), "though the third is away");
    assert!(!outlook.may_tell(Some(place(9))));
    // No more than is delivered here.
    outlook.on_signal(node(2), Partition(1), signal(20, 15));
    assert_eq!(outlook.own(), signal(9, 9));
}

/// While a partition is away what waits for it grows without end, and is put together.
#[test]
fn what_waits_is_bounded_and_waits_for_all_of_it() {
    let mut outlook = first();
    for round in 1..20_000 {
        let other = if round % 2 == 0 { 2 } else { 3 };
        outlook.on_delivered(place(round), &of([1, other]));
    }
    assert!(format!("{outlook:?}").len() < 4_000_000);
    outlook.on_signal(node(4), Partition(2), signal(19_999, 19_999));
    assert!(!outlook.may_tell(Some(place(19_998))));
    outlook.on_signal(node(7), Partition(3), signal(19_999, 19_999));
    assert!(outlook.may_tell(Some(place(19_999))));
}

#[test]
fn what_is_remembered_is_bounded_and_what_is_forgotten_counts() {
    let mut outlook = first();
    outlook.on_delivered(place(1), &of([2, 3]));
    for round in 2..10_000 {
        outlook.on_delivered(place(round), &of([1, 3]));
    }
    outlook.on_delivered(place(10_000), &of([1, 2]));
    outlook.on_signal(node(7), Partition(3), signal(10_000, 0));
    outlook.on_signal(node(4), Partition(2), signal(10_000, 0));
    assert!(
        !outlook.may_tell(Some(place(10_000))),
        "the first is not stable"
    );
    outlook.on_signal(node(4), Partition(2), signal(10_000, 1));
    outlook.on_signal(node(7), Partition(3), signal(10_000, 10_000));
    assert!(outlook.may_tell(Some(place(10_000))));
}
