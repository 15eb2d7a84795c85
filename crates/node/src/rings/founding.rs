//! Rings that are founded while processes run.
//!
//! A charter is ordered in the control ring, whose processes all have the same table of charters. Each of them takes a
//! charter that goes with its configuration, and with the charters before; makes it durable; and is on the ring from
//! then on, if the ring names it. Who is started again is on these rings from its beginning.

use rota_multiring::charters::Chartered;
use rota_multiring::{Charter, Constants, Rank};

use super::app::RingsApp;
use super::driver::RingsDriver;
use super::error::RingsStartError;
use super::foundings::FoundError;
use super::opening;
use crate::driver::DriverError;
use crate::node::StartError;
use rota_paxos::uring::accounts::{Command, Refused};

impl<A: RingsApp> RingsDriver<A> {
    /// Opens the rings that were founded before this node was started. One that does not open is tried again later, and
    /// does not keep this process from its other rings.
    ///
    /// # Errors
    /// An application of no partition subscribes to such a ring from the beginning.
    pub(super) fn open_kept(&mut self) -> Result<(), RingsStartError> {
        self.open_unopened();
        let learner = &self.hub.borrow().learner;
        let is_fixed = learner.subscriptions().is_none();
        let failed = self
            .new_rings
            .take_error(|rank| is_fixed && learner.has(rank));
        failed.map_or(Ok(()), Err)
    }

    /// Looks at the charters that the control ring has ordered since, and opens the rings that name this node.
    pub(super) fn look_at_charters(&mut self) {
        if self.new_rings.may_try() {
            self.hear_charters();
            self.open_unopened();
        }
    }

    fn hear_charters(&mut self) {
        let control = self.new_rings.control();
        let mut lanes = self.many.lanes().iter_mut();
        let lane = lanes.find(|lane| lane.app.rank == control);
        let engine = lane.and_then(|lane| lane.driver.engine_mut().get_mut().leveled());
        let Some(engine) = engine.map(|engine| engine.get()) else {
            return;
        };
        let table = engine.accounts().charters();
        let Some(founded) = engine.config().map(|config| config.founded) else {
            return;
        };
        if !self.new_rings.is_due(table.len()) {
            return;
        }
        let news = table
            .iter()
            .filter(|(ring, _)| !self.new_rings.knows(*ring));
        let mut news: Vec<_> = news.map(|(ring, of)| (ring, of.clone())).collect();
        news.sort_by_key(|(_, of)| of.at);
        match self.new_rings.is_of(founded) {
            true => self.take_charters(founded, news),
            false => self.on_other_control(control),
        }
        self.answer_soon();
    }

    /// Whoever has founded a ring is answered behind this turn, which is not to rest before.
    fn answer_soon(&mut self) {
        self.many.lanes().iter_mut().for_each(|lane| lane.get_up());
    }

    fn open_unopened(&mut self) {
        for at in self.new_rings.unopened() {
            match self.open_founded(at) {
                Ok(()) => {
                    self.new_rings.on_open(at);
                    self.answer_soon();
                }
                Err(error) => self.new_rings.put_off(at, error),
            }
        }
    }

    /// All that have ordered the charters on this node's disk have lost their stores, and the control ring is another one.
    fn on_other_control(&mut self, control: Rank) {
        self.new_rings.end();
        let mut hub = self.hub.borrow_mut();
        let told = hub.learner.on_refounded(control);
        told.into_iter().for_each(|told| hub.tell(told));
        hub.app.flush();
    }

    fn take_charters(&mut self, founded: u64, news: Vec<(u16, Chartered)>) {
        for (ring, of) in news {
            let is_on_it = match self.new_rings.take(founded, (ring, of)) {
                Ok(is_on_it) => is_on_it,
                Err(error) => {
                    tracing::warn!(ring, %error, "the charter of a new ring is not kept: it is tried again");
                    return self.new_rings.try_later();
                }
            };
            // A number that a ring of the file has is that ring's.
            let rank = Rank(ring);
            if is_on_it == Some(false) || is_on_it.is_none() && self.new_rings.may_come(rank) {
                let mut hub = self.hub.borrow_mut();
                let told = hub.learner.on_absent(rank);
                told.into_iter().for_each(|told| hub.tell(told));
                hub.app.flush();
            }
        }
    }

    fn open_founded(&mut self, at: usize) -> Result<(), RingsStartError> {
        let (config, me) = self.new_rings.of_place(at)?;
        let lane = opening::open_lane(&config, me, self.new_rings.begins(), &self.hub)?;
        let Some(of) = config.ring_of else {
            return Ok(());
        };
        let rank = of.constants.rank;
        let mut hub = self.hub.borrow_mut();
        let is_known = hub.app.on_founded(rank, config.message_limit());
        is_known.map_err(|error| RingsStartError::Ring(rank.0, StartError::System(error)))?;
        let told = hub.learner.on_founded(of.constants);
        told.into_iter().for_each(|told| hub.tell(told));
        hub.app.flush();
        drop(hub);
        self.many.push(lane);
        let origin = of.constants.origin;
        tracing::info!(ring = rank.0, origin, "a ring that was founded is open");
        Ok(())
    }

    /// What has become of a charter that is to be ordered; `None` if nothing has yet.
    pub(super) fn charter_answer(
        &mut self,
        (charter, is_ordered): (&Charter, bool),
    ) -> Option<Result<Constants, FoundError>> {
        if let Some(answer) = self.new_rings.answer(charter) {
            return Some(answer);
        }
        if !is_ordered && let Err(error) = self.new_rings.may_order(charter) {
            return Some(Err(error));
        }
        let control = self.new_rings.control();
        let mut lanes = self.many.lanes().iter_mut();
        let lane = lanes.find(|lane| lane.app.rank == control)?;
        let engine = lane.driver.engine_mut().get_mut().leveled()?.get();
        let charters = engine.accounts().charters();
        let refused = charters
            .may_found(charter.rank.0, &charter.encode())
            .err()?;
        Some(Err(match refused {
            Refused::Full => FoundError::Full,
            _ => FoundError::Otherwise(charter.rank.0),
        }))
    }

    /// Has a charter ordered. Says whether it will be: otherwise the control ring has enough to order.
    pub(super) fn order_charter(&mut self, charter: &Charter) -> Result<bool, DriverError> {
        let mut from = 0;
        for lane in self.many.lanes() {
            if let Some(engine) = lane.driver.engine_mut().get_mut().leveled() {
                let told = engine.get().told();
                let next = engine.of().constants.round_of(told) + 1;
                from = next.max(from);
            }
        }
        let command = Command::Found(charter.rank.0, from, charter.encode());
        self.order(self.new_rings.control(), &command)
    }
}
