//! A trace of an engine with one order over primary views, in the terms of its properties.
//!
//! Every configuration is a *view*. A process's *stay* is its time in one, up to the next view that it installs; it has
//! *survived* a view if the next view of all is its own next one. All others in a view are *joiners*: they owe nothing
//! of what was delivered before.
//!
//! A view may have begun and ended without any application coming to it: all processes that could have shown it failed
//! before, or were excluded. Such a hidden view takes a member of the next view that has not installed that either, as
//! some member has to bring the knowledge of the hidden view. A view which all of its members have installed is
//! *certain*: nothing is hidden in front of it. Only for changes to certain views are the survivors known.
//!
//! An *order* begins with the first view, and again if memory is lost: see [`Begins`]. An order that begins anew from
//! an older view, whose members remember it, has that view twice: as it ended for the processes that have forgotten
//! since, and right before the view that its members went on to, as it ended for them. Messages delivered in it before
//! the end showed belong to both.

mod back;
mod build;
pub(crate) mod counters;
mod sequences;

use std::ops::Range;

use rota_core::contract::{RingId, Service};

use crate::trace::{Place, Step};
use crate::view::{End, View};

/// The relation of a view to earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begins {
    /// Some member was in an earlier one: the view goes on.
    Behind,
    /// No member was in an earlier one, and no other process remembers: as far as is known, no process that was in one
    /// is alive, or more than half of the nodes have forgotten, as later lives of theirs are here.
    Anew,
    /// No member was in an earlier one, and there are processes that remember.
    Unfounded,
    /// The view was there before: more than half of the nodes have forgotten, and with them all later views, and the
    /// processes that remember it go on from there.
    Again {
        /// The number of the same view when it was there first.
        first: u32,
    },
}

/// A view that some process installed.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    pub id: RingId,
    pub conf: u32,
    /// As first listed.
    pub members: u32,
    pub begins: Begins,
    /// The number of its order.
    pub order: u32,
    /// True if all of its members are known to have installed it.
    pub certain: bool,
    /// Everything that any process delivered in it, by position.
    pub sequence: Vec<(u64, u32)>,
    /// The stays in it, by process.
    pub stays: Vec<u32>,
}

/// A process's time in a view.
#[derive(Clone, Debug)]
pub(crate) struct Stay {
    pub process: u32,
    pub view: u32,
    /// Its events in the view, behind that which installed it.
    pub steps: Range<usize>,
    /// The view that it installed next.
    pub next: Option<u32>,
    /// The first of these events that says it is excluded.
    pub excluded: Option<usize>,
}

/// A message's acceptance for broadcast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broadcast {
    pub process: u32,
    pub at: usize,
    pub service: Service,
    pub hash: u64,
    /// The view that was current.
    pub view: Option<u32>,
}

/// A trace in the terms of the module.
#[derive(Debug)]
pub(crate) struct Uniform<'a> {
    /// The same trace, by names.
    pub base: View<'a>,
    /// The views by id.
    pub views: Vec<Installed>,
    pub stays: Vec<Stay>,
    /// The stays of each process, in their order.
    pub lives: Vec<Vec<u32>>,
    /// The broadcast of each message.
    pub broadcasts: Vec<Option<Broadcast>>,
}

impl Uniform<'_> {
    /// The view that a view follows.
    pub fn before(&self, view: u32) -> Option<u32> {
        let begins = self.views[view as usize].begins;
        let goes_on = matches!(begins, Begins::Behind | Begins::Unfounded);
        (goes_on && view > 0).then(|| view - 1)
    }

    /// Whether the order goes back to a view later.
    pub fn is_gone_back_to(&self, view: u32) -> bool {
        let mut later = self.views.iter().skip(view as usize + 1);
        later.any(|later| later.begins == Begins::Again { first: view })
    }

    /// Whether messages delivered in a view do not belong to the order that a process goes on in: the process went back
    /// behind that view.
    pub fn is_lost_to(&self, process: u32, view: u32) -> bool {
        let mut later = self.views.iter().skip(view as usize + 1);
        later.any(|later| {
            let back = matches!(later.begins, Begins::Again { first } if first <= view);
            let mut stays = later.stays.iter();
            back && stays.any(|stay| self.stays[*stay as usize].process == process)
        })
    }

    /// Whether a process went from its view to the one that follows it.
    pub fn survived(&self, stay: &Stay) -> bool {
        let next = stay.next;
        next.is_some_and(|next| self.before(next) == Some(stay.view))
    }

    /// The stays in a view that have survived it.
    pub fn survivors(&self, view: u32) -> impl Iterator<Item = &Stay> {
        let stays = self.views[view as usize].stays.iter();
        let stays = stays.map(|stay| &self.stays[*stay as usize]);
        stays.filter(|stay| self.survived(stay))
    }

    /// Whether a process is known to be at rest in this stay: in its view, and not told that it is excluded.
    pub fn rests(&self, stay: &Stay) -> bool {
        let alive = self.base.end(stay.process) == End::Alive;
        stay.next.is_none() && alive && stay.excluded.is_none()
    }

    /// Whether a process has to have delivered everything in its view.
    pub fn owes_all(&self, stay: &Stay) -> bool {
        let next = stay.next.map(|next| &self.views[next as usize]);
        self.rests(stay) || self.survived(stay) && next.is_some_and(|next| next.certain)
    }

    /// The deliveries of a process in a stay, each with the number of its event.
    pub fn deliveries<'b>(&'b self, stay: &Stay) -> impl Iterator<Item = (usize, &'b Place)> + 'b {
        let steps = stay.steps.clone();
        let steps = steps.clone().zip(&self.base.steps(stay.process)[steps]);
        steps.filter_map(|(at, step)| match step {
            Step::Deliver(place) => Some((at, place)),
            _ => None,
        })
    }

    /// Whether a hidden view may lie between two views: see the module.
    pub fn is_hidden(&self, after: Option<u32>, up_to: u32) -> bool {
        let mut next = Some(up_to);
        while let Some(view) = next.filter(|view| Some(*view) > after) {
            let Installed {
                certain, begins, ..
            } = self.views[view as usize];
            if !certain {
                return true;
            }
            // A lost view hides nothing.
            let from = match begins {
                Begins::Again { first } => first,
                _ => view,
            };
            next = from.checked_sub(1);
        }
        false
    }

    /// `view 12.1.7 of {1.7, 2.3}`.
    pub fn shown(&self, view: u32) -> String {
        let view = &self.views[view as usize];
        format!("view {} of {}", view.id, self.base.listed(view.members))
    }
}
