//! Batches that only read: they are not ordered themselves, but one message without commands is, for all that wait. An
//! answer that was told before this message was given stands before it, so when it is delivered here, this replica has
//! all that the batches have to see. One replica reads, and not each.

use std::time::Duration;

use rota_replica::CallError;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::Item;
use super::gateway::{Gateway, OrderError};
use super::order::{PAUSE, Waiting, fail};
use crate::map::Partitions;
use crate::mutants::{self, Mutant};
use crate::store::{Batch, Looking, Operation, Store};
use rota_front::lane::Permit;

/// The time, at most, for which those who read wait until time has passed in all partitions.
const IN_TIME: Duration = Duration::from_millis(200);

/// A message that does nothing.
pub(super) fn marker(stamp: u64) -> Vec<u8> {
    let nothing = Batch {
        stamp,
        ..Batch::default()
    };
    nothing.alone()
}

/// A message for the ring of all that lets time pass.
pub(super) fn tick(stamp: u64) -> Vec<u8> {
    let passes = Batch {
        stamp,
        operations: vec![Operation::Time],
        ..Batch::default()
    };
    passes.alone()
}

impl Gateway {
    /// Answers batches so that each sees at least the commands that were answered before the batch was given.
    pub(super) async fn looks(&self, items: Vec<Item>, (permit, until): (Permit, Instant)) {
        if !mutants::on(Mutant::T04)
            && let Err(error) = self.mark((permit, until)).await
        {
            return fail(items, &error);
        }
        let packs = || items.iter().map(|item| &item.bytes);
        let look = |store: &Store| {
            let mut looking = Looking::default();
            let answers: Vec<_> = packs()
                .map(|pack| store.look_at_pack(pack, &mut looking))
                .collect();
            (store.last(), answers, looking.late())
        };
        let mut has_waited = false;
        let (behind, answers) = loop {
            match self.orders.read(look) {
                Some((.., Some(late))) if !has_waited => {
                    has_waited = true;
                    self.pass(late, until).await;
                }
                Some((behind, answers, _)) => break (behind, answers),
                // The replica takes in the state of another one, which has no less.
                None if Instant::now() < until => sleep(10 * PAUSE).await,
                None => return fail(items, &OrderError::Busy),
            }
        };
        self.desk.tell_when(behind, move || {
            for (item, answers) in items.into_iter().zip(answers) {
                item.tell.tell(Ok(answers));
            }
        });
    }

    /// Lets time pass in all partitions, and waits for that: who reads a key whose end has come finds none. If the ring
    /// of all has no majority the key is there for longer.
    ///
    /// The stamp is of whoever asks, whose clock may be wrong: no time passes that this process's clock does not have.
    async fn pass(&self, stamp: u64, until: Instant) {
        let (of, until) = (self.name(), until.min(Instant::now() + IN_TIME));
        // One message lets time pass for all who wait.
        let Ok(_turn) = timeout_at(until, self.passes.lock()).await else {
            return;
        };
        let stamp = stamp.min(self.clock.stamp());
        if self.orders.read(|store| store.time()) >= Some(stamp) {
            return;
        }
        let (tell, heard) = oneshot::channel();
        let then = move |_| {
            let _ = tell.send(());
        };
        let waiting = Waiting {
            gateway: self,
            of,
            name: self.orders.wait_for(of, then),
        };
        if let Ok(()) = self.give(self.global, of, &tick(stamp), until).await {
            let _ = timeout_at(until, heard).await;
        }
        drop(waiting);
    }

    /// Waits until a message is delivered here that is given now.
    async fn mark(&self, (permit, until): (Permit, Instant)) -> Result<(), OrderError> {
        let (of, marker) = (self.name(), marker(self.clock.stamp()));
        let (tell, heard) = oneshot::channel();
        let then = move |answer: Result<Vec<u8>, CallError>| {
            // The next message may leave.
            drop(permit);
            // A replica that has stopped may lack commands that have to be seen.
            if answer.is_ok() {
                let _ = tell.send(());
            }
        };
        let waiting = Waiting {
            gateway: self,
            of,
            name: self.orders.wait_for(of, then),
        };
        self.give(self.ring, of, &marker, until).await?;
        let heard = timeout_at(until, heard).await;
        drop(waiting);
        match heard {
            Ok(Ok(())) => Ok(()),
            _ => Err(OrderError::Unknown(Partitions::from([self.own]))),
        }
    }
}
