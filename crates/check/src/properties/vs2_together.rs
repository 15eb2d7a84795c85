//! VS2, together from view to view: processes that install a view and then the one that follows it deliver the
//! same sequence of messages in it.
//!
//! Not judged are changes to views that are not certain: one of them may have come by way of another view.

use crate::report::Findings;
use crate::uniform::{Stay, Uniform};

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    for view in 0..uniform.views.len() as u32 {
        let together = || {
            uniform
                .survivors(view)
                .filter(|stay| uniform.owes_all(stay))
        };
        let Some(first) = together().next() else {
            continue;
        };
        for stay in together().skip(1) {
            let wrong = wrong(uniform, first, stay);
            findings.check(wrong.is_none(), || wrong.unwrap_or_default());
        }
    }
}

fn wrong(uniform: &Uniform<'_>, one: &Stay, other: &Stay) -> Option<String> {
    let mut its = uniform.deliveries(one).map(|(_, place)| place.message);
    let mut others = uniform.deliveries(other).map(|(_, place)| place.message);
    loop {
        let (mine, theirs) = (its.next(), others.next());
        if mine != theirs {
            let name = |message: Option<u32>| {
                message.map_or_else(|| "nothing".into(), |message| uniform.base.what(message))
            };
            return Some(format!(
                "in {}, from which they went on together, {} delivered {} and {} {}",
                uniform.shown(one.view),
                uniform.base.who(one.process),
                name(mine),
                uniform.base.who(other.process),
                name(theirs)
            ));
        }
        mine?;
    }
}
