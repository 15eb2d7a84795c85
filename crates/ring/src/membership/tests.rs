//! The parts of membership that know neither time nor network.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use super::evidence::{BackOff, Refusals};
use super::plan::Plan;
use super::ring_seq::{RING_SEQ_LOG, RingSeq};
use super::sets::{Sets, Verdict};
use super::wrap::{unwrap, wrap};
use crate::OldPacket;
use crate::wire::{Commit, Join, MAX_JOIN_PROCESSES, OldRing, WRAPPER_BYTES};
use rota_core::contract::{
    Incarnation, LogRecord, NodeId, Output, PersistId, Process, RingId, Service, StartState, Time,
};
use rota_core::wire::{Frame, RequestRange, push_first, push_whole, start_frame};

fn node(id: u16) -> NodeId {
    NodeId::new(id).unwrap()
}

fn life(id: u16, incarnation: u64) -> Process {
    Process {
        node: node(id),
        incarnation: Incarnation(incarnation),
    }
}

fn process(id: u16) -> Process {
    life(id, 1)
}

fn set(ids: &[u16]) -> BTreeSet<Process> {
    ids.iter().copied().map(process).collect()
}

mod sets {
    use super::*;

    fn sets(procs: &[u16], fails: &[u16]) -> Sets {
        Sets::new(set(procs), set(fails))
    }

    fn join(sender: u16, procs: &[u16], fails: &[u16]) -> Join {
        Join {
            cluster: 1,
            sender: process(sender),
            ring_seq: 1,
            leaving: false,
            procs: set(procs),
            fails: set(fails),
        }
    }

    /// Checks the verdict, and the sets of process 1 after the join.
    #[track_caller]
    fn check(before: &Sets, join: &Join, verdict: Verdict, procs: &[u16], fails: &[u16]) {
        let mut after = before.clone();
        assert_eq!(after.process(process(1), join), verdict);
        assert_eq!((after.procs(), after.fails()), (&set(procs), &set(fails)));
    }

    #[test]
    fn the_same_sets_agree() {
        let before = sets(&[1, 2, 3], &[3]);
        let same = join(2, &[1, 2, 3], &[3]);
        check(&before, &same, Verdict::Agrees, &[1, 2, 3], &[3]);
    }

    #[test]
    fn who_knows_less_is_behind() {
        let before = sets(&[1, 2, 3], &[3]);
        for less in [
            join(2, &[1, 2], &[3]),
            join(2, &[1, 2, 3], &[]),
            join(2, &[2], &[]),
        ] {
            check(&before, &less, Verdict::Behind, &[1, 2, 3], &[3]);
        }
    }

    #[test]
    fn who_was_given_up_brings_no_news() {
        let before = sets(&[1, 2, 3], &[3]);
        let news = join(3, &[1, 2, 3, 4], &[2]);
        check(&before, &news, Verdict::GivenUp, &[1, 2, 3], &[3]);
    }

    #[test]
    fn who_was_given_up_agrees_only_with_the_same_sets() {
        // The sets of its join cannot be the same: a process that does not leave is not in its own fail set.
        let before = sets(&[1, 2, 3], &[3]);
        check(
            &before,
            &join(3, &[3], &[]),
            Verdict::Behind,
            &[1, 2, 3],
            &[3],
        );
    }

    #[test]
    fn news_of_both_kinds_are_merged() {
        let before = sets(&[1, 2], &[]);
        check(
            &before,
            &join(3, &[3], &[]),
            Verdict::Merged,
            &[1, 2, 3],
            &[],
        );
        let more = join(2, &[1, 2, 4], &[4]);
        check(&before, &more, Verdict::Merged, &[1, 2, 4], &[4]);
        // Less of one set and more of the other is news, too.
        let mixed = join(2, &[2], &[5]);
        check(&before, &mixed, Verdict::Merged, &[1, 2], &[5]);
    }

    /// No ring is wanted with the sender, joins to others do not name it, and the rest of its join does not count.
    #[test]
    fn who_has_given_me_up_is_not_spoken_of() {
        let mut sets = sets(&[1, 2, 3], &[]);
        let against = join(2, &[1, 2, 3, 4], &[1, 3]);
        assert_eq!(sets.process(process(1), &against), Verdict::Merged);
        assert_eq!(sets.process(process(1), &against), Verdict::Behind);
        assert_eq!(sets.members(), [process(1), process(3)]);
        assert_eq!((sets.said(), sets.fails()), (set(&[1, 3]), &set(&[])));
        // The third still waits for it, and so does not agree.
        let waits = join(3, &[1, 2, 3], &[]);
        assert_eq!(sets.process(process(1), &waits), Verdict::Behind);
        // The third has given the second up itself, so joins say so.
        let given_up = join(3, &[1, 2, 3], &[2]);
        assert_eq!(sets.process(process(1), &given_up), Verdict::Merged);
        assert_eq!((sets.said(), sets.fails()), (set(&[1, 2, 3]), &set(&[2])));
        assert_eq!(sets.process(process(1), &given_up), Verdict::Agrees);
    }

    #[test]
    fn who_wants_me_again_is_wanted() {
        let mut sets = sets(&[1, 2, 3], &[]);
        sets.process(process(1), &join(2, &[1, 2, 3], &[1]));
        let again = join(2, &[1, 2, 3], &[]);
        assert_eq!(sets.process(process(1), &again), Verdict::Merged);
        assert_eq!(sets.process(process(1), &again), Verdict::Agrees);
        assert_eq!(sets.members(), [process(1), process(2), process(3)]);
    }

    #[test]
    fn a_restarted_node_ends_its_other_lives() {
        let mut before = sets(&[1, 2, 3], &[]);
        before.hear(life(2, 7));
        assert_eq!(before.fails(), &BTreeSet::from([process(2)]));
        // Its new life is wanted once it has said so.
        let mut procs = set(&[1, 3]);
        procs.insert(life(2, 7));
        let said = Join {
            sender: life(2, 7),
            procs,
            ..join(2, &[], &[])
        };
        assert_eq!(before.process(process(1), &said), Verdict::Merged);
        assert_eq!(before.members(), [process(1), life(2, 7), process(3)]);
        // To hear it again changes nothing.
        before.hear(life(2, 7));
        assert_eq!(before.fails().len(), 1);
    }

    #[test]
    fn members_are_those_wanted_and_not_given_up() {
        assert_eq!(
            sets(&[3, 1, 2], &[2, 9]).members(),
            [process(1), process(3)]
        );
        assert_eq!(Sets::of_ring(&[process(1), process(2)]).fails(), &set(&[]));
    }

    #[test]
    fn there_is_room_for_as_many_as_a_join_names() {
        let most = MAX_JOIN_PROCESSES as u16;
        let crowd: Vec<u16> = (1..most).collect();
        let full: Vec<u16> = (1..=most).collect();
        let before = sets(&crowd, &[1, 2]);
        assert!(before.have_room_for(&join(1, &crowd, &full)));
        assert!(!before.have_room_for(&join(1, &[2000], &full)));
        assert!(!sets(&full, &[]).have_room() && sets(&[1], &[1]).have_room());
        // A process with the same sets agrees, however many processes they have.
        assert!(sets(&full, &[]).have_room_for(&join(1, &full, &full)));
    }
}

mod plan {
    use super::*;

    const OLD: RingId = RingId {
        ring_seq: 5,
        rep: NodeId::new(1).unwrap(),
        incarnation: Incarnation(1),
    };

    fn told(aru: u64, high: u64, have: &[(u64, u32)], more: bool) -> OldRing {
        let range = |&(first, count)| RequestRange { first, count };
        OldRing {
            ring: OLD,
            aru,
            high,
            safe_line: aru / 2,
            obligations: 1 << (aru % 3),
            next_message: 1,
            settings: crate::RingConfig::new(1, Vec::new()).settings(),
            counts: Default::default(),
            have: have.iter().map(range).collect(),
            more,
        }
    }

    fn plan(told: Vec<OldRing>) -> Plan {
        let members: Vec<Process> = (1..=told.len() as u16).map(process).collect();
        let ring = RingId { ring_seq: 9, ..OLD };
        let commit = Commit {
            cluster: 1,
            ring,
            sender: node(1),
            token_seq: 9,
            members: members.clone(),
            electorates: vec![],
            told,
        };
        Plan::new(&commit, OLD, &members)
    }

    /// The processes that send packet `seq`.
    fn senders(plan: &Plan, seq: u64, all: bool) -> Vec<u16> {
        let ids = plan.transitional.iter().map(|member| member.node.get());
        ids.filter(|&id| plan.is_sent_by(process(id), seq, all))
            .collect()
    }

    #[test]
    fn the_lowest_who_has_a_packet_sends_it() {
        let plan = plan(vec![
            told(4, 4, &[], false),
            told(4, 9, &[(6, 4)], false),
            told(5, 9, &[(7, 1), (9, 1)], false),
        ]);
        assert_eq!(senders(&plan, 4, false), [], "all have it");
        assert_eq!(senders(&plan, 5, false), [3]);
        assert_eq!(senders(&plan, 6, false), [2]);
        assert_eq!(senders(&plan, 9, false), [2]);
    }

    #[test]
    fn after_a_failure_everybody_sends_what_somebody_lacks() {
        let plan = plan(vec![told(4, 4, &[], false), told(6, 6, &[], false)]);
        assert_eq!(senders(&plan, 5, true), [1, 2]);
        assert_eq!(senders(&plan, 4, true), []);
    }

    #[test]
    fn nobody_lacks_what_all_have_above_their_arus() {
        let have = [(6, 2)];
        let plan = plan(vec![told(4, 7, &have, false), told(4, 7, &have, false)]);
        assert_eq!(senders(&plan, 6, true), []);
        assert_eq!(senders(&plan, 7, false), []);
    }

    /// The process that has the packet knows that; no other has anything to send.
    #[test]
    fn what_no_list_names_is_sent_by_whoever_has_it() {
        let plan = plan(vec![
            told(4, 90, &[(6, 1)], true),
            told(4, 90, &[(6, 1)], true),
        ]);
        assert_eq!(senders(&plan, 80, false), [1, 2]);
        assert_eq!(senders(&plan, 5, false), [1, 2], "a hole: nobody has it");
    }

    #[test]
    fn it_adds_up_what_those_from_the_same_ring_tell() {
        let mut other = told(90, 99, &[], false);
        other.ring.ring_seq += 1;
        let plan = plan(vec![told(4, 7, &[], false), told(6, 8, &[], false), other]);
        assert_eq!(plan.transitional, [process(1), process(2)]);
        assert_eq!((plan.low, plan.ended.high, plan.ended.line), (4, 8, 3));
        assert_eq!(plan.ended.obliged, 0b11);
    }

    #[test]
    fn who_was_no_member_of_the_ring_does_not_count_as_one() {
        let commit = Commit {
            cluster: 1,
            ring: OLD,
            sender: node(1),
            token_seq: 9,
            members: vec![process(1), process(2)],
            electorates: vec![],
            told: vec![told(4, 7, &[], false), told(9, 90, &[], false)],
        };
        let plan = Plan::new(&commit, OLD, &[process(1), life(2, 8)]);
        assert_eq!((plan.transitional, plan.ended.high), (vec![process(1)], 7));
    }

    #[test]
    fn nobody_walks_further_than_its_own_packets() {
        let far = 1 << 60;
        let plan = plan(vec![told(0, far, &[], true), told(far, far, &[], false)]);
        assert_eq!(plan.range(&(101..=120)), 101..=120);
        let full = told(u64::MAX, u64::MAX, &[], false);
        assert!(super::plan::plan(vec![full]).range(&(101..=120)).is_empty());
        let near = super::plan::plan(vec![told(110, 115, &[], false)]);
        assert_eq!(near.range(&(101..=120)), 111..=115);
    }
}

mod ring_seq {
    use super::*;

    fn start(records: Vec<(rota_core::contract::LogId, u64, Bytes)>) -> RingSeq {
        RingSeq::new(&StartState {
            me: process(1),
            seed: 0,
            records,
            lost_some: false,
        })
    }

    /// The request, and the number it makes durable.
    fn asked(output: Option<Output>) -> (PersistId, u64) {
        let Some(Output::Persist { id, records }) = output else {
            panic!("nothing was asked for");
        };
        let [
            LogRecord::Put {
                log,
                position,
                bytes,
            },
        ] = &records[..]
        else {
            panic!("one number is one record");
        };
        assert_eq!((*log, *position), (RING_SEQ_LOG, 0));
        let number = bytes
            .clone()
            .into_bytes()
            .first_chunk()
            .copied()
            .map(u64::from_le_bytes);
        (id, number.unwrap())
    }

    #[test]
    fn a_number_waits_until_it_is_durable() {
        let mut numbers = start(vec![]);
        let (waits_for, output) = numbers.agree(1);
        let (id, up_to) = asked(output);
        assert_eq!(waits_for, Some(id));
        assert!(up_to > 1 && !numbers.is_durable(1));
        numbers.on_persisted(id);
        assert!(
            numbers.is_durable(1) && numbers.is_durable(up_to) && !numbers.is_durable(up_to + 1)
        );
    }

    #[test]
    fn a_block_of_numbers_is_reserved_at_once() {
        let mut numbers = start(vec![]);
        let (id, up_to) = asked(numbers.agree(1).1);
        // While the request is open, the numbers that it covers wait for it.
        assert_eq!(numbers.agree(5), (Some(id), None));
        numbers.on_persisted(id);
        assert_eq!(numbers.agree(up_to), (None, None));
        let (next, further) = asked(numbers.agree(up_to + 1).1);
        assert!(next > id && further > up_to);
    }

    #[test]
    fn only_the_newest_request_counts() {
        let mut numbers = start(vec![]);
        let (old, up_to) = asked(numbers.agree(1).1);
        let (new, _) = asked(numbers.agree(up_to + 1).1);
        numbers.on_persisted(old);
        assert!(!numbers.is_durable(1));
        assert!(!numbers.on_failed(old), "it was given up long ago");
        numbers.on_persisted(new);
        assert!(numbers.is_durable(up_to + 1));
    }

    #[test]
    fn a_failed_request_is_asked_again_under_another_name() {
        let mut numbers = start(vec![]);
        let (first, _) = asked(numbers.agree(1).1);
        assert!(numbers.on_failed(first));
        assert!(!numbers.on_failed(first), "once");
        numbers.on_persisted(first);
        assert!(!numbers.is_durable(1), "what has failed is not durable");
        let (second, _) = asked(numbers.agree(1).1);
        assert!(second > first);
    }

    /// An earlier life may have used all numbers that it had reserved.
    #[test]
    fn a_restart_goes_on_behind_everything_reserved() {
        let (_, up_to) = asked(start(vec![]).agree(1).1);
        let stored = Bytes::copy_from_slice(&up_to.to_le_bytes());
        let mut numbers = start(vec![
            (
                rota_core::contract::LogId(9),
                0,
                Bytes::from_static(&[9; 8]),
            ),
            (RING_SEQ_LOG, 0, stored),
        ]);
        assert_eq!((numbers.max, numbers.agreed), (up_to, up_to));
        let (_, further) = asked(numbers.agree(up_to + 1).1);
        assert!(further > up_to);
    }

    #[test]
    fn a_record_cut_short_counts_as_none() {
        let numbers = start(vec![(RING_SEQ_LOG, 0, Bytes::from_static(&[9; 7]))]);
        assert_eq!(numbers.max, 0);
    }

    #[test]
    fn numbers_far_ahead_are_not_believed() {
        let mut numbers = start(vec![]);
        assert!(numbers.see(7) && numbers.see(3));
        assert_eq!((numbers.max, numbers.agreed), (7, 0));
        assert!(!numbers.see(8 + (1 << 32)) && !numbers.see(u64::MAX));
        assert_eq!(numbers.max, 7);
    }
}

mod evidence {
    use super::*;

    const MILLI: u64 = 1_000_000;

    #[test]
    fn two_refusals_soon_after_each_other_are_a_death() {
        let mut refusals = Refusals::default();
        assert!(!refusals.note(Time(1), node(2)));
        assert!(!refusals.note(Time(2), node(3)), "of another node");
        assert!(refusals.note(Time(50 * MILLI), node(2)));
    }

    #[test]
    fn refusals_far_apart_or_with_a_sign_of_life_between_are_none() {
        let mut refusals = Refusals::default();
        refusals.note(Time(0), node(2));
        assert!(!refusals.note(Time(51 * MILLI), node(2)));
        refusals.clear(node(2));
        assert!(!refusals.note(Time(52 * MILLI), node(2)));
    }

    #[test]
    fn a_first_failure_costs_nothing_and_each_further_one_twice_as_much_or_more() {
        let mut back_off = BackOff::default();
        let loss = 100;
        assert!(!back_off.failed(Time(0), process(2), loss));
        assert!(!back_off.is_avoided(Time(0), node(2)));
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert!(back_off.failed(Time(0), process(2), loss));
            let end = (1..=300).find(|&n| !back_off.is_avoided(Time(n * loss), node(2)));
            pauses.push(end.unwrap());
        }
        assert_eq!(pauses, [2, 4, 8, 32, 64, 64, 64, 64]);
        assert!(!back_off.is_avoided(Time(0), node(3)));
    }

    #[test]
    fn a_node_that_is_left_alone_is_let_in_once_in_a_quarter_of_the_pause() {
        let mut back_off = BackOff::default();
        let loss = 100;
        assert!(back_off.is_open(Time(0), node(2)), "never failed");
        for _ in 0..4 {
            back_off.failed(Time(0), process(2), loss);
        }
        assert!(back_off.is_avoided(Time(0), node(2)));
        assert!(!back_off.is_open(Time(2 * loss - 1), node(2)));
        assert!(back_off.is_open(Time(2 * loss), node(2)));
        back_off.let_in(Time(2 * loss), node(2), loss);
        assert!(!back_off.is_open(Time(4 * loss - 1), node(2)));
        assert!(back_off.is_open(Time(4 * loss), node(2)));
    }

    /// The process may have restarted because something was wrong with it; but the link is still the same.
    #[test]
    fn another_life_of_a_node_is_avoided_like_the_one_before() {
        let mut back_off = BackOff::default();
        back_off.failed(Time(0), life(2, 1), 100);
        assert!(back_off.failed(Time(0), life(2, 2), 100));
    }

    #[test]
    fn a_ring_that_lasts_makes_up_for_one_failure() {
        let mut back_off = BackOff::default();
        for _ in 0..3 {
            back_off.failed(Time(0), process(2), 100);
        }
        back_off.lasted(Time(50), node(2), false);
        assert!(!back_off.is_avoided(Time(50), node(2)) && back_off.is_open(Time(50), node(2)));
        assert!(back_off.failed(Time(50), process(2), 100));
        let third = 50 + 4 * 100;
        assert!(back_off.is_avoided(Time(third - 1), node(2)));
        assert!(!back_off.is_avoided(Time(third), node(2)));
    }

    #[test]
    fn a_ring_that_lasts_very_long_makes_up_for_all() {
        let mut back_off = BackOff::default();
        for _ in 0..9 {
            back_off.failed(Time(0), process(2), 100);
        }
        back_off.forget(node(2));
        assert!(!back_off.is_avoided(Time(0), node(2)));
        assert!(!back_off.failed(Time(0), process(2), 100));
    }
}

mod wrapping {
    use super::*;

    fn frame(build: impl FnOnce(&mut Vec<u8>)) -> Frame {
        let mut bytes = Vec::new();
        start_frame(&mut bytes, 300);
        build(&mut bytes);
        Frame::parse(Bytes::from(bytes)).unwrap()
    }

    fn packet(service: Service, frame: Frame) -> OldPacket {
        OldPacket {
            seq: 77,
            sender: node(3),
            service,
            frame,
        }
    }

    #[test]
    fn what_is_wrapped_comes_out_as_it_was() {
        let services = Service::ALL;
        for service in services {
            let part = frame(|bytes| push_first(bytes, true, 5000, b"part"));
            let many = frame(|bytes| (0..9).for_each(|_| push_whole(bytes, b"x")));
            for inner in [part, many] {
                let (seq, outer) = wrap(&packet(service, inner.clone()));
                assert_eq!(outer.bytes().len(), inner.bytes().len() + WRAPPER_BYTES);
                let out = unwrap(outer).unwrap();
                assert_eq!((seq, out.seq, out.sender), (77, 77, node(3)));
                assert_eq!((out.service, out.frame), (service, inner));
            }
        }
    }

    #[test]
    fn what_breaks_the_rules_is_refused() {
        let whole = frame(|bytes| push_whole(bytes, b"x"));
        let (_, outer) = wrap(&packet(Service::Agreed, whole));
        let (_, inner) = outer.into_single_message().unwrap();
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut inner = inner.to_vec();
            change(&mut inner);
            unwrap(frame(|bytes| push_whole(bytes, &inner)))
        };
        assert!(changed(&|_| ()).is_some());
        assert!(changed(&|inner| inner[0] = 9).is_none(), "service");
        assert!(changed(&|inner| inner[1..9].fill(0)).is_none(), "seq");
        assert!(changed(&|inner| inner[9..11].fill(0)).is_none(), "sender");
        for len in 0..inner.len() {
            assert!(
                changed(&|inner| inner.truncate(len)).is_none(),
                "{len} bytes"
            );
        }
        assert!(changed(&|inner| inner.push(0)).is_none(), "trailing");
        let two = frame(|bytes| (0..2).for_each(|_| push_whole(bytes, &inner)));
        assert!(unwrap(two).is_none(), "more than one message");
    }
}
