//! Batches that only read: they are not ordered themselves, but one message without commands is, for all that wait. An
//! answer that was told before this message was given stands before it, so when it is delivered here, this replica has
//! all that the batches have to see. One replica reads, and not each.

use rota_replica::CallError;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::Item;
use super::gateway::{Gateway, OrderError};
use super::order::{PAUSE, Waiting, fail};
use crate::map::Partitions;
use crate::mutants::{self, Mutant};
use crate::store::{Batch, MOST_ANSWER_BYTES, Pack, Store};
use rota_front::lane::Permit;
use rota_front::now;

/// A message that does nothing but let time pass: to now, or to a later time of a client.
pub(super) fn marker(asked: u64) -> Vec<u8> {
    let nothing = Batch {
        stamp: asked.max(now()),
        ..Batch::default()
    };
    Pack(vec![nothing.encode()]).encode()
}

/// The latest time of any of the batches, by the clocks of the senders.
fn asked(items: &[Item]) -> u64 {
    let packs = items.iter().filter_map(|item| Pack::decode(&item.bytes));
    let batches = packs.flat_map(|pack| pack.0);
    let stamps = batches.filter_map(Batch::stamp_of);
    stamps.max().unwrap_or(0)
}

impl Gateway {
    /// Answers batches so that each sees at least the commands that were answered before the batch was given.
    pub(super) async fn looks(&self, items: Vec<Item>, (permit, until): (Permit, Instant)) {
        if !mutants::on(Mutant::T04)
            && let Err(error) = self.mark(asked(&items), (permit, until)).await
        {
            return fail(items, &error);
        }
        let packs = || items.iter().map(|item| &item.bytes);
        let look = |store: &Store| {
            let mut left = MOST_ANSWER_BYTES;
            let answers: Vec<_> = packs()
                .map(|pack| store.look_at_pack(pack, &mut left))
                .collect();
            (store.last(), answers)
        };
        let (behind, answers) = loop {
            match self.orders.read(look) {
                Some(found) => break found,
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

    /// Waits until a message is delivered here that is given now.
    async fn mark(&self, asked: u64, (permit, until): (Permit, Instant)) -> Result<(), OrderError> {
        let (of, marker) = (self.name(), marker(asked));
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
