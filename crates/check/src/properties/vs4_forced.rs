//! VS4, the forced part: messages of a view that a survivor delivers after it was told that it is excluded, every other
//! survivor has delivered too, as the end of its own sequence there, with the same positions.
//!
//! Survivors that were not told so deliver their forced part as well, but it does not show where it begins: VS2
//! compares all of theirs. A process that has delivered such a part has survived, and so is judged even if the next
//! view is not certain; the others then only up to where they end.

use crate::report::Findings;
use crate::uniform::{Stay, Uniform};

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    for view in 0..uniform.views.len() as u32 {
        for stay in uniform.survivors(view) {
            let Some(excluded) = stay.excluded else {
                continue;
            };
            let forced = forced(uniform, stay, excluded);
            if forced.is_empty() {
                continue;
            }
            for other in uniform.survivors(view) {
                if other.process != stay.process {
                    compare(uniform, stay, &forced, other, findings);
                }
            }
        }
    }
}

/// The deliveries behind an event: positions and messages.
fn forced(uniform: &Uniform<'_>, stay: &Stay, behind: usize) -> Vec<(u64, u32)> {
    let deliveries = uniform.deliveries(stay).filter(|(at, _)| *at > behind);
    deliveries
        .map(|(_, place)| (place.position, place.message))
        .collect()
}

fn compare(
    uniform: &Uniform<'_>,
    stay: &Stay,
    forced: &[(u64, u32)],
    other: &Stay,
    findings: &mut Findings,
) {
    let first = forced.iter().map(|(position, _)| *position).min();
    let all = uniform.deliveries(other);
    let all = all.map(|(_, place)| (place.position, place.message));
    let theirs: Vec<(u64, u32)> = all
        .filter(|(position, _)| Some(*position) >= first)
        .collect();
    let length = if uniform.owes_all(other) {
        theirs.len().max(forced.len())
    } else {
        theirs.len().min(forced.len())
    };
    let mut places = 0..length;
    let differs = places.find(|at| forced.get(*at) != theirs.get(*at));
    findings.check(differs.is_none(), || {
        let name = |list: &[(u64, u32)]| {
            let one = differs.and_then(|at| list.get(at));
            one.map_or_else(
                || "nothing".into(),
                |(_, message)| uniform.base.what(*message),
            )
        };
        let (who, whom) = (
            uniform.base.who(stay.process),
            uniform.base.who(other.process),
        );
        let view = uniform.shown(stay.view);
        let (mine, theirs) = (name(forced), name(&theirs));
        format!("in the end of {view} {who}, excluded, delivered {mine}, and {whom} {theirs}")
    });
}
