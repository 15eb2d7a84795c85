//! The first rotations of a new ring: packets of old rings go round until all members that come from the same old ring
//! have the same packets of it (membership A8).
//!
//! Packets of old rings travel inside packets of the new ring, ordered and repeated as any other. The token's
//! `recovering` flag says that some member still has packets to send. When all members have every packet, *and all know
//! that*, the ring can be installed.

use alloc::collections::VecDeque;

use crate::wire::Token;
use rota_core::contract::{Seq, Service};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::OutFrame;
use rota_core::wire::Frame;

/// Visits in a row with the flag set and nothing sent, after which no member has anything to send (Spread gives up
/// after as many).
const STUCK_VISITS: u32 = 500;

/// Progress of a ring that is not installed yet.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct Recovering {
    /// Packets of the old ring that this member sends, wrapped, by their old numbers.
    queue: VecDeque<(Seq, Frame)>,
    /// This member has set the token's flag.
    flag_is_mine: bool,
    /// Visits in a row in which the token came without the flag.
    clear_visits: u32,
    /// The sequence number up to which packets belong to the recovery; known from the second clear visit on.
    install_seq: Seq,
    /// `aru` of the token received in the last visit.
    aru_before: Seq,
    acknowledged: bool,
    complete: bool,
    /// `seq` of the token sent in the last visit, and visits in a row that left it as it was while the
    /// flag was set.
    seq_before: Seq,
    idle_visits: u32,
}

impl Recovering {
    pub fn new(queue: VecDeque<(Seq, Frame)>) -> Self {
        Self {
            queue,
            ..Self::default()
        }
    }

    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The next wrapped packet. Wrapped packets travel as agreed, so that nothing in them is delivered early.
    pub fn take(&mut self) -> Option<OutFrame> {
        let service = Service::Agreed;
        let (_, frame) = self.queue.pop_front()?;
        Some(OutFrame { service, frame })
    }

    /// Drops a packet of the old ring from the queue, as another member has sent it.
    pub fn sent_by_another(&mut self, seq: Seq) {
        self.queue.retain(|(queued, _)| *queued != seq);
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(
            !self.complete || self.acknowledged,
            "a recovery that is complete is acknowledged"
        );
        assert!(
            !self.flag_is_mine || self.clear_visits == 0,
            "no visit is clear while this member has packets to send"
        );
    }

    /// Steps 2 to 6 of A8. The `seq` and the aru of `token` are already those of this visit; `aru_received` is the aru
    /// that it came with, and `local_aru` the aru of this member.
    pub fn on_token(&mut self, token: &mut Token, aru_received: Seq, local_aru: Seq) {
        let came_clear = !token.recovering;
        if came_clear && !self.queue.is_empty() {
            token.recovering = true;
            self.flag_is_mine = true;
        } else if (self.flag_is_mine || mutants::on(Mutant::M24)) && self.queue.is_empty() {
            token.recovering = false;
            self.flag_is_mine = false;
        }
        self.clear_visits = if came_clear && !token.recovering {
            self.clear_visits.saturating_add(1)
        } else {
            0
        };
        if self.clear_visits == 2 || self.clear_visits == 1 && mutants::on(Mutant::M23) {
            self.install_seq = token.seq;
        }
        if self.clear_visits >= 2 && local_aru >= self.install_seq {
            self.acknowledged = true;
        }
        let everybody = aru_received.min(self.aru_before) >= self.install_seq;
        self.complete |= self.clear_visits >= 3 && everybody && self.acknowledged;
        if mutants::on(Mutant::M22) && self.clear_visits >= 2 {
            self.complete |= aru_received >= self.install_seq && self.acknowledged;
        }
        if mutants::on(Mutant::M23) && self.clear_visits >= 1 {
            self.complete |= everybody;
        }
        self.aru_before = aru_received;
        let idle = token.recovering && token.seq == self.seq_before;
        self.idle_visits = if idle {
            self.idle_visits.saturating_add(1)
        } else {
            0
        };
        self.seq_before = token.seq;
    }

    /// Whether the flag is set and no member acts on it: it came with a broken token.
    pub const fn is_stuck(&self) -> bool {
        self.idle_visits >= STUCK_VISITS
    }

    /// Whether this member has every packet and has said so: from then on others may rely on it.
    pub const fn acknowledged(&self) -> bool {
        self.acknowledged
    }

    /// Whether all members are known to have acknowledged: the ring may be installed.
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    pub const fn install_seq(&self) -> Seq {
        self.install_seq
    }
}
