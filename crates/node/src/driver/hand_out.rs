//! Submissions and deliveries between the application and the engine.

use rota_core::contract::{Delivery, Engine};

use super::app::EngineSubmitter;
use super::{App, Driver, DriverError};

/// Deliveries handed out before the sockets are looked at again.
const DELIVERIES_AT_ONCE: usize = 4096;

impl<E: Engine> Driver<E> {
    /// Lets the application submit, unless an output is stuck.
    pub(super) fn fill<A: App>(&mut self, app: &mut A) -> Result<(), DriverError> {
        if self.stuck.is_some() {
            return Ok(());
        }
        self.bursts_past_fill = 0;
        let now = rota_net::monotonic();
        let Self {
            engine,
            tracer,
            sockets,
            ..
        } = self;
        let mut submitter = EngineSubmitter {
            engine,
            tracer: tracer.as_mut(),
            taken: &mut sockets.stats_mut().submissions,
        };
        app.fill(now, &mut submitter);
        self.carry_out()
    }

    /// Hands deliveries to the application while it has room; says how many.
    pub(super) fn deliver<A: App>(&mut self, app: &mut A) -> Result<usize, DriverError> {
        let mut count = 0;
        while count < DELIVERIES_AT_ONCE && app.has_room() {
            let next = self.peeked.take().or_else(|| self.engine.poll_delivery());
            let Some(delivery) = next else { break };
            self.hand_out(app, delivery)?;
            count += 1;
        }
        // One that has no room may get some by that.
        if count > 0 || !app.has_room() {
            app.flush();
        }
        Ok(count)
    }

    /// A trace names the configuration in which a message is sent, so configurations that nothing
    /// comes before are handed out ahead of the outputs.
    pub(super) fn deliver_configurations<A: App>(
        &mut self,
        app: &mut A,
    ) -> Result<(), DriverError> {
        while app.has_room() && self.peeked.is_none() {
            match self.engine.poll_delivery() {
                Some(delivery @ Delivery::Configuration(_)) => {
                    self.hand_out(app, delivery)?;
                    app.flush();
                }
                other => {
                    self.peeked = other;
                    break;
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn hand_out<A: App>(&mut self, app: &mut A, delivery: Delivery) -> Result<(), DriverError> {
        if self.tracer.is_some() {
            self.trace_delivery(&delivery);
        }
        self.sockets.stats_mut().deliveries += u64::from(matches!(delivery, Delivery::Message(_)));
        app.deliver(delivery);
        Ok(())
    }

    fn trace_delivery(&mut self, delivery: &Delivery) {
        if let Some(tracer) = &mut self.tracer {
            tracer.on_delivery(rota_net::monotonic(), delivery);
            tracer.flush_large();
        }
    }
}
