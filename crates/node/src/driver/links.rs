//! The links of an engine that wants them, served between its datagrams.

use rota_core::contract::{Channel, Engine, Input, NodeId, PersistId, Pieces, Session};

use super::{App, Driver, DriverError};

/// Bursts of datagrams that may be handed in before the links get a turn, whatever else waits.
pub(super) const BURSTS_BEFORE_LINKS: u32 = 4;

/// The number of times in a row that new room is filled, before the loop looks at everything else again.
const FILLS_AT_ONCE: u32 = 4;

impl<E: Engine> Driver<E> {
    /// Breaks the link to a node at once, and lets none begin; or lets it begin again. For tests of what an engine
    /// makes of it.
    pub fn cut_link(&mut self, peer: NodeId, is_cut: bool) {
        if let Some(links) = &mut self.links {
            links.cut(
                peer,
                is_cut,
                rota_net::monotonic(),
                self.sockets.stats_mut(),
            );
        }
    }

    /// Hands in what the links have: of one of them at most what a single read brings. Says whether there was
    /// anything.
    pub(super) fn hand_in_links<A: App>(&mut self, app: &mut A) -> Result<bool, DriverError> {
        self.bursts_past_links = 0;
        let Some(links) = &mut self.links else {
            return Ok(false);
        };
        let mut context = self.sockets.link_context(rota_net::monotonic());
        let worked = links.work(&mut context).map_err(DriverError::Socket)?;
        if !worked && !links.has_events() {
            return Ok(false);
        }
        // Messages that are submitted now can leave together with the answers to this event.
        self.fill(app)?;
        self.hand_in_link_events()?;
        Ok(true)
    }

    /// Whether the links have events that were not handed in.
    pub(super) fn has_link_events(&self) -> bool {
        self.links.as_ref().is_some_and(|links| links.has_events())
    }

    fn hand_in_link_events(&mut self) -> Result<(), DriverError> {
        while let Some(event) = self.links.as_mut().and_then(|links| links.next_event()) {
            // The answers to outputs before the event may have come later than the event: so the time is read anew.
            let is_message = matches!(event, Input::LinkMessage { .. });
            self.engine.handle(rota_net::monotonic(), event);
            // Messages that came together are answered together: an engine sends less then.
            let goes_on = self.links.as_ref().is_some_and(|links| links.goes_on());
            if !(is_message && goes_on) {
                self.carry_out()?;
            }
        }
        Ok(())
    }

    /// Lets leave what was sent over links, with one call for each of them, and what the engine sends into the room
    /// that this makes.
    pub(super) fn flush_links(&mut self) -> Result<(), DriverError> {
        if let (Some(_), Some(tracer)) = (&self.links, &mut self.tracer) {
            tracer.flush();
        }
        for _ in 0..FILLS_AT_ONCE {
            let Some(links) = &mut self.links else {
                return Ok(());
            };
            links.flush(rota_net::monotonic, self.sockets.stats_mut());
            if !links.has_events() {
                return Ok(());
            }
            self.hand_in_link_events()?;
        }
        Ok(())
    }

    /// Sends over a link, now or when `after` is durable.
    pub(super) fn send_over_link(
        &mut self,
        to: (NodeId, Session),
        message: (Channel, Pieces),
        after: Option<PersistId>,
    ) {
        let after = match after {
            Some(id) if self.has_failed(id) => return,
            after => after.filter(|id| self.durable.is_pending(*id)),
        };
        match &mut self.links {
            Some(links) => links.send(to, message, after, self.sockets.stats_mut()),
            None => self.sockets.stats_mut().unsupported += 1,
        }
    }

    /// Lets messages leave that waited for the disk.
    pub(super) fn release_links(&mut self) {
        if let Some(links) = &mut self.links {
            let durable = &self.durable;
            links.release(|id| durable.is_pending(id));
        }
    }

    /// Drops the messages that wait for a request that failed: they are never sent.
    pub(super) fn forget_on_links(&mut self, answer: &Input) {
        if let (Some(links), Input::PersistFailed { id, .. }) = (&mut self.links, answer) {
            links.forget(*id);
        }
    }
}
