//! The thread of several rings.

use rota_core::contract::Checked;
use rota_multiring::{Rank, Round};
use std::cell::RefCell;
use std::rc::Rc;

use super::hub::Hub;
use super::lane::LaneApp;
use crate::driver::{DriverError, Many};
use crate::engine::NodeEngine;

/// All rings of a process.
pub(super) struct Turns {
    pub(super) many: Many<Checked<NodeEngine>, LaneApp>,
    pub(super) hub: Rc<RefCell<Hub>>,
}

impl Turns {
    /// Each ring does some of what it has to do, and hears of what others need of it.
    pub(super) fn turn(&mut self) -> Result<(), DriverError> {
        self.many.turn()?;
        self.announce()?;
        self.need()?;
        for lane in self.many.lanes() {
            if lane.app.is_freed() {
                lane.get_up();
            }
        }
        Ok(())
    }

    /// What the merge waits for is said to the rings.
    fn need(&mut self) -> Result<(), DriverError> {
        let needs = self.hub.borrow_mut().take_needs();
        for need in needs {
            let mut lanes = self.many.lanes().iter_mut();
            let Some(lane) = lanes.find(|lane| lane.app.rank == need.rank) else {
                continue;
            };
            lane.driver.tell(|engine, now| {
                if let Some(engine) = engine.get_mut().leveled() {
                    engine.need(now, need.round);
                }
            })?;
            lane.get_up();
        }
        Ok(())
    }

    /// Where this process coordinates several rings that it merges, a value of one is decided while the others skip up to it.
    fn announce(&mut self) -> Result<(), DriverError> {
        for at in 0..self.many.lanes().len() {
            let Some(lane) = self.many.lanes().get_mut(at) else {
                break;
            };
            let rank = lane.app.rank;
            let engine = lane.driver.engine_mut().get_mut().leveled();
            let Some(round) = engine.and_then(|engine| engine.take_announced()) else {
                continue;
            };
            if self.hub.borrow().has(rank) {
                self.tell_others(rank, round)?;
            }
        }
        Ok(())
    }

    fn tell_others(&mut self, rank: Rank, round: Round) -> Result<(), DriverError> {
        let hub = Rc::clone(&self.hub);
        let others = self.many.lanes().iter_mut();
        let others = others.filter(|lane| lane.app.rank != rank && hub.borrow().has(lane.app.rank));
        for lane in others {
            // What stands behind the other ring in a round is not waited for in that round.
            let round = match lane.app.rank < rank {
                true => Some(round),
                false => round.checked_sub(1),
            };
            let Some(round) = round else {
                continue;
            };
            lane.driver.tell(|engine, now| {
                if let Some(engine) = engine.get_mut().leveled() {
                    engine.announce(now, round);
                }
            })?;
            lane.get_up();
        }
        Ok(())
    }
}
