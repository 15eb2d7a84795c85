//! The knowledge of processes, as the world sees it: the instances that they have learnt, and the configurations.

use std::collections::BTreeMap;
use std::sync::Arc;

use rota_core::contract::Process;
use rota_paxos::Config;
use rota_paxos::uring::URing;

/// The knowledge of all processes, as far as somebody has looked.
#[derive(Default, Debug)]
pub struct Knowledge {
    /// The first instance that nobody has learnt.
    learnt: u64,
    /// By process: the first instance that it has not learnt.
    each: BTreeMap<Process, u64>,
    /// The time at which a process learnt something last, or was seen first.
    learnt_at: u64,
    /// By foundation and number.
    configs: BTreeMap<(u64, u64), Arc<Config>>,
    /// Two configurations with one number.
    wrong: Option<String>,
}

impl Knowledge {
    /// Looks at a process. The instances that one from before the newest foundation has learnt do not count.
    pub fn look_at(&mut self, now: u64, engine: Option<&URing>, (who, former): (Process, bool)) {
        let Some(engine) = engine else { return };
        if !former {
            let learnt = engine.learnt();
            let before = self.each.insert(who, learnt);
            if before.is_none_or(|before| learnt > before) {
                self.learnt_at = now;
            }
            self.learnt = self.learnt.max(learnt);
        }
        let Some(config) = engine.config() else {
            return;
        };
        let known = self.configs.entry((config.founded, config.number));
        let known = known.or_insert_with(|| config.clone());
        if !Arc::ptr_eq(known, config) && known != config {
            self.wrong
                .get_or_insert_with(|| format!("{known:?} and {config:?}"));
        }
    }

    /// The number of instances from this one on that somebody has learnt.
    pub const fn behind(&self, from: u64) -> u64 {
        self.learnt.saturating_sub(from)
    }

    /// The time at which somebody learnt something last.
    pub const fn learnt_at(&self) -> u64 {
        self.learnt_at
    }

    /// Whether any configuration was seen.
    pub fn has_configs(&self) -> bool {
        !self.configs.is_empty()
    }

    /// The instances begin anew.
    pub const fn found_anew(&mut self) {
        self.learnt = 0;
    }

    /// Two configurations with one number, if they were seen since this was asked last.
    pub const fn take_wrong(&mut self) -> Option<String> {
        self.wrong.take()
    }
}
