//! The tables of claims.

use std::fmt;

use crate::recipe::Recipe;
use crate::target::Target;

const HEADLINES: &str = include_str!("../../../docs/papers/headlines.csv");
const CLAIMS: &str = include_str!("../../../docs/papers/claims.csv");

/// Most rows that anything may be fitted to.
const MOST_CALIBRATED: usize = 12;

/// How our figure is obtained.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// On real sockets, by a command that the reason names.
    Measured,
    /// On real sockets and slow links.
    SlowMotion,
    /// In virtual time.
    Simulated,
    /// By arithmetic from other claims.
    Derived,
    /// By looking at what the code has.
    Constant,
    /// Not at all.
    None,
}

impl Way {
    const EACH: [(Self, &'static str); 6] = [
        (Self::Measured, "measured"),
        (Self::SlowMotion, "slow motion"),
        (Self::Simulated, "simulated"),
        (Self::Derived, "derived"),
        (Self::Constant, "constant"),
        (Self::None, "none"),
    ];

    fn parse(text: &str) -> Option<Self> {
        let found = Self::EACH.iter().find(|(_, name)| *name == text);
        found.map(|(way, _)| *way)
    }

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        let found = Self::EACH.iter().find(|(way, _)| *way == self);
        found.map_or("", |(_, name)| name)
    }
}

/// A claim of a paper.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// The paper, and the section.
    pub paper: String,
    /// The columns of the table of headlines that say what was measured, in one line.
    pub setting: String,
    /// The paper's figure, as it stands there, with its unit.
    pub said: String,
    /// What was measured.
    pub metric: String,
    /// `1g`, `10g` or `wan`.
    pub network: String,
    /// `library`, `daemon`, `spread` and others.
    pub system: String,
    /// `original`, `accelerated`, `both` and others.
    pub protocol: String,
    /// `agreed`, `safe` and others.
    pub service: String,
    /// Nodes, where it is one number.
    pub nodes: Option<usize>,
    /// Bytes of a message, where it is one number.
    pub payload: Option<usize>,
    /// The experiment it belongs to.
    pub experiment: String,
    /// How ours is obtained.
    pub way: Way,
    /// What exactly, and how near, and why.
    pub judging: Judging,
}

/// How a claim is judged.
#[derive(Clone, Debug)]
pub struct Judging {
    /// How ours is obtained.
    pub recipe: Recipe,
    /// The paper's figure, to be compared.
    pub target: Target,
    /// The share by which ours may differ.
    pub tolerance: f64,
    /// The parameter that was fitted to it.
    pub calibrates: Option<String>,
    /// Why ours is what it is, or why there is none.
    pub why: String,
}

/// A fault of the tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimsError(String);

impl fmt::Display for ClaimsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ClaimsError {}

/// The rows of a table, without its heading, each as cells. The last cell may have commas.
fn rows(text: &str, cells: usize) -> impl Iterator<Item = Vec<&str>> {
    let lines = text.lines().skip(1).filter(|line| !line.is_empty());
    lines.map(move |line| line.splitn(cells, ',').map(str::trim).collect())
}

/// All claims, in the order of the table of headlines.
///
/// # Errors
/// A claim without a row that says how it is judged, or such a row that cannot be read.
pub fn claims() -> Result<Vec<Claim>, ClaimsError> {
    let judged: Vec<_> = rows(CLAIMS, 7).collect();
    let mut claims = Vec::new();
    for headline in rows(HEADLINES, 13) {
        let id = headline[0];
        let mut of = judged.iter().filter(|row| row[0] == id);
        let row = of
            .next()
            .ok_or_else(|| ClaimsError(format!("{id} has no row in claims.csv")))?;
        claims.push(claim(&headline, row).map_err(|what| ClaimsError(format!("{id}: {what}")))?);
    }
    let calibrated = claims
        .iter()
        .filter(|claim| claim.judging.calibrates.is_some());
    let calibrated = calibrated.count();
    if calibrated > MOST_CALIBRATED {
        return Err(ClaimsError(format!(
            "{calibrated} claims are calibrated on"
        )));
    }
    Ok(claims)
}

fn claim(headline: &[&str], row: &[&str]) -> Result<Claim, String> {
    let (
        &[
            id,
            paper,
            section,
            network,
            nodes,
            system,
            protocol,
            payload,
            setting,
            service,
            metric,
            value,
            unit,
        ],
        &[_, experiment, way, recipe, tolerance, calibrates, why],
    ) = (headline, row)
    else {
        return Err("a row has too few cells".to_owned());
    };
    let words = tolerance.split_whitespace();
    let (percent, is_point) = (words.clone().next().unwrap_or("0"), words.count() > 1);
    let percent: f64 = percent
        .parse()
        .map_err(|_| format!("tolerance {tolerance}"))?;
    let cells = [network, system, protocol, payload, setting, service];
    let setting: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
    Ok(Claim {
        id: id.to_owned(),
        paper: format!("{paper} {section}"),
        setting: setting.join(" "),
        said: format!("{value} {unit}"),
        metric: metric.to_owned(),
        network: network.to_owned(),
        system: system.to_owned(),
        protocol: protocol.to_owned(),
        service: service.to_owned(),
        nodes: nodes.parse().ok(),
        payload: payload.parse().ok(),
        experiment: experiment.to_owned(),
        way: Way::parse(way).ok_or_else(|| format!("no way is called `{way}`"))?,
        judging: Judging {
            recipe: Recipe::parse(recipe)?,
            target: Target::parse(metric, value, is_point),
            tolerance: percent / 100.0,
            calibrates: (!calibrates.is_empty()).then(|| calibrates.to_owned()),
            why: why.to_owned(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_has_an_experiment_a_way_and_a_recipe_or_a_reason() {
        let claims = claims().expect("the tables");
        assert!(claims.len() >= 122);
        for claim in &claims {
            assert!(!claim.experiment.is_empty(), "{}", claim.id);
            let has_recipe = !claim.judging.recipe.what().is_empty();
            assert!(has_recipe || !claim.judging.why.is_empty(), "{}", claim.id);
        }
    }
}
