//! The safe line: the sequence number up to which all members are known to have every packet (report §III-B4, thesis
//! §3.1.2.4).
//!
//! Every member can lower the aru of a token that it passes on. So if a member has passed on one aru, and one rotation
//! later another, then all members have every packet up to the lower of the two.

use rota_core::contract::Seq;
use rota_core::mutants::{self, Mutant};

/// The safe line as this member knows it.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct Stability {
    /// `aru` of the token sent in the last visit.
    aru_sent: Seq,
    line: Seq,
}

impl Stability {
    /// The sequence number up to which all members are known to have every packet.
    pub const fn line(&self) -> Seq {
        self.line
    }

    /// Notes a token that this member passes on. Every member had the chance to lower the aru between the last visit
    /// and this one.
    pub fn on_sent(&mut self, aru_sent: Seq) {
        if mutants::on(Mutant::M02) {
            self.line = self.line.max(aru_sent);
        }
        self.line = self.line.max(self.aru_sent.min(aru_sent));
        self.aru_sent = aru_sent;
    }

    /// Raises the line, as all members are known by other means to have every packet up to `line`.
    pub fn raise(&mut self, line: Seq) {
        self.line = self.line.max(line);
    }

    /// Its invariants, with the aru of this member and the highest packet that it has.
    pub fn check(&self, aru: Seq, high: Seq) {
        assert!(self.line <= aru, "all have what is safe, so this one has");
        assert!(self.aru_sent <= high, "no more is reported than exists");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_after(arus: &[Seq]) -> Seq {
        let mut stability = Stability::default();
        arus.iter().for_each(|&aru| stability.on_sent(aru));
        stability.line()
    }

    #[test]
    fn an_aru_counts_once_it_has_gone_round() {
        assert_eq!(line_after(&[5]), 0);
        assert_eq!(line_after(&[5, 9]), 5);
        assert_eq!(line_after(&[5, 9, 9]), 9);
    }

    #[test]
    fn an_aru_that_another_has_lowered_counts_as_it_comes_back() {
        assert_eq!(line_after(&[9, 6]), 6);
        assert_eq!(line_after(&[9, 9, 6, 6]), 9, "it never falls");
    }
}
