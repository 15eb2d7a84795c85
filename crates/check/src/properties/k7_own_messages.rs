//! K7, own messages: a client is given each message that it sent to a group as a member, or to itself, before it is
//! told that it left; and none of which it wanted no copy. A message that it sent to groups of which it was no member
//! it is given only if it has come to one of them meanwhile, which K5 looks at.
//!
//! As Spread gives them: membership at the delivery counts. It is certain of a client that was a member when it sent
//! and asks to leave only after that. Not flagged: messages sent behind a request to leave that is not answered yet,
//! even if the client has asked to join again, and those of clients that disconnected or are not known to be alive at
//! the end; and messages sent before its process was in no view, if the client was told that it has missed messages.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::groups::Groups;
use crate::report::Findings;
use crate::trace::clients::{Post, Saw};
use crate::view::View;

/// The state of a client on its way.
#[derive(Default)]
struct Client {
    /// The groups of which it certainly is a member: without those it asked to leave.
    member_of: FxHashSet<u32>,
    /// The groups it wants to be in, by its requests.
    wants: FxHashSet<u32>,
    /// By group: the number of its requests to leave that are not answered yet: it may have asked to join again.
    leaving: FxHashMap<u32, u32>,
    /// The messages that it has to be given, each with a group that is the reason.
    owed: BTreeMap<u32, u32>,
    /// The messages that it was owed when its process was in no view any more: it may miss them.
    doubtful: FxHashSet<u32>,
}

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let groups = &view.groups;
    for (number, connection) in groups.connections() {
        let mut client = Client::default();
        for (at, saw) in connection.saw.iter().enumerate() {
            let unwanted = match *saw {
                Saw::Deliver(post) => {
                    client.owed.remove(&post.message);
                    let discards = groups.discards(number, post.message);
                    findings.verdict.checked += u64::from(discards);
                    discards.then_some(post.message)
                }
                Saw::Send { post, discard } => {
                    if client.owes(groups, connection.name, post) && !discard {
                        findings.verdict.checked += 1;
                    }
                    None
                }
                _ => None,
            };
            if let Some(message) = unwanted {
                findings.violated(|| {
                    let (who, at) = (groups.who(number), groups.at(number, at));
                    format!(
                        "{who} was given its own {}{at}, of which it wanted no copy",
                        groups.what(message)
                    )
                });
            }
            client.note(groups, connection.name, *saw);
            if let Saw::SelfLeave { group } = *saw {
                let lost = client.owed_by(group);
                report(groups, number, &lost, "left", findings);
            }
        }
        if groups.live[number as usize] {
            let lost: Vec<u32> = client.owed.keys().copied().collect();
            report(groups, number, &lost, "came to rest", findings);
        }
    }
}

fn report(groups: &Groups<'_>, number: u32, lost: &[u32], when: &str, findings: &mut Findings) {
    for message in lost {
        findings.violated(|| {
            let (who, what) = (groups.who(number), groups.what(*message));
            format!("{who} {when} without having been given its own {what}")
        });
    }
}

impl Client {
    /// A group of a message that is the reason for which its sender will be given it.
    fn reason(&self, groups: &Groups<'_>, name: u32, post: Post) -> Option<u32> {
        let mut to = groups.clients.groups(post.groups).iter();
        let reason = to.find(|group| self.member_of.contains(group) || **group == name);
        reason.copied()
    }

    fn owes(&self, groups: &Groups<'_>, name: u32, post: Post) -> bool {
        self.reason(groups, name, post).is_some()
    }

    /// Takes away the messages that are owed because of a group.
    fn owed_by(&mut self, group: u32) -> Vec<u32> {
        let lost = self.owed.iter().filter(|(_, reason)| **reason == group);
        let lost: Vec<u32> = lost.map(|(message, _)| *message).collect();
        self.owed.retain(|_, reason| *reason != group);
        lost
    }

    fn note(&mut self, groups: &Groups<'_>, name: u32, saw: Saw) {
        match saw {
            Saw::Send {
                post,
                discard: false,
            } => {
                if let Some(reason) = self.reason(groups, name, post) {
                    self.owed.insert(post.message, reason);
                }
            }
            Saw::View(given) => {
                let group = groups.view_of(given).group;
                if self.leaving.get(&group).is_none_or(|asked| *asked == 0) {
                    self.member_of.insert(group);
                }
            }
            Saw::Leave { group } => {
                if self.wants.remove(&group) || self.member_of.contains(&group) {
                    *self.leaving.entry(group).or_default() += 1;
                }
                self.member_of.remove(&group);
            }
            Saw::SelfLeave { group } => {
                if let Some(asked) = self.leaving.get_mut(&group) {
                    *asked = asked.saturating_sub(1);
                }
                self.member_of.remove(&group);
            }
            Saw::Join { group } => {
                self.wants.insert(group);
            }
            Saw::Excluded => self.doubtful.extend(self.owed.keys()),
            Saw::Included { missed } => {
                let doubtful = std::mem::take(&mut self.doubtful);
                self.owed
                    .retain(|message, _| !missed || !doubtful.contains(message));
            }
            _ => {}
        }
    }
}
