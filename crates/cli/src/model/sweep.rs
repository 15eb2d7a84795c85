//! The effects of windows: a table, and a drawing each of throughput and of both delays.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use rota_bench::{Chart, Corner, Line};
use rota_model::{Bounds, Load, Protocol, Ring, agreed, safe};
use serde::Serialize;

use super::table::rotation;
use crate::say::{complain, print, print_json};

/// The personal windows of the thesis (§5.2.1).
const PERSONAL: [u32; 8] = [5, 10, 20, 30, 40, 50, 70, 100];
const STEP: usize = 5;

#[derive(Clone, Copy, Serialize)]
struct Point {
    personal_window: u32,
    accelerated_window: u32,
    rotation_us: f64,
    goodput_mbps: f64,
    agreed_us: f64,
    safe_us: f64,
}

#[derive(Serialize)]
struct Report {
    points: Vec<Point>,
    files: Vec<String>,
}

fn points(ring: &Ring, bounds: &Bounds) -> Vec<Point> {
    let message = ring.message_us();
    let mut points = Vec::new();
    for personal_window in PERSONAL {
        for accelerated_window in (0..=personal_window).step_by(STEP) {
            let ring = Ring {
                personal_window,
                accelerated_window,
                burst_us: message * f64::from(personal_window),
                ..*ring
            };
            let protocol = Protocol::Accelerated;
            let rotation_us = rotation(&ring, protocol, bounds);
            let load = Load::Full(rotation_us);
            points.push(Point {
                personal_window,
                accelerated_window,
                rotation_us,
                goodput_mbps: ring.throughput_mbps(rotation_us),
                agreed_us: agreed(&ring, protocol, load).average,
                safe_us: safe(&ring, protocol, load).average,
            });
        }
    }
    points
}

/// Prints the table; draws where there is a folder for that.
pub(super) fn main(
    ring: &Ring,
    bounds: &Bounds,
    (output, is_json): (Option<&Path>, bool),
) -> ExitCode {
    let points = points(ring, bounds);
    let files = match output.map(|output| draw(&points, output)) {
        None => Vec::new(),
        Some(Ok(files)) => files,
        Some(Err(error)) => {
            complain(&error);
            return ExitCode::FAILURE;
        }
    };
    if is_json {
        print_json(&Report { points, files });
        return ExitCode::SUCCESS;
    }
    let mut text = format!(
        "{:>8}{:>12}{:>14}{:>10}{:>12}{:>12}\n",
        "personal", "accelerated", "rotation, us", "Mbit/s", "agreed, us", "safe, us"
    );
    for point in &points {
        let _ = writeln!(
            text,
            "{:>8}{:>12}{:>14.1}{:>10.1}{:>12.1}{:>12.1}",
            point.personal_window,
            point.accelerated_window,
            point.rotation_us,
            point.goodput_mbps,
            point.agreed_us,
            point.safe_us
        );
    }
    for file in files {
        let _ = writeln!(text, "{file}");
    }
    print(&text.trim_end());
    ExitCode::SUCCESS
}

fn draw(points: &[Point], output: &Path) -> Result<Vec<String>, String> {
    let failed = |error: io::Error| format!("{}: {error}", output.display());
    fs::create_dir_all(output).map_err(failed)?;
    let mut csv = "personal_window,accelerated_window,rotation_us,goodput_mbps,agreed_us,safe_us\n"
        .to_owned();
    for at in points {
        let _ = writeln!(
            csv,
            "{},{},{:.3},{:.3},{:.3},{:.3}",
            at.personal_window,
            at.accelerated_window,
            at.rotation_us,
            at.goodput_mbps,
            at.agreed_us,
            at.safe_us
        );
    }
    let of = |title: &str, y, value: fn(&Point) -> f64| chart(points, (title, y), value);
    let throughput = of("Throughput at full load", "Mbit/s", |at| at.goodput_mbps);
    let agreed = of("Agreed delivery at full load", "mean, us", |at| {
        at.agreed_us
    });
    let safe = of("Safe delivery at full load", "mean, us", |at| at.safe_us);
    let mut files = vec![("model.csv", csv)];
    for (name, chart) in [
        ("model-throughput.svg", throughput),
        ("model-agreed.svg", agreed),
        ("model-safe.svg", safe),
    ] {
        files.push((name, chart.svg().map_err(|error| error.to_string())?));
    }
    let mut written = Vec::new();
    for (name, text) in files {
        let file = output.join(name);
        fs::write(&file, text).map_err(failed)?;
        written.push(file.display().to_string());
    }
    Ok(written)
}

/// A line for each personal window.
fn chart(points: &[Point], (title, y): (&str, &'static str), value: fn(&Point) -> f64) -> Chart {
    let line = |(color, personal): (usize, u32)| Line {
        name: format!("personal window {personal}"),
        color,
        marked: true,
        points: points
            .iter()
            .filter(|at| at.personal_window == personal)
            .map(|at| (f64::from(at.accelerated_window), value(at)))
            .collect(),
        ..Line::default()
    };
    Chart {
        title: format!("{title}, by the model"),
        x: "accelerated window, messages",
        y,
        lines: PERSONAL.into_iter().enumerate().map(line).collect(),
        names: Corner::UpperRight,
        ..Chart::default()
    }
}
