//! A chart as SVG.

use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::error::BenchError;

/// Size of a drawing, in pixels.
const SIZE: (u32, u32) = (760, 440);
/// Colours that people who see few of them tell apart, too (Okabe and Ito), then black and light blue.
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(120, 120, 120),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(86, 180, 233),
];
const FONT: &str = "sans-serif";
/// Pixels of a dash, and of the gap behind it.
const DASH: (u32, u32) = (7, 5);
/// The factor by which the axes go beyond the points.
const ROOM: f64 = 1.08;

/// A chart with lines.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// The title above it.
    pub title: String,
    /// The quantity on the axis of x, with its unit.
    pub x: &'static str,
    /// The quantity on the axis of y, with its unit.
    pub y: &'static str,
    /// The lines, in the order of their names.
    pub lines: Vec<Line>,
    /// The axis of y shows orders of magnitude.
    pub logarithmic: bool,
    /// The axis of x shows powers of this number.
    pub logarithmic_x: Option<f64>,
    /// The corner with the names.
    pub names: Corner,
    /// Free room above the lines for the names, as a share of what they take.
    pub headroom: f64,
    /// The axis of x has whole numbers only, each of them.
    pub whole_x: bool,
}

/// A corner of a chart in which there are few lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Corner {
    /// Above, on the right.
    #[default]
    UpperRight,
    /// Above, on the left.
    UpperLeft,
    /// Below, on the right.
    LowerRight,
}

impl From<Corner> for SeriesLabelPosition {
    fn from(corner: Corner) -> Self {
        match corner {
            Corner::UpperRight => Self::UpperRight,
            Corner::UpperLeft => Self::UpperLeft,
            Corner::LowerRight => Self::LowerRight,
        }
    }
}

/// A line of a chart.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// The index of its colour.
    pub color: usize,
    /// It has gaps.
    pub dashed: bool,
    /// Points have dots.
    pub marked: bool,
    /// The points that it goes through: x and y.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// The text of the drawing.
    ///
    /// # Errors
    /// Nothing to draw, or an error of the library.
    pub fn svg(&self) -> Result<String, BenchError> {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let (mut least, mut most) = ((f64::MAX, f64::MAX), (f64::MIN, f64::MIN));
        for &(x, y) in points {
            least = (least.0.min(x), least.1.min(y));
            most = (most.0.max(x), most.1.max(y));
        }
        if least.0 > most.0 {
            let what = format!("nothing was measured for `{}`", self.title);
            return Err(BenchError::Figure(what));
        }
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let margin = if self.whole_x { 0.15 } else { 0.0 };
        let from = if self.whole_x {
            least.0
        } else {
            least.0.min(0.0)
        };
        let x = from - margin..most.0 + margin;
        let drawn = match self.logarithmic_x {
            None => self.draw_over(&area, x, (least.1, most.1)),
            Some(base) => {
                let x = (least.0 / ROOM..most.0 * ROOM).log_scale().base(base);
                self.draw_over(&area, x, (least.1, most.1))
            }
        };
        drawn.map_err(|error| BenchError::Figure(format!("cannot draw: {error}")))?;
        drop(area);
        Ok(text)
    }

    /// Over this axis of x, with an axis of y for values from `least` to `most`.
    fn draw_over<DB: DrawingBackend, X>(
        &self,
        area: &DrawingArea<DB, plotters::coord::Shift>,
        x: X,
        (least, most): (f64, f64),
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        if self.logarithmic {
            let y = (least / ROOM..most * ROOM).log_scale();
            self.draw(area, x, y)
        } else {
            self.draw(area, x, 0.0..most * (ROOM + self.headroom))
        }
    }

    /// Labels of the axis of x: each whole number, or as many as there is room for.
    fn x_labels(&self) -> usize {
        let places = || {
            self.lines
                .iter()
                .flat_map(|line| &line.points)
                .map(|at| at.0)
        };
        if self.whole_x {
            let (least, most) = (
                places().fold(f64::MAX, f64::min),
                places().fold(f64::MIN, f64::max),
            );
            (most - least) as usize + 1
        } else {
            11
        }
    }

    fn draw<DB: DrawingBackend, X, Y>(
        &self,
        area: &DrawingArea<DB, plotters::coord::Shift>,
        x: X,
        y: Y,
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, (FONT, 17))
            .margin(10)
            .x_label_area_size(42)
            .y_label_area_size(58)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .x_labels(self.x_labels())
            .x_label_formatter(&|x| match self.logarithmic_x {
                Some(_) => number(*x),
                None => format!("{x:.0}"),
            })
            .y_label_formatter(&|y| number(*y))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .x_desc(self.x)
            .y_desc(self.y)
            .draw()?;
        for line in &self.lines {
            let color = COLORS[line.color % COLORS.len()];
            let style = color.stroke_width(2);
            let points = || line.points.iter().copied();
            let drawn = if line.dashed {
                let (dash, gap) = DASH;
                chart.draw_series(DashedLineSeries::new(points(), dash, gap, style))?
            } else {
                chart.draw_series(LineSeries::new(points(), style))?
            };
            drawn
                .label(&line.name)
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
            if line.marked {
                chart.draw_series(points().map(|at| Circle::new(at, 3, color.filled())))?;
            }
        }
        chart
            .configure_series_labels()
            .position(self.names.into())
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 13))
            .draw()?;
        area.present()
    }
}

/// A number beside an axis: as few digits as tell it from its neighbours.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let line = |name: &str, color, dashed| Line {
            name: name.to_owned(),
            color,
            dashed,
            marked: true,
            points: vec![(2.0, 0.5), (4.0, 1.0), (8.0, 20.0)],
        };
        Chart {
            title: "Latency".to_owned(),
            x: "nodes",
            y: "ms",
            lines: vec![line("fastcast", 0, false), line("raw", 4, true)],
            ..Chart::default()
        }
    }

    #[test]
    fn a_drawing_has_its_lines_their_names_and_both_axes() {
        for logarithmic in [false, true] {
            let chart = Chart {
                logarithmic,
                whole_x: true,
                ..chart()
            };
            let svg = chart.svg().expect("it can be drawn");
            assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
            for text in ["Latency", "nodes", "ms", "fastcast", "raw"] {
                assert!(svg.contains(&format!("\n{text}\n")), "{text}: {svg}");
            }
            // A line in one piece, one in dashes, and a dot for each point of both.
            assert!(svg.matches("<polyline").count() > 10, "{svg}");
            assert_eq!(svg.matches("<circle").count(), 6, "{svg}");
            assert!(svg.contains("#0072B2") && svg.contains("#787878"), "{svg}");
        }
    }

    #[test]
    fn an_axis_of_powers_has_powers_at_its_marks() {
        let powers = [(512.0, 1.0), (1024.0, 2.0), (4096.0, 3.0)];
        let mut chart = chart();
        chart.lines[0].points = powers.to_vec();
        chart.lines.truncate(1);
        let mark = |svg: &str, text: &str| svg.contains(&format!("\n{text}\n"));
        let svg = chart.svg().expect("it can be drawn");
        assert!(!mark(&svg, "512") && !mark(&svg, "2048"), "{svg}");
        chart.logarithmic_x = Some(2.0);
        let svg = chart.svg().expect("it can be drawn");
        for text in ["512", "1024", "2048", "4096"] {
            assert!(mark(&svg, text), "{text}: {svg}");
        }
    }

    #[test]
    fn the_same_is_drawn_the_same() {
        assert_eq!(chart().svg().expect("once"), chart().svg().expect("twice"));
    }

    #[test]
    fn what_has_no_points_is_not_drawn() {
        let mut chart = chart();
        chart.lines.iter_mut().for_each(|line| line.points.clear());
        let error = chart.svg().expect_err("nothing to draw").to_string();
        assert!(error.contains("nothing was measured"), "{error}");
    }

    #[test]
    fn numbers_have_no_more_digits_than_they_need() {
        let texts = [0.0, 0.5, 2.0, 1000.0, 0.25].map(number);
        assert_eq!(texts, ["0", "0.5", "2", "1000", "0.25"]);
    }
}
