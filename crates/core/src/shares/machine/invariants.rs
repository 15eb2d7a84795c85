//! The invariants of the shares of one member.

use super::Shares;

impl Shares {
    /// Asserts its invariants.
    pub fn check(&self) {
        let members = self.requirements.len();
        assert!(
            self.applied.len() == members,
            "each member of the view has its own"
        );
        let mine = self.requirements.get(self.me);
        assert!(
            mine.is_none_or(|mine| *mine == self.own),
            "the own requirement is the one in force"
        );
        assert!(
            self.share <= self.own.min(self.capacity().shared()),
            "no share is more than is required, or there"
        );
        if let Some(request) = &self.request {
            assert!(request.number <= self.number, "requests are numbered");
            assert_eq!(request.acked.len(), members, "each member acknowledges");
            assert_eq!(
                request.increase,
                request.requirement > self.own,
                "only a decrease is in force before it is settled"
            );
        }
    }
}
