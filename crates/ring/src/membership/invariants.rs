//! The invariants of a process's membership.

use super::engine::RingEngine;
use super::phase::Phase;

impl RingEngine {
    /// Asserts the invariants of the engine and of its parts.
    pub(super) fn check(&self) {
        self.sets.check(self.me);
        let ring = self.installed.as_ref();
        let is_well = matches!(self.phase, Phase::Operational);
        assert!(
            !is_well || ring.is_some(),
            "an operational process is on a ring"
        );
        if let Some(ring) = ring {
            ring.check();
            assert!(ring.members().contains(&self.me), "its ring contains it");
            let bits = u32::try_from(ring.members().len()).unwrap_or(u32::MAX);
            assert!(
                self.obligations.checked_shr(bits).unwrap_or(0) == 0,
                "obligations are to members"
            );
            assert!(
                ring.ring().ring_seq <= self.ring_seq.agreed,
                "no ring has a number that is not known"
            );
        }
        if let Phase::Recovery(recovery) = &self.phase {
            recovery.next.check();
            assert!(ring.is_some(), "what is recovered is of a ring");
            assert!(
                recovery.next.members().contains(&self.me),
                "the next ring contains it"
            );
        }
        if let Phase::Gather(gather) = &self.phase {
            assert!(
                gather.commit_by.is_none() || gather.consensus.contains(&self.me),
                "a process agrees with itself"
            );
        }
        assert!(
            self.held_since.is_none_or(|since| since <= self.now),
            "waits begin in the past"
        );
        assert!(
            !self.left.contains(&self.me),
            "it has not heard itself leave"
        );
    }
}
