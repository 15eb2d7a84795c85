//! The handling of arrivals, and of time that has passed.

use rota_core::contract::{Channel, Class, Engine, Input};
use rota_ring::wire::is_token;

use super::{App, BURSTS_BEFORE_FILL, Driver, DriverError};
use rota_net::sockets::Arrival;

impl<E: Engine> Driver<E> {
    /// This process stood still for long. Datagrams that came meanwhile are of a ring that the others have left: taken
    /// for news, they would make this process believe that the others have given each other up, and tell them so. They
    /// are dropped, as any datagram may be lost.
    pub(super) fn forget_arrivals(&mut self) {
        let forgotten = self.arrivals.forget() + self.sockets.forget();
        self.sockets.stats_mut().overslept += forgotten;
        self.on_timer();
    }

    pub(super) fn on_timer(&mut self) {
        self.bursts_past_timer = 0;
        self.engine.handle(rota_net::monotonic(), Input::Timer);
    }

    pub(super) fn on_arrival<A: App>(
        &mut self,
        app: &mut A,
        class: Class,
        arrival: Arrival,
    ) -> Result<(), DriverError> {
        let began = rota_net::monotonic();
        let mut now = began;
        self.bursts_past_fill += 1;
        if class == Class::Data && self.bursts_past_fill >= BURSTS_BEFORE_FILL {
            self.fill(app)?;
            now = rota_net::monotonic();
        }
        if class == Class::Token {
            // The moment of the token: what is submitted now can leave with this visit.
            self.fill(app)?;
            if self.stuck.is_some() {
                self.arrivals.put_back(class, arrival);
                return Ok(());
            }
            now = rota_net::monotonic();
            let arrived = self.arrivals.take_token_at().unwrap_or(began);
            if is_token(&arrival.bytes) {
                self.tokens.begin(arrived, began, now);
            }
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
}
