//! VS1, agreed views: all configurations are regular, one with the same id has the same members everywhere, and a
//! process that installs it is one of them. No two have the same number, and each process installs views by ascending
//! ids: one at a time. It reports each as primary once, before anything else but its own broadcasts. On a ring on which
//! it is excluded it was in no view before.
//!
//! A member of a view that follows another installs that other one too, if it was a member. This is not judged of views
//! that are not certain.

use rota_core::contract::ConfigurationKind;

use crate::report::Findings;
use crate::trace::Step;
use crate::uniform::{Begins, Installed, Uniform};

pub(super) fn check(uniform: &Uniform<'_>, findings: &mut Findings) {
    for process in uniform.base.trace.began() {
        let mut state = State::default();
        for (at, step) in uniform.base.steps(*process).iter().enumerate() {
            if !matches!(
                step,
                Step::Start | Step::Send { .. } | Step::Broadcast { .. }
            ) {
                let wrong = state.see(uniform, *process, step);
                findings.check(wrong.is_none(), || {
                    let (who, at) = (uniform.base.who(*process), uniform.base.at(*process, at));
                    format!("{who} {}{at}", wrong.unwrap_or_default())
                });
            }
        }
    }
    check_numbers(uniform, findings);
    check_skipped(uniform, findings);
}

/// The views of a process so far.
#[derive(Default)]
struct State {
    /// Its view.
    current: Option<u32>,
    unreported: bool,
    /// The ring on which it was excluded last.
    excluded: Option<u32>,
}

impl State {
    fn see(&mut self, uniform: &Uniform<'_>, process: u32, step: &Step) -> Option<String> {
        let base = &uniform.base;
        let unreported = std::mem::take(&mut self.unreported);
        let current = self.current.map(|conf| base.conf(conf)).unwrap_or_default();
        match *step {
            Step::Primary { conf } if self.current == Some(conf) && unreported => None,
            Step::Crash | Step::Leave => None,
            _ if unreported => Some(format!("did not report {current} as primary at once")),
            Step::Primary { conf } => {
                let conf = base.conf(conf);
                Some(format!("reported {conf} as primary, in {current}"))
            }
            Step::Excluded { conf } => {
                let last = self.excluded.replace(conf).max_by_id(self.current, uniform);
                let later = last.is_none_or(|last| base.id(last) < base.id(conf));
                let (conf, last) = (base.conf(conf), last.map(|last| base.conf(last)));
                let last = last.unwrap_or_default();
                (!later).then(|| format!("was excluded in {conf}, after {last}"))
            }
            Step::Conf { conf, members } => {
                let wrong = self.wrong_view(uniform, process, (conf, members));
                (self.current, self.unreported) = (Some(conf), true);
                wrong.map(|wrong| {
                    let (conf, members) = (base.conf(conf), base.listed(members));
                    format!("installed {conf} of {members}, {wrong}")
                })
            }
            _ => None,
        }
    }

    fn wrong_view(
        &self,
        uniform: &Uniform<'_>,
        process: u32,
        (conf, members): (u32, u32),
    ) -> Option<String> {
        let base = &uniform.base;
        let ConfigurationKind::Regular(_) = base.id(conf) else {
            return Some("which is transitional".into());
        };
        if !base.is_member(members, process) {
            return Some("without itself".into());
        }
        let first = uniform.views.iter().find(|view| view.conf == conf);
        if let Some(first) = first.filter(|first| first.members != members) {
            let listed = base.listed(first.members);
            return Some(format!("which others had as {listed}"));
        }
        let current = self.current?;
        let later = base.id(current) < base.id(conf);
        (!later).then(|| format!("after {}", base.conf(current)))
    }
}

trait Later {
    /// The later of two configurations.
    fn max_by_id(self, other: Self, uniform: &Uniform<'_>) -> Self;
}

impl Later for Option<u32> {
    fn max_by_id(self, other: Self, uniform: &Uniform<'_>) -> Self {
        let both = self.into_iter().chain(other);
        both.max_by_key(|conf| uniform.base.id(*conf))
    }
}

fn check_numbers(uniform: &Uniform<'_>, findings: &mut Findings) {
    let views = (0..).zip(&uniform.views);
    let first = views.filter(|(_, view)| !matches!(view.begins, Begins::Again { .. }));
    let first: Vec<(u32, &Installed)> = first.collect();
    for pair in first.windows(2) {
        let apart = pair[0].1.id.ring_seq != pair[1].1.id.ring_seq;
        findings.check(apart, || {
            let (one, other) = (uniform.shown(pair[0].0), uniform.shown(pair[1].0));
            format!("{one} and {other} have the same number")
        });
    }
}

fn check_skipped(uniform: &Uniform<'_>, findings: &mut Findings) {
    for stays in &uniform.lives {
        let mut last = None;
        for stay in stays {
            let stay = &uniform.stays[*stay as usize];
            let before = uniform.before(stay.view);
            let from = last.replace(stay.view);
            let Some(before) = before.filter(|_| uniform.views[stay.view as usize].certain) else {
                continue;
            };
            let members = uniform.views[before as usize].members;
            if uniform.base.is_member(members, stay.process) {
                findings.check(from == Some(before), || {
                    let (who, view) = (uniform.base.who(stay.process), uniform.shown(stay.view));
                    format!("{who} installed {view}, but not {}", uniform.shown(before))
                });
            }
        }
    }
}
