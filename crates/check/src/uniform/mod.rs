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
//! An *order* begins with the first view, and again where memory is lost: see [`Begins`].

mod build;
pub(crate) mod counters;

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
        (begins != Begins::Anew && view > 0).then(|| view - 1)
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
        let first = after.map_or(0, |view| view as usize + 1);
        let views = self.views.get(first..=up_to as usize).unwrap_or_default();
        views.iter().any(|view| !view.certain)
    }

    /// `view 12.1.7 of {1.7, 2.3}`.
    pub fn shown(&self, view: u32) -> String {
        let view = &self.views[view as usize];
        format!("view {} of {}", view.id, self.base.listed(view.members))
    }
}
