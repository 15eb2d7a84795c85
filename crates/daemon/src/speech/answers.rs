//! The joins and leaves of a client that wait for an answer.

use std::collections::{BTreeMap, VecDeque};

use rota_core::groups::GroupName;

/// Requests of one client that may wait for their answers: joins and leaves that change nothing are not
/// bounded by anything else while the daemons tell each other what they know.
pub(super) const MOST_OPEN: usize = 1 << 14;

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Join,
    Leave,
}

/// A group that a client is in, or has asked for.
#[derive(Debug, Default)]
struct Standing {
    inside: bool,
    /// Requests that have not taken effect, oldest first. Those without a number are the daemon's.
    open: VecDeque<(Wish, Option<u32>)>,
}

/// A client's groups.
#[derive(Debug, Default)]
pub(super) struct Answers {
    groups: BTreeMap<GroupName, Standing>,
    /// Requests that wait, of all groups.
    open: usize,
}

impl Answers {
    /// The client asks; `true` if it is so already, and there is nothing to wait for.
    pub fn ask(&mut self, group: GroupName, wish: Wish, request: u32) -> bool {
        let standing = self.groups.entry(group).or_default();
        if standing.open.is_empty() && standing.inside == (wish == Wish::Join) {
            if !standing.inside {
                self.groups.remove(&group);
            }
            return true;
        }
        standing.open.push_back((wish, Some(request)));
        self.open += 1;
        false
    }

    /// The daemon has the client leave a group that it is in or has asked to be in.
    pub fn expel(&mut self, group: GroupName) {
        let standing = self.groups.entry(group).or_default();
        standing.open.push_back((Wish::Leave, None));
        self.open += 1;
    }

    /// Whether the client is in the group.
    pub fn is_in(&self, group: &GroupName) -> bool {
        self.groups
            .get(group)
            .is_some_and(|standing| standing.inside)
    }

    /// More requests wait than may.
    pub const fn are_too_many(&self) -> bool {
        self.open > MOST_OPEN
    }

    /// The newest request about the group was not taken.
    pub fn failed(&mut self, group: GroupName) {
        if let Some(standing) = self.groups.get_mut(&group) {
            self.open -= usize::from(standing.open.pop_back().is_some());
            if standing.open.is_empty() && !standing.inside {
                self.groups.remove(&group);
            }
        }
    }

    /// The client is in the group, or out of it: answers with the requests that this answers; `None` for one of
    /// the daemon.
    pub fn effect(&mut self, group: GroupName, wish: Wish) -> Vec<Option<u32>> {
        let Some(standing) = self.groups.get_mut(&group) else {
            return Vec::new();
        };
        standing.inside = wish == Wish::Join;
        let mut answered = Vec::new();
        while let Some(&(open, request)) = standing.open.front()
            && open == wish
        {
            standing.open.pop_front();
            answered.push(request);
        }
        self.open -= answered.len();
        if standing.open.is_empty() && !standing.inside {
            self.groups.remove(&group);
        }
        answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_answered_once_where_it_takes_effect() {
        let group = GroupName::new("g").expect("a name");
        let mut answers = Answers::default();
        assert!(answers.ask(group, Wish::Leave, 1), "not in it");
        assert!(!answers.ask(group, Wish::Join, 2));
        assert!(!answers.ask(group, Wish::Join, 3), "on its way");
        assert!(!answers.ask(group, Wish::Leave, 4));
        assert!(!answers.ask(group, Wish::Join, 5));
        assert_eq!(answers.effect(group, Wish::Join), [Some(2), Some(3)]);
        assert!(
            answers.effect(group, Wish::Join).is_empty(),
            "somebody else's view"
        );
        assert_eq!(answers.effect(group, Wish::Leave), [Some(4)]);
        assert_eq!(answers.effect(group, Wish::Join), [Some(5)]);
        assert!(answers.ask(group, Wish::Join, 6), "in it");
        assert!(!answers.ask(group, Wish::Leave, 7));
        answers.failed(group);
        assert!(answers.ask(group, Wish::Join, 8), "still in it");
        assert!(!answers.ask(group, Wish::Leave, 9));
        assert_eq!(answers.effect(group, Wish::Leave), [Some(9)]);
        assert!(answers.groups.is_empty(), "nothing is kept of it");
        assert_eq!(answers.open, 0);
    }

    #[test]
    fn a_join_after_the_daemon_had_the_client_leave_waits_for_its_own_effect() {
        let group = GroupName::new("g").expect("a name");
        let mut answers = Answers::default();
        assert!(!answers.ask(group, Wish::Join, 1));
        assert_eq!(answers.effect(group, Wish::Join), [Some(1)]);
        answers.expel(group);
        assert!(!answers.ask(group, Wish::Join, 2), "it is as good as out");
        assert_eq!(answers.effect(group, Wish::Leave), [None]);
        assert_eq!(answers.effect(group, Wish::Join), [Some(2)]);
        answers.expel(group);
        assert!(!answers.ask(group, Wish::Leave, 3));
        assert_eq!(answers.effect(group, Wish::Leave), [None, Some(3)]);
        assert!(answers.groups.is_empty() && answers.open == 0);
    }

    #[test]
    fn only_so_many_may_wait() {
        let group = GroupName::new("g").expect("a name");
        let mut answers = Answers::default();
        for request in 0..MOST_OPEN as u32 {
            answers.ask(group, Wish::Join, request);
        }
        assert!(!answers.are_too_many());
        answers.ask(group, Wish::Join, 0);
        assert!(answers.are_too_many());
        assert_eq!(answers.effect(group, Wish::Join).len(), MOST_OPEN + 1);
        assert!(!answers.are_too_many());
    }
}
