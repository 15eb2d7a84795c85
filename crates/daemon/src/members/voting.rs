//! What an operator asks about acceptors: which nodes vote and are to, and changes of that, which the engine orders.

use std::collections::VecDeque;

use rota_core::contract::{Checked, NodeId, Time};
use rota_node::{Driver, DriverError, NodeEngine, VoterChange, Voters};

use super::machine::Members;
use super::request::{AcceptorStatus, MemberRequest};
use crate::control::{Answer, MemberAsking};

/// The time in nanoseconds after which it is looked whether a list was ordered.
const LOOKS_NANOS: u64 = 10_000_000;

/// A list that is being ordered.
#[derive(Debug)]
struct Ordered {
    number: u64,
    nodes: Vec<NodeId>,
    answer: Answer,
    until: Time,
}

/// The requests that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Voting {
    /// The oldest first.
    waiting: VecDeque<MemberAsking>,
    ordered: Option<Ordered>,
}

/// The change that is asked for, and whether it is forced; `None` if none is.
fn change(request: &MemberRequest) -> Option<(Option<VoterChange>, bool)> {
    let (id, instead_of, force) = match request {
        MemberRequest::Vote {
            id,
            instead_of,
            force,
        } => (*id, *instead_of, *force),
        MemberRequest::Unvote { id, force } => {
            return Some((NodeId::new(*id).map(VoterChange::Remove), *force));
        }
        _ => return None,
    };
    let change = match (NodeId::new(id), instead_of.map(NodeId::new)) {
        (Some(id), None) => Some(VoterChange::Add(id)),
        (Some(id), Some(Some(old))) => Some(VoterChange::Replace(old, id)),
        _ => None,
    };
    Some((change, force))
}

impl Voting {
    /// Takes a request that is about acceptors, or may be. Hands any other back.
    pub fn take(&mut self, asking: MemberAsking, has_votes: bool) -> Option<MemberAsking> {
        let lists = has_votes && asking.request == MemberRequest::List;
        if lists || change(&asking.request).is_some() {
            self.waiting.push_back(asking);
            return None;
        }
        Some(asking)
    }

    /// The time in nanoseconds until it is looked at again, if anybody waits.
    pub fn patience(&self) -> Option<u64> {
        let ordered = self.ordered.as_ref().map(|_| LOOKS_NANOS);
        let waiting = self.waiting.front().map(|_| 0);
        waiting.or(ordered)
    }

    /// Answers requests, and goes on with the change that is being ordered.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn turn(
        &mut self,
        driver: &mut Driver<Checked<NodeEngine>>,
        members: &Members,
        now: Time,
    ) -> Result<(), DriverError> {
        if self.waiting.is_empty() && self.ordered.is_none() {
            return Ok(());
        }
        self.look_at_ordered(driver.engine().get(), members, now);
        for asking in std::mem::take(&mut self.waiting) {
            if let Some((done, text, answer)) = self.begin(driver, asking)? {
                say(members, driver.engine().get(), (done, &text), &answer);
            }
        }
        Ok(())
    }

    /// Begins what is asked for. Returns the answer, unless a list has to be ordered first.
    fn begin(
        &mut self,
        driver: &mut Driver<Checked<NodeEngine>>,
        asking: MemberAsking,
    ) -> Result<Option<(bool, String, Answer)>, DriverError> {
        let (answer, until) = (asking.answer, asking.until);
        let (wanted, force) = match change(&asking.request) {
            Some((Some(wanted), force)) => (wanted, force),
            Some((None, _)) => {
                return Ok(Some((false, "no node has the number 0".to_owned(), answer)));
            }
            None => return Ok(Some((true, String::new(), answer))),
        };
        if self.ordered.is_some() {
            let text = "another change is being made through this daemon: ask again";
            return Ok(Some((false, text.to_owned(), answer)));
        }
        match driver.command(|engine, now| engine.change_voters(now, wanted, force))? {
            Ok((number, nodes)) => {
                self.ordered = Some(Ordered {
                    number,
                    nodes,
                    answer,
                    until,
                });
                Ok(None)
            }
            Err(why) => Ok(Some((false, why.to_string(), answer))),
        }
    }

    fn look_at_ordered(&mut self, engine: &NodeEngine, members: &Members, now: Time) {
        let voters = engine.voters().unwrap_or_default();
        let is_over =
            |ordered: &mut Ordered| voters.number >= ordered.number || now >= ordered.until;
        let Some(ordered) = self.ordered.take_if(is_over) else {
            return;
        };
        let number = ordered.number;
        let (done, text) = if voters.number < number {
            let late = "not ordered in time; it may be yet: look at the list, and ask again";
            (false, late.to_owned())
        } else if voters.number == number && voters.listed == ordered.nodes {
            (true, made(&voters))
        } else {
            let first = "another change came first: look at the list, and ask again";
            (false, first.to_owned())
        };
        say(members, engine, (done, &text), &ordered.answer);
    }
}

/// What follows from a list.
fn made(voters: &Voters) -> String {
    let names: Vec<String> = voters.listed.iter().map(ToString::to_string).collect();
    let (number, names) = (voters.number, names.join(", "));
    format!(
        "this is list {number} of the acceptors: {names}; they come to it one at a time, each when it has caught up"
    )
}

fn say(members: &Members, engine: &NodeEngine, (done, text): (bool, &str), answer: &Answer) {
    let mut reply = members.reply(done, text.to_owned());
    let numbers = |nodes: Vec<NodeId>| nodes.into_iter().map(NodeId::get).collect();
    reply.acceptors = engine.voters().map(|voters| AcceptorStatus {
        list: voters.number,
        listed: numbers(voters.listed),
        voting: numbers(voters.voting),
    });
    // Who does not wait any more needs no answer.
    let _ = answer.send(Ok(reply));
}
