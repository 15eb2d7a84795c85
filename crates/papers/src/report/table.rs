//! The claims as tables: one for people's tools, one for programs.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;

use crate::judge::Judged;
use crate::lab::Ours;

/// A row of the tables.
#[derive(Debug, Serialize)]
struct Row<'a> {
    id: &'a str,
    paper: &'a str,
    setting: &'a str,
    metric: &'a str,
    said: &'a str,
    ours: String,
    low: String,
    high: String,
    way: &'static str,
    verdict: String,
    why: &'a str,
    command: String,
}

/// A figure with four significant digits.
pub fn rounded(value: f64) -> String {
    let size = value.abs().max(1e-9).log10().floor() as i32;
    let decimals = (3 - size).clamp(0, 4) as usize;
    format!("{value:.decimals$}")
}

/// Ours in a cell.
pub fn shown(ours: &Ours) -> String {
    match ours {
        Ours::Figure { mid, .. } => rounded(*mid),
        Ours::Seen(true, _) => "yes".to_owned(),
        Ours::Seen(false, _) => "no".to_owned(),
        Ours::Nothing(_) => "none".to_owned(),
    }
}

/// The command that obtains a claim alone.
pub fn command(judged: &Judged) -> String {
    format!(
        "rota sim reproduce --only {} --output report",
        judged.claim.id
    )
}

fn row(judged: &Judged) -> Row<'_> {
    let claim = &judged.claim;
    let (low, high) = match &judged.ours {
        Ours::Figure { low, high, .. } => (rounded(*low), rounded(*high)),
        _ => (String::new(), String::new()),
    };
    Row {
        id: &claim.id,
        paper: &claim.paper,
        setting: &claim.setting,
        metric: &claim.metric,
        said: &claim.said,
        ours: shown(&judged.ours),
        low,
        high,
        way: claim.way.name(),
        verdict: judged.verdict.to_string(),
        why: &judged.why,
        command: command(judged),
    }
}

/// A cell, in quotes where it needs them.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// `claims.csv`.
pub fn csv(judged: &[Judged], hash: &str) -> String {
    let mut out = format!("# docs/papers/calibration.toml, SHA-256 {hash}\n");
    out.push_str("id,paper,setting,metric,said,ours,low,high,way,verdict,why,command\n");
    for one in judged.iter().map(row) {
        let cells = [
            one.id,
            one.paper,
            one.setting,
            one.metric,
            one.said,
            one.ours.as_str(),
            one.low.as_str(),
            one.high.as_str(),
            one.way,
            one.verdict.as_str(),
            one.why,
            one.command.as_str(),
        ];
        let cells: Vec<String> = cells.into_iter().map(cell).collect();
        let _ = writeln!(out, "{}", cells.join(","));
    }
    out
}

/// `claims.json`.
pub fn json(judged: &[Judged], hash: &str) -> io::Result<String> {
    #[derive(Serialize)]
    struct All<'a> {
        calibration_sha256: &'a str,
        claims: Vec<Row<'a>>,
    }
    let claims = judged.iter().map(row).collect();
    let all = All {
        calibration_sha256: hash,
        claims,
    };
    let mut text = serde_json::to_string_pretty(&all)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        assert_eq!(rounded(1234.56), "1235");
        assert_eq!(rounded(12.3456), "12.35");
        assert_eq!(rounded(0.56789), "0.5679");
        assert_eq!(rounded(0.0), "0.0000");
    }

    #[test]
    fn a_cell_with_commas_is_quoted() {
        assert_eq!(cell("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(cell("plain"), "plain");
    }
}
