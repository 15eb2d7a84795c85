//! The requests of clients on their way, in the order in which they were asked for.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::contract::{RingId, Service};
use crate::groups::event::{Connection, Member};
use crate::groups::message::{Request, stamp};
use crate::mutants::{self, Mutant};

/// A request on its way.
#[derive(Debug)]
pub(in crate::groups) struct Waiting {
    connection: Connection,
    service: Service,
    message: Vec<u8>,
    asks: Asks,
    /// The engine's counter of the message, once the engine has taken it.
    counter: u64,
}

/// The kind of a request: says what becomes of it if this daemon has missed its place in the order.
#[derive(Clone, Copy, Debug)]
enum Asks {
    /// A message: nothing more is done, as it was delivered.
    Data,
    /// A join or a leave: it is sent again.
    Change,
    /// The end of this client, which others have seen.
    End(Member),
}

impl Waiting {
    /// A request of the client on this connection.
    pub fn new(connection: Connection, service: Service, request: &Request) -> Self {
        let asks = match request {
            Request::Data(..) => Asks::Data,
            Request::Join(..) | Request::Leave(..) => Asks::Change,
            Request::Disconnect(member) => Asks::End(*member),
        };
        Self {
            connection,
            service,
            message: request.message(),
            asks,
            counter: 0,
        }
    }

    /// The connection that it came by.
    pub const fn connection(&self) -> Connection {
        self.connection
    }

    /// Its bytes.
    pub const fn len(&self) -> usize {
        self.message.len()
    }

    /// Whether nothing is left to do for the request, if all up to this counter have their places, and these clients
    /// have ended.
    fn is_over(&self, own: u64, ended: &[Member]) -> bool {
        let by = |of: Connection| ended.iter().any(|member| member.connection == of);
        let once = match self.asks {
            Asks::Data => !mutants::on(Mutant::G23),
            Asks::Change => mutants::on(Mutant::G31),
            Asks::End(_) => false,
        };
        self.counter <= own && (once || by(self.connection))
    }
}

/// The requests of all clients but large messages and the requests behind these.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    /// The number of the first ones, which have been handed to the engine.
    under_way: usize,
}

impl Queue {
    /// Adds a request.
    pub fn push(&mut self, request: Waiting) {
        self.waiting.push_back(request);
    }

    /// Adds requests in their order.
    pub fn extend(&mut self, requests: Vec<Waiting>) {
        self.waiting.extend(requests);
    }

    /// The requests that have not come back.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether there is a request for the engine, which has `window` of them at most.
    pub fn has_unsent(&self, window: usize) -> bool {
        self.under_way < window.min(self.waiting.len())
    }

    /// The next request for the engine, as a message for this ring.
    pub fn unsent(&mut self, ring: RingId) -> Option<(Service, &[u8])> {
        let next = self.waiting.get_mut(self.under_way)?;
        stamp(&mut next.message, ring);
        Some((next.service, &next.message))
    }

    /// The engine has taken the next request, with this counter. Returns the bytes of its message.
    pub fn sent(&mut self, counter: u64) -> usize {
        let sent = &mut self.waiting[self.under_way];
        sent.counter = counter;
        self.under_way += 1;
        sent.message.len()
    }

    /// The engine will never take the next request.
    pub fn refused(&mut self) -> Option<Waiting> {
        self.waiting.remove(self.under_way)
    }

    /// The first of the requests under way has come back.
    pub fn returned(&mut self) -> Option<Waiting> {
        if self.under_way == 0 {
            return None;
        }
        self.under_way -= 1;
        self.waiting.pop_front()
    }

    /// All requests are to be sent again. Returns the number of those that were under way.
    pub const fn send_again(&mut self) -> usize {
        core::mem::replace(&mut self.under_way, 0)
    }

    /// All requests handed to the engine up to this counter of the engine have their places, where this daemon does not
    /// get any more. Takes out those that are over, and returns them and the clients whose end was among them: see
    /// [`exclusion`](crate::groups::exclusion). The others are still under way.
    pub fn ordered_elsewhere(&mut self, own: u64) -> (Vec<Waiting>, Vec<Member>) {
        let handed: Vec<Waiting> = self.waiting.drain(..self.under_way).collect();
        let placed = handed.iter().filter(|request| request.counter <= own);
        let ends = placed.filter_map(|request| match request.asks {
            Asks::End(member) if !mutants::on(Mutant::G30) => Some(member),
            _ => None,
        });
        let ended: Vec<Member> = ends.collect();
        let (over, again): (Vec<Waiting>, Vec<Waiting>) = handed
            .into_iter()
            .partition(|request| request.is_over(own, &ended));
        self.under_way = again.len();
        for request in again.into_iter().rev() {
            self.waiting.push_front(request);
        }
        (over, ended)
    }

    /// Its invariants.
    pub fn check(&self) {
        assert!(
            self.under_way <= self.waiting.len(),
            "what was handed to the engine is remembered"
        );
    }
}
