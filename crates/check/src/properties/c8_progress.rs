//! C8, progress: when all is quiet, the live processes that can reach each other share one regular configuration, of
//! these processes alone.
//!
//! Only a harness knows which processes can reach each other, and how long it may take: it says so in
//! `Options::components`. Without them nothing is checked.

use rota_core::contract::{ConfigurationKind, Process};

use super::c4_same_transition::current;
use crate::name::Name;
use crate::report::Findings;
use crate::view::{End, View};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for component in &view.options.components {
        let number = |process: &Process| view.trace.process_number(*process);
        let live = |process: &u32| view.end(*process) == End::Alive;
        let mut expected: Vec<u32> = component.iter().filter_map(number).filter(live).collect();
        expected.sort_unstable();
        let mut shared = None;
        for process in &expected {
            let span = current(view, *process);
            let holds = span.is_some_and(|span| {
                matches!(view.id(span.conf), ConfigurationKind::Regular(_))
                    && view.members[span.members as usize] == expected
                    && *shared.get_or_insert(span.conf) == span.conf
            });
            findings.check(holds, || {
                let component: &[Process] = component;
                let who = view.who(*process);
                let rests = span.map_or_else(|| "none".into(), |span| view.span(span));
                format!("{who} rests in {rests} and can reach {}", Name(component))
            });
        }
    }
}
