//! Charters of new rings, on their way from any thread to the rings' own, and what becomes of them.

use rota_multiring::{Charter, Constants};
use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::app::RingsApp;
use super::driver::RingsDriver;
use super::node::{RingsNode, RingsWatch};
use crate::driver::DriverError;

/// The number of charters, at most, that wait.
const MOST: usize = 64;

/// Why a ring is not founded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FoundError {
    /// This node is not on the control ring, or that was founded anew.
    NoControl,
    /// No ring can be so: it has no nodes, or no acceptors among them, no number, or no rate.
    Unsound,
    /// The charter does not go with the configuration, nor with the rings before: a sentence.
    Charter(String),
    /// A ring with this number was founded with another charter.
    Otherwise(u16),
    /// There are as many rings as are founded so, or many charters wait here.
    Full,
    /// The process has ended, or is about to. The ring may be founded all the same.
    Over,
}

impl fmt::Display for FoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoControl => f.write_str(
                "this node does not hear of new rings: it is not on the control ring, or that was founded anew",
            ),
            Self::Unsound => f.write_str(
                "a ring has a number from 1 on, nodes, acceptors among them, and a rate of whole milliseconds if it has one",
            ),
            Self::Charter(sentence) => f.write_str(sentence),
            Self::Otherwise(ring) => write!(
                f,
                "ring {ring} was founded with another charter, which stands: take another number"
            ),
            Self::Full => f.write_str("there are as many founded rings as there may be, or many charters wait"),
            Self::Over => f.write_str("the process has ended before the charter was ordered, as far as it knew"),
        }
    }
}

impl std::error::Error for FoundError {}

/// A ring that is being founded.
#[derive(Debug)]
pub struct Founding(Receiver<Result<Constants, FoundError>>);

impl Founding {
    /// Waits, at most this long, until the ring is founded: its charter was ordered, and this node is on the ring, if it
    /// is to be. Returns the constants of the ring; `None` if nothing is known yet.
    pub fn wait(&self, timeout: Duration) -> Option<Result<Constants, FoundError>> {
        match self.0.recv_timeout(timeout) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(FoundError::Over)),
        }
    }
}

#[derive(Debug)]
struct Request {
    charter: Charter,
    is_ordered: bool,
    answer: Sender<Result<Constants, FoundError>>,
}

/// The oldest first; `None` when the rings' thread has ended.
#[derive(Debug)]
pub(super) struct Foundings(Mutex<Option<VecDeque<Request>>>);

impl Default for Foundings {
    fn default() -> Self {
        Self(Mutex::new(Some(VecDeque::new())))
    }
}

impl Foundings {
    fn locked(&self) -> MutexGuard<'_, Option<VecDeque<Request>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, charter: Charter) -> Result<Founding, FoundError> {
        let mut waiting = self.locked();
        let waiting = waiting.as_mut().ok_or(FoundError::Over)?;
        if waiting.len() >= MOST {
            return Err(FoundError::Full);
        }
        let (answer, answers) = mpsc::channel();
        waiting.push_back(Request {
            charter,
            is_ordered: false,
            answer,
        });
        Ok(Founding(answers))
    }

    /// Has charters ordered, and answers those of which something has become. Returns whether some have no answer yet:
    /// a ring or a file of charters may have to be tried again, also where nothing else happens.
    pub(super) fn hand_in<A: RingsApp>(
        &self,
        driver: &mut RingsDriver<A>,
    ) -> Result<bool, DriverError> {
        let mut waiting = self.locked();
        let Some(waiting) = &mut *waiting else {
            return Ok(false);
        };
        for mut request in std::mem::take(waiting) {
            let of = (&request.charter, request.is_ordered);
            if let Some(answer) = driver.charter_answer(of) {
                // Nobody may wait for it any more.
                let _ = request.answer.send(answer);
                continue;
            }
            if !request.is_ordered {
                request.is_ordered = driver.order_charter(&request.charter)?;
            }
            waiting.push_back(request);
        }
        Ok(!waiting.is_empty())
    }

    /// Nothing is founded from here any more.
    pub(super) fn end(&self) {
        *self.locked() = None;
    }
}

impl RingsNode {
    /// Founds a ring while processes run. Its charter is ordered in the control ring: the ring whose `[[ring]]` section
    /// says `control = true`, or the first one. Every process of that ring takes it, and is on the new ring from then
    /// on, if the charter names its node; it keeps the charter beside its votes, and is on the ring again when it is
    /// restarted. Ports and addresses are those of the `[[node]]` sections, everything else that a charter does not
    /// name is as the file has it. Partitions may subscribe to the ring then ([`Self::subscribe`]); whoever delivers
    /// rings without a partition has those with which it began.
    ///
    /// Where the ring begins follows from the place of its charter, so it is the same ring whoever founds it, and who
    /// is not sure whether it was founded founds it again. Another charter of the same number is refused. A process
    /// hears of what is ordered while its deliveries are received: another thread has to do that where there are many.
    ///
    /// # Errors
    /// [`FoundError::Full`] or [`FoundError::Over`]; all else is the answer of [`Founding::wait`].
    pub fn found(&self, charter: Charter) -> Result<Founding, FoundError> {
        self.watch().found(charter)
    }
}

impl RingsWatch {
    /// As [`RingsNode::found`].
    ///
    /// # Errors
    /// The same.
    pub fn found(&self, charter: Charter) -> Result<Founding, FoundError> {
        let founding = self.shared.foundings.push(charter)?;
        self.ways.wake();
        Ok(founding)
    }
}
