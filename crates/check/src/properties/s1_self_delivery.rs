//! S1, self-delivery: a process delivers every message that it originated, in the ring where it
//! originated it or the transitional configuration that ends it, unless it failed there. And when all
//! is quiet, every message that a live process accepted has been originated.

use crate::report::Findings;
use crate::trace::Step;
use crate::view::{End, View};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for (process, at, step) in view.all_steps() {
        match step {
            Step::Orig(place) => {
                let ring = view.ring_of[place.conf as usize];
                let home = view.homes[place.message as usize].filter(|home| home.ring == ring);
                let Some((home, tenure)) = home.zip(view.tenure(ring, process)) else {
                    continue;
                };
                findings.check(
                    tenure.failed || tenure.delivered.contains(home.rank),
                    || {
                        let (who, at) = (view.who(process), view.at(process, at));
                        let what = view.what(place.message);
                        format!("{who} originated {what}{at} and went on without delivering it")
                    },
                );
            }
            Step::Send { message, .. } if view.end(process) == End::Alive => {
                let home = view.homes[*message as usize];
                findings.check(home.is_some_and(|home| home.originated), || {
                    let (who, at) = (view.who(process), view.at(process, at));
                    format!(
                        "{who} accepted {}{at} and never sent it",
                        view.what(*message)
                    )
                });
            }
            _ => {}
        }
    }
}
