//! The names of things in the details of violations.

use rota_core::contract::Process;

use super::{Span, View};
use crate::name::Name;

impl View<'_> {
    /// `process 1.7`.
    pub fn who(&self, process: u32) -> String {
        format!("process {}", Name(self.process(process)))
    }

    /// `message 1.7.42 (agreed, seq 9 of 12.1.7)`.
    pub fn what(&self, message: u32) -> String {
        let id = self.message(message);
        match self.homes[message as usize] {
            Some(home) => format!(
                "message {id} ({}, seq {} of {})",
                home.service.name(),
                home.position,
                self.rings[home.ring as usize].id
            ),
            None => format!("message {id}"),
        }
    }

    /// `configuration 12.1.7`.
    pub fn conf(&self, conf: u32) -> String {
        format!("configuration {}", Name(self.id(conf)))
    }

    /// `ring 12.1.7`.
    pub fn ring(&self, ring: u32) -> String {
        format!("ring {}", self.rings[ring as usize].id)
    }

    /// `{1.7, 2.3}`.
    pub fn listed(&self, members: u32) -> String {
        let members: &[Process] = &self.trace.member_lists()[members as usize];
        Name(members).to_string()
    }

    /// `configuration 12.1.7 of {1.7, 2.3}`.
    pub fn span(&self, span: &Span) -> String {
        format!("{} of {}", self.conf(span.conf), self.listed(span.members))
    }

    /// ` at t=140`.
    pub fn at(&self, process: u32, step: usize) -> String {
        let time = self.trace.story(process).times.get(step);
        time.map_or_else(String::new, |time| format!(" at t={}", time.0))
    }
}
