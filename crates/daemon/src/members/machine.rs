//! The list of nodes at one daemon, and what is ordered about it. Without I/O.

use std::collections::{BTreeSet, VecDeque};

use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, NodeId, Process, RingId, Service,
};
use rota_net::{Complaints, NodeAddress};
use rota_node::members::{Change, Version};
use rota_node::{MemberList, NodeConfig};

use super::asked::{Asked, Stage};
use super::exchange::{Exchange, Next};
use super::keeping::Keeping;
use super::message::{self, Proposal, Tell, Told};
use super::request::Refusal;

/// A reason for the log.
pub(super) const NOT_TAKEN_OVER: &str =
    "a newer list of nodes cannot be taken over: are `transport` and addresses as elsewhere?";

/// What this daemon can do about its list of nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ability {
    /// Why the list never changes here, if it does not.
    pub fixed: Option<&'static str>,
    /// It keeps lists on disk.
    pub keeps: bool,
}

/// What has changed and was not taken over yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct News {
    /// Other nodes are sent to and heard.
    pub relist: bool,
    /// There is a new list to store.
    pub store: bool,
}

/// What could not be used.
#[derive(Debug, Default)]
pub(super) struct Unusable {
    /// Messages and notices that made no sense.
    malformed: u64,
    /// Why, for the log.
    pub complaints: Complaints,
}

/// The list of nodes, and the order of its changes.
#[derive(Debug)]
pub(crate) struct Members {
    pub(super) me: Process,
    pub(super) list: MemberList,
    pub(super) ability: Ability,
    /// Says how nodes reach each other.
    pub(super) config: NodeConfig,
    ring: Option<RingId>,
    /// The configuration is ending: what is delivered now others may never see.
    pub(super) ending: bool,
    pub(super) exchange: Exchange,
    /// What is to be ordered, and whether it is the change that was asked for.
    pub(super) outbox: VecDeque<(Vec<u8>, bool)>,
    /// Nodes that are on the ring, and not in the list any more: they are sent to until they have left.
    leaving: Vec<NodeAddress>,
    /// The listed nodes that are not on the ring, if they may not know of this list.
    absent: Vec<NodeId>,
    pub(super) asked: Option<Asked>,
    pub(super) numbered: u64,
    pub(super) news: News,
    pub(super) keeping: Keeping,
    pub(super) unusable: Unusable,
}

impl Members {
    /// The list at the start of daemon `me`.
    pub fn new(me: Process, list: MemberList, ability: Ability, config: NodeConfig) -> Self {
        let mut members = Self {
            me,
            exchange: Exchange::begin(BTreeSet::new(), list.version),
            list,
            ability,
            config,
            ring: None,
            ending: false,
            outbox: VecDeque::new(),
            leaving: Vec::new(),
            absent: Vec::new(),
            asked: None,
            numbered: 0,
            news: News::default(),
            keeping: Keeping::default(),
            unusable: Unusable::default(),
        };
        members.look_for_absent();
        members
    }

    /// The list in force.
    pub const fn list(&self) -> &MemberList {
        &self.list
    }

    /// All nodes that are sent to and heard.
    pub fn reachable(&self) -> MemberList {
        let mut list = self.list.clone();
        list.nodes.extend(self.leaving.iter().cloned());
        list.nodes.sort_unstable_by_key(|node| node.id);
        list
    }

    /// The listed nodes that are not on the ring, if they may not know of this list.
    pub fn absent(&self) -> &[NodeId] {
        &self.absent
    }

    /// Looks anew for nodes that may not know of this list.
    fn look_for_absent(&mut self) {
        self.absent.clear();
        if self.list.version > Version::FIRST {
            let nodes = self.list.nodes.iter();
            let ids = nodes.filter_map(|node| NodeId::new(node.id));
            let absent = ids.filter(|id| *id != self.me.node && !self.exchange.has(*id));
            self.absent.extend(absent);
        }
    }

    /// Whether this node was removed: it is to leave.
    pub fn is_removed(&self) -> bool {
        self.list.node(self.me.node).is_none()
    }

    /// Whether this node was removed, and leaves now: an operator who asked for that here is told first that it is done,
    /// which is when it is stored.
    pub fn leaves(&self) -> bool {
        let is_storing = |asked: &Asked| matches!(asked.stage, Stage::Made(_));
        self.is_removed() && !self.asked.as_ref().is_some_and(is_storing)
    }

    /// Messages and notices about the list that made no sense.
    pub const fn malformed(&self) -> u64 {
        self.unusable.malformed
    }

    /// There is a list to store.
    pub const fn has_to_store(&self) -> bool {
        self.news.store
    }

    /// What has changed since the last call.
    pub const fn take_news(&mut self) -> News {
        let news = self.news;
        self.news = News {
            relist: false,
            store: false,
        };
        news
    }

    /// Other nodes could not be taken over yet.
    pub const fn put_off_relisting(&mut self) {
        self.news.relist = true;
    }

    /// Takes a delivery; returns whether it is a message about the list, and nobody else's.
    pub fn deliver(&mut self, delivery: &Delivery) -> bool {
        match delivery {
            Delivery::Configuration(configuration) => self.on_configuration(configuration),
            Delivery::Message(message) if message::is_one(&message.payload) => {
                match message::decode(&message.payload) {
                    Some((ring, told)) => self.on_told(message.id.process, ring, told),
                    None => self.count_nonsense(),
                }
                return true;
            }
            _ => {}
        }
        false
    }

    /// What is to be ordered next: the same again, until [`Self::submitted`].
    pub fn to_submit(&self) -> Option<(Service, &[u8])> {
        let (message, is_change) = self.outbox.front()?;
        // What is made is known to all who are on the ring.
        let service = if *is_change {
            Service::Safe
        } else {
            Service::Agreed
        };
        Some((service, message))
    }

    /// The ring has taken it, or never will.
    pub fn submitted(&mut self) {
        self.outbox.pop_front();
    }

    fn on_configuration(&mut self, configuration: &Configuration) {
        let ConfigurationKind::Regular(ring) = configuration.kind else {
            self.ending = true;
            return;
        };
        self.ring = Some(ring);
        self.ending = false;
        let present = configuration.members.iter().copied().collect();
        self.exchange = Exchange::begin(present, self.list.version);
        self.look_for_absent();
        if self.outbox.drain(..).any(|(_, is_change)| is_change)
            && let Some(asked) = &mut self.asked
        {
            asked.stage = Stage::Waits;
        }
        let exchange = &self.exchange;
        let before = self.leaving.len();
        self.leaving
            .retain(|node| NodeId::new(node.id).is_some_and(|id| exchange.has(id)));
        self.news.relist |= self.leaving.len() < before;
        if self.ability.fixed.is_none() {
            let tell = Tell {
                version: self.list.version,
                checksum: self.list.checksum(),
                keeps: self.ability.keeps,
            };
            self.order(Told::Tell(tell));
        }
    }

    pub(super) fn order(&mut self, told: Told) {
        if let Some(ring) = self.ring {
            let is_change = matches!(told, Told::Change(_));
            let message = message::encode(ring, &told);
            self.outbox.push_back((message, is_change));
        }
    }

    fn on_told(&mut self, from: Process, ring: RingId, told: Told) {
        let in_time = self.ring == Some(ring) && !self.ending;
        match told {
            Told::Tell(tell) if in_time => {
                if self.exchange.tell(self.me, from, tell) == Next::Give {
                    self.order(Told::Give(self.list.clone()));
                }
            }
            Told::Tell(_) => {}
            Told::Give(list) => {
                if in_time {
                    self.exchange.give(&list);
                }
                self.take_newer(list);
            }
            Told::Change(proposal) => self.on_change(from, in_time, &proposal),
        }
        self.propose();
    }

    /// A list that another daemon has: if it is the newer one, it counts.
    fn take_newer(&mut self, list: MemberList) {
        if list.version <= self.list.version || self.ability.fixed.is_some() {
            return;
        }
        if let Err(error) = list.put_into(&self.config) {
            let number = format!("list {}", list.version.number);
            let complaints = &mut self.unusable.complaints;
            complaints.say(NOT_TAKEN_OVER, &number, &error);
            self.count_nonsense();
            return;
        }
        if list.version.number == self.list.version.number {
            tracing::warn!(
                number = list.version.number,
                "the list of nodes was changed on two sides of a split: the change of the earlier ring is given up, so look at \
                 `rota member list`"
            );
        }
        self.adopt(list);
    }

    fn adopt(&mut self, list: MemberList) {
        let number = list.version.number;
        let ids: Vec<u16> = list.nodes.iter().map(|node| node.id).collect();
        tracing::info!(number, nodes = ?ids, "there is another list of nodes");
        for node in &self.list.nodes {
            let Some(id) = NodeId::new(node.id) else {
                continue;
            };
            if list.node(id).is_none() && self.exchange.has(id) && id != self.me.node {
                self.leaving.push(node.clone());
            }
        }
        let is_listed = |node: &NodeAddress| list.nodes.iter().any(|other| other.id == node.id);
        self.leaving.retain(|node| !is_listed(node));
        self.list = list;
        self.news = News {
            relist: true,
            store: self.ability.keeps,
        };
        self.look_for_absent();
        if self.is_removed() {
            tracing::error!(
                number,
                "this node was removed from the cluster: it leaves the ring, and stops"
            );
        }
    }

    /// A notice of a daemon that is not on this ring. On a ring with others the list is given to all of them: they have
    /// one list at each place of the order.
    pub fn hear(&mut self, list: MemberList) {
        let is_alone = self.exchange.present().len() <= 1;
        if is_alone {
            self.take_newer(list);
        } else if list.version > self.list.version
            && !self.ending
            && self.exchange.passes_on(list.version)
        {
            self.order(Told::Give(list));
        }
    }

    /// A message or a notice that makes no sense.
    pub const fn count_nonsense(&mut self) {
        self.unusable.malformed += 1;
    }

    /// A change at its place in the order.
    fn on_change(&mut self, from: Process, in_time: bool, proposal: &Proposal) {
        let asked = self
            .asked
            .as_mut()
            .filter(|asked| from == self.me && asked.stage == Stage::Ordered(proposal.number));
        if !in_time || !self.exchange.is_settled() {
            // It was ordered for another ring, where others may have taken it for too late: it is asked for again.
            if let Some(asked) = asked {
                asked.stage = Stage::Waits;
            }
            return;
        }
        let is_own = asked.is_some();
        match self.judge(proposal) {
            Ok(list) => {
                let version = list.version;
                self.adopt(list);
                if let Some(asked) = self.asked.as_mut().filter(|_| is_own) {
                    asked.stage = Stage::Made(version);
                }
            }
            Err(why) if is_own => self.refuse(&why),
            Err(_) => {}
        }
    }

    /// The next list, if a change may be made: the same at all daemons of the ring.
    pub(super) fn judge(&self, proposal: &Proposal) -> Result<MemberList, Refusal> {
        if let Some(why) = self.ability.fixed {
            return Err(Refusal::Fixed(why));
        }
        if proposal.base != self.list.version {
            return Err(Refusal::Outdated);
        }
        let forgetful = self.exchange.forgetful();
        if !forgetful.is_empty() {
            return Err(Refusal::Forgetful(forgetful));
        }
        let made = self.ring.ok_or(Refusal::Outdated)?;
        let list = self.list.with(&proposal.change, made, &self.config)?;
        let present = |id: NodeId| self.exchange.has(id);
        match &proposal.change {
            Change::Remove(id) if present(*id) && !proposal.force => {
                return Err(Refusal::Removed(*id));
            }
            Change::Replace(node) => {
                if let Some(id) = NodeId::new(node.id).filter(|id| present(*id)) {
                    return Err(Refusal::Replaced(id));
                }
            }
            Change::Add(_) | Change::Remove(_) => {}
        }
        let listed = self
            .list
            .nodes
            .iter()
            .filter_map(|node| NodeId::new(node.id));
        let (here, all) = (
            listed.filter(|id| present(*id)).count(),
            self.list.nodes.len(),
        );
        if 2 * here <= all && !proposal.force {
            return Err(Refusal::Few(here, all));
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests;
