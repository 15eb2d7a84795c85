//! Fifo over views: the messages of a process are delivered in the order of their counters, none left out,
//! at each process and in the order of all.
//!
//! A gap over the beginning of a view that is not certain is excused: a process may have counted the missing messages
//! as delivered, while its application failed before it took them. Within a view there are no gaps. When an order
//! begins anew, a process of the old order goes on with any counter; when it goes back to a view, only a process goes
//! on so that was in one of the lost views.

use std::ops::Range;

use rota_core::contract::Process;
use rustc_hash::FxHashMap;

use crate::report::Findings;
use crate::uniform::{Begins, Uniform};

/// By sender: its last counter, and the view in which that was delivered.
type Heard = FxHashMap<Process, (u64, u32)>;

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    check_each(uniform, findings);
    let mut last = Heard::default();
    // The counters as they were before a view that an order goes back to.
    let mut stood = FxHashMap::default();
    for (number, view) in (0..).zip(&uniform.views) {
        match view.begins {
            Begins::Anew => {
                let old = last.values_mut();
                // Any counter that the sender goes on with is behind this one.
                old.for_each(|(counter, _)| *counter = u64::MAX);
            }
            Begins::Again { first } => {
                go_back(uniform, first..number, &mut last, stood.get(&first));
            }
            Begins::Behind | Begins::Unfounded => {}
        }
        if uniform.is_gone_back_to(number) {
            stood.insert(number, last.clone());
        }
        for (_, message) in &view.sequence {
            let id = uniform.base.message(*message);
            let before = last.insert(id.process, (id.counter, number));
            if before.is_some_and(|(counter, _)| counter == u64::MAX) {
                continue;
            }
            let (counter, heard) =
                before.map_or((0, None), |(counter, view)| (counter, Some(view)));
            let next = counter.checked_add(1) == Some(id.counter);
            let gap = counter < id.counter && uniform.is_hidden(heard, number);
            findings.check(next || gap, || {
                let (what, view) = (uniform.base.what(*message), uniform.shown(number));
                format!("{what} was delivered in {view} after number {counter} of its sender")
            });
        }
    }
}

/// An order goes back behind these views. A process that was in a lost view may not send again what it has delivered
/// there.
fn go_back(uniform: &Uniform<'_>, lost: Range<u32>, last: &mut Heard, stood: Option<&Heard>) {
    *last = stood.cloned().unwrap_or_default();
    for view in lost.skip(1) {
        let members = uniform.views[view as usize].members;
        for member in &uniform.base.members[members as usize] {
            let sender = uniform.base.process(*member);
            last.insert(sender, (u64::MAX, view));
        }
    }
}

/// Each process hears each sender by ascending counters.
fn check_each(uniform: &Uniform<'_>, findings: &mut Findings) {
    for (process, stays) in (0..).zip(&uniform.lives) {
        let mut last: FxHashMap<_, u64> = FxHashMap::default();
        let stays = stays.iter().map(|stay| &uniform.stays[*stay as usize]);
        for (at, place) in stays.flat_map(|stay| uniform.deliveries(stay)) {
            let id = uniform.base.message(place.message);
            let before = last.insert(id.process, id.counter).unwrap_or(0);
            // UI reports a message that comes again.
            findings.check(before <= id.counter, || {
                let (who, at) = (uniform.base.who(process), uniform.base.at(process, at));
                let what = uniform.base.what(place.message);
                format!("{who} delivered {what}{at} after number {before} of its sender")
            });
        }
    }
}
