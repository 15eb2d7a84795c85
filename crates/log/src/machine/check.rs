//! Whether all of a batch can be done, before any of it is.

use std::collections::BTreeMap;

use super::operation::{Append, Batch, Operation};
use super::outcome::Fault;
use super::producers;
use super::state::Logs;
use super::{MOST_ENTRY_BYTES, MOST_LOGS, MOST_NAME_BYTES, Position};

/// A log as it would be.
#[derive(Clone, Copy)]
struct Would {
    is_there: bool,
    next: Position,
    is_sealed: bool,
    /// It is none that was there before: nobody has appended to it.
    is_new: bool,
}

/// A log, and the producer and the name of what is appended to it.
type Named<'a> = (&'a [u8], (&'a [u8], &'a [u8]));

/// All logs as they would be.
struct All<'a> {
    logs: &'a Logs,
    changed: BTreeMap<&'a [u8], Would>,
    count: usize,
    named: Vec<Named<'a>>,
}

impl<'a> All<'a> {
    fn of(&self, name: &[u8]) -> Would {
        let now = || match self.logs.get(name) {
            Some(log) => Would {
                is_there: true,
                next: log.next,
                is_sealed: log.is_sealed,
                is_new: false,
            },
            None => Would {
                is_there: false,
                next: 1,
                is_sealed: false,
                is_new: true,
            },
        };
        self.changed.get(name).copied().unwrap_or_else(now)
    }

    fn make(&mut self, name: &'a [u8]) -> Result<Would, Fault> {
        let would = self.of(name);
        if would.is_there {
            return Ok(would);
        }
        if self.count >= MOST_LOGS {
            return Err(Fault::TooMany);
        }
        self.count += 1;
        Ok(Would {
            is_there: true,
            next: 1,
            is_sealed: false,
            is_new: true,
        })
    }

    fn append(&mut self, append: &Append<'a>) -> Result<(), Fault> {
        within_limits(append)?;
        let would = self.of(append.log);
        if let Some(named) = append.producer {
            let known = self.logs.get(append.log).filter(|_| !would.is_new);
            let was = known.and_then(|log| log.producers.find(named));
            if was.is_some() || self.named.contains(&(append.log, named)) {
                return Ok(());
            }
        }
        if !would.is_there && !append.makes {
            return Ok(());
        }
        let mut would = self.make(append.log)?;
        if would.is_sealed {
            return Err(Fault::Sealed);
        }
        if append.expected.is_some_and(|wanted| wanted != would.next) {
            return Err(Fault::Expected(would.next));
        }
        would.next += append.entries.len() as u64;
        self.changed.insert(append.log, would);
        let named = append.producer.map(|named| (append.log, named));
        self.named.extend(named);
        Ok(())
    }

    fn operation(&mut self, operation: &Operation<'a>) -> Result<(), Fault> {
        let name = operation.log();
        match operation {
            Operation::Append(append) => self.append(append)?,
            Operation::Make(..) => {
                name_within_limits(name)?;
                let would = self.make(name)?;
                self.changed.insert(name, would);
            }
            Operation::Trim(..) => {}
            Operation::Seal(_) => {
                let mut would = self.of(name);
                would.is_sealed = would.is_there;
                self.changed.insert(name, would);
            }
            Operation::Delete(_) => {
                let was = self.of(name);
                self.count -= usize::from(was.is_there);
                let gone = Would {
                    is_there: false,
                    next: 1,
                    is_sealed: false,
                    is_new: true,
                };
                self.changed.insert(name, gone);
                // Whoever appended to it has appended to another log.
                self.named.retain(|(log, _)| *log != name);
            }
        }
        Ok(())
    }
}

pub(super) fn name_within_limits(name: &[u8]) -> Result<(), Fault> {
    match name.len() <= MOST_NAME_BYTES {
        true => Ok(()),
        false => Err(Fault::TooLarge),
    }
}

pub(super) fn within_limits(append: &Append<'_>) -> Result<(), Fault> {
    name_within_limits(append.log)?;
    let is_large = |entry: &&[u8]| entry.len() > MOST_ENTRY_BYTES;
    let is_long = |name: &[u8]| name.len() > producers::MOST_BYTES;
    let named = append.producer;
    let is_named_long = named.is_some_and(|(of, name)| is_long(of) || is_long(name));
    match append.entries.iter().any(is_large) || is_named_long {
        true => Err(Fault::TooLarge),
        false => Ok(()),
    }
}

/// Which operation cannot be done, and why; none: all can.
pub(super) fn refusal<'a>(logs: &'a Logs, batch: &Batch<'a>) -> Option<(u32, Fault)> {
    let mut all = All {
        logs,
        changed: BTreeMap::new(),
        count: logs.len(),
        named: Vec::new(),
    };
    let mut operations = batch.operations.iter().enumerate();
    operations.find_map(|(at, operation)| {
        let refused = all.operation(operation).err()?;
        Some((at as u32, refused))
    })
}
