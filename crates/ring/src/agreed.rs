//! The settings in force on a ring: its members share them, however each of them is configured.
//!
//! Each member tells its own windows and its token loss in the commit token. The smallest windows and the longest token
//! loss are in force: so no member is sent more than it can keep, every member may send, and none gives up a ring that
//! others hold.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::RingConfig;
use crate::wire::Settings;
use rota_core::contract::{NodeId, Process};
use rota_core::mutants::{self, Mutant};
use rota_core::pack::MOST_MESSAGE_BYTES;

impl RingConfig {
    /// The settings that a member with this configuration tells the others.
    pub fn settings(&self) -> Settings {
        let micros = self.timers.token_loss / 1000;
        Settings {
            personal_window: self.windows.personal,
            global_window: self.windows.global,
            outstanding_window: self.windows.outstanding,
            token_loss_us: u32::try_from(micros)
                .unwrap_or(u32::MAX)
                .clamp(1, Settings::MOST_TOKEN_LOSS_US),
        }
    }

    /// The configuration of this member on a ring whose members have told the settings `told`.
    pub(super) fn agreed(&self, told: &[Settings]) -> Self {
        if mutants::on(Mutant::M42) {
            return self.clone();
        }
        let own = [self.settings()];
        let longest = told
            .iter()
            .chain(&own)
            .map(|settings| settings.token_loss_us);
        let token_loss = 1000 * u64::from(longest.max().unwrap_or(0));
        Self {
            windows: self.windows.agreed(told),
            timers: self.timers.with_token_loss(token_loss),
            ..self.clone()
        }
    }

    /// The largest message that this member takes from others, in bytes.
    pub(super) fn most_message(&self) -> usize {
        match mutants::on(Mutant::M45) {
            true => self.message_bytes,
            false => MOST_MESSAGE_BYTES,
        }
    }

    /// One sentence for each member and each setting in which `told` differs from this configuration.
    pub(super) fn differences(&self, members: &[Process], told: &[Settings]) -> Vec<String> {
        let own = self.settings();
        let mut sentences = Vec::new();
        for (member, theirs) in members.iter().zip(told) {
            let mut compare = |setting: &str, theirs: u32, own: u32, rule: &str| {
                if theirs != own {
                    sentences.push(sentence(member.node, setting, (theirs, own), rule));
                }
            };
            let smallest = "the smallest is in force";
            compare(
                "outstanding_window",
                theirs.outstanding_window,
                own.outstanding_window,
                smallest,
            );
            compare(
                "global_window",
                theirs.global_window,
                own.global_window,
                smallest,
            );
            compare(
                "token loss (of `timing`) in ms",
                theirs.token_loss_us / 1000,
                own.token_loss_us / 1000,
                "the longest is in force",
            );
        }
        sentences
    }
}

fn sentence(node: NodeId, setting: &str, (theirs, own): (u32, u32), rule: &str) -> String {
    format!("node {node} has {setting} = {theirs}, this node {own}: {rule}")
}
