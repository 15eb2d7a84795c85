//! `rota check`: properties over recorded traces.

mod multicast;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use rota_check::counters::Counters;
use rota_check::trace::Trace;
use rota_check::{Options, Order, Report, UniformCounters, Verdict, Violation, check_order};
use serde::Serialize;

use crate::say::{complain, print, print_json};

/// Options of `rota check`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckOptions {
    /// Trace files, of one process or of several each
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// What the engine promises; without it, what the traces show: `uniform` if messages are broadcast without a
    /// place or somebody is excluded, and nothing is seen that only rings have
    #[arg(long, value_enum)]
    order: Option<OrderName>,
    /// Whoever did not crash or leave was alive and at rest at the end, even if the trace does not say so
    #[arg(long)]
    quiescent: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What engines promise.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OrderName {
    /// Extended Virtual Synchrony: accelerated-ring, totem-ring
    Evs,
    /// One order over primary views: fastcast, lcr
    Uniform,
    /// One order that acceptors vote for: ring-paxos, u-ring-paxos
    Whole,
    /// The same, where nodes have `only_as_member`
    OfMembers,
    /// One order over several rings: multi-ring
    Multicast,
}

impl OrderName {
    const fn order(self) -> Option<Order> {
        match self {
            Self::Evs => Some(Order::Evs),
            Self::Uniform => Some(Order::Uniform),
            Self::Whole => Some(Order::Whole),
            Self::OfMembers => Some(Order::OfMembers),
            Self::Multicast => None,
        }
    }
}

/// As reports name it.
const fn name(order: Order) -> &'static str {
    match order {
        Order::Evs => "evs",
        Order::Uniform => "uniform",
        Order::Whole => "whole",
        Order::OfMembers => "of-members",
    }
}

/// Checks the traces and prints what was found.
pub fn main(options: &CheckOptions) -> ExitCode {
    let has_rings = options.traces.iter().any(|file| multicast::is_meant(file));
    let wants_rings = |order| matches!(order, OrderName::Multicast);
    if options.order.map_or(has_rings, wants_rings) {
        return multicast::main(&options.traces, options.quiescent, options.json);
    }
    let trace = match Trace::from_files(&options.traces) {
        Ok(trace) => trace,
        Err(error) => {
            complain(&error);
            return ExitCode::from(2);
        }
    };
    let known = Options {
        quiescent: options.quiescent,
        ..Options::default()
    };
    let order = options.order.and_then(OrderName::order);
    let order = order.unwrap_or_else(|| trace.shown_order());
    let report = check_order(&trace, &known, order);
    if options.json {
        let counters = (report.counters, report.uniform);
        let (verdicts, violations) = (&report.verdicts, &report.violations);
        print_json(&Json::of(name(order), verdicts, violations, counters));
    } else {
        print(&text(&report).trim_end());
    }
    if report.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The object of `--json`.
#[derive(Serialize)]
struct Json<'a, C> {
    order: &'static str,
    holds: bool,
    /// The first of each property.
    violations: Vec<Finding<'a>>,
    properties: Vec<Property>,
    #[serde(flatten)]
    counters: C,
    #[serde(flatten)]
    uniform: Option<UniformCounters>,
}

#[derive(Serialize)]
struct Finding<'a> {
    property: &'static str,
    detail: &'a str,
}

#[derive(Serialize)]
struct Property {
    property: &'static str,
    title: &'static str,
    checked: u64,
    violations: u64,
}

impl<'a, C> Json<'a, C> {
    fn of(
        order: &'static str,
        verdicts: &[Verdict],
        found: &'a [Violation],
        (counters, uniform): (C, Option<UniformCounters>),
    ) -> Self {
        let violations = found.iter().map(|violation| Finding {
            property: violation.property,
            detail: &violation.detail,
        });
        let properties = verdicts.iter().map(|verdict| Property {
            property: verdict.property,
            title: verdict.title,
            checked: verdict.checked,
            violations: verdict.violations,
        });
        Self {
            order,
            holds: found.is_empty(),
            violations: violations.collect(),
            properties: properties.collect(),
            counters,
            uniform,
        }
    }
}

// Writing to a string cannot fail.
fn text(report: &Report) -> String {
    let mut text = String::new();
    let what = match report.order {
        Order::Evs => "Extended Virtual Synchrony",
        Order::Uniform => "one order over primary views",
        Order::Whole => "one order that acceptors vote for",
        Order::OfMembers => "one order that acceptors vote for, for members only",
    };
    let _ = writeln!(text, "order: {} ({what})\n", name(report.order));
    judged(&mut text, &report.verdicts, &report.violations);
    text.push('\n');
    count(&mut text, &report.counters);
    if let Some(uniform) = &report.uniform {
        text.push('\n');
        list(&mut text, uniform);
    }
    text
}

/// A line for each property, and what violates it.
fn judged(text: &mut String, verdicts: &[Verdict], violations: &[Violation]) {
    for verdict in verdicts {
        let Verdict {
            property,
            title,
            checked,
            violations: count,
        } = verdict;
        let _ = match (checked, count) {
            (0, 0) => writeln!(text, "{property:<7} {title:<26} holds     no case"),
            (_, 0) => writeln!(
                text,
                "{property:<7} {title:<26} holds     {checked} checked"
            ),
            _ => writeln!(text, "{property:<7} {title:<26} VIOLATED  {count} found"),
        };
        let mine = violations.iter();
        let mine = mine.filter(|violation| violation.property == *property);
        let shown = mine.inspect(|violation| {
            let _ = writeln!(text, "        {}", violation.detail);
        });
        if (shown.count() as u64) < *count {
            let _ = writeln!(text, "        and more");
        }
    }
}

fn list(text: &mut String, counters: &impl Serialize) {
    // As in JSON, so that a name is the same everywhere.
    let Ok(serde_json::Value::Object(values)) = serde_json::to_value(counters) else {
        return;
    };
    for (name, value) in values {
        let _ = writeln!(text, "{name:<34} {value}");
    }
}

fn count(text: &mut String, counters: &Counters) {
    list(text, counters);
    if counters.untraced > 0 {
        let _ = writeln!(
            text,
            "\nThe traces of {} processes are missing: what they did is not judged.",
            counters.untraced
        );
    }
}
