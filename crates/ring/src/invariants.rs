//! The invariants of the ordering on one ring.

use super::ordering::Ordering;
use rota_core::invariants::FEW;

impl Ordering {
    /// Asserts the invariants of the ordering and of its parts.
    pub fn check(&self) {
        let count = self.members.len();
        assert!(
            usize::from(self.my_index) < count,
            "this member is on the ring"
        );
        assert_eq!(
            self.members[usize::from(self.my_index)].node,
            self.me,
            "at its place"
        );
        assert!(
            count > FEW || self.members.is_sorted_by(|a, b| a.node < b.node),
            "members are sorted by node, each once"
        );
        assert!(
            self.told.is_empty() || self.told.len() == count,
            "each has said how it is configured"
        );
        assert!(
            self.members
                .iter()
                .any(|member| member.node == self.ring.rep),
            "the representative is a member"
        );
        assert!(
            self.safe_line <= self.buffer.aru(),
            "all have what is safe, so this one has"
        );
        assert!(
            self.buffer.discarded() <= self.safe_line,
            "only what all have is discarded"
        );
        assert!(
            self.aru_sent <= self.buffer.high(),
            "no more is reported than exists"
        );
        assert!(
            self.unpacking
                .is_none_or(|open| open.seq <= self.buffer.high()),
            "what is handed out is there"
        );
        self.buffer.check();
        // Packets that are exchanged before the ring is installed are delivered as packets of the old one.
        if self.recovering.is_none() {
            self.delivery.check(&self.buffer);
        }
        self.flow.check();
    }
}
