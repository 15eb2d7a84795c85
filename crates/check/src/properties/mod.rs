//! The properties, one a file: its rule, its source, and the cases that it leaves alone.
//!
//! E, C, S, V, O and F follow the definition of Extended Virtual Synchrony (Moser, Amir, Melliar-Smith and Agarwal
//! 1994, §2): basic delivery, configuration changes, self-delivery, failure atomicity, order, and safe delivery. All
//! are predicates over the events of processes, and none knows how an engine works.
//!
//! P is about the optional layer that says which configurations are primary, and has nothing to say of traces without
//! it.
//!
//! K is about clients and their process groups, and has nothing to say of traces without any.
//!
//! U and VS are about engines with one order over primary views, and are checked instead of E, C, S, V, O
//! and F ([`check_uniform`]): uniform total order broadcast (Guerraoui, Levy, Pochon and Quéma 2010, §2; Défago,
//! Schiper and Urbán 2004, §2.3) and view synchrony (Berthou and Quéma 2013, §3.4).
//!
//! Of the rest: messages of the services reliable and fifo are delivered before their turn, so only the
//! properties without an order hold of them, and fifo's own.

mod c1_membership;
mod c2_no_redelivery;
mod c3_alternation;
mod c4_same_transition;
mod c5_transitional_sets;
mod c6_disjointness;
mod c7_monotone_ids;
mod c8_progress;
mod e1_no_creation;
mod e2_no_duplication;
mod e3_unique_origination;
mod e4_position;
mod f1_safe;
mod f2_safe_in_regular;
mod fifo;
mod fifo_uniform;
mod k10_excluded;
mod k1_agreed_views;
mod k2_growing_views;
mod k3_sets;
mod k4_together;
mod k5_members_only;
mod k6_transition;
mod k7_own_messages;
mod k8_across_groups;
mod k9_disconnected;
mod o1_merge;
mod o2_causal;
mod o3_no_holes;
mod o4_global_position;
mod p1_one_primary;
mod p2_continuity;
mod p3_kept;
mod prefix;
mod primaries;
mod s1_self_delivery;
mod ua_agreement;
mod ui_integrity;
mod uto_total_order;
mod uv_validity;
mod v1_atomicity;
mod vs1_views;
mod vs2_together;
mod vs3_in_views;
mod vs4_forced;
mod vs5_positions;

use crate::counters::Counters;
use crate::report::{Findings, Options, Order, Report};
use crate::trace::Trace;
use crate::uniform::Uniform;
use crate::uniform::counters::UniformCounters;
use crate::view::View;
use crate::whole::check_whole;

/// A property.
struct Property {
    name: &'static str,
    title: &'static str,
    check: fn(&View<'_>, &mut Findings),
}

const fn property(
    name: &'static str,
    title: &'static str,
    check: fn(&View<'_>, &mut Findings),
) -> Property {
    Property { name, title, check }
}

/// All of them.
const ALL: [Property; 35] = [
    property("E1", "no creation", e1_no_creation::check),
    property("E2", "no duplication", e2_no_duplication::check),
    property("E3", "unique origination", e3_unique_origination::check),
    property("E4", "within a life", e4_position::check),
    property("C1", "agreed membership", c1_membership::check),
    property("C2", "no repeated configuration", c2_no_redelivery::check),
    property("C3", "alternation", c3_alternation::check),
    property("C4", "same transition", c4_same_transition::check),
    property("C5", "consistent sets", c5_transitional_sets::check),
    property("C6", "disjoint sets", c6_disjointness::check),
    property("C7", "growing ring ids", c7_monotone_ids::check),
    property("C8", "progress", c8_progress::check),
    property("S1", "self-delivery", s1_self_delivery::check),
    property("V1", "failure atomicity", v1_atomicity::check),
    property("O1", "one order", o1_merge::check),
    property("O2", "causal order", o2_causal::check),
    property("O3", "no holes", o3_no_holes::check),
    property("O4", "one place each", o4_global_position::check),
    property("F1", "safe", f1_safe::check),
    property("F2", "safe, installed", f2_safe_in_regular::check),
    property("prefix", "prefixes", prefix::check),
    property("fifo", "sender's order", fifo::check),
    property("P1", "one primary", p1_one_primary::check),
    property("P2", "continuous primaries", p2_continuity::check),
    property("P3", "kept by primaries", p3_kept::check),
    property("K1", "agreed views", k1_agreed_views::check),
    property("K2", "growing views", k2_growing_views::check),
    property("K3", "sets of views", k3_sets::check),
    property("K4", "together", k4_together::check),
    property("K5", "to members only", k5_members_only::check),
    property("K6", "transitions", k6_transition::check),
    property("K7", "own messages", k7_own_messages::check),
    property("K8", "one order of all groups", k8_across_groups::check),
    property("K9", "disconnected", k9_disconnected::check),
    property("K10", "excluded", k10_excluded::check),
];

/// A property of one order over primary views, or one that holds of all traces.
struct Uniformly {
    name: &'static str,
    title: &'static str,
    check: Check,
}

enum Check {
    Views(fn(&Uniform<'_>, &mut Findings)),
    Trace(fn(&View<'_>, &mut Findings)),
}

const fn views(
    name: &'static str,
    title: &'static str,
    check: fn(&Uniform<'_>, &mut Findings),
) -> Uniformly {
    let check = Check::Views(check);
    Uniformly { name, title, check }
}

const fn of_all(
    name: &'static str,
    title: &'static str,
    check: fn(&View<'_>, &mut Findings),
) -> Uniformly {
    let check = Check::Trace(check);
    Uniformly { name, title, check }
}

/// The properties of one order over primary views; all properties of [`ALL`] about clients follow them.
const UNIFORM: [Uniformly; 13] = [
    views("UV", "validity", uv_validity::check),
    views("UA", "uniform agreement", ua_agreement::check),
    views("UI", "uniform integrity", ui_integrity::check),
    views("UTO", "strong total order", uto_total_order::check),
    views("fifo", "sender's order", fifo_uniform::check),
    views("VS1", "agreed views", vs1_views::check),
    views("VS2", "together", vs2_together::check),
    views("VS3", "within views", vs3_in_views::check),
    views("VS4", "forced part", vs4_forced::check),
    views("VS5", "positions over views", vs5_positions::check),
    views("O1", "one order", o1_merge::check_all_services),
    of_all("P1", "one primary", p1_one_primary::check),
    of_all("P2", "continuous primaries", p2_continuity::check_views),
];

/// Checks all properties of Extended Virtual Synchrony.
pub fn check_all(trace: &Trace, options: &Options) -> Report {
    let view = View::new(trace, options);
    let mut report = Report::new(Order::Evs, Counters::of(&view));
    for property in &ALL {
        let mut findings = Findings::new(property.name, property.title);
        (property.check)(&view, &mut findings);
        report.add(findings);
    }
    report
}

/// Checks all properties of one order over primary views.
pub fn check_uniform(trace: &Trace, options: &Options) -> Report {
    let uniform = Uniform::new(trace, options);
    let view = &uniform.base;
    let mut report = Report::new(Order::Uniform, Counters::of(view));
    report.uniform = Some(UniformCounters::of(&uniform));
    for property in &UNIFORM {
        let mut findings = Findings::new(property.name, property.title);
        match property.check {
            Check::Views(check) => check(&uniform, &mut findings),
            Check::Trace(check) => check(view, &mut findings),
        }
        report.add(findings);
    }
    add_clients(view, &mut report);
    report
}

/// Checks the properties of clients, which hold over the order of any engine.
pub(crate) fn add_clients(view: &View<'_>, report: &mut Report) {
    for property in ALL.iter().filter(|property| property.name.starts_with('K')) {
        let mut findings = Findings::new(property.name, property.title);
        (property.check)(view, &mut findings);
        report.add(findings);
    }
}

/// Checks all properties of this order.
pub fn check_order(trace: &Trace, options: &Options, order: Order) -> Report {
    match order {
        Order::Evs => check_all(trace, options),
        Order::Uniform => check_uniform(trace, options),
        Order::Whole => check_whole(trace, options, false),
        Order::OfMembers => check_whole(trace, options, true),
    }
}
