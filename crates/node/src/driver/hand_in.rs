//! What has come is handed in: answers, timers, datagrams, events of links, submissions; and deliveries go to the
//! application.

use rota_core::contract::{Channel, Class, Delivery, Engine, Input};
use rota_ring::wire::is_token;

use super::app::EngineSubmitter;
use super::io::LinkEvent;
use super::{App, Driver, DriverError};
use rota_net::sockets::Arrival;

/// Deliveries handed out before the sockets are looked at again.
const DELIVERIES_AT_ONCE: usize = 4096;

/// The number of times in a row that new room is filled, before the loop looks at everything else again.
const FILLS_AT_ONCE: u32 = 4;

impl<E: Engine> Driver<E> {
    /// Reads or takes the next burst and hands it in, or a timer that is due.
    pub(super) fn hand_in_next<A: App>(&mut self, app: &mut A) -> Result<bool, DriverError> {
        let now = rota_net::monotonic();
        self.io.tend(now);
        if self.watch.is_due(now) {
            let status = self.status();
            self.watch.look(now, &status);
        }
        self.io.follow_names();
        while let Some(peer) = self.io.next_refused() {
            self.engine.handle(now, Input::Unreachable { peer });
            self.carry_out()?;
        }
        if self.io.take_answers() {
            self.carry_out()?;
            return Ok(true);
        }
        let timer = self.engine.next_timer().map(|(at, _)| at);
        if timer.is_some_and(|at| now.since(at) >= self.overslept) {
            self.forget_arrivals();
            return Ok(true);
        }
        let due = timer.is_some_and(|at| at <= now);
        if due && self.fairness.timer_is_first() {
            self.on_timer();
            return Ok(true);
        }
        self.io.release(now);
        if self.fairness.links_are_first() && self.hand_in_links(app)? {
            self.fairness.links(due);
            return Ok(true);
        }
        let first = self.engine.reading();
        if let Some((class, arrival)) = self.io.next_arrival(first, now)? {
            self.fairness.burst(due);
            self.on_arrival(app, class, arrival)?;
            return Ok(true);
        }
        if self.hand_in_links(app)? {
            self.fairness.links(due);
            return Ok(true);
        }
        if due {
            self.on_timer();
        }
        Ok(due)
    }

    /// This process stood still for long. Datagrams that came meanwhile are of a ring that the others have left: taken
    /// for news, they would make this process believe that the others have given each other up, and tell them so. They
    /// are dropped, as any datagram may be lost.
    fn forget_arrivals(&mut self) {
        self.io.forget_arrivals();
        self.on_timer();
    }

    fn on_timer(&mut self) {
        self.fairness.timer();
        self.engine.handle(rota_net::monotonic(), Input::Timer);
    }

    fn on_arrival<A: App>(
        &mut self,
        app: &mut A,
        class: Class,
        arrival: Arrival,
    ) -> Result<(), DriverError> {
        let began = rota_net::monotonic();
        let mut now = began;
        if self.fairness.fills_before(class) {
            self.fill(app)?;
            if class == Class::Token && self.io.is_stuck() {
                self.io.put_back(class, arrival);
                return Ok(());
            }
            now = rota_net::monotonic();
        }
        if class == Class::Token {
            let is_token = is_token(&arrival.bytes);
            self.io.token_came(is_token, began, now);
        }
        let Arrival { bytes, segment } = arrival;
        let input = Input::Datagrams {
            class,
            channel: Channel(0),
            bytes,
            segment,
        };
        self.engine.handle(now, input);
        Ok(())
    }

    /// Hands in what the links have: of one of them at most what a single read brings. Says whether there was
    /// anything.
    fn hand_in_links<A: App>(&mut self, app: &mut A) -> Result<bool, DriverError> {
        self.fairness.looked_at_links();
        if !self.io.work_on_links()? {
            return Ok(false);
        }
        // Messages that are submitted now can leave together with the answers to this event.
        self.fill(app)?;
        self.hand_in_link_events()?;
        Ok(true)
    }

    fn hand_in_link_events(&mut self) -> Result<(), DriverError> {
        while let Some(LinkEvent { input, goes_on }) = self.io.next_link_event() {
            // The answers to outputs before the event may have come later than the event: so the time is read anew.
            self.engine.handle(rota_net::monotonic(), input);
            if !goes_on {
                self.carry_out()?;
            }
        }
        Ok(())
    }

    /// Lets leave what was sent over links, and what the engine sends into the room that this makes.
    pub(super) fn flush_links(&mut self) -> Result<(), DriverError> {
        if self.io.has_links() {
            self.flush_trace();
        }
        for _ in 0..FILLS_AT_ONCE {
            if !self.io.flush_links() {
                return Ok(());
            }
            self.hand_in_link_events()?;
        }
        Ok(())
    }

    /// Lets the application submit, unless an output is stuck.
    pub(super) fn fill<A: App>(&mut self, app: &mut A) -> Result<(), DriverError> {
        if self.io.is_stuck() {
            return Ok(());
        }
        self.fairness.filled();
        let now = rota_net::monotonic();
        let mut submitter = EngineSubmitter {
            engine: &mut self.engine,
            tracer: self.tracer.as_mut(),
            taken: &mut self.io.stats_mut().submissions,
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
        self.io.stats_mut().deliveries += u64::from(matches!(delivery, Delivery::Message(_)));
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
