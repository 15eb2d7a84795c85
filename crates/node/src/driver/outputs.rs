//! Carrying out what the engine asks for.

use rota_core::contract::{Burst, Class, Engine, Input, Output, PersistId, Target};

use super::answers::Leaves;
use super::durable::Held;
use super::{Driver, DriverError};

impl<E: Engine> Driver<E> {
    /// Carries out outputs in order until there are none, or one is stuck in a full socket.
    pub(super) fn carry_out(&mut self) -> Result<(), DriverError> {
        self.io.retry()?;
        loop {
            while !self.io.is_stuck() {
                if let Some(held) = self.io.next_ready() {
                    self.send(held.class, held.to, held.burst)?;
                    continue;
                }
                match self.engine.poll_output() {
                    Some(output) => self.execute(output)?,
                    None => break,
                }
            }
            self.io.drained();
            if !self.io.has_answers() || self.io.is_stuck() {
                return Ok(());
            }
            while let Some(answer) = self.io.next_answer() {
                let failed = matches!(answer, Input::PersistFailed { .. });
                self.engine.handle(rota_net::monotonic(), answer);
                if failed {
                    // The engine may give its log up, and then the answers behind it are not for it any more.
                    break;
                }
            }
        }
    }

    fn execute(&mut self, output: Output) -> Result<(), DriverError> {
        match output {
            Output::Send {
                class,
                to,
                burst,
                after: None,
                ..
            } => self.send(class, to, burst)?,
            Output::Send {
                class,
                to,
                burst,
                after: Some(after),
                ..
            } => self.send_after(after, (class, to, burst))?,
            Output::Originated {
                counter,
                seq,
                index,
            } => {
                if let Some(tracer) = &mut self.tracer {
                    tracer.on_originated(rota_net::monotonic(), counter, seq, index);
                }
            }
            Output::Persist { id, records } => self.io.persist(id, &records),
            Output::Reopen => self.io.reopen(),
            Output::Arbitrate { number, wanted } => self.io.arbitrate(number, wanted),
            Output::Fetch { log, from, to } => self.io.fetch(log, from, to),
            Output::LinkSend {
                peer,
                session,
                channel,
                bytes,
            } => self.io.send_over_link((peer, session), (channel, bytes)),
        }
        Ok(())
    }

    /// Sends what may leave only when a request is durable. Later outputs do not wait for it: only sends that name a
    /// request do.
    fn send_after(
        &mut self,
        after: PersistId,
        (class, to, burst): (Class, Target, Burst),
    ) -> Result<(), DriverError> {
        match self.io.leaves(after) {
            Leaves::Never => Ok(()),
            Leaves::Now => self.send(class, to, burst),
            Leaves::Later => {
                self.io.hold(Held {
                    after,
                    class,
                    to,
                    burst,
                });
                Ok(())
            }
        }
    }

    /// Sends a burst. What it says is in the trace before.
    fn send(&mut self, class: Class, to: Target, burst: Burst) -> Result<(), DriverError> {
        self.flush_trace();
        self.io.send(class, to, burst)
    }
}
