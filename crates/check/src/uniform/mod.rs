//! A trace of an engine with one order over primary views, looked at as its properties do.
//!
//! Every configuration is a *view*. A process's *stay* is its time in one, up to the next view that it
//! installs; it has *survived* a view if the next view of all is its own next one. All others in a view are
//! *joiners*: they owe nothing of what was delivered before.
//!
//! A view may have begun and ended without any application coming to it: all who could have shown it failed
//! before, or were excluded. That takes a member of the next view that has not installed that either, as
//! somebody has to bring what the hidden view knew. A view which all of its members have installed is
//! *certain*: nothing is hidden in front of it. Only of such changes is it known who survived.
//!
//! An *order* begins with the first view, and again where memory is lost: see [`Begins`]. Where it begins anew from an
//! older view, whose members remember it, that view is there twice: as it ended for those who have forgotten since, and
//! right before the view that they went on to, as it ended for the others. What was delivered in it before the end
//! showed belongs to both.

mod back;
mod build;
pub(crate) mod counters;
mod sequences;

use std::ops::Range;

use rota_core::contract::{RingId, Service};

use crate::trace::{Place, Step};
use crate::view::{End, View};

/// What a view has to do with earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begins {
    /// Somebody in it was in an earlier one: it goes on.
    Behind,
    /// Nobody in it was in an earlier one, and nobody else remembers: as far as is known, nobody who was
    /// is alive, or more than half of the nodes have forgotten, as later lives of theirs are here.
    Anew,
    /// Nobody in it was in an earlier one, and there are such who remember.
    Unfounded,
    /// It is one that was there before: more than half of the nodes have forgotten, and with them all that came
    /// after it, and those who remember it go on from there.
    Again {
        /// As which it was there first.
        first: u32,
    },
}

/// A view that somebody installed.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    pub id: RingId,
    pub conf: u32,
    /// As first listed.
    pub members: u32,
    pub begins: Begins,
    /// Which order it belongs to.
    pub order: u32,
    /// Whether all of its members are known to have installed it.
    pub certain: bool,
    /// Everything that anybody delivered in it, by position.
    pub sequence: Vec<(u64, u32)>,
    /// By process.
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

/// See the module.
#[derive(Debug)]
pub(crate) struct Uniform<'a> {
    /// The same trace, by names.
    pub base: View<'a>,
    /// By id.
    pub views: Vec<Installed>,
    pub stays: Vec<Stay>,
    /// By process: its stays, in their order.
    pub lives: Vec<Vec<u32>>,
    /// By message.
    pub broadcasts: Vec<Option<Broadcast>>,
}

impl Uniform<'_> {
    /// The view that a view follows.
    pub fn before(&self, view: u32) -> Option<u32> {
        let begins = self.views[view as usize].begins;
        let goes_on = matches!(begins, Begins::Behind | Begins::Unfounded);
        (goes_on && view > 0).then(|| view - 1)
    }

    /// Whether a view is there again.
    pub fn is_gone_back_to(&self, view: u32) -> bool {
        let mut later = self.views.iter().skip(view as usize + 1);
        later.any(|later| later.begins == Begins::Again { first: view })
    }

    /// Whether nothing that was delivered in a view belongs to the order that a process goes on in: it went back
    /// behind that.
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

    /// What a process delivered in a stay: as which of its events, and what.
    pub fn deliveries<'b>(&'b self, stay: &Stay) -> impl Iterator<Item = (usize, &'b Place)> + 'b {
        let steps = stay.steps.clone();
        let steps = steps.clone().zip(&self.base.steps(stay.process)[steps]);
        steps.filter_map(|(at, step)| match step {
            Step::Deliver(place) => Some((at, place)),
            _ => None,
        })
    }

    /// Whether what was delivered between two views may be hidden: see the module.
    pub fn is_hidden(&self, after: Option<u32>, up_to: u32) -> bool {
        let mut next = Some(up_to);
        while let Some(view) = next.filter(|view| Some(*view) > after) {
            let Installed {
                certain, begins, ..
            } = self.views[view as usize];
            if !certain {
                return true;
            }
            // What was lost hides nothing.
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
