//! UV, validity: at rest, a process in its view has delivered everything that it broadcast.
//!
//! It is excused of messages that others delivered in a view that it was not in, or did not see the end of. Of a
//! message that no process has delivered it is excused if a later view is not certain: then a process may have counted
//! the message as delivered, while its application failed before it took it. A process that was told it is excluded
//! waits, and is not judged; but if the harness says which processes can reach each other, and of which nodes a
//! majority is needed (`Options::components`, `Options::primary`), no process in a majority may wait.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::report::{Findings, PrimaryRule};
use crate::uniform::{Broadcast, Stay, Uniform};
use crate::view::End;

use super::ua_agreement::homes;

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    let homes = homes(uniform);
    let mut delivered = Delivered::default();
    for (message, broadcast) in (0..).zip(&uniform.broadcasts) {
        let Some(broadcast) = broadcast else { continue };
        let Some(stay) = resting(uniform, broadcast.process) else {
            continue;
        };
        let home = homes[message as usize];
        let wrong = wrong((uniform, &mut delivered), stay, (message, broadcast), home);
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

/// The deliveries in stays, looked at once for all broadcasts: a stay may have as many deliveries as there are
/// broadcasts.
#[derive(Default)]
struct Delivered(FxHashMap<u32, FxHashSet<u32>>);

impl Delivered {
    fn has(&mut self, uniform: &Uniform<'_>, stay: u32, message: u32) -> bool {
        let look = || {
            let deliveries = uniform.deliveries(&uniform.stays[stay as usize]);
            deliveries.map(|(_, place)| place.message).collect()
        };
        self.0.entry(stay).or_insert_with(look).contains(&message)
    }
}

fn wrong(
    (uniform, delivered): (&Uniform<'_>, &mut Delivered),
    last: &Stay,
    (message, broadcast): (u32, &Broadcast),
    home: Option<u32>,
) -> Option<String> {
    let Some(view) = home else {
        let hidden = uniform.is_hidden(broadcast.view, last.view);
        return (!hidden).then(|| "and nobody has delivered it".into());
    };
    let mut stays = uniform.lives[broadcast.process as usize].iter().copied();
    let there = stays
        .find(|stay| uniform.stays[*stay as usize].view == view)
        .filter(|stay| uniform.owes_all(&uniform.stays[*stay as usize]))?;
    (!delivered.has(uniform, there, message))
        .then(|| format!("and did not deliver it in {}", uniform.shown(view)))
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
