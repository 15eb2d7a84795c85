//! All that lies between an engine and the world: its sockets and links, the disk, and a coordination service. What has
//! come is handed in from here, and what the engine wants done is done here; nothing here decides what.

mod listed;
mod rest;

use rota_core::contract::{
    Burst, Channel, Class, Input, LogId, LogRecord, NodeId, PersistId, Pieces, Session, Status,
    Target, Time,
};

use super::DriverError;
use super::answers::{Answers, Leaves, Taken};
use super::arrivals::Arrivals;
use super::doze::Doze;
use super::durable::Held;
use super::sending::Sending;
use super::tokens::TokenTimes;
use rota_net::NetStats;
use rota_net::links::Links;
use rota_net::seal::Keys;
use rota_net::sockets::{Arrival, Sockets};

pub(super) use rest::Awake;

/// The ways in and out.
#[derive(Debug)]
pub(super) struct Io {
    sockets: Sockets,
    arrivals: Arrivals,
    sending: Sending,
    answers: Answers,
    /// `None`: the engine wants none.
    links: Option<Box<Links>>,
    doze: Doze,
}

/// An event of a link.
#[derive(Debug)]
pub(super) struct LinkEvent {
    pub(super) input: Input,
    /// Another message came together with this one: both are answered together, and an engine sends less then.
    pub(super) goes_on: bool,
}

impl Io {
    pub(super) fn new(
        sockets: Sockets,
        arrivals: Arrivals,
        answers: Answers,
        links: Option<Links>,
        doze: Doze,
    ) -> Self {
        Self {
            sockets,
            arrivals,
            sending: Sending::default(),
            answers,
            links: links.map(Box::new),
            doze,
        }
    }

    /// The counters of the sockets, and of injected faults.
    pub(super) fn stats(&self) -> NetStats {
        NetStats {
            faults: self.arrivals.faults(),
            ..*self.sockets.stats()
        }
    }

    /// The counters of the sockets, to add to.
    pub(super) const fn stats_mut(&mut self) -> &mut NetStats {
        self.sockets.stats_mut()
    }

    /// The times for which this node had the token, and their parts.
    pub(super) const fn token_times(&self) -> &TokenTimes {
        self.sending.token_times()
    }

    /// The handle for giving this node other keys; `None` if it has none.
    pub(super) fn keys(&self) -> Option<Keys> {
        self.sockets.keys()
    }

    /// Adds what refuses to work to the status.
    pub(super) fn describe(&self, status: &mut Status) {
        let refusals = self.sockets.refusals(rota_net::monotonic());
        status.notes.extend(refusals);
        status.notes.extend(self.sockets.unknown_peers());
        self.answers.describe(status);
    }

    /// The sockets follow what changes around them.
    pub(super) fn tend(&mut self, now: Time) {
        self.sockets.tend(now);
    }

    /// The links follow the addresses that the names of peers have.
    pub(super) fn follow_names(&mut self) {
        while let Some((node, address)) = self.sockets.next_moved() {
            if let Some(links) = &mut self.links {
                links.may_be_at(node, address);
            }
        }
    }

    /// A peer at whose address no process listens, once for each sign of it.
    pub(super) fn next_refused(&mut self) -> Option<NodeId> {
        self.sockets.next_refused()
    }

    /// Whether a burst has to leave before anything else does.
    pub(super) const fn is_stuck(&self) -> bool {
        self.sending.is_stuck()
    }

    /// Sends a burst; what the kernel does not take is stuck.
    pub(super) fn send(
        &mut self,
        class: Class,
        to: Target,
        burst: Burst,
    ) -> Result<(), DriverError> {
        let out = self.sockets.seal(class, to, burst);
        self.sending.send(&mut self.sockets, out)
    }

    /// Sends what was stuck, as far as the kernel takes it.
    pub(super) fn retry(&mut self) -> Result<(), DriverError> {
        self.sending.retry(&mut self.sockets)
    }

    /// Nothing more is to be sent.
    pub(super) const fn drained(&mut self) {
        self.sending.drained();
    }

    /// Whether a send may leave that names this request for the disk.
    pub(super) fn leaves(&self, after: PersistId) -> Leaves {
        self.answers.leaves(after)
    }

    /// Keeps a send until the request that it names is durable.
    pub(super) fn hold(&mut self, held: Held) {
        self.answers.hold(held);
    }

    /// The oldest send that was held back and need not wait any more.
    pub(super) fn next_ready(&mut self) -> Option<Held> {
        self.answers.next_ready()
    }

    /// Makes records durable.
    pub(super) fn persist(&mut self, id: PersistId, records: &[LogRecord]) {
        let taken = self.answers.persist(id, records);
        self.count(taken);
    }

    /// Reads records.
    pub(super) fn fetch(&mut self, log: LogId, from: u64, to: u64) {
        self.answers.fetch(log, from, to);
    }

    /// Asks the coordination service, if there is one.
    pub(super) fn arbitrate(&mut self, number: u64, wanted: bytes::Bytes) {
        let taken = self.answers.arbitrate(number, wanted);
        self.count(taken);
    }

    /// Has the engine's log of votes opened again.
    pub(super) fn reopen(&mut self) {
        let taken = self.answers.reopen();
        self.count(taken);
    }

    const fn count(&mut self, taken: Taken) {
        let stats = self.sockets.stats_mut();
        match taken {
            Taken::Yes => {}
            Taken::Failed => stats.persist_failures += 1,
            Taken::Unsupported => stats.unsupported += 1,
        }
    }

    /// Takes over what the threads beside the ring's answered; says whether there was any. Not while an output is
    /// stuck: the engine hears of it after its outputs have left, as with everything that answers them.
    pub(super) fn take_answers(&mut self) -> bool {
        if self.is_stuck() {
            return false;
        }
        let Some(failed) = self.answers.take() else {
            return false;
        };
        self.sockets.stats_mut().persist_failures += failed;
        true
    }

    /// The next answer to an output.
    pub(super) fn next_answer(&mut self) -> Option<Input> {
        self.answers.next_input()
    }

    pub(super) fn has_answers(&self) -> bool {
        self.answers.has_inputs()
    }

    /// Lets delayed datagrams arrive whose time has come.
    pub(super) fn release(&mut self, now: Time) {
        self.arrivals.release(now);
    }

    /// The next burst: of class `first` if there is one, else of the other. No token while an output is stuck.
    pub(super) fn next_arrival(
        &mut self,
        first: Class,
        now: Time,
    ) -> Result<Option<(Class, Arrival)>, DriverError> {
        let tokens = !self.is_stuck();
        let next = self.arrivals.next(&mut self.sockets, first, tokens, now);
        next.map_err(DriverError::Socket)
    }

    /// Undoes [`Self::next_arrival`].
    pub(super) fn put_back(&mut self, class: Class, arrival: Arrival) {
        self.arrivals.put_back(class, arrival);
    }

    /// The newest token is handed in at `now`, if it is one; from `began` on the application had its turn.
    pub(super) fn token_came(&mut self, is_token: bool, began: Time, now: Time) {
        let arrived = self.arrivals.take_token_at().unwrap_or(began);
        if is_token {
            self.sending.token_came(arrived, began, now);
        }
    }

    /// Drops all datagrams that have come and were not handed in.
    pub(super) fn forget_arrivals(&mut self) {
        let forgotten = self.arrivals.forget() + self.sockets.forget();
        self.sockets.stats_mut().overslept += forgotten;
    }

    pub(super) const fn has_links(&self) -> bool {
        self.links.is_some()
    }

    /// Breaks the link to a node at once, and lets none begin; or lets it begin again.
    pub(super) fn cut_link(&mut self, peer: NodeId, is_cut: bool) {
        let now = rota_net::monotonic();
        if let Some(links) = &mut self.links {
            links.cut(peer, is_cut, now, self.sockets.stats_mut());
        }
    }

    /// Reads of one of the links at most what a single read brings. Whether there are events to hand in, or may be.
    pub(super) fn work_on_links(&mut self) -> Result<bool, DriverError> {
        let Some(links) = &mut self.links else {
            return Ok(false);
        };
        let mut context = self.sockets.link_context(rota_net::monotonic());
        let worked = links.work(&mut context).map_err(DriverError::Socket)?;
        Ok(worked || links.has_events())
    }

    /// Whether the links have events that were not handed in.
    pub(super) fn has_link_events(&self) -> bool {
        self.links.as_ref().is_some_and(|links| links.has_events())
    }

    /// The next event of the links.
    pub(super) fn next_link_event(&mut self) -> Option<LinkEvent> {
        let links = self.links.as_mut()?;
        let input = links.next_event()?;
        let is_message = matches!(input, Input::LinkMessage { .. });
        let goes_on = is_message && links.goes_on();
        Some(LinkEvent { input, goes_on })
    }

    /// Lets leave what was sent over links, with one call for each of them. Whether that has made room, of which the
    /// engine is to hear.
    pub(super) fn flush_links(&mut self) -> bool {
        if let Some(links) = &mut self.links {
            links.flush(rota_net::monotonic, self.sockets.stats_mut());
        }
        self.has_link_events()
    }

    /// Sends over a link.
    pub(super) fn send_over_link(&mut self, to: (NodeId, Session), message: (Channel, Pieces)) {
        match &mut self.links {
            Some(links) => links.send(to, message, self.sockets.stats_mut()),
            None => self.sockets.stats_mut().unsupported += 1,
        }
    }

    /// What holds between inputs; for debug builds.
    pub(super) fn check(&self) {
        self.sending.check();
        self.answers.check();
    }

    #[cfg(test)]
    pub(super) const fn durable(&mut self) -> &mut super::durable::Durable {
        self.answers.durable()
    }

    #[cfg(test)]
    pub(super) const fn has_no_buffers(&self) -> bool {
        self.sending.has_no_buffers()
    }
}
