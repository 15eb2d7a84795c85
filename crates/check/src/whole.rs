//! One order of which no process leaves anything out, judged once a run is over: engines whose acceptors vote.
//!
//! The checker is the same as while a run goes on ([`WholeOnline`]). Clocks of different machines do not tell which
//! event was first, so the checker is given all broadcasts, and then the other events of each process. It therefore
//! does not find a message that was delivered before it was broadcast. The checker ends with the first violation.

use crate::counters::Counters;
use crate::event::{Conf, Event, EventKind, Placed, Sent, regular_of};
use crate::online::WholeOnline;
use crate::report::{Findings, Options, Order, Report, Violation};
use crate::trace::{Place, Step, Trace};
use crate::view::{End, View};

/// The numbers of cases that are judged.
struct Cases {
    broadcasts: u64,
    places: u64,
    at_rest: u64,
}

/// Checks one order that acceptors vote for; `only_as_member`: processes are given only messages that are ordered while
/// they are members.
pub(crate) fn check_whole(trace: &Trace, options: &Options, only_as_member: bool) -> Report {
    let view = View::new(trace, options);
    let order = match only_as_member {
        true => Order::OfMembers,
        false => Order::Whole,
    };
    let mut report = Report::new(order, Counters::of(&view));
    let mut online = match only_as_member {
        true => WholeOnline::of_members_only(),
        false => WholeOnline::new(),
    };
    let found = judge(&view, &mut online).err();
    let alive = trace.began().iter();
    let alive = alive.filter(|process| view.end(**process) == End::Alive);
    let cases = Cases {
        broadcasts: report.counters.originated,
        places: report.counters.deliveries,
        at_rest: alive.count() as u64,
    };
    add(&mut report, &cases, found);
    crate::properties::add_clients(&view, &mut report);
    report
}

fn add(report: &mut Report, cases: &Cases, mut found: Option<Violation>) {
    for (property, title, checked) in [
        ("UV", "validity", cases.at_rest),
        ("UA", "uniform agreement", cases.at_rest),
        ("UI", "uniform integrity", cases.broadcasts + cases.places),
        ("UTO", "strong total order", cases.places),
        ("fifo", "sender's order", cases.places),
    ] {
        let mut findings = Findings::new(property, title);
        findings.verdict.checked = checked;
        if let Some(found) = found.take_if(|found| found.property == property) {
            findings.violated(|| found.detail);
        }
        report.add(findings);
    }
}

fn judge(view: &View<'_>, online: &mut WholeOnline) -> Result<(), Violation> {
    for broadcasts in [true, false] {
        for (process, at, step) in view.all_steps() {
            if matches!(step, Step::Start | Step::Broadcast { .. }) == broadcasts
                && let Some(kind) = kind(view, step)
            {
                see(view, online, (process, at), step, kind)?;
            }
        }
    }
    let alive = view.trace.began().iter();
    let alive = alive.filter(|process| view.end(**process) == End::Alive);
    online.rest(alive.map(|process| view.process(*process)))
}

fn see(
    view: &View<'_>,
    online: &mut WholeOnline,
    (process, at): (u32, usize),
    step: &Step,
    kind: EventKind,
) -> Result<(), Violation> {
    if let Step::Deliver(place) = step
        && is_untraced(view, place)
    {
        online.trust(&sent(view, place));
    }
    online.observe(&Event {
        time: view.trace.story(process).times[at],
        process: view.process(process),
        kind,
    })
}

/// Whether nothing is known of the sender's events.
fn is_untraced(view: &View<'_>, place: &Place) -> bool {
    let sender = view.message(place.message).process;
    let number = view.trace.process_number(sender);
    number.is_none_or(|number| view.end(number) == End::Untraced)
}

fn sent(view: &View<'_>, place: &Place) -> Sent {
    Sent {
        message: view.message(place.message),
        service: place.service,
        hash: place.hash,
    }
}

/// The event of a step, if it is to be judged. The broadcast of a message tells its service.
fn kind(view: &View<'_>, step: &Step) -> Option<EventKind> {
    let ring = |conf: u32| regular_of(view.id(conf));
    let placed = |place: &Place| Placed {
        message: view.message(place.message),
        conf: view.id(place.conf),
        position: place.position,
        service: place.service,
        hash: place.hash,
    };
    Some(match *step {
        Step::Start => EventKind::Start,
        Step::Conf { conf, members } => EventKind::Configuration(Conf {
            id: view.id(conf),
            members: view.trace.member_lists()[members as usize].clone(),
        }),
        Step::Send { .. } => return None,
        Step::Broadcast {
            message,
            service,
            hash,
        } => EventKind::Broadcast(Sent {
            message: view.message(message),
            service,
            hash,
        }),
        Step::Orig(ref place) => EventKind::Originated(placed(place)),
        Step::Deliver(ref place) => EventKind::Delivered(placed(place)),
        Step::Primary { conf } => EventKind::Primary(ring(conf)),
        Step::Excluded { conf } => EventKind::Excluded(ring(conf)),
        Step::Missed { upto, own } => EventKind::Missed { upto, own },
        Step::Crash => EventKind::Crash,
        Step::Leave => EventKind::Leave,
    })
}
