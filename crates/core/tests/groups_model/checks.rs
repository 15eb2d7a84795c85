//! K1 to K8 and K10, checked on all events of clients.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::Service;
use rota_core::groups::{Cause, Destination, Event, GroupName, Member, Received, View, ViewId};

use super::bus::Kind;
use super::gaps::{self, Gaps};
use super::world::{Sent, Step, Trace};

type Traces = BTreeMap<Member, Trace>;

/// One client's view of a group, with what it got in it.
struct Stay<'a> {
    view: &'a View,
    /// The view before, if it came from there, and the messages that it got there.
    before: Option<(ViewId, Vec<u64>)>,
    messages: Vec<(&'a Received, bool)>,
    /// The client has missed the rest.
    missed: bool,
}

pub fn id_of(message: &Received) -> u64 {
    let bytes = message.payload.first_chunk().expect("eight bytes");
    u64::from_le_bytes(*bytes)
}

pub fn fail<T>(rule: &str, what: impl core::fmt::Debug) -> Result<T, String> {
    Err(format!("{rule}: {what:?}"))
}

pub fn all(traces: &Traces, sent: &BTreeMap<u64, Sent>, kind: Kind) -> Result<(), String> {
    let signals = kind == Kind::Transitional;
    for (member, trace) in traces {
        gaps::told(member, trace, kind == Kind::Views)?;
        gone_for_good(trace)?;
        own_events(member, trace, signals)?;
        received(member, trace, sent)?;
    }
    let stays = stays(traces, sent);
    same_views(&stays)?;
    came_together(&stays)?;
    safe_in_old_view(traces, &stays)?;
    one_order(traces)
}

/// K2, K3 and K6, as far as one client can tell; K5.
fn own_events(member: &Member, trace: &Trace, signals: bool) -> Result<(), String> {
    let mut last: BTreeMap<GroupName, ViewId> = BTreeMap::new();
    let mut current: BTreeMap<GroupName, bool> = BTreeMap::new();
    for step in &trace.steps {
        let Step::Got(event) = step else { continue };
        match event {
            Event::View(view) => {
                if last
                    .insert(view.group, view.id)
                    .is_some_and(|last| last >= view.id)
                {
                    return fail("K2", ("not later", view));
                }
                let pending = current.insert(view.group, false);
                one_view(member, view)?;
                let network = view.cause == Cause::Network;
                if signals && pending.is_some_and(|pending| pending != network) {
                    return fail("K6", ("signal and cause", view));
                }
                if pending.is_none() && !view.vs_sets.contains(&vec![*member]) {
                    return fail("K3", ("a joiner comes alone", view));
                }
            }
            Event::Transitional { group, view } => {
                let first = current.insert(*group, true) == Some(false);
                if !first || last.get(group) != Some(view) || !signals {
                    return fail("K6", event);
                }
            }
            Event::SelfLeave { group } => {
                if current.remove(group).is_none() {
                    return fail("K5", event);
                }
            }
            Event::Message(message) => {
                let may = message.to.iter().any(|to| match to {
                    Destination::Group(name) => current.contains_key(name),
                    Destination::Client(name, node) => {
                        (*name, *node) == (member.name, member.daemon.node)
                    }
                });
                if !may {
                    return fail("K5", message);
                }
                if message.big_endian != id_of(message).is_multiple_of(2) {
                    return fail("byte order", message);
                }
                let id = id_of(message);
                if message.number != id.is_multiple_of(3).then_some(id) {
                    return fail("number", message);
                }
            }
            Event::Excluded | Event::Included { .. } => {}
        }
    }
    Ok(())
}

fn one_view(member: &Member, view: &View) -> Result<(), String> {
    if !view.members.contains(member) {
        return fail("K2", ("not in it", member, view));
    }
    let mut sorted = view.members.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let mut all: Vec<Member> = view.vs_sets.iter().flatten().copied().collect();
    all.sort_unstable();
    let fine = match view.cause {
        Cause::Network => all == sorted,
        Cause::Join(joiner) => all == [joiner] && sorted.contains(&joiner),
        Cause::Leave(gone) | Cause::Disconnect(gone) => all == [gone] && !sorted.contains(&gone),
    };
    if sorted != view.members || !fine {
        return fail("K3", view);
    }
    Ok(())
}

/// K9: who has disconnected is in no later view.
fn gone_for_good(trace: &Trace) -> Result<(), String> {
    let mut gone = BTreeSet::new();
    for step in &trace.steps {
        let Step::Got(Event::View(view)) = step else {
            continue;
        };
        if let Some(back) = view.members.iter().find(|member| gone.contains(*member)) {
            return fail("K9", ("is back", back, view));
        }
        if let Cause::Disconnect(member) = view.cause {
            gone.insert(member);
        }
    }
    Ok(())
}

/// K7, and everything once.
fn received(member: &Member, trace: &Trace, sent: &BTreeMap<u64, Sent>) -> Result<(), String> {
    let mut got = BTreeSet::new();
    for step in &trace.steps {
        if let Step::Got(Event::Message(message)) = step
            && !got.insert(id_of(message))
        {
            return fail("once", (member, message));
        }
    }
    let missed = gaps::sent_before(trace);
    for (id, sent) in sent.iter().filter(|(_, sent)| sent.by == *member) {
        if got.contains(id) && (sent.discard || sent.outside) {
            return fail("K7", ("got its own", id, sent));
        }
        if !got.contains(id) && sent.inside && !sent.discard && !trace.cut && !missed.contains(id) {
            return fail("K7", ("lacks its own", id, sent));
        }
    }
    Ok(())
}

type Stays<'a> = BTreeMap<(GroupName, ViewId), BTreeMap<Member, Stay<'a>>>;

/// What its sender does not want back, others still get: that is left out of what is compared.
fn stays<'a>(traces: &'a Traces, sent: &BTreeMap<u64, Sent>) -> Stays<'a> {
    let mut stays = Stays::new();
    for (member, trace) in traces {
        let mut current: BTreeMap<GroupName, Stay<'_>> = BTreeMap::new();
        let mut ended = Vec::new();
        let mut signaled = BTreeSet::new();
        for step in &trace.steps {
            let Step::Got(event) = step else { continue };
            match event {
                Event::View(view) => {
                    signaled.remove(&view.group);
                    let old = current.remove(&view.group);
                    let before = old.as_ref().map(|old| {
                        let ids = old.messages.iter().map(|(message, _)| id_of(message));
                        let ids = ids.filter(|id| !sent[id].discard);
                        (old.view.id, ids.collect())
                    });
                    ended.extend(old);
                    let messages = Vec::new();
                    current.insert(
                        view.group,
                        Stay {
                            view,
                            before,
                            messages,
                            missed: false,
                        },
                    );
                }
                Event::Transitional { group, .. } => {
                    signaled.insert(*group);
                }
                Event::SelfLeave { group } => ended.extend(current.remove(group)),
                Event::Excluded => {}
                Event::Included { missed } => {
                    current.values_mut().for_each(|stay| stay.missed |= *missed);
                }
                Event::Message(message) => {
                    for to in message.to.iter() {
                        if let Destination::Group(name) = to
                            && let Some(stay) = current.get_mut(name)
                        {
                            stay.messages.push((message, signaled.contains(name)));
                        }
                    }
                }
            }
        }
        ended.extend(current.into_values());
        for stay in ended {
            let of = stays.entry((stay.view.group, stay.view.id)).or_default();
            of.insert(*member, stay);
        }
    }
    stays
}

/// K1.
fn same_views(stays: &Stays<'_>) -> Result<(), String> {
    for of in stays.values() {
        let mut views = of.values().map(|stay| stay.view);
        let first = views.next();
        if let Some(other) = views.find(|view| Some(*view) != first) {
            return fail("K1", (first, other));
        }
    }
    Ok(())
}

/// K4. In views without network cause all but the joiner came together.
fn came_together(stays: &Stays<'_>) -> Result<(), String> {
    for of in stays.values() {
        for (member, stay) in of {
            let view = stay.view;
            let with = match view.cause {
                Cause::Network => view.came_with(member),
                Cause::Join(joiner) if joiner == *member => continue,
                _ => &view.members,
            };
            for (other, its) in of.iter().filter(|(other, _)| with.contains(other)) {
                if view.cause != Cause::Join(*other) && its.before != stay.before {
                    return fail("K4", (member, &stay.before, other, &its.before, view));
                }
            }
        }
    }
    Ok(())
}

/// K6: what is safe before the signal is received by all of that view whose daemons go on.
fn safe_in_old_view(traces: &Traces, stays: &Stays<'_>) -> Result<(), String> {
    let gaps = Gaps::of(traces);
    for of in stays.values() {
        for stay in of.values() {
            let safe = stay
                .messages
                .iter()
                .filter(|(message, signaled)| message.service == Service::Safe && !signaled);
            for (message, _) in safe {
                let sender = message.sender;
                for other in &stay.view.members {
                    let lives = traces.get(other).is_some_and(|trace| !trace.cut);
                    let its = of.get(other);
                    let has = its.is_some_and(|its| {
                        its.missed || its.messages.iter().any(|(its, _)| its == message)
                    });
                    let missed = its.is_none() && gaps.hold(other, stay.view.id.ring);
                    // Who sent it may not want it back.
                    if lives && !has && !missed && *other != sender {
                        return fail("K6", ("safe", message, other, stay.view));
                    }
                }
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Point {
    Sent(u64),
    Message(u64),
    View(GroupName, ViewId),
}

/// K8: there is one order of all messages and views, and messages come after they were sent.
fn one_order(traces: &Traces) -> Result<(), String> {
    let mut after: BTreeMap<Point, BTreeSet<Point>> = BTreeMap::new();
    let mut before: BTreeMap<Point, usize> = BTreeMap::new();
    let mut edge = |from: Point, to: Point| {
        before.entry(from).or_default();
        let new = after.entry(from).or_default().insert(to);
        *before.entry(to).or_default() += usize::from(new);
    };
    for trace in traces.values() {
        let points = trace.steps.iter().filter_map(|step| match step {
            Step::Sent(id) => Some(Point::Sent(*id)),
            Step::Got(Event::Message(message)) => Some(Point::Message(id_of(message))),
            Step::Got(Event::View(view)) => Some(Point::View(view.group, view.id)),
            Step::Got(_) => None,
        });
        let points: Vec<Point> = points.collect();
        for pair in points.windows(2) {
            edge(pair[0], pair[1]);
        }
        for point in points {
            if let Point::Sent(id) = point {
                edge(point, Point::Message(id));
            }
        }
    }
    let mut free: Vec<Point> = Vec::new();
    free.extend(before.iter().filter(|(_, n)| **n == 0).map(|(p, _)| *p));
    while let Some(point) = free.pop() {
        before.remove(&point);
        for next in after.remove(&point).unwrap_or_default() {
            let count = before.get_mut(&next).expect("counted");
            *count -= 1;
            if *count == 0 {
                free.push(next);
            }
        }
    }
    match before.first_key_value() {
        Some(left) => fail("K8", left),
        None => Ok(()),
    }
}
