//! The papers' claims: each row of the table of figures has a row that says by which experiment it is judged, in which
//! way, and why not where it is not.

use crate::gate::{Verdict, verdict};
use crate::workspace::Workspace;

const HEADLINES: &str = "docs/papers/headlines.csv";
const CLAIMS: &str = "docs/papers/claims.csv";
const CALIBRATION: &str = "docs/papers/calibration.toml";
const EXPERIMENTS: &str = "crates/papers/src/experiments.rs";

const WAYS: [&str; 6] = [
    "measured",
    "slow motion",
    "simulated",
    "derived",
    "constant",
    "none",
];
/// Most claims that anything may be fitted to.
const MOST_CALIBRATED: usize = 12;
/// Cells of a row of both tables.
const CELLS: (usize, usize) = (13, 7);

/// Checks both tables against each other, and what is calibrated against the file of the calibration.
pub fn check(workspace: &Workspace) -> Verdict {
    let [headlines, claims] = [workspace.text(HEADLINES)?, workspace.text(CLAIMS)?];
    let texts = (workspace.text(CALIBRATION)?, workspace.text(EXPERIMENTS)?);
    let findings = findings(&headlines, &claims, (&texts.0, &texts.1));
    let rows = headlines.lines().count().saturating_sub(1);
    verdict(&findings, format!("{rows} claims"))
}

fn findings(
    headlines: &str,
    claims: &str,
    (calibration, experiments): (&str, &str),
) -> Vec<String> {
    let mut findings = Vec::new();
    let rows = |text: &str, cells: usize| -> Vec<Vec<String>> {
        let lines = text.lines().skip(1).filter(|line| !line.is_empty());
        let split = |line: &str| line.splitn(cells, ',').map(str::to_owned).collect();
        lines.map(split).collect()
    };
    let (headlines, claims) = (rows(headlines, CELLS.0), rows(claims, CELLS.1));
    for row in &headlines {
        let of = claims.iter().filter(|claim| claim[0] == row[0]).count();
        if row.len() != CELLS.0 || of != 1 {
            findings.push(format!(
                "{HEADLINES}: {} has {of} rows in {CLAIMS}, and has to have one",
                row[0]
            ));
        }
    }
    for claim in &claims {
        if !headlines.iter().any(|row| row[0] == claim[0]) {
            findings.push(format!("{CLAIMS}: {} is no claim of {HEADLINES}", claim[0]));
        }
        let faults = faults(claim, (calibration, experiments));
        findings.extend(
            faults
                .into_iter()
                .map(|fault| format!("{CLAIMS}: {}: {fault}", claim[0])),
        );
    }
    let calibrated = claims
        .iter()
        .filter(|claim| claim.get(5).is_some_and(|cell| !cell.is_empty()));
    let calibrated = calibrated.count();
    if calibrated > MOST_CALIBRATED {
        findings.push(format!(
            "{CLAIMS}: {calibrated} claims are calibrated on, {MOST_CALIBRATED} may be"
        ));
    }
    findings
}

/// What is wrong with a row.
fn faults(row: &[String], (calibration, experiments): (&str, &str)) -> Vec<String> {
    let [id, experiment, way, recipe, tolerance, calibrates, why] = row else {
        return vec![format!("{} cells", row.len())];
    };
    let mut faults = Vec::new();
    if experiment.is_empty() || !experiments.contains(&format!("\"{experiment}\",")) {
        faults.push(format!("`{experiment}` is no experiment of {EXPERIMENTS}"));
    }
    if !WAYS.contains(&way.as_str()) {
        faults.push(format!("`{way}` is no way"));
    }
    if recipe.is_empty() && why.is_empty() {
        faults.push("neither a recipe nor a reason".to_owned());
    }
    let percent = tolerance.split(' ').next().unwrap_or_default();
    if percent.parse::<u32>().is_err() {
        faults.push(format!("`{tolerance}` is no tolerance in percent"));
    }
    if !calibrates.is_empty() {
        let name = calibrates.split('.').next_back().unwrap_or_default();
        let is_there =
            |line: &str| line.starts_with(&format!("{name} =")) && line.contains(id.as_str());
        if !calibration.lines().any(is_there) {
            faults.push(format!(
                "{CALIBRATION} does not say that {name} was fitted to it"
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADLINE: &str =
        "id,…\nr01,report,IV,1g,8,spread,original,1350,rate=1,agreed,latency_mean,400,us\n";
    const OTHERS: (&str, &str) = ("path_us = 8.0  # calibrated = \"r01\"\n", "(\"E1\", \"…\")");

    fn of(row: &str) -> Vec<String> {
        findings(HEADLINE, &format!("id,…\n{row}"), OTHERS)
    }

    #[test]
    fn a_claim_with_experiment_way_and_recipe_passes() {
        assert_eq!(of("r01,E1,simulated,get=latency rate=1,5,,\n"), [""; 0]);
        assert_eq!(of("r01,E1,none,,0,,cannot be simulated, alas\n"), [""; 0]);
        assert_eq!(of("r01,E1,simulated,get=latency,5,a.path_us,\n"), [""; 0]);
    }

    #[test]
    fn a_claim_without_one_of_them_fails() {
        for (row, fault) in [
            ("", "has 0 rows"),
            ("r01,E1,guessed,get=latency,5,,\n", "no way"),
            ("r01,,simulated,get=latency,5,,\n", "no experiment"),
            ("r01,E2,simulated,get=latency,5,,\n", "no experiment"),
            ("r01,E1,simulated,,5,,\n", "neither a recipe"),
            ("r01,E1,simulated,get=latency,,,\n", "no tolerance"),
            (
                "r01,E1,simulated,get=latency,5,a.other_us,\n",
                "does not say",
            ),
            ("r01,E1,none,,0,,x\nr99,E1,none,,0,,x\n", "is no claim"),
        ] {
            let found = of(row);
            assert!(
                found.len() == 1 && found[0].contains(fault),
                "{row}: {found:?}"
            );
        }
    }
}
