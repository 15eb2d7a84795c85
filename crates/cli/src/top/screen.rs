//! The screen of `rota top`: a table of daemons, plots of the one that is looked at, clients that lag, and what is wrong.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row as TableRow, Sparkline, Table, Wrap};
use rota_daemon::explain::{Finding, bytes, time};

use super::history::{History, Sample};
use super::table::{COLUMNS, Interval, NAMES, Row};
use crate::say::escaped;

/// Columns that are text; the others are numbers.
const TEXT_COLUMNS: [usize; 2] = [1, 2];

/// A plot: its title, what of a sample it shows, and how a value is said.
type Plot = (&'static str, fn(&Sample) -> f64, fn(f64) -> String);

const PLOTS: [Plot; 4] = [
    ("told/s", |sample| sample.told, count),
    ("round", |sample| sample.round_us, time),
    ("lost/s", |sample| sample.lost, count),
    (
        "waiting for clients",
        |sample| sample.waiting,
        |value| bytes(value as usize),
    ),
];

fn count(value: f64) -> String {
    format!("{value:.0}")
}

/// How things look, with colours or without.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// There are colours.
    pub colours: bool,
}

impl Look {
    fn colour(self, colour: Color) -> Style {
        match self.colours {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }
}

/// Draws everything, whatever the size.
pub fn draw(frame: &mut Frame<'_>, history: &History, look: Look) {
    let rows = history
        .newest
        .as_ref()
        .map_or(0, |interval| interval.rows.len());
    let findings = sentences(history);
    let whole = frame.area();
    let said: u16 = findings
        .iter()
        .map(|(_, text)| lines(text, whole.width))
        .fold(0, u16::saturating_add);
    let waiting = history
        .newest
        .as_ref()
        .map_or(0, |interval| interval.lagging.len());
    let waiting = u16::try_from(waiting).unwrap_or(u16::MAX).saturating_add(1);
    let table = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(1);
    let [top, daemons, plots, clients, wrong] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(table.min(whole.height / 3).max(2)),
        Constraint::Min(2),
        Constraint::Length(waiting.min(whole.height / 4).max(1)),
        Constraint::Length(said.clamp(1, (whole.height / 4).max(1)) + 1),
    ])
    .areas(whole);
    frame.render_widget(title(history), top);
    let Some(interval) = &history.newest else {
        let waiting = Paragraph::new("looking for an interval").alignment(Alignment::Center);
        frame.render_widget(waiting, daemons);
        return;
    };
    draw_daemons(frame, daemons, (interval, history.selected), look);
    draw_plots(frame, plots, history, look);
    draw_clients(frame, clients, interval, look);
    let sentences: Vec<Line<'_>> = findings
        .into_iter()
        .map(|(wrong, text)| {
            let colour = if wrong { Color::Red } else { Color::Green };
            Line::from(Span::styled(text, look.colour(colour)))
        })
        .collect();
    let block = Block::new().borders(Borders::TOP);
    let sentences = Paragraph::new(sentences)
        .wrap(Wrap { trim: true })
        .block(block);
    frame.render_widget(sentences, wrong);
}

/// What is wrong, and whether something is.
fn sentences(history: &History) -> Vec<(bool, String)> {
    let findings = history.newest.iter();
    let findings = findings.flat_map(|interval| &interval.findings);
    let sentence = |finding: &Finding| (finding.wrong, escaped(&finding.text));
    findings.map(sentence).collect()
}

/// Lines that a sentence takes on a screen of this width, or a few more.
fn lines(text: &str, width: u16) -> u16 {
    let width = usize::from(width.max(2)) - 1;
    u16::try_from(text.chars().count().div_ceil(width))
        .unwrap_or(u16::MAX)
        .max(1)
}

fn title(history: &History) -> Line<'static> {
    let pace = match history.paused {
        true => "paused".to_owned(),
        false => format!("every {:.1} s", history.interval_ms as f64 / 1e3),
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Line::from(vec![
        Span::styled("rota top ", bold),
        Span::raw(format!(
            "{pace}   q quit  p pause  up/down daemon  +/- pace  c clear"
        )),
    ])
}

/// The table, scrolled so that the daemon that is looked at is in it.
fn draw_daemons(
    frame: &mut Frame<'_>,
    area: Rect,
    (interval, selected): (&Interval, usize),
    look: Look,
) {
    let room = usize::from(area.height.saturating_sub(1)).max(1);
    let first = selected.saturating_sub(room - 1);
    let shown: Vec<(usize, &Row)> = interval
        .rows
        .iter()
        .enumerate()
        .skip(first)
        .take(room)
        .collect();
    let mut widths = NAMES.map(str::len);
    for (_, row) in &shown {
        if let Row::Cells(cells) = row {
            for (width, cell) in widths.iter_mut().zip(cells.iter()) {
                *width = cell.chars().count().max(*width);
            }
        }
    }
    let cell = |(column, text): (usize, &str)| {
        let side = match TEXT_COLUMNS.contains(&column) {
            true => Alignment::Left,
            false => Alignment::Right,
        };
        Cell::new(Line::from(text.to_owned()).alignment(side))
    };
    let row = |(at, row): (usize, &Row)| {
        let style = match at == selected {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        match row {
            Row::Cells(cells) => {
                let cells = cells.iter().map(String::as_str).enumerate().map(cell);
                TableRow::new(cells).style(style)
            }
            Row::Said(_) => TableRow::new(vec![cell((0, "-"))]).style(style),
        }
    };
    let names = NAMES.into_iter().enumerate().map(cell);
    let head = TableRow::new(names).style(look.colour(Color::Cyan));
    let constraints =
        widths.map(|width| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)));
    let constraints: [Constraint; COLUMNS] = constraints;
    let table = Table::new(shown.iter().copied().map(row), constraints).header(head);
    frame.render_widget(table, area);
    draw_sentences(frame, area, &shown, (selected, look));
}

/// A sentence in a row's place is as long as it is.
fn draw_sentences(
    frame: &mut Frame<'_>,
    area: Rect,
    shown: &[(usize, &Row)],
    (selected, look): (usize, Look),
) {
    for (line, (at, row)) in shown.iter().enumerate() {
        let y = area.y + 1 + u16::try_from(line).unwrap_or(0);
        if let (Row::Said(what), true) = (row, y < area.bottom()) {
            let place = Rect::new(area.x, y, area.width, 1);
            let style = match *at == selected {
                true => look.colour(Color::Red).add_modifier(Modifier::REVERSED),
                false => look.colour(Color::Red),
            };
            let text = Span::styled(format!("{:>4} {what}", "-"), style);
            frame.render_widget(Paragraph::new(text), place);
        }
    }
}

/// Plots of the daemon that is looked at, two in a row.
fn draw_plots(frame: &mut Frame<'_>, area: Rect, history: &History, look: Look) {
    let rows: [Rect; 2] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
    let places = rows.into_iter().flat_map(|row| {
        let halves: [Rect; 2] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)])
            .spacing(2)
            .areas(row);
        halves
    });
    for ((name, of, say), place) in PLOTS.into_iter().zip(places) {
        let line = history.line(of, usize::from(place.width));
        let last = line.last().copied().unwrap_or(0.0);
        let most = line.iter().copied().fold(0.0, f64::max);
        let title = format!("{name} {}, most {}", say(last), say(most));
        // Whole numbers: a thousandth of the height is less than a screen can show.
        let scale = if most > 0.0 { 1000.0 / most } else { 0.0 };
        let data: Vec<u64> = line.iter().map(|value| (value * scale) as u64).collect();
        let plot = Sparkline::default()
            .block(Block::new().borders(Borders::TOP).title(title))
            .data(data)
            .max(1000)
            .style(look.colour(Color::Blue));
        frame.render_widget(plot, place);
    }
}

fn draw_clients(frame: &mut Frame<'_>, area: Rect, interval: &Interval, look: Look) {
    let lagging = &interval.lagging;
    let mut text = vec![Line::from(Span::styled(
        match lagging.is_empty() {
            true => "nothing waits for clients",
            false => "clients for whom something waits",
        },
        look.colour(Color::Cyan),
    ))];
    for client in lagging {
        let unread = time(client.unread_ms as f64 * 1e3);
        text.push(Line::from(format!(
            "{:<40} {:>12} not read for {unread:>10}",
            escaped(&client.name),
            bytes(client.waiting_bytes)
        )));
    }
    frame.render_widget(Paragraph::new(text), area);
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
