//! Orders that go back: more than half of the nodes have forgotten, the newest views with them, and the processes that
//! remember an older view go on from that. Their deliveries as its end belong to the new order.

use rota_core::contract::{NodeId, Process, RingId};

use super::spans::Spans;
use super::uniform::UniformOnline;
use super::views::{View, Views, Wrong, compare, is_as_sent};
use crate::event::{Placed, Sent};

/// The view from which the order goes on in a new view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begins {
    /// The views before it.
    Behind,
    /// Nothing: the order begins anew.
    Anew,
    /// This view; all later ones are lost.
    Back(RingId),
}

/// The end of a view, for the processes that go back to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    /// The number of the view's deliveries that come before it.
    from: u64,
    pub sequence: Vec<Placed>,
    pub spans: Spans,
}

impl UniformOnline {
    /// The view from which the order goes on in a view of these members.
    pub(super) fn begins(&self, members: &[Process]) -> Begins {
        let state = |who: &Process| self.processes.get(who);
        let remembers = |who: &Process| state(who).and_then(|state| state.view);
        let forgot = || {
            self.majority(|node| {
                let life = self.nodes.get(&node);
                life.is_some_and(|(who, again)| {
                    let been = state(who).is_some_and(|state| state.been);
                    *again && !been && members.contains(who)
                })
            })
        };
        let Some(last) = members.iter().filter_map(remembers).max() else {
            let mut all = self.processes.values();
            let nobody = !all.any(|state| state.view.is_some());
            return if nobody || forgot() {
                Begins::Anew
            } else {
                Begins::Behind
            };
        };
        let listed = members.iter().filter_map(|who| state(who)?.listed).max();
        if listed == Some(last) && self.views.newest() > listed && forgot() {
            Begins::Back(last)
        } else {
            Begins::Behind
        }
    }

    /// Whether more than half of the nodes satisfy `is`.
    fn majority(&self, is: impl Fn(NodeId) -> bool) -> bool {
        let (count, all) = match &self.configured {
            Some(nodes) => (nodes.iter().filter(|node| is(**node)).count(), nodes.len()),
            None => {
                let nodes = self.nodes.keys();
                (nodes.filter(|node| is(**node)).count(), self.nodes.len())
            }
        };
        2 * count > all
    }

    /// Whether the deliveries of a process in a view may be the end of the view as a new order has it: `Some(true)` if
    /// a view of which the process is a member shows that, `Some(false)` if such a view may still come.
    fn may_go_back(&self, who: Process, view: RingId) -> Option<bool> {
        if self.views.newest() <= Some(view) {
            return None;
        }
        let listed = self.processes.get(&who)?.listed?;
        if listed > view {
            return (self.views.back(listed) == Some(view)).then_some(true);
        }
        let forgot = |node: NodeId| {
            let life = self.nodes.get(&node);
            let been = |who: &Process| self.processes.get(who).is_some_and(|state| state.been);
            life.is_some_and(|(who, again)| *again && !been(who))
        };
        self.majority(forgot).then_some(false)
    }

    /// A process delivers a message in its view, in which it has delivered `count` before. Returns whether it is time
    /// to forget.
    pub(super) fn deliver(
        &mut self,
        who: Process,
        (view, count): (RingId, u64),
        placed: &Placed,
    ) -> Result<bool, Wrong> {
        let aside = self
            .processes
            .get(&who)
            .is_some_and(|it| it.aside.is_some());
        if !aside {
            let goes_back = self.may_go_back(who, view);
            let known = self.views.is_known(view, count);
            let wrong = match (goes_back, known) {
                (Some(true), false) => None,
                (None, _) => return self.views.deliver(view, count, placed),
                (Some(_), _) => match self.views.deliver(view, count, placed) {
                    Err(wrong) => Some(wrong),
                    Ok(sweep) => return Ok(sweep),
                },
            };
            let goes_on = || ("UTO", "which is not what others had there".into());
            let wrong = wrong.unwrap_or_else(goes_on);
            self.processes.entry(who).or_default().aside = Some(wrong);
        }
        self.views.deliver_aside(view, count, placed)?;
        Ok(false)
    }
}

impl Views {
    /// A message at the end of a view, in the order that goes back to it.
    fn deliver_aside(&mut self, id: RingId, count: u64, placed: &Placed) -> Result<(), Wrong> {
        let Some(view) = self.views.get_mut(&id) else {
            return Ok(());
        };
        view.reach_aside(count)?;
        let Some(view) = self.views.get(&id) else {
            return Ok(());
        };
        let aside = view.aside.as_ref();
        let at = aside.map_or(0, |aside| count.saturating_sub(aside.from)) as usize;
        if let Some(known) = aside.and_then(|aside| aside.sequence.get(at)) {
            return compare(known, placed);
        }
        let same = |(_, other): &(&RingId, &View)| Some(other.order) == view.again;
        let newer = self.views.range(id..).filter(same);
        let newer = newer.map(|(_, other)| &other.all);
        turn(aside.map(|aside| &aside.spans), newer, placed)?;
        self.check_sent_aside(placed)?;
        if view.again == Some(self.order) {
            self.pending.remove(&placed.message);
        }
        let Some(view) = self.views.get_mut(&id) else {
            return Ok(());
        };
        let aside = view.aside.get_or_insert_default();
        aside.spans.add(placed.message, placed.position);
        aside.sequence.push(*placed);
        Ok(())
    }

    /// A process that goes back delivers a broadcast message as it was sent, even if others have delivered it.
    fn check_sent_aside(&self, placed: &Placed) -> Result<(), Wrong> {
        let mut elsewhere = self.views.values().flat_map(View::remembered);
        let sent = self.pending.get(&placed.message).copied();
        let sent = sent.or_else(|| {
            let other = elsewhere.find(|other| other.message == placed.message)?;
            Some(Sent {
                message: other.message,
                service: other.service,
                hash: other.hash,
            })
        });
        is_as_sent(sent, placed)
    }
}

impl View {
    /// All deliveries in it that are remembered.
    pub(super) fn remembered(&self) -> impl Iterator<Item = &Placed> {
        let aside = self.aside.iter().flat_map(|aside| &aside.sequence);
        self.sequence.iter().chain(aside)
    }

    /// A process that goes back has delivered `count` messages of the view as others have.
    fn reach_aside(&mut self, count: u64) -> Result<(), Wrong> {
        let aside = self.aside.get_or_insert_with(|| Aside {
            from: count,
            ..Aside::default()
        });
        if count < aside.from {
            return Err((
                "UTO",
                "where others who went back have something else".into(),
            ));
        }
        // While both ends have the same messages, some processes may not have left the first end yet.
        while aside.from + (aside.sequence.len() as u64) < count {
            let next = aside.from + aside.sequence.len() as u64;
            let at = next.checked_sub(self.forgotten);
            let Some(placed) = at.and_then(|at| self.sequence.get(at as usize)) else {
                aside.from = count;
                aside.sequence.clear();
                break;
            };
            aside.spans.add(placed.message, placed.position);
            aside.sequence.push(*placed);
        }
        Ok(())
    }
}

/// Whether a place is behind the earlier ones in the end of a view, and before those of later views.
fn turn<'a>(
    spans: Option<&Spans>,
    newer: impl Iterator<Item = &'a Spans>,
    placed: &Placed,
) -> Result<(), Wrong> {
    let Placed {
        message, position, ..
    } = *placed;
    if spans.is_some_and(|spans| !spans.positions_before(position)) {
        return Err(("UTO", format!("at {position}, which others have passed")));
    }
    let last = spans.and_then(|spans| spans.last_of(message.process));
    if let Some(last) = last.filter(|last| last.checked_add(1) != Some(message.counter)) {
        return Err(("fifo", format!("after number {last} of that process")));
    }
    for spans in newer {
        if !spans.positions_behind(position) {
            let what = format!("at {position}, which a later view has begun behind");
            return Err(("VS5", what));
        }
        if !spans.counters_behind(message) {
            return Err(("fifo", "after an earlier one of a later view".into()));
        }
    }
    Ok(())
}
