//! K5, to members only: a client is given a message only while it is a member of a group that the
//! message was sent to, from its first view to its leave, or to the client itself; each message once, and
//! as it was sent. It is told that it left only if it was a member. And when all is quiet, a live client
//! that asked to join is a member, and one that asked to leave has been told that it left.
//!
//! As Spread gives them. Not flagged: messages of senders whose trace is missing, if they differ from
//! nothing that was recorded; a request to join of a member, and to leave of none, which say nothing.

use rustc_hash::FxHashSet;

use crate::groups::Groups;
use crate::report::Findings;
use crate::trace::clients::{Connection, Post, Saw};
use crate::view::{End, View};

/// The state of a client on its way.
#[derive(Default)]
struct Client {
    member_of: FxHashSet<u32>,
    joining: FxHashSet<u32>,
    leaving: FxHashSet<u32>,
    given: FxHashSet<u32>,
}

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let groups = &view.groups;
    for (number, connection) in groups.connections() {
        let mut client = Client::default();
        for (at, saw) in connection.saw.iter().enumerate() {
            let wrong = match *saw {
                Saw::Deliver(post) => {
                    let wrong = client.wrong_delivery(view, connection, post);
                    findings.verdict.checked += 1;
                    wrong.map(|wrong| format!("{}, {wrong}", groups.what(post.message)))
                }
                Saw::SelfLeave { group } if !client.member_of.contains(&group) => {
                    let name = groups.name(group);
                    Some(format!("its leave of {name}, of which it was no member"))
                }
                _ => None,
            };
            if let Some(wrong) = wrong {
                findings.violated(|| {
                    let (who, at) = (groups.who(number), groups.at(number, at));
                    format!("{who} was given{at} {wrong}")
                });
            }
            client.note(groups, *saw);
        }
        if groups.live[number as usize] {
            check_rest(groups, number, &client, findings);
        }
    }
}

impl Client {
    fn note(&mut self, groups: &Groups<'_>, saw: Saw) {
        match saw {
            Saw::Join { group } if !self.member_of.contains(&group) => {
                self.joining.insert(group);
            }
            Saw::Leave { group }
                if self.member_of.contains(&group) || self.joining.contains(&group) =>
            {
                self.leaving.insert(group);
            }
            Saw::View(given) => {
                let group = groups.view_of(given).group;
                self.joining.remove(&group);
                self.member_of.insert(group);
            }
            Saw::SelfLeave { group } => {
                self.leaving.remove(&group);
                self.member_of.remove(&group);
            }
            Saw::Deliver(post) => {
                self.given.insert(post.message);
            }
            _ => {}
        }
    }

    fn wrong_delivery(
        &self,
        view: &View<'_>,
        connection: &Connection,
        post: Post,
    ) -> Option<&'static str> {
        let groups = &view.groups;
        let to_it = |group: &u32| self.member_of.contains(group) || *group == connection.name;
        if !groups.clients.groups(post.groups).iter().any(to_it) {
            return Some("to no group of which it was a member");
        }
        if self.given.contains(&post.message) {
            return Some("again");
        }
        match groups.sent[post.message as usize] {
            Some(sent) => {
                let same = |post: Post| (post.groups, post.service, post.hash);
                (same(sent.post) != same(post)).then_some("other than as it was sent")
            }
            None => {
                let sender = groups.clients.messages()[post.message as usize].process;
                let sender = view.trace.process_number(sender);
                let known = sender.is_some_and(|sender| view.end(sender) != End::Untraced);
                known.then_some("which nobody sent")
            }
        }
    }
}

fn check_rest(groups: &Groups<'_>, number: u32, client: &Client, findings: &mut Findings) {
    for (asked, what) in [(&client.joining, "join"), (&client.leaving, "leave")] {
        let mut asked: Vec<&u32> = asked.iter().collect();
        asked.sort_unstable();
        for group in asked {
            findings.violated(|| {
                let (who, group) = (groups.who(number), groups.name(*group));
                format!("{who} asked to {what} {group} and was told nothing")
            });
        }
    }
}
