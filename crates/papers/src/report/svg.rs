//! Charts as SVG, within the page.

use std::fmt::Write as _;

use super::table::rounded;
use crate::experiments::{Chart, Mark, Series};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 42.0;
/// Lines across a chart.
const LINES: u32 = 4;

/// From figures to places.
struct Scale {
    most: (f64, f64),
}

impl Scale {
    fn of(chart: &Chart) -> Self {
        let points = chart.series.iter().flat_map(|series| &series.points);
        let all = points.chain(chart.marks.iter().map(|mark| &mark.at));
        let most = all.fold((0.0_f64, 0.0_f64), |most, at| {
            (most.0.max(at.0), most.1.max(at.1))
        });
        Self {
            most: (round_up(most.0), round_up(most.1)),
        }
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        (
            LEFT + width * x / self.most.0,
            TOP + height * (1.0 - y / self.most.1),
        )
    }
}

/// The next figure with one or two round digits.
fn round_up(value: f64) -> f64 {
    let unit = 10_f64.powf(value.max(1e-9).log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let first = steps.into_iter().find(|step| step * unit >= value * 0.999);
    first.unwrap_or(10.0) * unit
}

/// A chart.
pub fn chart(chart: &Chart) -> String {
    let scale = Scale::of(chart);
    let mut out = format!(
        "<figure class=\"chart\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        chart.title
    );
    axes(&mut out, chart, &scale);
    for (at, series) in chart.series.iter().enumerate() {
        curve(&mut out, series, at, &scale);
    }
    chart
        .marks
        .iter()
        .for_each(|one| mark(&mut out, one, &scale));
    out.push_str("</svg>");
    let _ = write!(out, "<figcaption>{}<br>", chart.title);
    for (at, series) in chart.series.iter().enumerate() {
        let dash = if series.is_broken { " broken" } else { "" };
        let _ = write!(
            out,
            "<span class=\"key c{at}{dash}\"></span>{} ",
            series.name
        );
    }
    if !chart.marks.is_empty() {
        out.push_str("<span class=\"point\"></span>the paper's figure");
    }
    out.push_str("</figcaption></figure>");
    out
}

fn axes(out: &mut String, chart: &Chart, scale: &Scale) {
    for line in 0..=LINES {
        let share = f64::from(line) / f64::from(LINES);
        let (x, y) = (scale.most.0 * share, scale.most.1 * share);
        let (across, _) = scale.at((x, 0.0));
        let (_, up) = scale.at((0.0, y));
        let end = WIDTH - RIGHT;
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{up:.1}\" x2=\"{end}\" y2=\"{up:.1}\"/>"
        );
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}</text>",
            LEFT - 5.0,
            up + 4.0,
            tick(y)
        );
        let _ = write!(
            out,
            "<text x=\"{across:.1}\" y=\"{:.1}\" class=\"mid\">{}</text>",
            HEIGHT - BOTTOM + 16.0,
            tick(x)
        );
    }
    let _ = write!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" class=\"mid\">{}</text><text x=\"4\" y=\"{:.1}\">{}</text>",
        f64::midpoint(LEFT, WIDTH),
        HEIGHT - 8.0,
        chart.x,
        HEIGHT - 8.0,
        chart.y
    );
}

fn tick(value: f64) -> String {
    if value.fract().abs() < 1e-9 {
        format!("{value:.0}")
    } else {
        rounded(value)
    }
}

fn curve(out: &mut String, series: &Series, at: usize, scale: &Scale) {
    let dash = if series.is_broken { " broken" } else { "" };
    let mut points = String::new();
    for point in &series.points {
        let (x, y) = scale.at(*point);
        let _ = write!(points, "{x:.1},{y:.1} ");
    }
    let _ = write!(
        out,
        "<polyline class=\"curve c{at}{dash}\" points=\"{points}\"/>"
    );
    for point in &series.points {
        let (x, y) = scale.at(*point);
        let _ = write!(
            out,
            "<circle class=\"dot c{at}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"><title>{}: {}, {}</title></circle>",
            series.name,
            tick(point.0),
            rounded(point.1)
        );
    }
}

fn mark(out: &mut String, mark: &Mark, scale: &Scale) {
    let (x, y) = scale.at(mark.at);
    let _ = write!(
        out,
        "<path class=\"mark\" d=\"M{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}Z\"><title>{}: {}, {}</title></path>\
         <text class=\"id\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        x - 5.0,
        y - 5.0,
        x + 5.0,
        y + 5.0,
        mark.id,
        tick(mark.at.0),
        rounded(mark.at.1),
        x + 6.0,
        y - 4.0,
        mark.id
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_ends_at_a_round_figure() {
        let all = [0.9, 1.3, 941.0, 5100.0, 1200.0].map(round_up);
        assert_eq!(
            all.map(|value| (value * 10.0).round() as i64),
            [10, 16, 10_000, 60_000, 12_000]
        );
    }
}
