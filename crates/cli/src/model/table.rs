//! Both protocols side by side, and the model beside what was measured.

use std::fmt::Write as _;
use std::process::ExitCode;

use rota_model::{
    Bounds, Delays, Load, MEASURED, Measured, Network, Protocol, Ring, agreed, at_rate, judge,
    safe, safe_exact,
};
use serde::Serialize;

use super::LoadArg;
use crate::say::{complain, print, print_json};

const PROTOCOLS: [Protocol; 2] = [Protocol::Original, Protocol::Accelerated];

#[derive(Serialize)]
struct DelaysUs {
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<f64>,
    average: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    worst: Option<f64>,
}

impl From<Delays> for DelaysUs {
    fn from(delays: Delays) -> Self {
        Self {
            best: Some(delays.best),
            average: delays.average,
            worst: Some(delays.worst),
        }
    }
}

impl DelaysUs {
    const fn mean(average: f64) -> Self {
        Self {
            best: None,
            average,
            worst: None,
        }
    }
}

/// The results of the model for one protocol.
#[derive(Serialize)]
struct Column {
    rotation_us: f64,
    /// Ordered, Mbit/s; of a light load there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    goodput_mbps: Option<f64>,
    agreed_us: DelaysUs,
    safe_us: DelaysUs,
}

#[derive(Serialize)]
struct Report {
    nodes: u32,
    personal_window: u32,
    accelerated_window: u32,
    size_bytes: u32,
    burst_us: f64,
    hop_us: f64,
    load: String,
    exact: bool,
    original: Column,
    accelerated: Column,
}

/// The time of a rotation, with its bounds, in microseconds.
pub(super) fn rotation(ring: &Ring, protocol: Protocol, bounds: &Bounds) -> f64 {
    let rotation = ring.rotation_us(protocol);
    match protocol {
        Protocol::Original => rotation,
        Protocol::Accelerated => rotation.max(bounds.rotation_us(ring)),
    }
}

fn column(
    ring: &Ring,
    protocol: Protocol,
    bounds: &Bounds,
    (load, is_exact): (LoadArg, bool),
) -> Option<Column> {
    let (load, rotation_us, goodput_mbps) = match load {
        LoadArg::Light => (Load::Light, ring.idle_rotation_us(), None),
        LoadArg::Full => {
            let rotation = rotation(ring, protocol, bounds);
            let mbps = ring.throughput_mbps(rotation);
            (Load::Full(rotation), rotation, Some(mbps))
        }
        LoadArg::Rate(rate) => {
            let mbps = rate.0 as f64 / 1e6;
            let at = at_rate(ring, protocol, mbps)?;
            return Some(Column {
                rotation_us: at.rotation_us,
                goodput_mbps: Some(mbps),
                agreed_us: DelaysUs::mean(at.agreed_us),
                safe_us: DelaysUs::mean(at.safe_us),
            });
        }
    };
    let safe = if is_exact { safe_exact } else { safe };
    Some(Column {
        rotation_us,
        goodput_mbps,
        agreed_us: agreed(ring, protocol, load).into(),
        safe_us: safe(ring, protocol, load).into(),
    })
}

/// Prints both protocols.
pub(super) fn main(
    ring: &Ring,
    bounds: &Bounds,
    (load, is_exact, is_json): (LoadArg, bool, bool),
) -> ExitCode {
    let columns = PROTOCOLS.map(|protocol| column(ring, protocol, bounds, (load, is_exact)));
    let [Some(original), Some(accelerated)] = columns else {
        complain(
            &"a visit would send more than its window: the original ring, or both, order less than that",
        );
        return ExitCode::from(2);
    };
    let report = Report {
        nodes: ring.nodes,
        personal_window: ring.personal_window,
        accelerated_window: ring.accelerated_window,
        size_bytes: ring.message_bytes,
        burst_us: ring.burst_us,
        hop_us: ring.hop_us,
        load: match load {
            LoadArg::Light => "light".to_owned(),
            LoadArg::Full => "full".to_owned(),
            LoadArg::Rate(rate) => rate.to_string(),
        },
        exact: is_exact,
        original,
        accelerated,
    };
    if is_json {
        print_json(&report);
    } else {
        print(&text(&report).trim_end());
    }
    ExitCode::SUCCESS
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{} nodes, windows {} and {}, {} B; B {} us, P {} us; load: {}\n{:<22}{:>12}{:>14}\n",
        report.nodes,
        report.personal_window,
        report.accelerated_window,
        report.size_bytes,
        report.burst_us,
        report.hop_us,
        report.load,
        "",
        "original",
        "accelerated"
    );
    let both = [&report.original, &report.accelerated];
    line(
        &mut text,
        "rotation, us",
        both.map(|of| Some(of.rotation_us)),
    );
    line(&mut text, "ordered, Mbit/s", both.map(|of| of.goodput_mbps));
    for (service, delays) in [
        ("agreed", both.map(|of| &of.agreed_us)),
        ("safe", both.map(|of| &of.safe_us)),
    ] {
        let name = |what: &str| format!("{service}, {what}, us");
        line(&mut text, &name("best"), delays.map(|of| of.best));
        line(
            &mut text,
            &name("average"),
            delays.map(|of| Some(of.average)),
        );
        line(&mut text, &name("worst"), delays.map(|of| of.worst));
    }
    text
}

/// A line, unless nothing is known of it.
fn line(text: &mut String, name: &str, values: [Option<f64>; 2]) {
    if let [Some(original), Some(accelerated)] = values {
        let _ = writeln!(text, "{name:<22}{original:>12.1}{accelerated:>14.1}");
    }
}

/// A measured row, and the model.
#[derive(Serialize)]
struct Row {
    network: &'static str,
    protocol: &'static str,
    personal_window: u32,
    accelerated_window: u32,
    is_fit: bool,
    /// From the throughput that was measured, and as the model has it.
    rotation_us: [f64; 2],
    /// Measured, and the model's.
    mbps: [f64; 2],
    /// The same; the model's with the rotation that was measured.
    agreed_us: [f64; 2],
    /// The same.
    safe_us: [f64; 2],
}

impl From<&Measured> for Row {
    fn from(row: &Measured) -> Self {
        let judged = judge(row);
        Self {
            network: match row.network {
                Network::OneGig => "1g",
                Network::TenGig => "10g",
            },
            protocol: match row.protocol {
                Protocol::Original => "original",
                Protocol::Accelerated => "accelerated",
            },
            personal_window: row.windows.0,
            accelerated_window: row.windows.1,
            is_fit: row.is_fit,
            rotation_us: [judged.rotation_us, judged.model_rotation_us],
            mbps: [row.mbps, judged.model_mbps],
            agreed_us: [row.agreed_us, judged.agreed_us],
            safe_us: [row.safe_us, judged.safe_us],
        }
    }
}

#[derive(Serialize)]
struct Check {
    rows: Vec<Row>,
}

/// Prints the model beside what the thesis measured.
pub(super) fn check(is_json: bool) -> ExitCode {
    let rows: Vec<Row> = MEASURED.iter().map(Row::from).collect();
    if is_json {
        print_json(&Check { rows });
        return ExitCode::SUCCESS;
    }
    let mut text = format!(
        "{:<4}{:<12}{:>8}{:>16}{:>16}{:>22}{:>22}\n{:<24}{:>16}{:>16}{:>22}{:>22}\n",
        "",
        "",
        "windows",
        "rotation, us",
        "Mbit/s",
        "agreed, us",
        "safe, us",
        "",
        "was / model",
        "was / model",
        "was / model",
        "was / model"
    );
    for row in &rows {
        let both = |[was, model]: [f64; 2]| format!("{was:.0} / {model:.0}");
        let apart = |[was, model]: [f64; 2]| {
            // 0 has no sign.
            let share = (100.0 * (model / was - 1.0)).round() + 0.0;
            format!("{was:.0} / {model:.0} ({share:+.0} %)")
        };
        let windows = format!("{}/{}", row.personal_window, row.accelerated_window);
        let fit = if row.is_fit { "  fit" } else { "" };
        let _ = writeln!(
            text,
            "{:<4}{:<12}{windows:>8}{:>16}{:>16}{:>22}{:>22}{fit}",
            row.network,
            row.protocol,
            both(row.rotation_us),
            both(row.mbps),
            apart(row.agreed_us),
            apart(row.safe_us)
        );
    }
    text.push_str(
        "fit: B and P of a network are from these rows. Delays of the model are with the rotation that was measured: what a link and a\n\
         processor bound is not in it (--bounded).",
    );
    print(&text);
    ExitCode::SUCCESS
}
