//! The end of a ring and the first rotations of the next, without network: A8 and rules R1 and R3 of A9.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

use super::delivery::Delivery;
use super::recovering::Recovering;
use super::slot::Slot;
use crate::wire::Token;
use rota_core::buffer::{Buffer, Inserted};
use rota_core::contract::{Incarnation, NodeId, RingId, Seq, Service};
use rota_core::wire::{Frame, push_first, push_next, push_whole, start_frame};

fn frame(counter: u64, build: impl FnOnce(&mut Vec<u8>)) -> Frame {
    let mut bytes = Vec::new();
    start_frame(&mut bytes, counter);
    build(&mut bytes);
    Frame::parse(Bytes::from(bytes)).unwrap()
}

fn message(counter: u64) -> Frame {
    frame(counter, |bytes| push_whole(bytes, b"x"))
}

/// A8, "Recovery on each token".
mod recovering {
    use super::*;

    const NODE: NodeId = NodeId::new(1).unwrap();

    fn token(seq: Seq, recovering: bool) -> Token {
        let ring = RingId {
            ring_seq: 1,
            rep: NODE,
            incarnation: Incarnation(1),
        };
        let (fcc, backlog, idle) = (0, 0, false);
        Token {
            cluster: 1,
            ring,
            sender: NODE,
            token_seq: 1,
            seq,
            aru: seq,
            aru_id: None,
            fcc,
            backlog,
            idle,
            recovering,
            rtr: vec![],
        }
    }

    fn queue(packets: &[Seq]) -> Recovering {
        let queue: VecDeque<_> = packets.iter().map(|&seq| (seq, message(seq))).collect();
        Recovering::new(queue)
    }

    /// A visit in which all members have every packet; returns the flag as it is passed on.
    fn visit(member: &mut Recovering, seq: Seq, flag: bool) -> bool {
        let mut token = token(seq, flag);
        member.on_token(&mut token, seq, seq);
        token.recovering
    }

    #[test]
    fn who_has_nothing_to_send_installs_at_the_third_clear_visit() {
        let mut member = queue(&[]);
        assert!(!visit(&mut member, 0, false));
        assert!(!member.acknowledged());
        visit(&mut member, 0, false);
        assert!(member.acknowledged() && !member.is_complete());
        visit(&mut member, 0, false);
        assert!(member.is_complete());
    }

    #[test]
    fn a_set_flag_begins_the_count_anew() {
        let mut member = queue(&[]);
        for flag in [false, false, true, false, false] {
            visit(&mut member, 4, flag);
            assert!(!member.is_complete());
        }
        visit(&mut member, 4, false);
        assert!(member.is_complete());
    }

    #[test]
    fn the_flag_is_set_while_there_is_something_to_send_and_cleared_by_who_set_it() {
        let mut member = queue(&[7, 8]);
        assert!(visit(&mut member, 0, false), "set");
        assert!(member.take().is_some() && member.take().is_some());
        assert!(!visit(&mut member, 2, true), "cleared");
        // Another member sets it now: this one must not clear it.
        assert!(visit(&mut member, 2, true));
    }

    #[test]
    fn a_flag_that_another_has_set_stays() {
        let mut member = queue(&[7]);
        assert!(visit(&mut member, 0, true), "already set");
        assert!(member.take().is_some());
        assert!(visit(&mut member, 1, true), "not its own");
    }

    #[test]
    fn the_visit_that_clears_the_flag_is_not_a_clear_one() {
        let mut member = queue(&[7]);
        visit(&mut member, 0, false);
        member.take();
        assert!(!visit(&mut member, 1, true));
        visit(&mut member, 1, false);
        visit(&mut member, 1, false);
        assert!(!member.is_complete());
        visit(&mut member, 1, false);
        assert!(member.is_complete());
    }

    #[test]
    fn what_another_has_sent_need_not_be_sent_again() {
        let mut member = queue(&[7, 8, 9]);
        member.sent_by_another(8);
        member.sent_by_another(20);
        assert_eq!(member.waiting(), 2);
        let counters: Vec<_> = core::iter::from_fn(|| member.take())
            .map(|out| (out.service, out.frame.start().counter))
            .collect();
        assert_eq!(counters, [(Service::Agreed, 7), (Service::Agreed, 9)]);
    }

    #[test]
    fn everything_numbered_by_the_second_clear_visit_belongs_to_the_recovery() {
        let mut member = queue(&[]);
        visit(&mut member, 5, false);
        visit(&mut member, 6, false);
        visit(&mut member, 9, false);
        assert_eq!(member.install_seq(), 6);
    }

    #[test]
    fn who_misses_something_does_not_acknowledge() {
        let mut member = queue(&[]);
        for _ in 0..5 {
            let mut token = token(6, false);
            member.on_token(&mut token, 6, 5);
        }
        assert!(!member.acknowledged() && !member.is_complete());
        visit(&mut member, 6, false);
        assert!(member.acknowledged() && member.is_complete());
    }

    /// A low aru may have been raised again by the member that had lowered it, only to what that member has now; of two
    /// arus in a row every member has had the chance to lower one.
    #[test]
    fn the_aru_has_to_be_there_twice() {
        let mut member = queue(&[]);
        let with_aru = |member: &mut Recovering, aru| {
            let mut token = token(6, false);
            member.on_token(&mut token, aru, 6);
            member.is_complete()
        };
        assert!(!with_aru(&mut member, 6));
        assert!(!with_aru(&mut member, 6));
        assert!(!with_aru(&mut member, 5));
        assert!(!with_aru(&mut member, 6), "only once");
        assert!(with_aru(&mut member, 6));
    }

    #[test]
    fn a_flag_that_nobody_acts_on_is_noticed_and_work_is_not_taken_for_it() {
        let mut member = queue(&[]);
        for seq in 0..2000 {
            visit(&mut member, seq, true);
            assert!(!member.is_stuck());
        }
        (0..500).for_each(|_| assert!(visit(&mut member, 1999, true)));
        assert!(member.is_stuck());
        visit(&mut member, 1999, false);
        assert!(!member.is_stuck());
    }
}

/// R1 and R3 of A9, on a ring of members 0, 1 and 2.
mod rules {
    use super::*;

    /// A member's packets of an ended ring.
    struct Ended {
        buffer: Buffer<Slot>,
        delivery: Delivery,
        /// The next message of each member.
        counters: [u64; 3],
    }

    impl Ended {
        fn new() -> Self {
            Self {
                buffer: Buffer::new(0, 64),
                delivery: Delivery::new(0, &[1; 3]),
                counters: [1; 3],
            }
        }

        /// Member `member` has sent packet `seq`, and it is here.
        fn has(mut self, seq: Seq, member: u16, service: Service) -> Self {
            let frame = message(self.counters[usize::from(member)]);
            self.counters[usize::from(member)] += 1;
            self.put(seq, member, service, frame);
            self
        }

        /// Member `member` has sent a packet, and it is not here.
        fn lacks(mut self, member: u16) -> Self {
            self.counters[usize::from(member)] += 1;
            self
        }

        fn put(&mut self, seq: Seq, member: u16, service: Service, frame: Frame) {
            let slot = Slot {
                frame,
                member,
                round: 0,
                service,
                encapsulated: false,
                delivered: false,
            };
            assert!(self.buffer.insert(seq, slot) == Inserted::New);
            self.delivery.on_packet(&mut self.buffer, seq, service);
        }

        /// The packets that are due in the regular configuration, with this safe line.
        fn regular(&mut self, line: Seq) -> Vec<Seq> {
            self.due(line)
        }

        /// The packets that are due in the transitional configuration.
        fn transitional(&mut self, high: Seq, obliged: u128) -> Vec<Seq> {
            self.delivery.end(high, obliged);
            self.due(0)
        }

        fn due(&mut self, line: Seq) -> Vec<Seq> {
            let next = || self.delivery.next(&mut self.buffer, line);
            core::iter::from_fn(next).map(|due| due.seq).collect()
        }
    }

    use Service::{Agreed, Causal, Fifo, Reliable, Safe};

    #[test]
    fn a_safe_message_above_the_line_ends_the_regular_configuration() {
        let mut ring = Ended::new()
            .has(1, 0, Agreed)
            .has(2, 1, Safe)
            .has(3, 0, Safe)
            .has(4, 1, Agreed);
        assert_eq!(ring.regular(2), [1, 2]);
        assert_eq!(ring.transitional(4, 0), [3, 4], "no hole: all of it");
    }

    #[test]
    fn a_hole_ends_the_regular_configuration() {
        let mut ring = Ended::new().has(1, 0, Agreed).lacks(1).has(3, 1, Agreed);
        assert_eq!(ring.regular(3), [1]);
        assert_eq!(ring.transitional(3, 0b001), []);
    }

    #[test]
    fn before_the_first_hole_everything_is_delivered_whoever_sent_it() {
        let mut ring = Ended::new()
            .has(1, 2, Safe)
            .has(2, 1, Agreed)
            .has(3, 2, Causal)
            .lacks(1)
            .has(5, 0, Agreed);
        assert_eq!(ring.regular(0), []);
        assert_eq!(ring.transitional(5, 0b001), [1, 2, 3, 5]);
    }

    #[test]
    fn behind_a_hole_only_the_obliged_senders_messages_are_delivered() {
        for service in [Causal, Agreed, Safe] {
            let mut ring = Ended::new()
                .lacks(1)
                .has(2, 0, service)
                .has(3, 1, service)
                .has(4, 2, service)
                .lacks(2)
                .has(6, 0, service)
                .has(7, 2, service);
            assert_eq!(ring.regular(7), []);
            assert_eq!(ring.transitional(7, 0b101), [2, 4, 6, 7], "{service:?}");
        }
    }

    /// This process is always in its own obligation set.
    #[test]
    fn own_messages_are_always_delivered() {
        let mut ring = Ended::new()
            .lacks(1)
            .has(2, 0, Safe)
            .lacks(2)
            .has(4, 0, Agreed);
        assert_eq!(ring.transitional(9, 0b001), [2, 4]);
    }

    #[test]
    fn reliable_messages_never_wait() {
        let mut ring = Ended::new()
            .lacks(1)
            .has(2, 1, Reliable)
            .has(3, 2, Safe)
            .has(4, 2, Reliable);
        assert_eq!(ring.regular(0), [2, 4]);
        assert_eq!(ring.transitional(4, 0), []);
    }

    #[test]
    fn fifo_messages_pass_a_hole_if_their_senders_chain_is_whole() {
        let mut ring = Ended::new()
            .lacks(0)
            .has(2, 1, Fifo)
            .has(3, 1, Fifo)
            .has(4, 0, Fifo)
            .has(5, 2, Fifo)
            .lacks(2)
            .has(7, 2, Fifo);
        let mut all = ring.regular(0);
        all.extend(ring.transitional(7, 0));
        assert_eq!(all, [2, 3, 5], "member 0 and, later, member 2 lack one");
    }

    /// An agreed message of the same sender that may not be delivered breaks the chain, too.
    #[test]
    fn fifo_messages_behind_one_that_is_discarded_are_discarded() {
        let mut ring = Ended::new()
            .lacks(0)
            .has(2, 1, Agreed)
            .has(3, 1, Fifo)
            .has(4, 2, Agreed)
            .has(5, 2, Fifo);
        assert_eq!(ring.regular(0), []);
        assert_eq!(ring.transitional(5, 0b100), [4, 5]);
    }

    #[test]
    fn nothing_above_the_highest_that_all_know_of_is_delivered() {
        let mut ring = Ended::new().has(1, 0, Safe).has(2, 0, Safe).has(3, 0, Safe);
        assert_eq!(ring.transitional(2, 0b001), [1, 2]);
    }

    #[test]
    fn a_highest_number_out_of_reach_costs_no_time() {
        let mut ring = Ended::new().lacks(1).has(2, 0, Safe);
        assert_eq!(ring.transitional(1 << 60, 0b001), [2]);
        assert_eq!(ring.transitional(u64::MAX, 0b001), []);
    }

    #[test]
    fn nothing_is_delivered_twice() {
        let mut ring = Ended::new()
            .has(1, 0, Agreed)
            .has(2, 1, Reliable)
            .has(3, 1, Fifo)
            .has(4, 2, Safe);
        let mut all = ring.regular(3);
        all.extend(ring.transitional(4, u128::MAX));
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4]);
    }

    /// Parts of a message count as what they are: a further part without its first is behind a gap.
    #[test]
    fn parts_of_a_cut_fifo_message_follow_their_chain() {
        let mut ring = Ended::new();
        let first = frame(1, |bytes| push_first(bytes, false, 9, b"abc"));
        let last = |counter| frame(counter, |bytes| push_next(bytes, false, 1, true, b"def"));
        ring.put(1, 0, Fifo, first);
        ring.put(3, 0, Fifo, last(1));
        ring.put(4, 1, Fifo, last(1));
        let mut all = ring.regular(0);
        all.extend(ring.transitional(4, 0));
        assert_eq!(all, [1, 3]);
    }
}
