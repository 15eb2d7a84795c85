//! Carrying out what the engine asks for.

use rota_core::contract::{Burst, Class, Engine, Input, Output, Target};

use super::durable::{Held, Reply};
use super::{Driver, DriverError};
use rota_net::socket::Progress;
use rota_net::sockets::Outgoing;

impl<E: Engine> Driver<E> {
    /// Carries out outputs in order until there are none, or one is stuck in a full socket.
    pub(super) fn carry_out(&mut self) -> Result<(), DriverError> {
        if let Some(out) = self.stuck.take() {
            self.send(out)?;
        }
        self.release_links();
        loop {
            while self.stuck.is_none() {
                if let Some(held) = self.durable.next_ready() {
                    self.seal_and_send(held.class, held.to, held.burst)?;
                    continue;
                }
                match self.engine.poll_output() {
                    Some(output) => self.execute(output)?,
                    None => break,
                }
            }
            if self.stuck.is_none() {
                self.tokens.end();
            }
            if self.answers.is_empty() || self.stuck.is_some() {
                return Ok(());
            }
            while let Some(answer) = self.answers.pop_front() {
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
                after,
                ..
            } => match after {
                Some(id) if self.has_failed(id) => {}
                // Later outputs do not wait for it: only sends that name a request do.
                Some(after) if self.durable.is_pending(after) => self.durable.hold(Held {
                    after,
                    class,
                    to,
                    burst,
                }),
                _ => self.seal_and_send(class, to, burst)?,
            },
            Output::Originated {
                counter,
                seq,
                index,
            } => {
                if let Some(tracer) = &mut self.tracer {
                    tracer.on_originated(rota_net::monotonic(), counter, seq, index);
                }
            }
            Output::Persist { id, records } => {
                let stats = self.sockets.stats_mut();
                match self.durable.request(id, &records) {
                    Reply::None => {}
                    Reply::Now(answer) => {
                        let failed = matches!(answer, Input::PersistFailed { .. });
                        stats.persist_failures += u64::from(failed);
                        self.answers.push_back(answer);
                    }
                    Reply::Unsupported(answer) => {
                        stats.unsupported += 1;
                        self.answers.push_back(answer);
                    }
                }
            }
            Output::Reopen => self.reopen(),
            Output::Arbitrate { number, wanted } => self.arbitrate(number, wanted),
            Output::Fetch { log, from, to } => {
                self.answers.extend(self.durable.fetch(log, from, to));
            }
            Output::LinkSend {
                peer,
                session,
                channel,
                bytes,
                after,
            } => self.send_over_link((peer, session), (channel, bytes), after),
        }
        Ok(())
    }

    fn seal_and_send(&mut self, class: Class, to: Target, burst: Burst) -> Result<(), DriverError> {
        if let Some(tracer) = &mut self.tracer {
            tracer.flush();
        }
        let out = self.sockets.seal(class, to, burst);
        self.send(out)
    }

    fn send(&mut self, mut out: Outgoing) -> Result<(), DriverError> {
        let progress = self.sockets.send(&mut out).map_err(DriverError::Socket)?;
        self.no_buffers = progress == Progress::NoBuffers;
        if progress == Progress::Done {
            self.tokens
                .left(out.class() == Class::Token, rota_net::monotonic);
        } else {
            self.tokens.blocked(rota_net::monotonic());
            self.stuck = Some(out);
        }
        Ok(())
    }
}
