//! Questions to one acceptor about decided instances: several at a time if answers take long to come.
//!
//! An answer has the values that fit in a message, from the first instance of the question on. A link that takes long
//! there and back would be idle with one question at a time; in a link that is full, many answers would only wait,
//! before batches of the ring. So there is one question more with each answer, as long as answers do not come later for
//! it.

use alloc::collections::VecDeque;
use core::ops::Range;

use crate::Instance;
use rota_core::contract::{NodeId, Time};

/// The most that are under way: with the usual words, 2 MiB.
const MOST: usize = 16;

/// After this many full answers the time of one that has to wait for nothing is measured again.
const MEASURED: u32 = 256;

#[derive(Clone, PartialEq, Eq, Debug)]
struct CatchUpRequest {
    about: Range<Instance>,
    at: Time,
}

/// The questions that are under way, in the order in which they were asked, and answers come.
#[derive(Debug)]
pub struct CatchUpPipeline {
    /// The node that is asked.
    to: Option<NodeId>,
    under_way: VecDeque<CatchUpRequest>,
    /// The time at which something of an answer last came.
    heard: Time,
    /// The number of questions that may be under way.
    depth: usize,
    /// The instances that fill an answer, about, in eighths; 0 if that is not known.
    eighths: u64,
    /// The time of a full answer that had to wait for nothing, about, in nanoseconds.
    quickest: Option<u64>,
    /// Full answers since that is measured.
    measured: u32,
    /// Answers that had to wait for others, and are not measured.
    waited: usize,
    /// All before this is known, or asked for.
    sought: Instance,
}

impl Default for CatchUpPipeline {
    fn default() -> Self {
        Self {
            to: None,
            under_way: VecDeque::new(),
            heard: Time(0),
            depth: 1,
            eighths: 0,
            quickest: None,
            measured: 0,
            waited: 0,
            sought: 0,
        }
    }
}

impl CatchUpPipeline {
    /// The node that is being asked.
    pub fn to(&self) -> Option<NodeId> {
        self.to.filter(|_| !self.under_way.is_empty())
    }

    /// The time since which an answer is waited for, or more of one.
    pub fn since(&self) -> Option<Time> {
        let oldest = self.under_way.front();
        oldest.map(|question| question.at.max(self.heard))
    }

    /// Whether no more may be asked now.
    pub fn is_enough(&self) -> bool {
        self.under_way.len() >= self.depth
    }

    /// The instance from which on to look for gaps that are not asked for.
    pub const fn sought(&self) -> Instance {
        self.sought
    }

    /// All before this is known, or asked for.
    pub fn sought_to(&mut self, at: Instance) {
        self.sought = at;
    }

    /// Looks from the beginning again: known instances may not be known any more.
    pub fn seek_again(&mut self) {
        self.sought = 0;
    }

    /// The first instance from this one on that nothing is asked about.
    pub fn behind(&self, mut at: Instance) -> Instance {
        let asks = |at| move |question: &&CatchUpRequest| question.about.contains(&at);
        while let Some(question) = self.under_way.iter().find(asks(at)) {
            at = question.about.end;
        }
        at
    }

    /// Asks about the first of these instances, about which no question is under way. Returns the instances of the
    /// question. Another node is not asked any more.
    pub fn ask(&mut self, now: Time, to: NodeId, about: Range<Instance>) -> Range<Instance> {
        if self.to != Some(to) {
            *self = Self {
                to: Some(to),
                ..Self::default()
            };
        }
        let asked = self.under_way.iter().map(|question| question.about.start);
        let next = asked.filter(|start| *start > about.start).min();
        let full = match self.eighths {
            0 => Instance::MAX,
            eighths => about.start.saturating_add((eighths / 8).max(1)),
        };
        let end = about.end.min(full).min(next.unwrap_or(Instance::MAX));
        let about = about.start..end;
        self.under_way.push_back(CatchUpRequest {
            about: about.clone(),
            at: now,
        });
        about
    }

    /// An answer of the node that is asked has come, to a question that is under way unless it is late: questions
    /// before that have no answer. Returns whether the answer begins where the question does; `None` if there is no
    /// such question. `is_full`: the answer has as much as one takes.
    pub fn answered(
        &mut self,
        now: Time,
        brought: &Range<Instance>,
        is_full: bool,
    ) -> Option<bool> {
        let is_about = |question: &CatchUpRequest| question.about.contains(&brought.start);
        let place = self.under_way.iter().position(is_about)?;
        for before in self.under_way.drain(..place) {
            self.sought = self.sought.min(before.about.start);
        }
        let question = self.under_way.pop_front()?;
        self.sought = self.sought.min(question.about.start);
        self.heard = now;
        self.measure(brought, &question, is_full);
        if self.waited > 0 {
            self.waited -= 1;
        } else if is_full {
            self.pace(now.since(question.at));
        }
        Some(brought.start == question.about.start)
    }

    fn measure(&mut self, brought: &Range<Instance>, question: &CatchUpRequest, is_full: bool) {
        let count = brought.end.saturating_sub(brought.start);
        let is_whole = brought.end >= question.about.end;
        let eighths = self.eighths;
        self.eighths = match (is_whole, is_full) {
            // A little less, so that most answers bring all that was asked for.
            (false, true) => count.saturating_mul(7).max(1),
            // The node does not know more.
            (false, false) => eighths,
            (true, true) => eighths.saturating_add((eighths / 16).max(eighths.min(1))),
            (true, false) => eighths.saturating_mul(2),
        };
    }

    /// A full answer took this time, in nanoseconds.
    fn pace(&mut self, took: u64) {
        let quickest = self.quickest.map_or(took, |quickest| quickest.min(took));
        self.quickest = Some(quickest);
        if took <= 2 * quickest {
            self.depth = (self.depth + 1).min(MOST);
        } else if took > 4 * quickest {
            self.depth = (self.depth / 2).max(1);
        }
        self.measured += 1;
        if self.measured == MEASURED {
            // The state of a path does not stay as it was measured.
            (self.depth, self.quickest, self.measured) = (1, None, 0);
            self.waited = self.under_way.len();
        }
    }

    /// A part of an answer has come, and more will.
    pub fn goes_on(&mut self, now: Time) {
        self.heard = now;
    }

    /// Instances before this one are not wanted any more, or questions about them have no answer of their own.
    pub fn forget_to(&mut self, next: Instance) {
        self.seek_again();
        self.under_way
            .retain(|question| question.about.start >= next);
        self.waited = self.waited.min(self.under_way.len());
    }

    /// Gives up all questions.
    pub fn give_up(&mut self) {
        self.under_way.clear();
        self.seek_again();
        (self.depth, self.quickest, self.waited) = (1, None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MILLI: u64 = 1_000_000;

    fn node(number: u16) -> NodeId {
        NodeId::new(number).unwrap()
    }

    /// Asks for all before this that it may, and says for what.
    fn ask(
        questions: &mut CatchUpPipeline,
        now: Time,
        from: Instance,
        upto: Instance,
    ) -> Vec<Range<u64>> {
        let mut asked = Vec::new();
        while !questions.is_enough() {
            let at = questions.behind(from);
            asked.push(questions.ask(now, node(1), at..upto));
        }
        asked
    }

    /// Each answer brings 100 instances after `takes`, which is told how many were under way.
    fn depth_after(answers: u64, takes: impl Fn(u64) -> u64) -> usize {
        let mut questions = CatchUpPipeline::default();
        let mut under_way = VecDeque::new();
        let (mut now, mut from) = (Time(0), 0);
        for _ in 0..answers {
            let count = under_way.len() as u64;
            let asked = ask(&mut questions, now, from, 1_000_000);
            under_way.extend(asked.into_iter().map(|about| (about, now)));
            let (about, at) = under_way.pop_front().unwrap();
            now = now.max(at.after(takes(count)));
            let brought = about.start..about.end.min(about.start + 100);
            assert_eq!(questions.answered(now, &brought, true), Some(true));
            from = brought.end;
        }
        questions.depth
    }

    #[test]
    fn where_answers_take_long_many_are_asked() {
        assert_eq!(depth_after(60, |_| 50 * MILLI), MOST);
    }

    #[test]
    fn where_a_link_is_full_few_are() {
        // Each waits for those before.
        for answers in [20, 200, 280, 2000] {
            let depth = depth_after(answers, |count| (count + 1) * MILLI);
            assert!((2..=4).contains(&depth), "{answers}: {depth}");
        }
    }

    /// The search begins again at instances that an answer may not have brought.
    #[test]
    fn a_question_that_is_over_is_looked_for_again() {
        let mut questions = CatchUpPipeline {
            to: Some(node(1)),
            depth: 4,
            eighths: 80,
            ..CatchUpPipeline::default()
        };
        let asked = ask(&mut questions, Time(0), 100, 1000);
        assert_eq!(asked, [100..110, 110..120, 120..130, 130..140]);
        questions.sought_to(1000);
        assert!(questions.answered(Time(1), &(500..501), true).is_none());
        assert_eq!(questions.sought(), 1000);
        // The first has no answer.
        questions.answered(Time(1), &(110..120), true);
        assert_eq!(questions.sought(), 100);
        questions.sought_to(1000);
        questions.answered(Time(1), &(120..125), true);
        assert_eq!(questions.sought(), 120);
        for over in [
            CatchUpPipeline::give_up as fn(&mut CatchUpPipeline),
            |questions: &mut CatchUpPipeline| questions.forget_to(130),
        ] {
            questions.sought_to(1000);
            over(&mut questions);
            assert_eq!(questions.sought(), 0);
        }
    }

    #[test]
    fn who_becomes_slow_is_asked_less() {
        let mut questions = CatchUpPipeline {
            depth: 8,
            ..CatchUpPipeline::default()
        };
        questions.pace(MILLI);
        assert_eq!(questions.depth, 9);
        questions.pace(5 * MILLI);
        assert_eq!(questions.depth, 4);
        // A path that has become longer for good is no full one.
        for _ in 0..MEASURED + 20 {
            questions.pace(5 * MILLI);
        }
        assert_eq!(questions.depth, MOST);
    }

    #[test]
    fn nothing_is_asked_for_twice_and_gaps_come_first() {
        let mut questions = CatchUpPipeline::default();
        let now = Time(5);
        assert_eq!(questions.ask(now, node(1), 1..1000), 1..1000);
        assert!(questions.is_enough());
        assert_eq!(questions.answered(now, &(1..81), true), Some(true));
        assert_eq!(ask(&mut questions, now, 81, 1000), [81..151, 151..221]);
        // It brings less than was asked for.
        assert_eq!(questions.answered(now, &(81..121), true), Some(true));
        assert_eq!(ask(&mut questions, now, 121, 1000), [121..151, 221..256]);
        // The same once more, or something else, is no answer.
        assert_eq!(questions.answered(now, &(81..121), true), None);
        assert_eq!(questions.answered(now, &(300..301), true), None);
        // Questions before have no answer.
        assert_eq!(questions.answered(now, &(121..151), false), Some(true));
        assert_eq!(questions.behind(151), 151);
        assert_eq!(questions.behind(230), 256);
        // It lacks what was asked for.
        assert_eq!(questions.answered(now, &(222..256), false), Some(false));
        questions.ask(now, node(1), 300..400);
        questions.ask(now, node(1), 200..250);
        questions.forget_to(250);
        assert_eq!((questions.behind(200), questions.behind(300)), (200, 400));
        questions.give_up();
        assert!(questions.to().is_none() && questions.since().is_none());
        assert_eq!(questions.ask(now, node(1), 151..160), 151..160);
    }

    #[test]
    fn as_long_as_answers_come_no_question_is_late() {
        let mut questions = CatchUpPipeline::default();
        assert_eq!(questions.ask(Time(5), node(1), 1..1000), 1..1000);
        questions.answered(Time(9), &(1..81), true);
        ask(&mut questions, Time(9), 81, 1000);
        assert_eq!(questions.since(), Some(Time(9)));
        questions.answered(Time(20), &(81..151), true);
        assert_eq!(questions.since(), Some(Time(20)));
        questions.goes_on(Time(30));
        assert_eq!(questions.since(), Some(Time(30)));
    }

    #[test]
    fn where_values_become_small_more_are_asked_for_soon() {
        let mut questions = CatchUpPipeline::default();
        let mut asked = 1..4;
        questions.ask(Time(0), node(1), 1..1_000_000);
        questions.answered(Time(1), &asked, true);
        for _ in 0..10 {
            asked = questions.ask(Time(2), node(1), asked.end..1_000_000);
            questions.answered(Time(3), &asked, false);
        }
        assert!(asked.end - asked.start > 500, "{asked:?}");
        // A node that knows no more says nothing of the size of an answer.
        questions.ask(Time(4), node(1), asked.end..1_000_000);
        let eighths = questions.eighths;
        questions.answered(Time(5), &(asked.end..asked.end + 1), false);
        assert_eq!(questions.eighths, eighths);
    }

    #[test]
    fn what_one_took_says_nothing_of_another() {
        let mut questions = CatchUpPipeline::default();
        questions.ask(Time(0), node(1), 1..10);
        questions.answered(Time(5), &(1..5), true);
        assert_eq!((questions.depth, questions.eighths), (2, 28));
        assert_eq!(questions.ask(Time(9), node(2), 5..100), 5..100);
        assert!(questions.is_enough());
        assert_eq!(questions.to(), Some(node(2)));
    }
}
