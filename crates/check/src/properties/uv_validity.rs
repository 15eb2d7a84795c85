//! UV, validity: at rest, a process in its view has delivered everything that it broadcast.
//!
//! It is excused of what others delivered in a view that it was not in, or did not see the end of. Of
//! what nobody has delivered it is excused if a view that came later is not certain: then somebody may have
//! counted it as delivered, whose application failed before it took it. A process that was told it is excluded
//! waits, and is not judged; but where the harness says who can reach whom, and of which nodes a majority
//! is needed (`Options::components`, `Options::primary`), nobody in a majority may wait.

use crate::report::{Findings, PrimaryRule};
use crate::uniform::{Broadcast, Stay, Uniform};
use crate::view::End;

use super::ua_agreement::homes;

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    let homes = homes(uniform);
    for (message, broadcast) in (0..).zip(&uniform.broadcasts) {
        let Some(broadcast) = broadcast else { continue };
        let Some(stay) = resting(uniform, broadcast.process) else {
            continue;
        };
        let wrong = wrong(uniform, stay, message, broadcast, homes[message as usize]);
        findings.check(wrong.is_none(), || {
            let who = uniform.base.who(broadcast.process);
            let what = uniform.base.what(message);
            let at = uniform.base.at(broadcast.process, broadcast.at);
            let how = wrong.unwrap_or_default();
            format!("{who} broadcast {what}{at}, {how}")
        });
    }
    check_waiting(uniform, findings);
}

/// The stay in which a process rests.
fn resting<'b>(uniform: &'b Uniform<'_>, process: u32) -> Option<&'b Stay> {
    let last = uniform.lives[process as usize].last()?;
    let stay = &uniform.stays[*last as usize];
    uniform.rests(stay).then_some(stay)
}

fn wrong(
    uniform: &Uniform<'_>,
    last: &Stay,
    message: u32,
    broadcast: &Broadcast,
    home: Option<u32>,
) -> Option<String> {
    let Some(view) = home else {
        let hidden = uniform.is_hidden(broadcast.view, last.view);
        return (!hidden).then(|| "and nobody has delivered it".into());
    };
    let stays = uniform.lives[broadcast.process as usize].iter();
    let there = stays
        .map(|stay| &uniform.stays[*stay as usize])
        .find(|stay| stay.view == view)
        .filter(|stay| uniform.owes_all(stay))?;
    let delivered = uniform
        .deliveries(there)
        .any(|(_, place)| place.message == message);
    (!delivered).then(|| format!("and did not deliver it in {}", uniform.shown(view)))
}

fn check_waiting(uniform: &Uniform<'_>, findings: &mut Findings) {
    let Some(PrimaryRule::Majority(nodes)) = &uniform.base.options.primary else {
        return;
    };
    for component in &uniform.base.options.components {
        let in_it = |node: &&_| component.iter().any(|process| process.node == **node);
        if 2 * nodes.iter().filter(in_it).count() <= nodes.len() {
            continue;
        }
        let numbers = component.iter();
        let numbers = numbers.filter_map(|process| uniform.base.trace.process_number(*process));
        for process in numbers.filter(|process| uniform.base.end(*process) == End::Alive) {
            findings.check(resting(uniform, process).is_some(), || {
                let who = uniform.base.who(process);
                format!("{who} can reach a majority, and waits for a view")
            });
        }
    }
}
