//! Own values with multicast: the number of them under way, and the next to leave.

use bytes::Bytes;

use super::super::config::URingConfig;
use super::super::queue::{InTransit, Queue};
use super::super::rate::Rate;
use super::loss_window::LossWindow;
use crate::ValueId;
use rota_core::contract::Time;

/// The number of values that may be under way at any rate.
const SOME: usize = 4;

/// See the module's page.
#[derive(Debug)]
pub struct Sender {
    /// Names of own values that were not proposed, in their order.
    queue: Queue,
    window: LossWindow,
    /// The rate that they keep to, if the capacity of the links is known.
    rate: Option<Rate>,
}

impl Sender {
    /// No values.
    pub fn new(settings: &URingConfig, rate: Option<Rate>) -> Self {
        Self {
            queue: Queue::default(),
            window: LossWindow::new(settings),
            rate,
        }
    }

    /// Own values that may be under way, in bytes: fewer than are set, after losses; and no more than would only wait
    /// for the rate. `is_alone`: there is nobody to send to.
    pub fn window(&self, frame_bytes: usize, is_alone: bool) -> usize {
        let rate = self.rate.as_ref().filter(|_| !is_alone);
        let by_rate = rate.map_or(usize::MAX, Rate::window);
        let some = SOME * frame_bytes;
        self.window.bytes().min(by_rate.max(some))
    }

    /// The rate.
    pub const fn rate(&self) -> Option<&Rate> {
        self.rate.as_ref()
    }

    /// An own value is put on its way.
    pub fn push(&mut self, id: ValueId) {
        self.queue.push(id);
    }

    /// Forgets names whose values were proposed, where they are first.
    pub fn clean(&mut self, carried: &InTransit) {
        self.queue.clean(carried);
    }

    /// The next one to leave.
    pub fn unsent(&self) -> Option<ValueId> {
        self.queue.unsent()
    }

    /// Whether one is to leave, and waits for nothing.
    pub fn has_next(&self) -> bool {
        let waits = self.rate.as_ref().is_some_and(Rate::holds);
        !waits && self.queue.unsent().is_some()
    }

    /// The next one, if it may leave now.
    pub fn next(&mut self, now: Time, carried: &InTransit) -> Option<(ValueId, Bytes)> {
        self.queue.clean(carried);
        if let Some(rate) = &mut self.rate {
            rate.forget();
        }
        while let Some(id) = self.queue.unsent() {
            if let Some(frame) = carried.get(id) {
                if let Some(rate) = &mut self.rate {
                    if !rate.lets(now, frame.len()) {
                        return None;
                    }
                    rate.watch(now, id.counter);
                }
                self.queue.on_sent();
                return Some((id, frame.clone()));
            }
            self.queue.on_sent();
        }
        None
    }

    /// The first one that was not proposed, unless it waits for the rate.
    pub fn first(&mut self, carried: &InTransit) -> Option<ValueId> {
        self.queue.clean(carried);
        if self.queue.is_unsent() && self.rate.as_ref().is_some_and(Rate::holds) {
            return None;
        }
        self.queue.first()
    }

    /// A datagram of an own value leaves.
    pub fn leaves(&mut self, now: Time, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            rate.leaves(now, bytes);
        }
    }

    /// The process at another place has sent `bytes`, so less may leave here.
    pub fn on_others(&mut self, now: Time, place: usize, bytes: usize) {
        if let Some(rate) = &mut self.rate {
            rate.on_sent(now, place, bytes);
        }
    }

    /// Values had to be asked for somewhere: less is sent, once in `pause`.
    pub fn slow_down(&mut self, now: Time, pause: u64) {
        self.window.slow_down(now, pause);
    }

    /// An own value counts.
    pub fn on_counted(&mut self, now: Time, (id, bytes): (ValueId, usize)) {
        self.window.on_counted(bytes);
        if let Some(rate) = &mut self.rate {
            rate.on_counted(now, id.counter);
        }
    }

    /// The time at which a value that waits for the rate may leave.
    pub fn next_time(&self) -> Option<Time> {
        self.rate.as_ref().and_then(Rate::next_time)
    }

    /// Its invariants.
    pub fn check(&self) {
        self.queue.check();
        self.window.check();
        if let Some(rate) = &self.rate {
            rate.check();
        }
    }
}
