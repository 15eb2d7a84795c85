//! What an operator asks for: the list, or a change of it, which is ordered and then made.

use rota_core::contract::{NodeId, SubmitError, Time};
use rota_net::{NodeAddress, Transport};
use rota_node::MemberList;
use rota_node::members::{Change, Version};

use super::machine::Members;
use super::message::{self, Proposal, Told};
use super::request::{MemberReply, MemberRequest, MemberStatus, Refusal};
use crate::control::Answer;

/// A reason for the log.
pub(super) const NEVER_TAKEN: &str =
    "the ring never takes a message about the list of nodes: it is left out";

/// The way of a change that an operator has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// It waits until all daemons of the ring have one list.
    Waits,
    /// It is being ordered, with this number.
    Ordered(u64),
    /// It is made, and is being stored here.
    Made(Version),
}

/// A change that an operator has asked for.
#[derive(Debug)]
pub(super) struct Asked {
    change: Change,
    force: bool,
    answer: Answer,
    until: Time,
    pub stage: Stage,
}

impl Members {
    /// The answer to `rota member list`, with these words.
    pub(super) fn reply(&self, done: bool, text: String) -> MemberReply {
        let node = |node: &NodeAddress| MemberStatus {
            id: node.id,
            name: node.name.clone(),
            address: node.host_text(),
            data_port: node.data_port,
            token_port: node.token_port,
            on_ring: NodeId::new(node.id).is_some_and(|id| self.exchange.has(id)),
        };
        MemberReply {
            done,
            text,
            number: self.list.version.number,
            nodes: self.list.nodes.iter().map(node).collect(),
            acceptors: None,
        }
    }

    /// An operator asks for something, which is refused where it is not done by then. Whoever does not wait for the answer any
    /// more gets none.
    pub fn ask(&mut self, request: MemberRequest, answer: Answer, until: Time) {
        let reply = match self.begin(request) {
            Ok(None) => self.reply(true, String::new()),
            Ok(Some((change, force))) => {
                self.asked = Some(Asked {
                    change,
                    force,
                    answer,
                    until,
                    stage: Stage::Waits,
                });
                return self.propose();
            }
            Err(why) => self.reply(false, why.to_string()),
        };
        let _ = answer.send(Ok(reply));
    }

    fn begin(&self, request: MemberRequest) -> Result<Option<(Change, bool)>, Refusal> {
        if let Some(why) = self
            .ability
            .fixed
            .filter(|_| request != MemberRequest::List)
        {
            return Err(Refusal::Fixed(why));
        }
        let Some((change, force)) = request.change(&self.list)? else {
            return Ok(None);
        };
        if !self.ability.keeps {
            return Err(Refusal::Forgetful(vec![self.me.node]));
        }
        if self.asked.is_some() {
            return Err(Refusal::Busy);
        }
        if let Change::Add(node) | Change::Replace(node) = &change {
            self.check_host(node)?;
        }
        Ok(Some((change, force)))
    }

    /// With multicast, nodes that had a host for themselves when they started do not hear of each other there.
    fn check_host(&self, node: &NodeAddress) -> Result<(), Refusal> {
        let is_shared =
            |other: &&NodeAddress| other.id != node.id && other.host_text() == node.host_text();
        let alone = self.list.nodes.iter().find(is_shared);
        let is_loopback = node.host.is_none() && node.address.is_loopback();
        match (self.config.transport, alone) {
            (Transport::Multicast(_), Some(other)) if !is_loopback => {
                Err(Refusal::SameHost(other.id))
            }
            _ => Ok(()),
        }
    }

    /// Has the change ordered that was asked for, if all daemons of the ring have one list.
    pub(super) fn propose(&mut self) {
        let differing = self.exchange.differing(self.me);
        if !self.exchange.is_settled() && !differing.is_empty() {
            return self.refuse(&Refusal::Differing(differing));
        }
        if !self.exchange.is_settled() || self.ending {
            return;
        }
        let Some(asked) = self
            .asked
            .as_mut()
            .filter(|asked| asked.stage == Stage::Waits)
        else {
            return;
        };
        self.numbered += 1;
        asked.stage = Stage::Ordered(self.numbered);
        let proposal = Proposal {
            number: self.numbered,
            base: self.list.version,
            force: asked.force,
            change: asked.change.clone(),
        };
        let next = self.judge(&proposal);
        match next.and_then(|list| self.check_size(&list)) {
            Ok(()) => self.order(Told::Change(proposal)),
            Err(why) => self.refuse(&why),
        }
    }

    /// Daemons with an older list are given a new one in a message of the ring, which takes none that are larger than that.
    fn check_size(&self, list: &MemberList) -> Result<(), Refusal> {
        let bytes = message::bytes_of_give(list);
        let limit = self.config.ring_config().message_bytes;
        match bytes <= limit {
            true => Ok(()),
            false => Err(Refusal::Unsent(bytes, SubmitError::TooLarge { limit })),
        }
    }

    /// The ring never takes what is to be ordered next: that is left out, and whoever waits for it is told.
    pub fn cannot_submit(&mut self, error: SubmitError) {
        let Some((message, _)) = self.outbox.pop_front() else {
            return;
        };
        let why = Refusal::Unsent(message.len(), error);
        let complaints = &mut self.unusable.complaints;
        complaints.say(NEVER_TAKEN, &self.me.node, &why);
        let is_waiting = |asked: &Asked| !matches!(asked.stage, Stage::Made(_));
        if self.asked.as_ref().is_some_and(is_waiting) {
            self.outbox.retain(|(_, is_change)| !is_change);
            self.refuse(&why);
        }
    }

    pub(super) fn refuse(&mut self, why: &Refusal) {
        self.finish(false, why.to_string());
    }

    fn finish(&mut self, done: bool, text: String) {
        if let Some(asked) = self.asked.take() {
            let _ = asked.answer.send(Ok(self.reply(done, text)));
        }
    }

    /// A list is durable here, or could not be made so.
    pub fn stored(&mut self, version: Version, outcome: Result<(), String>, now: Time) {
        let is_it = |asked: &Asked| matches!(asked.stage, Stage::Made(made) if made <= version);
        let is_newest = version == self.list.version;
        self.keeping.stored(is_newest, &outcome, now);
        if self.asked.as_ref().is_some_and(is_it) {
            let number = self.list.version.number;
            match outcome {
                Ok(()) => self.finish(
                    true,
                    format!("this is list {number} of the cluster's nodes"),
                ),
                Err(what) => {
                    let text =
                        format!("the change is made, but this daemon could not keep it: {what}");
                    self.finish(false, text);
                }
            }
        }
    }

    /// Whether the newest list could not be stored, and is not yet.
    pub fn is_unkept(&self) -> bool {
        self.keeping.has_failed()
    }

    /// The time at which a change is refused that is not made until then, or the list is stored again.
    pub fn next_wake(&self) -> Option<Time> {
        let wakes = [self.too_late(), self.keeping.next_wake()];
        wakes.into_iter().flatten().min()
    }

    fn too_late(&self) -> Option<Time> {
        self.asked.as_ref().map(|asked| asked.until)
    }

    /// Has a list stored again that could not be, and refuses a change for which it is too late. One that is made already, or
    /// is being ordered, may still come true.
    pub fn look_at_clock(&mut self, now: Time) {
        self.news.store |= self.keeping.is_due(now);
        if self.too_late().is_some_and(|until| until <= now) {
            let silent = self.exchange.silent();
            self.outbox.retain(|(_, is_change)| !is_change);
            self.refuse(&Refusal::Late(silent));
        }
    }
}
