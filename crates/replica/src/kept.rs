//! Answers for which nobody has asked yet: a process that hears of a command late, or whose way to another replica is
//! lost, comes for them.

use std::collections::{HashMap, VecDeque};

use crate::shared::Of;

/// The number of answers that are kept, at most, and their bytes.
const MOST: usize = 65_536;
const MOST_BYTES: usize = 64 << 20;

/// Answers for which nobody has asked yet.
#[derive(Default)]
pub(crate) struct Kept {
    /// The commands, the oldest first; of some the answer is taken.
    order: VecDeque<Of>,
    answers: HashMap<Of, Vec<u8>>,
    bytes: usize,
}

impl Kept {
    /// Keeps an answer; the oldest ones make way.
    pub(crate) fn keep(&mut self, of: Of, answer: Vec<u8>) {
        self.bytes += answer.len();
        self.order.push_back(of);
        if let Some(before) = self.answers.insert(of, answer) {
            self.bytes -= before.len();
        }
        while self.order.len() > MOST || self.bytes > MOST_BYTES {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            self.take(oldest);
        }
    }

    /// The number of answers, and their bytes.
    pub(crate) fn figures(&self) -> (usize, usize) {
        (self.answers.len(), self.bytes)
    }

    /// Takes an answer, if it is kept.
    pub(crate) fn take(&mut self, of: Of) -> Option<Vec<u8>> {
        let answer = self.answers.remove(&of)?;
        self.bytes -= answer.len();
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answers_make_way_by_number_and_by_bytes() {
        let mut kept = Kept::default();
        for number in 0..=MOST as u64 {
            kept.keep((1, number), vec![1]);
        }
        assert_eq!(kept.take((1, 0)), None);
        assert_eq!(kept.take((1, 1)), Some(vec![1]));
        assert_eq!(kept.take((1, 1)), None, "it is told once");
        assert_eq!(kept.figures(), (MOST - 1, MOST - 1));
        kept.keep((2, 1), vec![0; MOST_BYTES - 1]);
        assert_eq!(kept.take((1, MOST as u64 - 1)), None);
        assert_eq!(kept.take((1, MOST as u64)), Some(vec![1]));
        kept.keep((2, 2), vec![0; 8]);
        assert_eq!(kept.take((2, 1)), None);
        assert_eq!(kept.take((2, 2)).map(|answer| answer.len()), Some(8));
        assert_eq!(kept.figures(), (0, 0));
    }
}
