//! Clients and their groups, one event after the other.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::Process;
use rustc_hash::FxHashMap;

use super::wrong;
use crate::event::{Cause, ClientEvent, ClientSaw, Gid, GroupView, Post};
use crate::groups::sets::wrong_sets;
use crate::name::Name;
use crate::report::Violation;

/// The number of remembered views of a group up to which none is forgotten.
const VIEWS: usize = 64;

/// The state of a client in a group.
#[derive(Clone, Debug)]
struct Membership {
    gid: Gid,
    member: bool,
    /// A transition has come.
    reduced: bool,
    /// The client has missed messages, and a view is due.
    due: bool,
}

/// The state of all clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Clients {
    /// The groups of each client, by process and name.
    clients: FxHashMap<Process, BTreeMap<String, BTreeMap<String, Membership>>>,
    /// There are no transitions.
    silent: bool,
    /// Clients that have been told that their process is in no view.
    excluded: FxHashMap<Process, BTreeSet<String>>,
    /// By group: views that a client may still be given.
    views: FxHashMap<String, BTreeMap<Gid, GroupView>>,
}

impl Clients {
    /// The state over engines with primary views alone.
    pub fn without_transitions() -> Self {
        Self {
            silent: true,
            ..Self::default()
        }
    }

    /// Forgets the clients of a process.
    pub fn end(&mut self, process: Process) {
        self.clients.remove(&process);
        self.excluded.remove(&process);
    }

    /// The number of views that are remembered, over all groups.
    pub fn remembered(&self) -> usize {
        self.views.values().map(BTreeMap::len).sum()
    }

    pub fn observe(&mut self, process: Process, event: &ClientEvent) -> Result<(), Violation> {
        let name = &event.client;
        self.check_excluded(process, event)?;
        let clients = self.clients.entry(process).or_default();
        let groups = clients.entry(name.clone()).or_default();
        let result = match &event.saw {
            ClientSaw::Join(_) | ClientSaw::Leave(_) | ClientSaw::Send { .. } => Ok(()),
            ClientSaw::Disconnect => {
                clients.remove(name);
                Ok(())
            }
            ClientSaw::Excluded => Ok(()),
            ClientSaw::Included { missed } => {
                groups.values_mut().for_each(|group| group.due |= missed);
                Ok(())
            }
            ClientSaw::Deliver(post) => on_delivery(groups, name, post),
            ClientSaw::View(view) => {
                on_view(groups, name, view, self.silent).and_then(|()| self.remember(view))
            }
            ClientSaw::Transition { group, .. } if self.silent => {
                Err(("K6", format!("a transition of {group}, over primary views")))
            }
            ClientSaw::Transition { group, gid } => on_transition(groups, group, *gid),
            ClientSaw::SelfLeave(group) => match groups.get_mut(group) {
                Some(known) if known.member => {
                    known.member = false;
                    Ok(())
                }
                _ => Err((
                    "K5",
                    format!("its leave of {group}, where it was no member"),
                )),
            },
        };
        let who = || format!("client {name} of process {}", Name(process));
        result.map_err(|(property, what)| wrong(property, format!("{} was given {what}", who())))
    }

    /// While its process is in no view, a client is given nothing.
    fn check_excluded(&mut self, process: Process, event: &ClientEvent) -> Result<(), Violation> {
        let name = &event.client;
        let excluded = self.excluded.entry(process).or_default();
        let fine = match event.saw {
            ClientSaw::Excluded => excluded.insert(name.clone()),
            ClientSaw::Included { .. } => excluded.remove(name),
            ClientSaw::Disconnect => {
                excluded.remove(name);
                true
            }
            ClientSaw::Join(_) | ClientSaw::Leave(_) | ClientSaw::Send { .. } => true,
            _ => !excluded.contains(name),
        };
        let what = || {
            format!(
                "client {name} of process {} was told {:?}",
                Name(process),
                event.saw
            )
        };
        fine.then_some(()).ok_or_else(|| wrong("K10", what()))
    }

    /// Checks that a view is the same for all clients.
    fn remember(&mut self, view: &GroupView) -> Result<(), Wrong> {
        let mut view = view.clone();
        view.vs_sets.iter_mut().for_each(|set| set.sort_unstable());
        view.vs_sets.sort_unstable();
        let views = self.views.entry(view.group.clone()).or_default();
        let known = views.entry(view.gid).or_insert_with(|| view.clone());
        if *known != view {
            return Err((
                "K1",
                format!("{}, which others had otherwise", shown(&view)),
            ));
        }
        if views.len() > VIEWS {
            let all = self.clients.values().flat_map(BTreeMap::values);
            let current = all.filter_map(|groups| groups.get(&view.group));
            let current = current.filter(|known| known.member).map(|known| known.gid);
            let least = current.min().unwrap_or(view.gid);
            *views = views.split_off(&least);
        }
        Ok(())
    }
}

/// The violated property, and the event that violates it.
type Wrong = (&'static str, String);

fn shown(view: &GroupView) -> String {
    let (gid, members) = (Name(view.gid), view.members.join(", "));
    format!("view {gid} of {} {{{members}}}", view.group)
}

fn on_delivery(
    groups: &BTreeMap<String, Membership>,
    name: &String,
    post: &Post,
) -> Result<(), Wrong> {
    let to_it = |group: &String| {
        let known = groups.get(group);
        known.is_some_and(|known| known.member) || group == name
    };
    let message = post.message;
    let due = |group: &String| {
        groups
            .get(group)
            .is_some_and(|known| known.member && known.due)
    };
    if post.groups.iter().any(due) {
        let what = "before who is there, after it had missed something";
        return Err(("K10", format!("message {message}, {what}")));
    }
    if post.groups.iter().any(to_it) {
        return Ok(());
    }
    Err((
        "K5",
        format!("message {message}, to no group of which it was a member"),
    ))
}

fn on_view(
    groups: &mut BTreeMap<String, Membership>,
    name: &String,
    view: &GroupView,
    silent: bool,
) -> Result<(), Wrong> {
    let wrong = |property, what: &str| Err((property, format!("{}, {what}", shown(view))));
    if !view.members.contains(name) {
        return wrong("K2", "without itself");
    }
    if let Some(what) = wrong_sets(view.cause, &view.members, &view.vs_sets) {
        return wrong("K3", what);
    }
    let now = Membership {
        gid: view.gid,
        member: true,
        reduced: false,
        due: false,
    };
    let before = groups.insert(view.group.clone(), now);
    if before.as_ref().is_some_and(|known| known.gid >= view.gid) {
        return wrong("K2", "after a later one");
    }
    let network = view.cause == Cause::Network;
    match before.filter(|known| known.member) {
        Some(known) if known.reduced && !network => wrong("K6", "after a transition"),
        Some(known) if !known.reduced && network && !silent => {
            wrong("K6", "without a transition before it")
        }
        Some(_) => Ok(()),
        None => {
            let alone = |set: &Vec<String>| set.len() == 1 && set[0] == *name;
            if view.vs_sets.iter().any(alone) {
                Ok(())
            } else {
                wrong("K3", "to which it came, not alone")
            }
        }
    }
}

fn on_transition(
    groups: &mut BTreeMap<String, Membership>,
    group: &String,
    gid: Gid,
) -> Result<(), Wrong> {
    let text = |what: &str| format!("a transition of view {} of {group}, {what}", Name(gid));
    let known = groups.get_mut(group).filter(|known| known.member);
    let Some(known) = known else {
        return Err(("K6", text("of which it is no member")));
    };
    if std::mem::replace(&mut known.reduced, true) {
        return Err(("K6", text("after one before")));
    }
    if known.gid != gid {
        return Err(("K6", text("which is not its view")));
    }
    Ok(())
}
