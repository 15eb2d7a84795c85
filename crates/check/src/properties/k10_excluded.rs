//! K10, excluded: a client is told when its process is in no view, and when that is over, in turns; between the two it
//! is given no message, no view, no transition and no leave. If it has missed messages, then the first that it is given
//! of each group that it is in is a view by the network.
//!
//! The property applies only where processes order in primary views alone. K5 checks that nothing is given twice over
//! such a gap, and K4 that the others did not share what was missed. Not flagged: a client that is told nothing more
//! before its end; and the time at which a process counts as excluded, of which clients know nothing.

use rustc_hash::FxHashMap;

use crate::event::Cause;
use crate::groups::Groups;
use crate::report::Findings;
use crate::trace::clients::Saw;
use crate::view::View;

/// The state of a client on its way.
#[derive(Default)]
struct Client {
    excluded: bool,
    /// The groups that it is in, each with whether a view is due.
    due: FxHashMap<u32, bool>,
}

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let groups = &view.groups;
    for (number, connection) in groups.connections() {
        let mut client = Client::default();
        for (at, saw) in connection.saw.iter().enumerate() {
            findings.verdict.checked += u64::from(matches!(saw, Saw::Included { .. }));
            if let Some(wrong) = client.note(groups, saw) {
                findings.violated(|| {
                    let (who, at) = (groups.who(number), groups.at(number, at));
                    format!("{who} was told{at} {wrong}")
                });
            }
        }
        if !groups.live[number as usize] {
            continue;
        }
        let mut due: Vec<u32> = client
            .due
            .iter()
            .filter_map(|(group, due)| due.then_some(*group))
            .collect();
        due.sort_unstable();
        for group in due {
            findings.violated(|| {
                let (who, group) = (groups.who(number), groups.name(group));
                format!("{who} missed something and was not told who is in {group}")
            });
        }
    }
}

impl Client {
    /// The mistake in the next event, as the end of a sentence.
    fn note(&mut self, groups: &Groups<'_>, saw: &Saw) -> Option<String> {
        let excluded = self.excluded;
        let wrong = match *saw {
            Saw::Excluded => {
                self.excluded = true;
                return excluded.then(|| "again that its process is in no view".into());
            }
            Saw::Included { missed } => {
                self.excluded = false;
                self.due.values_mut().for_each(|due| *due |= missed);
                return (!excluded).then(|| "that its process is back, which was not gone".into());
            }
            Saw::View(given) => {
                let listed = groups.view_of(given);
                let due = self.due.insert(listed.group, false) == Some(true);
                let wrong = due && listed.cause != Cause::Network;
                (excluded || wrong).then(|| groups.shown(given))
            }
            Saw::Deliver(post) => {
                let mut to = groups.clients.groups(post.groups).iter();
                let due = to.any(|group| self.due.get(group) == Some(&true));
                (excluded || due).then(|| groups.what(post.message))
            }
            Saw::SelfLeave { group } => {
                let due = self.due.remove(&group) == Some(true);
                (excluded || due).then(|| format!("its leave of {}", groups.name(group)))
            }
            Saw::Transition { group, .. } => {
                excluded.then(|| format!("a transition of {}", groups.name(group)))
            }
            Saw::Join { .. } | Saw::Leave { .. } | Saw::Send { .. } | Saw::Disconnect => None,
        };
        let when = if excluded {
            "while its process was in no view"
        } else {
            "before who is there, after it had missed something"
        };
        wrong.map(|wrong| format!("{wrong}, {when}"))
    }
}
