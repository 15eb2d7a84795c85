//! Rules that one engine keeps, whatever the others do: those that random runs hardly ever get to.

use std::sync::Arc;

use bytes::Bytes;
use rota_core::contract::{Delivery, Engine, Input, Time};
use rota_core::mutants::Mutant;
use rota_paxos as paxos;
use rota_paxos::uring::{Head, Record, ResumeFrom, Word, Writer};
use rota_paxos::{Ballot, Config, STATE_LOG, ValueId};

use super::alone::{Alone, FOUNDED, new_here, process, settings};
use super::{
    accounts, archive, base, behind, charters, cut, foundations, full, logs, lost, observers,
    outside, passed, rate, rounds, seats, slow, turns,
};

/// The key of what was promised, in the log of states.
const PROMISED: u64 = 0;

/// A rule, and the broken version that it notices.
pub type Rule = (Mutant, fn() -> bool);

pub const RULES: [Rule; 139] = [
    (Mutant::U150, seats::one_acceptor_changes_at_a_time),
    (
        Mutant::U151,
        seats::no_step_is_taken_before_a_configuration_is_complete,
    ),
    (Mutant::U152, seats::who_has_not_caught_up_is_not_taken_in),
    (Mutant::U153, seats::a_list_follows_the_newest),
    (Mutant::U154, seats::who_begins_at_a_base_knows_the_list),
    (Mutant::U155, seats::the_set_before_is_asked_after_a_step),
    (
        Mutant::U156,
        seats::who_is_left_out_votes_until_that_is_complete,
    ),
    (Mutant::U157, seats::who_is_to_vote_begins_where_it_is),
    (
        Mutant::U158,
        seats::who_lacks_what_a_partition_needs_does_not_offer,
    ),
    (Mutant::U159, seats::who_is_left_out_does_not_coordinate),
    (Mutant::U160, seats::who_offers_to_vote_has_it_on_its_disk),
    (
        Mutant::U162,
        seats::no_configuration_is_complete_before_its_acceptors_know_what_was_decided,
    ),
    (
        Mutant::U161,
        seats::who_offers_to_vote_has_kept_what_others_have_not_learnt,
    ),
    (Mutant::U136, observers::an_observer_is_told_what_is_decided),
    (Mutant::U137, observers::an_observer_orders_nothing),
    (
        Mutant::U138,
        observers::a_silent_acceptor_is_not_watched_for_ever,
    ),
    (Mutant::U139, observers::no_observer_is_taken_in),
    (Mutant::U125, archive::what_is_not_durable_stays_in_memory),
    (Mutant::U126, archive::a_promise_tells_what_only_the_log_has),
    (Mutant::U127, archive::no_other_value_is_told),
    (Mutant::U128, archive::nothing_is_told_behind_a_gap),
    (
        Mutant::U129,
        archive::who_begins_at_a_base_is_told_what_left_memory,
    ),
    (
        Mutant::U130,
        archive::a_question_that_waits_for_the_disk_holds_up_nothing,
    ),
    (Mutant::U131, archive::what_a_log_has_lost_is_forgotten),
    (
        Mutant::U132,
        archive::what_cannot_be_read_back_is_asked_of_others,
    ),
    (Mutant::U133, archive::values_leave_memory),
    (Mutant::U115, accounts::each_partition_counts_for_itself),
    (Mutant::U116, accounts::an_empty_store_has_no_checkpoint),
    (Mutant::U117, accounts::a_pin_keeps_what_is_needed),
    (Mutant::U118, accounts::a_release_names_its_hold),
    (
        Mutant::U123,
        accounts::a_late_release_does_not_hit_who_has_come_back,
    ),
    (Mutant::U119, accounts::what_is_needed_is_kept),
    (
        Mutant::U120,
        accounts::who_begins_at_a_base_knows_who_needs_what,
    ),
    (Mutant::U134, charters::a_ring_is_founded_once),
    (
        Mutant::U135,
        charters::who_begins_at_a_base_knows_which_rings_were_founded,
    ),
    (
        Mutant::U108,
        turns::questions_that_are_given_up_are_not_answered,
    ),
    (
        Mutant::U109,
        turns::what_goes_along_the_ring_leaves_room_for_answers,
    ),
    (
        Mutant::U113,
        turns::who_has_to_be_heard_leaves_room_for_answers,
    ),
    (
        Mutant::U114,
        turns::a_promise_of_a_round_that_is_over_is_not_told,
    ),
    (Mutant::U110, turns::a_small_promise_leaves_at_once),
    (
        Mutant::U111,
        turns::who_votes_as_another_store_is_mute_along_the_ring,
    ),
    (
        Mutant::U112,
        turns::what_is_told_again_brings_no_round_nearer,
    ),
    (Mutant::U98, slow::a_disk_that_fails_again_is_asked_for_less),
    (
        Mutant::U97,
        foundations::a_state_goes_on_with_its_own_foundation,
    ),
    (Mutant::U01, a_promise_waits_for_the_disk),
    (Mutant::U02, an_answer_waits_for_the_disk),
    (Mutant::U03, a_link_that_comes_back_has_lost_proposals),
    (Mutant::U04, a_link_that_comes_back_has_lost_values),
    (Mutant::U08, nobody_is_told_what_is_not_decided),
    (Mutant::U12, who_has_forgotten_is_another_acceptor),
    (Mutant::U13, all_found_it),
    (Mutant::U15, a_link_that_comes_back_has_lost_votes),
    (Mutant::U17, what_was_accepted_outlives_the_process),
    (Mutant::U19, only_the_last_epoch_counts),
    (Mutant::U20, what_was_not_written_is_not_said),
    (Mutant::U24, a_promise_outlives_the_process),
    (Mutant::U27, lost::a_vote_needs_the_value),
    (Mutant::U28, lost::what_is_missing_is_asked_for),
    (Mutant::U29, lost::who_asks_is_brought_the_value),
    (
        Mutant::U31,
        lost::an_own_value_that_is_not_proposed_is_sent_to_the_coordinator,
    ),
    (Mutant::U32, rate::a_slow_acceptor_is_waited_for),
    (
        Mutant::U33,
        rate::values_leave_no_faster_than_links_take_them_in,
    ),
    (Mutant::U34, who_has_no_log_says_so_along_the_ring),
    (Mutant::U35, older_members_are_not_named_behind_later_ones),
    (Mutant::U36, behind::who_lacks_something_promises_again),
    (Mutant::U37, behind::who_lacks_something_asks_for_it),
    (Mutant::U38, behind::who_coordinates_waits),
    (
        Mutant::U39,
        behind::who_may_lack_everything_lets_others_coordinate_once,
    ),
    (
        Mutant::U41,
        behind::when_the_round_has_begun_nobody_promises_again,
    ),
    (
        Mutant::N18,
        logs::what_is_told_to_be_held_is_held_after_a_restart,
    ),
    (Mutant::U45, logs::a_restart_forgets_little),
    (Mutant::U124, logs::a_skip_is_as_durable_as_a_value),
    (Mutant::U45, logs::a_busy_disk_has_hints),
    (
        Mutant::U46,
        logs::any_first_part_of_what_is_written_is_sound,
    ),
    (
        Mutant::U47,
        logs::who_may_have_lost_something_is_another_acceptor,
    ),
    (Mutant::U48, logs::a_disk_that_hangs_is_given_up),
    (Mutant::U49, logs::a_log_that_is_open_again_has_all),
    (Mutant::U51, logs::who_catches_up_does_not_overrun_its_disk),
    (Mutant::U60, logs::who_has_no_log_tells_what_was_decided),
    (Mutant::U63, logs::what_is_learnt_is_told_when_it_is_durable),
    (
        Mutant::U42,
        foundations::what_another_foundation_calls_complete_is_not,
    ),
    (
        Mutant::U42,
        foundations::words_of_another_foundation_are_not_heard,
    ),
    (
        Mutant::U43,
        foundations::configurations_of_another_foundation_are_not_taken,
    ),
    (
        Mutant::U44,
        foundations::what_is_complete_is_so_after_a_restart,
    ),
    (Mutant::U52, foundations::a_cluster_is_founded_once),
    (
        Mutant::U69,
        foundations::who_holds_nothing_tells_no_new_acceptor,
    ),
    (
        Mutant::U58,
        foundations::what_the_register_has_promised_outlives_the_process,
    ),
    (
        Mutant::U50,
        rounds::who_cannot_vote_any_more_asks_for_another_round,
    ),
    (
        Mutant::U53,
        rounds::a_round_takes_as_long_to_begin_as_there_is_to_tell,
    ),
    (Mutant::U54, rounds::who_coordinates_sees_that_nobody_votes),
    (Mutant::U55, rounds::a_candidate_gives_slow_disks_time),
    (Mutant::U65, rounds::who_comes_waits_while_promises_do),
    (
        Mutant::U66,
        behind::a_promise_leaves_room_for_what_is_said_beside_it,
    ),
    (Mutant::U70, behind::what_many_voted_for_at_once_is_learnt),
    (Mutant::U67, base::members_are_named_again_each_time_later),
    (Mutant::U64, a_promise_waits_for_the_disk),
    (Mutant::N23, cut::what_others_have_forgotten_is_kept),
    (Mutant::U26, cut::who_begins_at_a_base_is_told_the_members),
    (Mutant::U56, cut::so_many_instances_are_kept),
    (
        Mutant::U57,
        cut::a_slow_application_misses_only_what_is_forgotten,
    ),
    (Mutant::U59, cut::what_a_life_has_begun_ends_with_it),
    (Mutant::U61, cut::a_message_that_does_not_end_is_let_go),
    (Mutant::U68, cut::own_messages_that_are_let_go_are_missed),
    (
        Mutant::U62,
        cut::who_begins_at_a_base_can_tell_it_after_a_restart,
    ),
    (
        Mutant::U71,
        foundations::one_that_is_left_of_another_foundation_takes_nobody_in,
    ),
    (
        Mutant::U72,
        slow::what_speaks_of_votes_is_written_behind_them,
    ),
    (Mutant::U73, slow::where_all_wait_a_disk_gets_no_more_time),
    (Mutant::U74, slow::a_slow_disk_is_asked_for_less),
    (Mutant::U75, slow::who_votes_by_its_own_list_only_does_not),
    (Mutant::U76, slow::who_refills_its_log_hands_on),
    (Mutant::U77, slow::who_has_a_full_disk_takes_nothing),
    (
        Mutant::U78,
        slow::where_time_outs_are_short_candidates_wait_for_disks,
    ),
    (
        Mutant::U80,
        logs::what_is_forgotten_others_know_after_a_restart,
    ),
    (
        Mutant::U81,
        slow::quick_answers_to_little_say_nothing_of_much,
    ),
    (
        Mutant::U82,
        slow::an_answer_behind_another_one_was_not_quick,
    ),
    (
        Mutant::U83,
        logs::a_coordinator_with_a_slow_disk_learns_what_others_vote_for,
    ),
    (
        Mutant::U84,
        rounds::where_configurations_do_not_last_silence_lasts_longer,
    ),
    (
        Mutant::U99,
        rounds::a_predecessor_that_says_something_else_lives,
    ),
    (
        Mutant::U100,
        rounds::a_coordinator_whose_log_is_open_again_promises_itself,
    ),
    (Mutant::U101, rounds::who_votes_from_the_start_is_not_mute),
    (
        Mutant::U102,
        outside::who_waits_outside_is_taken_in_where_a_log_is_away,
    ),
    (
        Mutant::U103,
        outside::who_waits_asks_though_the_others_go_on,
    ),
    (Mutant::U104, outside::a_ring_that_cannot_decide_is_not_well),
    (
        Mutant::U105,
        outside::who_is_left_out_of_rings_that_decide_nothing_waits_longer,
    ),
    (
        Mutant::U106,
        outside::a_coordinator_puts_its_own_store_in_place,
    ),
    (
        Mutant::U107,
        rounds::who_has_no_link_to_its_predecessor_is_left_out_by_it,
    ),
    (
        Mutant::U85,
        outside::who_is_left_out_again_and_again_waits_longer,
    ),
    (
        Mutant::U86,
        outside::who_waits_outside_is_taken_in_where_it_is_needed,
    ),
    (
        Mutant::U87,
        outside::a_ring_that_is_well_is_not_taken_apart_from_outside,
    ),
    (
        Mutant::U121,
        outside::a_candidate_goes_beyond_what_its_own_acceptor_has_promised,
    ),
    (
        Mutant::U122,
        outside::who_is_outside_leaves_a_coordinator_that_is_back_in_peace,
    ),
    (
        Mutant::U88,
        outside::where_a_service_decides_who_is_outside_waits,
    ),
    (Mutant::U79, logs::who_catches_up_does_not_overrun_its_disk),
    (
        Mutant::U89,
        full::a_coordinator_proposes_what_its_disk_has_room_for,
    ),
    (Mutant::U90, full::who_follows_is_not_asked_behind_votes),
    (
        Mutant::U91,
        full::what_is_complete_is_not_written_behind_votes,
    ),
    (
        Mutant::U92,
        passed::it_is_told_up_to_where_nothing_is_missing,
    ),
    (Mutant::U93, passed::skips_are_absolute),
    (
        Mutant::U94,
        passed::what_is_needed_is_said_until_it_is_known,
    ),
];

/// What an old coordinator proposed may be decided behind what a later one did.
fn older_members_are_not_named_behind_later_ones() -> bool {
    let mut table = paxos::Proposers::default();
    table.install(7, &[process(1, 2)]);
    table.install(5, &[process(1, 1)]);
    table.members().eq([process(1, 2)])
}

/// The second of three, in the first configuration.
pub fn second() -> Alone {
    let mut alone = Alone::new(process(2, 1), Vec::new());
    alone.join();
    alone
}

fn ballot(count: u64) -> Ballot {
    let by = process(1, 1);
    Ballot { count, by }
}

fn ask(word: paxos::Word<Arc<Config>>) -> Vec<u8> {
    Word::Ask(2, word).encode(FOUNDED)
}

/// The third wants what comes from this instance on.
pub fn follow(alone: &mut Alone, epoch: u32, next: u64) {
    let round = 1;
    let follow = ResumeFrom { round, epoch, next };
    alone.hear(3, Word::ResumeFrom(follow, Vec::new()).encode(FOUNDED));
}

/// The first sends what is put in it, from the first instance on.
fn batch(alone: &mut Alone, write: impl FnOnce(&mut Writer)) {
    let epoch = alone.follow().epoch;
    batch_of(alone, epoch, 1, write);
}

pub fn batch_of(alone: &mut Alone, epoch: u32, from: u64, write: impl FnOnce(&mut Writer)) {
    batch_by(alone, 1, (epoch, from), write);
}

/// A batch of this node, with proposals from an instance on.
pub fn batch_by(
    alone: &mut Alone,
    who: u16,
    (epoch, from): (u32, u64),
    write: impl FnOnce(&mut Writer),
) {
    hear_batch(alone, who, &head(1, epoch, (1, from)), write);
}

/// Of a round that starts at an instance, with proposals from another one on.
pub const fn head(round: u64, epoch: u32, (start, from): (u64, u64)) -> Head {
    Head {
        founded: FOUNDED,
        round,
        epoch,
        start,
        kept: 1,
        from,
        complete: false,
    }
}

/// A batch of this node.
pub fn hear_batch(alone: &mut Alone, who: u16, head: &Head, write: impl FnOnce(&mut Writer)) {
    let mut batch = Writer::new(head, 10_000, 10_000);
    write(&mut batch);
    alone.hear(who, batch.finish().into_bytes());
}

fn a_promise_waits_for_the_disk() -> bool {
    let mut alone = second();
    alone.hear(1, Word::Prepare(1, 1).encode(FOUNDED));
    let early = alone.has_promised(1);
    alone.write();
    !early && alone.has_promised(1)
}

fn an_answer_waits_for_the_disk() -> bool {
    let mut alone = second();
    alone.hear(1, ask(paxos::Word::Prepare(ballot(1))));
    let early = alone.answer();
    alone.write();
    early.is_none() && alone.answer() == Some(paxos::Word::Promise(ballot(1), None))
}

fn what_was_not_written_is_not_said() -> bool {
    let mut alone = second();
    alone.hear(1, ask(paxos::Word::Prepare(ballot(1))));
    alone.fail();
    alone.answer().is_none()
}

/// The coordinator may have no link to it, and would wait for its votes.
fn who_has_no_log_says_so_along_the_ring() -> bool {
    let mut alone = second();
    follow(&mut alone, 1, 0);
    batch(&mut alone, |_| {});
    alone.hear(1, ask(paxos::Word::Prepare(ballot(1))));
    let says = |alone: &mut Alone| {
        alone.now = Time(alone.now.0 + 1_000_000_000);
        alone.tell(Input::Timer);
        let records = alone.batches.iter().flatten();
        records
            .filter(|record| **record == Record::LogFailed(1))
            .count()
    };
    let before = says(&mut alone);
    alone.fail();
    before == 0 && says(&mut alone) == 1 && says(&mut alone) == 1
}

fn what_was_accepted_outlives_the_process() -> bool {
    let mut alone = second();
    let next = alone.config(2);
    alone.hear(1, ask(paxos::Word::Accept(ballot(3), next.clone())));
    alone.write();
    let mut again = Alone::new(process(2, 2), alone.records_without(None));
    again.link(process(1, 1));
    again.hear(1, ask(paxos::Word::Prepare(ballot(4))));
    again.write();
    let accepted = Some((ballot(3), next));
    again.answer() == Some(paxos::Word::Promise(ballot(4), accepted))
}

/// Who was restarted promises nothing below what it had promised.
fn a_promise_outlives_the_process() -> bool {
    let mut records = second().records_without(Some(PROMISED));
    let promised = 9_u64.to_le_bytes().to_vec();
    records.push((STATE_LOG, PROMISED, promised.into()));
    let mut again = Alone::new(process(2, 2), records);
    again.link(process(1, 1));
    let mut ask = |number: u64| {
        let known = Word::Known(again.config(number));
        again.hear(1, known.encode(FOUNDED));
        again.hear(1, Word::Prepare(number, 1).encode(FOUNDED));
        again.write();
        again.has_promised(number)
    };
    !ask(5) && ask(10)
}

fn who_has_forgotten_is_another_acceptor() -> bool {
    let of = |life| {
        let mut alone = Alone::new(process(2, life), Vec::new());
        alone.link(process(1, 1));
        alone.votes_as()
    };
    of(1) != of(2)
}

/// The cluster is founded when all acceptors are there.
fn all_found_it() -> bool {
    let mut first = Alone::new(process(1, 1), Vec::new());
    let mut comes = |node: u16| {
        first.link(process(node, 1));
        first.hear(node, new_here(node).encode(FOUNDED));
        let early = first.engine.number() == 1;
        first.write();
        (early, first.engine.number() == 1)
    };
    comes(2) == (false, false) && comes(3) == (false, true)
}

/// What was sent before the predecessor was told where to begin is not taken in.
fn only_the_last_epoch_counts() -> bool {
    let mut alone = second();
    let epoch = alone.follow().epoch;
    batch_of(&mut alone, epoch.wrapping_sub(1), 1, |batch| batch.skip(1));
    let early = alone.engine.is_operational();
    batch_of(&mut alone, epoch, 1, |batch| batch.skip(1));
    !early && alone.engine.is_operational()
}

fn a_link_that_comes_back_has_lost_values() -> bool {
    let mut alone = second();
    alone.submit(b"value");
    let is_value = |record: &Record| matches!(record, Record::Value(id, _) if id.counter == 1);
    let mut sent = |epoch| {
        alone.batches.clear();
        follow(&mut alone, epoch, 0);
        alone.batches.iter().flatten().any(is_value)
    };
    sent(1) && sent(2)
}

fn a_link_that_comes_back_has_lost_proposals() -> bool {
    let mut alone = second();
    batch(&mut alone, |batch| batch.skip(4));
    let is_proposal = |record: &Record| matches!(record, Record::Proposal(_));
    let mut sent = |epoch| {
        alone.batches.clear();
        follow(&mut alone, epoch, 1);
        alone.batches.iter().flatten().any(is_proposal)
    };
    sent(1) && sent(2)
}

fn a_link_that_comes_back_has_lost_votes() -> bool {
    let mut alone = second();
    batch(&mut alone, |batch| {
        batch.skip(4);
        batch.voted(0, 5);
    });
    follow(&mut alone, 1, 5);
    let mut sent = alone.batches.iter().flatten();
    sent.any(|record| *record == Record::Voted(0, 5))
}

/// The second's own vote for what it is asked for is not durable, and it knows of no other.
fn nobody_is_told_what_is_not_decided() -> bool {
    let mut alone = second();
    batch(&mut alone, |batch| batch.skip(4));
    alone.hear(3, Word::Fetch(1, 5).encode(FOUNDED));
    alone.has_said(&Word::Chosen(Vec::new()))
}

/// Values of the third process, of one message each.
pub fn values() -> Vec<(ValueId, Bytes)> {
    values_of(30, 100)
}

/// So many of them, with messages of so many bytes.
pub fn values_of(count: usize, bytes: usize) -> Vec<(ValueId, Bytes)> {
    let mut third = Alone::new(process(3, 1), Vec::new());
    third.join();
    let (round, epoch, next) = (1, 1, 0);
    let follow = ResumeFrom { round, epoch, next };
    third.hear(1, Word::ResumeFrom(follow, Vec::new()).encode(FOUNDED));
    for _ in 0..count {
        third.submit(&vec![7; bytes]);
        third.room();
    }
    let records = third.batches.into_iter().flatten();
    let value = |record| match record {
        Record::Value(id, frame) => Some((id, frame)),
        _ => None,
    };
    records.filter_map(value).collect()
}

/// Its log fails while there is more than its application takes.
fn a_slow_application_misses_nothing() -> bool {
    let mut settings = settings();
    settings.learner.waiting_bytes = 600;
    let mut alone = Alone::with(settings, process(2, 1), Vec::new());
    alone.join();
    let (epoch, values) = (alone.follow().epoch, values());
    assert_eq!(values.len(), 30);
    let ring = alone.config(1).ring.clone();
    batch_of(&mut alone, epoch, 1, |batch| {
        batch.members(1, &ring);
        for (id, frame) in &values[..20] {
            batch.packet(None, *id, frame, true);
        }
        batch.voted(0, 22);
    });
    alone.write();
    batch_of(&mut alone, epoch, 22, |batch| {
        for (id, frame) in &values[20..] {
            batch.packet(None, *id, frame, true);
        }
    });
    alone.fail();
    batch_of(&mut alone, epoch, 32, |batch| {
        batch.voted(0, 32);
        batch.voted(2, 32);
    });
    let mut counters = Vec::new();
    for _ in 0..100 {
        let next = std::iter::from_fn(|| alone.engine.poll_delivery());
        counters.extend(next.filter_map(|delivery| match delivery {
            Delivery::Message(message) => Some(message.id.counter),
            _ => None,
        }));
        alone.tell(Input::Timer);
    }
    counters == (1..=30).collect::<Vec<u64>>()
}

/// Phase 1 of a coordinator whose acceptors do not appear: nothing is asked again and again.
fn a_coordinator_alone_is_quiet() -> bool {
    let mut first = Alone::new(process(1, 1), Vec::new());
    first.join();
    first.said.clear();
    for second in 1..60 {
        first.now = Time(second * 1_000_000_000);
        first.tell(Input::Timer);
    }
    let prepares = first.said.iter();
    prepares
        .filter(|word| matches!(word, Word::Prepare(..)))
        .count()
        == 0
        && first.said.len() < 600
}

/// All of them hold.
#[cfg(not(feature = "mutants"))]
#[test]
fn rules() {
    for (at, (mutant, rule)) in RULES.iter().enumerate() {
        assert!(rule(), "rule {at}, {mutant}");
    }
    assert!(a_slow_application_misses_nothing());
    assert!(a_coordinator_alone_is_quiet());
    assert!(behind::who_lacks_much_asks_for_more_at_once());
    assert!(cut::no_record_grows_with_a_message_that_is_cut());
    assert!(logs::what_is_proposed_again_does_not_overrun_the_disk());
    assert!(lost::who_has_asked_waits());
    assert!(lost::what_comes_together_leaves_together());
    assert!(lost::what_is_of_no_use_is_counted());
    assert!(lost::a_value_goes_along_the_ring_if_there_is_no_other_way());
}
