//! The rules for the token's `aru` (thesis §3.1.2.2).
//!
//! A member that misses packets lowers the aru to its own and signs it; only the member whose signature the aru carries
//! raises it again, to its own aru of then. While no member misses packets, the aru rises together with `seq`.

use crate::wire::Token;
use rota_core::contract::{NodeId, Seq};
use rota_core::mutants::{self, Mutant};

/// Applies the rules to a received token. `local` is the aru that this member reports, `fresh` the number of new
/// packets that it numbers in this visit. `token.seq` is still as received.
pub(super) fn update(token: &mut Token, me: NodeId, local: Seq, fresh: u64) {
    let mine = token.aru_id == Some(me) || mutants::on(Mutant::M03);
    if local < token.aru {
        token.aru = local;
        token.aru_id = Some(me);
    } else if mine {
        token.aru = local.min(token.seq);
        if token.aru == token.seq {
            token.aru_id = None;
        }
    }
    // No member is below: the aru goes with `seq`, this visit's packets included.
    if token.aru == token.seq && token.aru_id.is_none() || mutants::on(Mutant::M04) {
        token.aru += fresh;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use rota_core::contract::{Incarnation, RingId};

    const A: NodeId = NodeId::new(1).unwrap();
    const B: NodeId = NodeId::new(2).unwrap();

    fn token(seq: Seq, aru: Seq, aru_id: Option<NodeId>) -> Token {
        let ring = RingId {
            ring_seq: 1,
            rep: A,
            incarnation: Incarnation(1),
        };
        let rtr = Vec::new();
        Token {
            cluster: 0,
            ring,
            sender: A,
            token_seq: 1,
            seq,
            aru,
            aru_id,
            fcc: 0,
            backlog: 0,
            idle: false,
            recovering: false,
            rtr,
        }
    }

    fn after(mut t: Token, local: Seq, fresh: u64) -> (Seq, Option<NodeId>) {
        update(&mut t, A, local, fresh);
        (t.aru, t.aru_id)
    }

    #[test]
    fn who_misses_something_lowers_and_signs() {
        assert_eq!(after(token(10, 10, None), 7, 5), (7, Some(A)));
        assert_eq!(after(token(10, 8, Some(B)), 7, 5), (7, Some(A)));
    }

    #[test]
    fn only_who_signed_raises() {
        assert_eq!(after(token(10, 7, Some(A)), 9, 0), (9, Some(A)));
        assert_eq!(after(token(10, 7, Some(B)), 9, 0), (7, Some(B)));
    }

    #[test]
    fn raised_to_seq_it_goes_with_seq_again() {
        assert_eq!(after(token(10, 7, Some(A)), 10, 5), (15, None));
    }

    #[test]
    fn without_loss_it_goes_with_seq() {
        assert_eq!(after(token(10, 10, None), 10, 5), (15, None));
        assert_eq!(after(token(0, 0, None), 0, 5), (5, None));
    }
}
