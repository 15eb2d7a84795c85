//! Missing values with multicast: the times at which they are asked for, and the own values that may be under way.

use super::super::cast::{Lack, Lacking};
use super::super::context::Context;
use super::super::rate::Rate;
use super::Stream;
use crate::{Proposers, ValueId};
use rota_core::contract::Time;

/// A value that was sent before something that has come is waited for a heartbeat divided by this.
const SHORT: u64 = 64;
/// Likewise a value behind which nothing has come.
const LONG: u64 = 6;
/// The number of values that may be under way at any rate.
const SOME: usize = 4;

/// The steps that are due.
#[derive(Clone, Copy, Debug)]
pub struct Overdue {
    /// The missing value that is to be asked for.
    pub lack: Option<Lacking>,
    /// The first own value is to go to the coordinator alone, and again after twice as long.
    pub late: Option<u64>,
}

impl Stream {
    /// Own values that may be under way, in bytes.
    pub fn own_window(&self, cx: &Context) -> usize {
        let Some(cast) = &self.cast else {
            return cx.settings.window_bytes;
        };
        let is_alone = self.successor().is_none();
        let rate = cast.rate.as_ref().filter(|_| !is_alone);
        let by_rate = rate.map_or(usize::MAX, Rate::window);
        let some = SOME * cx.settings.frame_bytes;
        cast.window().min(by_rate.max(some))
    }

    /// Looks for missing values, so that they are asked for in time. `table`: at the coordinator; `begun`: the round
    /// has begun here.
    pub fn watch(&mut self, cx: &Context, table: Option<&Proposers>, begun: bool) {
        if self.cast.is_none() {
            return;
        }
        let patience = cx.settings.patience;
        let lack = self.lack(table);
        let first = self.first_own().map(|(id, _)| id.counter);
        let first = first.filter(|_| begun && !self.leads());
        let Some(cast) = &mut self.cast else {
            return;
        };
        // On a slow link a value takes long, and names come before it.
        let most = 2 * cx.settings.frame_bytes;
        let rate = cast.rate.as_ref();
        let on_links = rate.map_or(0, |rate| rate.takes_on_links(most));
        let own = rate.map_or(0, |rate| rate.takes(most));
        let long = |takes: u64| patience.heartbeat / LONG + takes.min(patience.silence);
        let wait = |has_come: bool| match has_come {
            true => patience.heartbeat / SHORT,
            false => long(on_links),
        };
        cast.watch(cx.now, lack.map(|(lack, has_come)| (lack, wait(has_come))));
        cast.late = match (cast.late, first) {
            (Some((old, at, pause)), Some(first)) if old == first => Some((old, at, pause)),
            (_, Some(first)) => Some((first, cx.now.after(long(own)), long(own))),
            (_, None) => None,
        };
    }

    /// The time at which something is to be asked for, or sent once more.
    pub fn overdue_at(&self) -> Option<Time> {
        let cast = self.cast.as_ref()?;
        let lack = cast.lack.map(|lacking| lacking.at);
        let late = cast.late.map(|(_, at, _)| at);
        let rate = cast.rate.as_ref().and_then(Rate::next_time);
        lack.into_iter().chain(late).chain(rate).min()
    }

    /// The steps that are due by now.
    pub fn overdue(&self, now: Time) -> Overdue {
        let cast = self.cast.as_ref();
        let lack = cast.and_then(|cast| cast.lack);
        let late = cast.and_then(|cast| cast.late);
        Overdue {
            lack: lack.filter(|lacking| lacking.at <= now),
            late: late
                .filter(|(_, at, _)| *at <= now)
                .map(|(_, _, pause)| pause),
        }
    }

    /// The missing value is asked for now, and again after twice as long. Returns the gap, which says of whom.
    pub fn asks_again(&mut self, cx: &Context, lacking: Lacking) -> Lack {
        let patience = cx.settings.patience;
        let pause = (2 * lacking.pause).clamp(patience.heartbeat / LONG, patience.heartbeat);
        if let Some(cast) = &mut self.cast {
            cast.lack = Some(Lacking {
                at: cx.now.after(pause),
                pause,
                ..lacking
            });
        }
        lacking.lack
    }

    /// An own value goes to the coordinator alone, and again after twice as long.
    pub fn late_again(&mut self, cx: &Context, id: ValueId, pause: u64) {
        let next = (2 * pause).min(cx.settings.patience.silence);
        if let Some(cast) = &mut self.cast {
            cast.late = Some((id.counter, cx.now.after(next), next));
        }
    }

    /// Sends less, as values had to be asked for somewhere.
    pub fn slow_down(&mut self, cx: &Context) {
        let pause = cx.settings.patience.heartbeat / LONG;
        if let Some(cast) = &mut self.cast {
            cast.slow_down(cx.now, pause);
        }
    }

    /// The process at this place had to ask for values, and says how often. Returns whether there is such a process,
    /// and not this one.
    pub fn on_lost(&mut self, cx: &Context, place: usize, count: u64) -> bool {
        let is_own = self.me == place;
        let Some(cast) = &mut self.cast else {
            return false;
        };
        if place >= cast.losses.len() || is_own {
            return false;
        }
        if cast.on_losses(place, count) {
            self.slow_down(cx);
        }
        true
    }

    /// An own value has counted.
    pub fn own_counted(&mut self, now: Time, id: ValueId, bytes: usize) {
        if let Some(cast) = &mut self.cast {
            cast.on_counted(bytes);
            if let Some(rate) = &mut cast.rate {
                rate.on_counted(now, id.counter);
            }
        }
    }
}
