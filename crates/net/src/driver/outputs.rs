//! Carrying out what the engine asks for.

use rota_core::contract::{Engine, Input, Output, PersistError};

use super::{Driver, DriverError};
use crate::socket::Progress;
use crate::sockets::Outgoing;
use crate::sys;

impl<E: Engine> Driver<E> {
    /// Carries out outputs in order until there are none, or one is stuck in a full socket.
    pub(super) fn carry_out(&mut self) -> Result<(), DriverError> {
        if let Some(out) = self.stuck.take() {
            self.send(out)?;
        }
        loop {
            while self.stuck.is_none() {
                match self.engine.poll_output() {
                    Some(output) => self.execute(output)?,
                    None => break,
                }
            }
            if self.answers.is_empty() || self.stuck.is_some() {
                return Ok(());
            }
            for answer in std::mem::take(&mut self.answers) {
                self.engine.handle(sys::monotonic(), answer);
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
            } => {
                if let Some(tracer) = &mut self.tracer {
                    tracer.flush().map_err(DriverError::Trace)?;
                }
                let out = self.sockets.seal(class, to, burst);
                self.send(out)?;
            }
            Output::Originated {
                counter,
                seq,
                index,
            } => {
                if let Some(tracer) = &mut self.tracer {
                    tracer.on_originated(sys::monotonic(), counter, seq, index);
                }
            }
            // There is no storage and there are no links here yet. Saying so is better than a promise
            // of durability that nobody keeps.
            Output::Persist { id, .. } => {
                self.sockets.stats_mut().unsupported += 1;
                let error = PersistError::Io("this driver has no storage".to_owned());
                self.answers.push(Input::PersistFailed { id, error });
            }
            Output::Fetch { log, from, to } => {
                self.sockets.stats_mut().unsupported += 1;
                self.answers.push(Input::Fetched {
                    log,
                    from,
                    to,
                    records: Vec::new(),
                });
            }
            Output::Send { .. } | Output::LinkSend { .. } => {
                self.sockets.stats_mut().unsupported += 1;
            }
        }
        Ok(())
    }

    fn send(&mut self, mut out: Outgoing) -> Result<(), DriverError> {
        let progress = self.sockets.send(&mut out).map_err(DriverError::Socket)?;
        self.no_buffers = progress == Progress::NoBuffers;
        if progress != Progress::Done {
            self.stuck = Some(out);
        }
        Ok(())
    }
}
