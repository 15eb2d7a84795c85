//! The event × state table of membership (A6), cell by cell: `row::column`. Rows are events, columns the
//! states of the process they come to.
//!
//! Two cells are not as in the table. Data of another ring is answered with a presence instead of
//! gathering at once: late packets of a ring that is no more are frequent, and only a ring that lives
//! sends a presence in return. And in Commit a member's join that brings news leads to Gather whatever
//! its ring number: that member will not take the commit token any more.

mod one_node;

use one_node::{ME, Node, PEER, THIRD, join, old_ring, presence};
use rota_core::contract::{Engine, Input, TimerReason};
use rota_core::wire::RequestRange;
use rota_ring::wire::{Packet, Token};

/// "token loss"
mod token_loss {
    use super::*;

    #[test]
    fn operational() {
        let mut node = Node::operational(ME);
        node.wait_for("gathering");
        assert_eq!(node.counters().token_losses, 1);
        let said = node.last_join();
        assert_eq!((said.procs.len(), said.fails.len()), (2, 0));
    }

    /// All agree, and the representative's commit token never comes: everybody says again what it believes.
    #[test]
    fn gathering() {
        let mut node = Node::gathering(ME);
        node.agree();
        node.sent();
        let (at, _) = node.next_timer();
        let consensus = node.now.after(node.timers().token_loss);
        assert!(at <= consensus);
        while node.now < consensus {
            node.fire();
            assert_eq!(node.phase(), "gathering");
        }
        assert!(
            node.last_join().fails.is_empty(),
            "nobody is given up for it"
        );
        // The agreement counts no more: now the silent are given up.
        node.wait_for("operational");
        assert_eq!(node.members(), [ME]);
    }

    #[test]
    fn committing() {
        let mut node = Node::committing(ME);
        let ring = node.commit().ring.ring_seq;
        node.wait_for("gathering");
        assert!(node.last_join().ring_seq >= ring, "its number is used up");
    }

    /// The old ring stays what it was: nothing was delivered, and it is told of again.
    #[test]
    fn recovering() {
        let mut node = Node::recovering(ME);
        let before = node.commit();
        node.wait_for("gathering");
        assert_eq!(node.counters().failed_recoveries, 1);
        assert!(node.last_join().ring_seq >= before.ring.ring_seq);
        assert_eq!(node.engine.poll_delivery(), None);
        node.commit_anew();
        let after = node.commit();
        assert!(after.ring.ring_seq > before.ring.ring_seq);
        assert_eq!(after.told[1].ring, before.told[1].ring);
    }
}

/// "foreign data (ring ≠ mine) from q"
mod foreign_data {
    use super::*;

    #[test]
    fn operational() {
        let mut node = Node::operational(ME);
        node.foreign_data(THIRD);
        assert_eq!(node.phase(), "operational");
        let answer = node.sent();
        assert!(
            matches!(&answer[..], [Packet::MergeDetect(told)] if told.ring == node.ring()),
            "{answer:?}"
        );
    }

    #[test]
    fn elsewhere_it_is_ignored() {
        for mut node in [
            Node::gathering(ME),
            Node::committing(ME),
            Node::recovering(ME),
        ] {
            let (phase, foreign) = (node.phase(), node.counters().datagrams_foreign_ring);
            node.foreign_data(THIRD);
            assert_eq!((node.phase(), node.sent()), (phase, vec![]));
            assert_eq!(node.counters().datagrams_foreign_ring, foreign + 1);
        }
    }
}

/// "merge-detect from other ring, sender q"
mod merge_detect {
    use super::*;

    #[test]
    fn operational() {
        let mut node = Node::operational(ME);
        node.tell(&presence(THIRD, 1));
        assert_eq!(node.phase(), "gathering");
        assert_eq!(node.last_join().procs.len(), 3);
    }

    /// A member that still is on an older ring is just behind.
    #[test]
    fn operational_and_stale() {
        let mut node = Node::operational(ME);
        let older = node.ring().ring_seq - 1;
        node.tell(&presence(PEER, older));
        assert_eq!((node.phase(), node.sent()), ("operational", vec![]));
    }

    #[test]
    fn gathering() {
        let mut node = Node::gathering(ME);
        node.tell(&presence(PEER, 1));
        assert_eq!(node.sent(), [], "it is wanted already");
        node.tell(&presence(THIRD, 1));
        assert_eq!(
            (node.phase(), node.last_join().procs.len()),
            ("gathering", 3)
        );
    }

    #[test]
    fn committing_and_recovering() {
        for mut node in [Node::committing(ME), Node::recovering(ME)] {
            let phase = node.phase();
            node.tell(&presence(THIRD, 1));
            assert_eq!((node.phase(), node.sent()), (phase, vec![]));
        }
    }
}

/// "Join J from q", and process(J)
mod join_from {
    use super::*;

    #[test]
    fn operational() {
        for (sender, procs) in [(PEER, &[ME, PEER][..]), (THIRD, &[THIRD][..])] {
            let mut node = Node::operational(ME);
            let ring_seq = node.ring().ring_seq;
            node.tell(&join(sender, ring_seq, procs, &[]));
            assert_eq!(node.phase(), "gathering", "join of {sender}");
            assert!(node.last_join().procs.len() >= procs.len());
        }
    }

    /// Who has given me up cannot be on a ring with me (§0.10).
    #[test]
    fn operational_and_me_given_up() {
        let mut node = Node::operational(ME);
        let ring_seq = node.ring().ring_seq + 1;
        node.tell(&join(PEER, ring_seq, &[PEER], &[ME]));
        node.tell(&join(THIRD, ring_seq, &[THIRD], &[ME]));
        assert_eq!((node.phase(), node.sent()), ("operational", vec![]));
        assert_eq!(node.counters().joins_ignored, 2);
    }

    #[test]
    fn operational_and_stale() {
        let mut node = Node::operational(ME);
        let older = node.ring().ring_seq - 1;
        node.tell(&join(PEER, older, &[ME, PEER], &[]));
        assert_eq!((node.phase(), node.sent()), ("operational", vec![]));
        // Of somebody else the number says nothing.
        node.tell(&join(THIRD, older, &[THIRD], &[]));
        assert_eq!(node.phase(), "gathering");
    }

    #[test]
    fn gathering_and_it_agrees() {
        let mut node = Node::gathering(ME);
        node.agree();
        // The smallest of them forms the ring.
        assert_eq!(node.phase(), "gathering");
        let mut node = Node::gathering(PEER);
        node.agree();
        assert_eq!(node.phase(), "committing");
        assert_eq!(node.commit().told.len(), 1);
    }

    #[test]
    fn gathering_and_it_is_behind() {
        let mut node = Node::gathering(ME);
        node.tell(&join(PEER, 1, &[PEER], &[]));
        assert_eq!(node.phase(), "gathering");
        assert_eq!(node.last_join().procs.len(), 2, "it is told again");
    }

    #[test]
    fn gathering_and_it_brings_news() {
        let mut node = Node::gathering(ME);
        node.tell(&join(PEER, 1, &[PEER, THIRD], &[]));
        assert_eq!(
            (node.phase(), node.last_join().procs.len()),
            ("gathering", 3)
        );
    }

    #[test]
    fn gathering_and_it_was_given_up() {
        let mut node = Node::gathering(ME);
        node.tell(&join(THIRD, 1, &[ME, PEER, THIRD], &[PEER]));
        assert_eq!(node.last_join().fails.len(), 1);
        node.sent();
        node.tell(&join(PEER, 1, &[ME, PEER, 4], &[THIRD]));
        assert_eq!((node.phase(), node.sent()), ("gathering", vec![]));
    }

    #[test]
    fn gathering_and_me_given_up() {
        let mut node = Node::gathering(ME);
        node.tell(&join(PEER, 1, &[ME, PEER], &[ME]));
        // Nobody else is left: a ring of one needs no token.
        assert_eq!((node.phase(), node.members()), ("operational", vec![ME]));
    }

    #[test]
    fn committing_and_as_new_as_the_ring() {
        let mut node = Node::committing(ME);
        let ring_seq = node.commit().ring.ring_seq;
        node.tell(&join(PEER, ring_seq, &[ME, PEER], &[]));
        assert_eq!(node.phase(), "gathering");
    }

    #[test]
    fn committing_and_from_before() {
        let mut node = Node::committing(ME);
        let ring_seq = node.commit().ring.ring_seq;
        node.tell(&join(PEER, ring_seq - 1, &[ME, PEER], &[]));
        node.tell(&join(THIRD, ring_seq, &[THIRD], &[]));
        assert_eq!((node.phase(), node.sent()), ("committing", vec![]));
        assert_eq!(node.counters().joins_ignored, 2);
    }

    /// Not as in the table: see above.
    #[test]
    fn committing_and_a_member_has_learnt_of_more() {
        let mut node = Node::committing(ME);
        let ring_seq = node.commit().ring.ring_seq;
        node.tell(&join(PEER, ring_seq - 1, &[ME, PEER, THIRD], &[]));
        assert_eq!(
            (node.phase(), node.last_join().procs.len()),
            ("gathering", 3)
        );
    }

    #[test]
    fn recovering() {
        let mut node = Node::recovering(ME);
        let ring_seq = node.commit().ring.ring_seq;
        node.tell(&join(PEER, ring_seq - 1, &[ME, PEER, THIRD], &[]));
        node.tell(&join(THIRD, ring_seq, &[THIRD], &[]));
        assert_eq!((node.phase(), node.sent()), ("recovering", vec![]));
        node.tell(&join(PEER, ring_seq, &[ME, PEER], &[]));
        assert_eq!(node.phase(), "gathering");
        assert_eq!(node.counters().failed_recoveries, 1);
    }

    /// "Always on any Join": the largest ring number is remembered, even if all else is ignored.
    #[test]
    fn in_every_state_its_number_counts() {
        for mut node in Node::in_every_state() {
            let far = node.ring().ring_seq + 1000;
            node.tell(&join(THIRD, far, &[THIRD], &[ME]));
            node.wait_for("gathering");
            assert!(node.last_join().ring_seq >= far);
        }
    }
}

/// "Commit token, 1st visit"
mod first_visit {
    use super::*;

    #[test]
    fn operational_committing_and_recovering() {
        for mut node in [
            Node::operational(ME),
            Node::committing(ME),
            Node::recovering(ME),
        ] {
            let phase = node.phase();
            let ring_seq = node.ring().ring_seq + 100;
            let commit = node.first_visit(ring_seq, &[PEER, ME]);
            node.tell(&Packet::Commit(commit));
            assert_eq!((node.phase(), node.sent()), (phase, vec![]));
            assert_eq!(node.counters().commits_ignored, 1);
        }
    }

    #[test]
    fn gathering() {
        let mut node = Node::gathering(ME);
        let installed = node.ring();
        let commit = node.first_visit(installed.ring_seq + 4, &[PEER, ME]);
        node.tell(&Packet::Commit(commit.clone()));
        assert_eq!(node.phase(), "committing");
        let passed_on = node.commit();
        assert_eq!((passed_on.ring, passed_on.token_seq), (commit.ring, 2));
        assert_eq!(passed_on.told[0], commit.told[0]);
        assert_eq!(passed_on.told[1].ring, installed);
    }

    #[test]
    fn gathering_and_another_set_an_old_number_or_anothers_turn() {
        let mut node = Node::gathering(ME);
        let now = node.ring().ring_seq;
        let mut early = node.first_visit(now + 4, &[PEER, ME]);
        early.told.clear();
        let mut late = node.first_visit(now + 4, &[PEER, ME]);
        late.told.push(late.told[0].clone());
        let refused = [
            node.first_visit(now + 4, &[PEER, ME, THIRD]),
            node.first_visit(now + 4, &[PEER, THIRD]),
            node.first_visit(now + 4, &[PEER]),
            node.first_visit(now, &[PEER, ME]),
            node.first_visit(now - 1, &[PEER, ME]),
            early,
            late,
        ];
        for (index, commit) in refused.into_iter().enumerate() {
            node.tell(&Packet::Commit(commit));
            assert_eq!(
                (node.phase(), node.sent()),
                ("gathering", vec![]),
                "{index}"
            );
        }
        assert_eq!(node.counters().commits_ignored, 7);
    }
}

/// "Commit token, 2nd visit"
mod second_visit {
    use super::*;

    #[test]
    fn operational_and_gathering() {
        for mut node in [Node::operational(ME), Node::gathering(ME)] {
            let phase = node.phase();
            let mut commit = node.first_visit(node.ring().ring_seq + 4, &[PEER, ME]);
            commit.told.push(old_ring(node.ring(), 1));
            commit.token_seq = 3;
            node.tell(&Packet::Commit(commit));
            assert_eq!((node.phase(), node.sent()), (phase, vec![]));
        }
    }

    #[test]
    fn committing() {
        let mut node = Node::committing(ME);
        let mut commit = node.commit();
        commit.token_seq += 1;
        node.tell(&Packet::Commit(commit.clone()));
        assert_eq!(node.phase(), "recovering");
        // Passed on unchanged but for its count.
        (commit.token_seq, commit.sender) = (commit.token_seq + 1, one_node::id(ME));
        assert_eq!(node.commit(), commit);
    }

    #[test]
    fn committing_and_another_ring_an_open_list_or_the_same_hop() {
        let mut node = Node::committing(ME);
        let second = node.second_visit();
        let mut other = second.clone();
        other.ring.ring_seq += 1;
        let mut open = second.clone();
        open.told.pop();
        let mut same = second.clone();
        same.token_seq -= 1;
        let mut members = second.clone();
        members.members[1] = one_node::process(THIRD);
        for commit in [other, open, same, members] {
            node.tell(&Packet::Commit(commit));
            assert_eq!((node.phase(), node.sent()), ("committing", vec![]));
        }
        node.tell(&Packet::Commit(second));
        assert_eq!(node.phase(), "recovering");
    }

    /// The third sighting: the representative starts the first regular token, once for each ring.
    #[test]
    fn recovering() {
        let mut node = Node::recovering(PEER);
        let mut third = node.commit();
        third.token_seq += 1;
        node.tell(&Packet::Commit(third.clone()));
        let first = node.sent();
        assert!(
            matches!(&first[..], [Packet::Token(token)] if token.ring == third.ring),
            "{first:?}"
        );
        node.tell(&Packet::Commit(third));
        assert_eq!(node.sent(), [], "a second token would tear the ring");
        let mut other = Node::recovering(ME);
        let mut again = other.commit();
        again.token_seq -= 1;
        other.tell(&Packet::Commit(again));
        assert_eq!((other.phase(), other.sent()), ("recovering", vec![]));
    }
}

/// "regular token"
mod regular_token {
    use super::*;

    #[test]
    fn operational() {
        let mut node = Node::operational(ME);
        let token = node.next_token();
        node.tell(&Packet::Token(token.clone()));
        assert_eq!(node.last_token().token_seq, token.token_seq + 1);
        node.sent();
        let duplicates = node.counters().token_duplicates;
        node.tell(&Packet::Token(token.clone()));
        assert_eq!(node.sent(), [], "not a newer one");
        assert_eq!(node.counters().token_duplicates, duplicates + 1);
        let mut other = node.next_token();
        other.ring.ring_seq += 1;
        node.tell(&Packet::Token(other));
        assert_eq!(node.sent(), [], "of another ring");
    }

    #[test]
    fn gathering_and_committing() {
        for mut node in [Node::gathering(ME), Node::committing(ME)] {
            let phase = node.phase();
            let token = node.next_token();
            node.tell(&Packet::Token(token));
            assert_eq!((node.phase(), node.sent()), (phase, vec![]));
        }
    }

    #[test]
    fn recovering() {
        let mut node = Node::recovering(ME);
        let old = node.next_token();
        node.tell(&Packet::Token(old));
        assert_eq!(node.sent(), [], "of the old ring");
        let token = node.first_token();
        node.tell(&Packet::Token(token.clone()));
        assert_eq!(node.last_token().token_seq, token.token_seq + 1);
        node.sent();
        node.tell(&Packet::Token(token));
        assert_eq!((node.phase(), node.sent()), ("recovering", vec![]));
        node.rotate_until("operational");
        assert_eq!(node.members(), [PEER, ME]);
    }
}

/// "join timer", "consensus timer", "token-retransmit timer"
mod timers {
    use super::*;

    #[test]
    fn join_gathering() {
        let mut node = Node::gathering(ME);
        let (first, reason) = node.next_timer();
        assert_eq!(reason, TimerReason::Join);
        let wait = first.since(node.now);
        let join = node.timers().join;
        assert!(
            (join..=join / 2 * 3).contains(&wait),
            "jitter of up to a half"
        );
        node.fire();
        assert!(matches!(&node.sent()[..], [Packet::Join(_)]));
        assert_eq!(node.phase(), "gathering");
    }

    #[test]
    fn join_elsewhere() {
        for node in [
            Node::operational(ME),
            Node::committing(ME),
            Node::recovering(ME),
        ] {
            assert_ne!(node.next_timer().1, TimerReason::Join);
        }
    }

    /// Incomplete: who has not agreed is given up.
    #[test]
    fn consensus_gathering() {
        let mut node = Node::gathering(ME);
        let until = node.now.after(node.timers().consensus);
        while node.phase() == "gathering" {
            assert!(node.now < until);
            node.fire();
        }
        assert!(node.now >= until);
        assert_eq!((node.phase(), node.members()), ("operational", vec![ME]));
    }

    #[test]
    fn consensus_gathering_with_two_of_three() {
        let mut node = Node::gathering(ME);
        node.tell(&presence(THIRD, 1));
        node.agree_as(PEER);
        while node.last_join().fails.is_empty() {
            node.fire();
        }
        let given_up: Vec<_> = node
            .last_join()
            .fails
            .iter()
            .map(|p| p.node.get())
            .collect();
        assert_eq!((given_up, node.phase()), (vec![THIRD], "gathering"));
    }

    #[test]
    fn retransmit_operational() {
        let mut node = Node::operational(ME);
        let token = node.next_token();
        node.tell(&Packet::Token(token));
        let sent = node.last_token();
        node.sent();
        node.fire_until(TimerReason::TokenRetransmit);
        assert_eq!(node.sent(), [Packet::Token(sent)]);
        assert_eq!(node.phase(), "operational");
    }

    #[test]
    fn retransmit_committing() {
        let mut node = Node::committing(ME);
        let commit = node.commit();
        node.fire_until(TimerReason::Commit);
        assert_eq!(node.sent(), [Packet::Commit(commit)]);
        assert_eq!(node.phase(), "committing");
    }

    #[test]
    fn retransmit_recovering() {
        let mut node = Node::recovering(ME);
        let commit = node.commit();
        node.fire_until(TimerReason::Commit);
        assert_eq!(
            node.sent(),
            [Packet::Commit(commit)],
            "until a token shows it arrived"
        );
        let token = node.first_token();
        node.tell(&Packet::Token(token));
        let sent = node.last_token();
        node.sent();
        node.fire_until(TimerReason::TokenRetransmit);
        assert_eq!(node.sent(), [Packet::Token(sent)]);
    }
}

/// "fail-to-receive"
mod fail_to_receive {
    use super::*;

    #[test]
    fn operational() {
        let mut node = Node::operational(ME);
        node.submit();
        node.rotate();
        let began = node.now;
        for _ in 0..100 {
            if node.counters().self_mute > 0 {
                break;
            }
            node.now = node.now.after(node.timers().token_loss / 8);
            let token = node.next_token();
            let rtr = vec![RequestRange { first: 1, count: 1 }];
            let aru_id = Some(one_node::id(PEER));
            node.tell(&Packet::Token(Token {
                aru: 0,
                aru_id,
                rtr,
                ..token
            }));
        }
        assert!(node.now.since(began) >= 5 * node.timers().token_loss);
        // Nobody else has its packet: it may be this process that is not heard. It leaves, and says nothing.
        assert_eq!(node.counters().members_deaf, 0);
        assert_eq!(node.phase(), "gathering");
        let joins = |packet: &Packet| matches!(packet, Packet::Join(_));
        assert!(!node.sent().iter().any(joins));
    }
}

/// "interface/config change, operator": here evidence that a process is gone (A4).
mod evidence {
    use super::*;

    #[test]
    fn in_every_state() {
        for mut node in Node::in_every_state() {
            let before = node.phase();
            node.refuse(PEER);
            assert_eq!(node.phase(), before, "one may be a late one");
            node.refuse(PEER);
            // No consensus has to be waited for: nobody else is left.
            assert_eq!(
                (node.phase(), node.members()),
                ("operational", vec![ME]),
                "{before}"
            );
            assert_eq!(node.counters().members_dead, 1);
        }
    }

    #[test]
    fn of_somebody_else() {
        for mut node in Node::in_every_state() {
            let before = node.phase();
            (0..3).for_each(|_| node.refuse(THIRD));
            assert_eq!((node.phase(), node.sent()), (before, vec![]));
        }
    }
}

/// Not a row of the table: who leaves says so, in every state, and does nothing any more (A10).
#[test]
fn leaving_in_every_state() {
    for mut node in Node::in_every_state() {
        let now = node.now;
        node.engine.leave(now);
        let goodbye = node.sent();
        assert!(
            goodbye
                .iter()
                .all(|packet| matches!(packet, Packet::Join(join) if join.leaving)),
            "{goodbye:?}"
        );
        assert_eq!((goodbye.len(), node.phase()), (2, "left"));
        assert_eq!(node.engine.next_timer(), None);
        // Also what breaks the law changes nothing.
        node.engine.get_mut().handle(now, Input::Timer);
        assert_eq!(node.sent(), []);
        node.tell(&join(PEER, 100, &[PEER], &[]));
        assert_eq!(node.sent(), []);
    }
}
