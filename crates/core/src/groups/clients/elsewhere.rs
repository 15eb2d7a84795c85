//! Requests that the others have delivered, while this daemon was in no view.

use alloc::vec::Vec;

use super::{Asks, Clients, Waiting};
use crate::groups::event::{Connection, Member};
use crate::mutants::{self, Mutant};

impl Clients {
    /// All requests handed to the engine up to this counter of the engine have their places, where this daemon does not
    /// get any more. Clients wait for them no longer, unless they are to be sent again: see
    /// [`exclusion`](crate::groups::exclusion). Returns the number of requests that are over, and the clients whose end
    /// was among them.
    pub fn ordered_elsewhere(&mut self, own: u64) -> (u64, Vec<Member>) {
        let mut count = 0;
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
        for request in over {
            count += 1;
            if !mutants::on(Mutant::G26) {
                self.settle(Some(request));
            }
        }
        self.under_way = again.len();
        for request in again.into_iter().rev() {
            self.waiting.push_front(request);
        }
        while let Some(large) = self.large.ordered_elsewhere(own) {
            count += 1;
            self.placed(Some(large));
        }
        (count, ended)
    }
}

impl Waiting {
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
