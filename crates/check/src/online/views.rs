//! The memory of views, and how it is forgotten.

use std::collections::{BTreeMap, VecDeque};

use rota_core::contract::{MessageId, Process, RingId};
use rustc_hash::FxHashMap;

use super::back::{Aside, Begins};
use super::spans::Spans;
use crate::event::{Placed, Sent};

/// The violated property, and the violation as the end of a sentence.
pub(super) type Wrong = (&'static str, String);

/// Deliveries in a view between two searches for what can be forgotten.
const SWEEP: u32 = 1024;

/// A view in which some process may still deliver messages.
#[derive(Clone, Debug)]
pub(super) struct View {
    members: Vec<Process>,
    /// Its order, which begins anew when a majority has forgotten.
    pub order: u64,
    /// The view that its order goes back to, if the order begins in it and goes back.
    back: Option<RingId>,
    /// The order that goes back to it.
    pub again: Option<u64>,
    /// Its end in that order.
    pub aside: Option<Aside>,
    /// The processes that are in it or may still come.
    owing: Vec<Process>,
    /// Its deliveries as far as any process has got, without the first `forgotten`.
    pub sequence: VecDeque<Placed>,
    pub forgotten: u64,
    unswept: u32,
    pub all: Spans,
    /// The spans of earlier and of later views that are forgotten.
    before: Spans,
    after: Spans,
}

/// All views.
#[derive(Clone, Debug, Default)]
pub(super) struct Views {
    pub(super) views: BTreeMap<RingId, View>,
    /// The newest of all that have begun.
    newest: Option<RingId>,
    /// The newest order, and the spans of it that are forgotten.
    pub(super) order: u64,
    ended: Spans,
    /// Broadcast messages that no process has delivered in the newest order.
    pub(super) pending: FxHashMap<MessageId, Sent>,
}

impl Views {
    /// The number of messages that are remembered.
    pub fn remembered(&self) -> usize {
        let sequences = self.views.values().flat_map(View::remembered);
        sequences.count() + self.pending.len()
    }

    pub fn len(&self) -> usize {
        self.views.len()
    }

    pub fn members(&self, view: RingId) -> Option<&[Process]> {
        self.views.get(&view).map(|view| view.members.as_slice())
    }

    /// The newest view that has begun.
    pub const fn newest(&self) -> Option<RingId> {
        self.newest
    }

    /// The view that the order goes back to that begins in this one.
    pub fn back(&self, view: RingId) -> Option<RingId> {
        self.views.get(&view)?.back
    }

    /// Another view with the same number.
    pub fn rival(&self, view: RingId) -> Option<RingId> {
        let same = |other: &&RingId| other.ring_seq == view.ring_seq && **other != view;
        self.views.keys().find(same).copied()
    }

    /// A view between two others.
    pub fn between(&self, before: RingId, after: RingId) -> Option<RingId> {
        let mut later = self.views.range(before..after).map(|(id, _)| *id);
        later.find(|id| *id != before)
    }

    pub fn broadcast(&mut self, sent: &Sent) {
        self.pending.insert(sent.message, *sent);
    }

    /// Begins a view that no process had before: the processes in `owing` may deliver messages in it.
    pub fn begin(&mut self, id: RingId, members: &[Process], owing: Vec<Process>, begins: Begins) {
        let older = self.views.range(..id).next_back();
        let nearest = older.or_else(|| self.views.range(id..).next());
        let mut order = nearest.map_or(self.order, |(_, view)| view.order);
        let back = match begins {
            Begins::Back(to) => Some(to),
            Begins::Anew | Begins::Behind => None,
        };
        if begins != Begins::Behind {
            self.begin_order(back);
            order = self.order;
        }
        self.newest = self.newest.max(Some(id));
        let newest = self.views.range(id..).next().is_none() && order == self.order;
        let view = View {
            members: members.to_vec(),
            order,
            back,
            again: None,
            aside: None,
            owing,
            sequence: VecDeque::new(),
            forgotten: 0,
            unswept: 0,
            all: Spans::default(),
            before: if newest {
                self.ended.clone()
            } else {
                Spans::default()
            },
            after: Spans::default(),
        };
        self.views.insert(id, view);
    }

    /// An order begins. Messages that only some processes have delivered in earlier orders can come in it as well: none
    /// of those processes may be left, and the others still have the messages. If the order goes back to a view, all of
    /// it is behind that view.
    fn begin_order(&mut self, back: Option<RingId>) {
        self.order += 1;
        self.ended = Spans::default();
        for placed in self.views.values().flat_map(View::remembered) {
            let sent = Sent {
                message: placed.message,
                service: placed.service,
                hash: placed.hash,
            };
            self.pending.entry(placed.message).or_insert(sent);
        }
        let Some(view) = back.and_then(|back| self.views.get_mut(&back)) else {
            return;
        };
        view.again = Some(self.order);
        self.ended.merge(&view.before);
        if let Some(aside) = &view.aside {
            self.ended.merge(&aside.spans);
            for placed in &aside.sequence {
                self.pending.remove(&placed.message);
            }
        }
    }

    pub fn knows(&self, id: RingId) -> bool {
        self.views.contains_key(&id)
    }

    /// A process comes to a view, and so to no earlier one.
    pub fn enter(&mut self, who: Process, id: RingId) {
        if let Some(view) = self.views.get_mut(&id)
            && !view.owing.contains(&who)
        {
            view.owing.push(who);
        }
        self.leave(who, |view| view < id);
    }

    /// A process will deliver nothing more in these views.
    pub fn leave(&mut self, who: Process, which: impl Fn(RingId) -> bool) {
        let mut done = Vec::new();
        for (id, view) in &mut self.views {
            if which(*id) {
                view.owing.retain(|process| *process != who);
            }
            if view.owing.is_empty() {
                done.push(*id);
            }
        }
        done.iter().for_each(|id| self.forget(*id));
    }

    fn forget(&mut self, id: RingId) {
        let Some(view) = self.views.remove(&id) else {
            return;
        };
        let same = |other: &&mut View| other.order == view.order;
        if let Some(older) = self.views.range_mut(..id).map(|(_, view)| view).rfind(same) {
            older.after.merge(&view.all);
            older.after.merge(&view.after);
        }
        if let Some(newer) = self.views.range_mut(id..).map(|(_, view)| view).find(same) {
            newer.before.merge(&view.all);
            newer.before.merge(&view.before);
        }
        if view.order == self.order {
            self.ended.merge(&view.all);
            self.ended.merge(&view.before);
        }
        let Some(aside) = &view.aside else { return };
        let same = |other: &&mut View| Some(other.order) == view.again;
        if let Some(newer) = self.views.range_mut(id..).map(|(_, view)| view).find(same) {
            newer.before.merge(&aside.spans);
        }
        if view.again == Some(self.order) {
            self.ended.merge(&aside.spans);
        }
    }

    /// Whether some process has delivered a message in a view behind the first `count`.
    pub fn is_known(&self, id: RingId, count: u64) -> bool {
        let view = self.views.get(&id);
        view.is_some_and(|view| count < view.forgotten + view.sequence.len() as u64)
    }

    /// A process delivers a message in a view, in which it has delivered `count` before. Returns whether it is time to
    /// forget.
    pub fn deliver(&mut self, id: RingId, count: u64, placed: &Placed) -> Result<bool, Wrong> {
        let Some(view) = self.views.get(&id) else {
            return Ok(false);
        };
        let at = count.saturating_sub(view.forgotten) as usize;
        match view.sequence.get(at) {
            Some(known) => compare(known, placed)?,
            None => {
                self.check_turn(id, view, placed)?;
                self.check_sent(view.order, placed)?;
                if let Some(view) = self.views.get_mut(&id) {
                    view.all.add(placed.message, placed.position);
                    view.sequence.push_back(*placed);
                }
            }
        }
        let Some(view) = self.views.get_mut(&id) else {
            return Ok(false);
        };
        view.unswept += 1;
        Ok(view.unswept >= SWEEP)
    }

    /// Checks the place of a message that no process has delivered in this view: it is behind the earlier ones and
    /// before those of later views.
    fn check_turn(&self, id: RingId, view: &View, placed: &Placed) -> Result<(), Wrong> {
        let Placed {
            message, position, ..
        } = *placed;
        if !view.all.positions_before(position) {
            return Err(("UTO", format!("at {position}, which others have passed")));
        }
        let last = view.all.last_of(message.process);
        if let Some(last) = last.filter(|last| last.checked_add(1) != Some(message.counter)) {
            return Err(("fifo", format!("after number {last} of that process")));
        }
        let same = |(_, other): &(&RingId, &View)| other.order == view.order;
        let older = self
            .views
            .range(..id)
            .filter(same)
            .map(|(_, view)| &view.all);
        let newer = self
            .views
            .range(id..)
            .filter(same)
            .map(|(_, view)| &view.all);
        let newer = newer.skip(1).chain([&view.after]);
        for spans in older.chain([&view.before]) {
            if !spans.positions_before(position) {
                return Err((
                    "VS5",
                    format!("at {position}, which an earlier view has passed"),
                ));
            }
            if !spans.counters_before(message) {
                return Err(("fifo", "after a later one of an earlier view".into()));
            }
        }
        for spans in newer {
            if !spans.positions_behind(position) {
                return Err((
                    "VS5",
                    format!("at {position}, which a later view has begun behind"),
                ));
            }
            if !spans.counters_behind(message) {
                return Err(("fifo", "after an earlier one of a later view".into()));
            }
        }
        Ok(())
    }

    /// Checks that a message is as it was sent. A message delivered in an order that has ended may still come in the
    /// newest one, as [`Self::begin_order`] says.
    fn check_sent(&mut self, order: u64, placed: &Placed) -> Result<(), Wrong> {
        let sent = if order == self.order {
            self.pending.remove(&placed.message)
        } else {
            self.pending.get(&placed.message).copied()
        };
        is_as_sent(sent, placed)
    }

    /// Forgets the deliveries of a view that all its processes have made; `progress` gives their number for a process.
    pub fn sweep(&mut self, id: RingId, progress: impl Fn(Process) -> u64) {
        let Some(view) = self.views.get_mut(&id) else {
            return;
        };
        view.unswept = 0;
        let least = view.owing.iter().map(|who| progress(*who)).min();
        let passed = least.unwrap_or(0).saturating_sub(view.forgotten);
        let passed = passed.min(view.sequence.len() as u64);
        view.sequence.drain(..passed as usize);
        view.forgotten += passed;
    }
}

/// Checks that a message is as it was broadcast.
pub(super) fn is_as_sent(sent: Option<Sent>, placed: &Placed) -> Result<(), Wrong> {
    let Some(sent) = sent else {
        return Err(("UI", "which nobody has broadcast".into()));
    };
    let same = (sent.hash, sent.service) == (placed.hash, placed.service);
    if same {
        return Ok(());
    }
    let (hash, service) = (sent.hash, sent.service.name());
    Err((
        "UI",
        format!("which was broadcast as {service}, with payload {hash:016x}"),
    ))
}

/// Checks that a process delivers the same as others there.
pub(super) fn compare(known: &Placed, placed: &Placed) -> Result<(), Wrong> {
    if (known.message, known.position) != (placed.message, placed.position) {
        let (message, position) = (known.message, known.position);
        let mine = placed.position;
        return Err((
            "UTO",
            format!("at {mine}, where others delivered {message} at {position}"),
        ));
    }
    if (known.hash, known.service) != (placed.hash, placed.service) {
        let (hash, service) = (known.hash, known.service.name());
        return Err((
            "UI",
            format!("which others had as {service}, with payload {hash:016x}"),
        ));
    }
    Ok(())
}
