//! Datagrams of own values that are multicast, and the number of them that may leave before others are heard.

use alloc::collections::VecDeque;

use super::config::Multicast;
use super::parts;
use super::stream::Stream;
use rota_core::contract::{Burst, Channel, Class, Output, Target, Time};

/// Bytes of own values that leave before others are heard again.
const AT_ONCE: usize = 64 << 10;
/// Own values that leave before everything is heard that has come meanwhile: if each is small, others may have sent as
/// many, and an input brings one of them.
const IN_TURN: usize = 16;

/// See the module's page.
#[derive(Debug, Default)]
pub struct Sending {
    /// The bytes, and the number, of own values that may leave yet.
    bytes: usize,
    values: usize,
    /// Datagrams of an own value that are next.
    bursts: VecDeque<Burst>,
}

impl Sending {
    /// Something was heard.
    pub const fn heard(&mut self) {
        self.bytes = AT_ONCE;
    }

    /// All was heard that had come, or much of it: a driver attends to a timer behind that.
    pub const fn all_heard(&mut self) {
        self.values = IN_TURN;
    }

    const fn is_used(&self) -> bool {
        self.bytes == 0 || self.values == 0
    }

    const fn leaves(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.values = self.values.saturating_sub(1);
    }

    /// The next datagrams of own values, after everything else that there is to say, and not all at once: a process
    /// that does nothing but send is taken for dead. `began`: another value is under way.
    pub fn next(
        &mut self,
        now: Time,
        settings: &Multicast,
        mut ring: Option<&mut Stream>,
        began: &mut bool,
    ) -> Option<Output> {
        if self.bursts.is_empty() {
            let stream = ring.as_deref_mut().filter(|_| !self.is_used())?;
            let (id, frame) = stream.next_own(now)?;
            *began = true;
            self.leaves(frame.len());
            self.bursts.extend(parts::cut(settings, id, &frame));
        }
        let burst = self.bursts.pop_front()?;
        if let Some(stream) = ring {
            stream.leaves(now, burst.bytes.len());
        }
        Some(Output::Send {
            class: Class::Data,
            channel: Channel::default(),
            to: Target::Others,
            burst,
            after: None,
        })
    }

    /// Whether own values wait to leave, so that others may come first.
    pub fn has_more(&self, ring: Option<&Stream>) -> bool {
        self.is_used() && ring.is_some_and(Stream::has_own)
    }
}
