//! Decided values that count, on their way to the application.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use super::config::URingConfig;
use super::snapshot::Snapshot;
use crate::{Instance, ValueId};
use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Incarnation, Message, MessageId, NodeId, Process,
    RingId, Service,
};
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};
use rota_core::pack::{Inbox, MOST_MESSAGE_BYTES};

/// The representative of no members: nothing was ever ordered.
const NOBODY: NodeId = NodeId::new(u16::MAX).expect("not 0");

#[derive(Debug)]
enum Item {
    Packet(Instance, Process, Bytes),
    Members(Instance, Arc<[Process]>),
    /// A notice for the merge.
    Notice(Instance, Bytes),
    /// Members among whom this process is not.
    Excluded(Instance, Arc<[Process]>),
    /// Messages that were begun do not go on.
    Forget,
    /// The first missed instance, the number of missed ones, and the counter up to which own messages are delivered.
    Missed(Instance, u64, u64),
    /// A value that is not handed out: a message may go on behind it.
    Part(Process, Bytes),
    /// The same, if the beginning of the message that ends in it is forgotten.
    Begun(Process, Bytes),
    /// A message of this process goes on behind this, and its beginning is forgotten.
    Headless(Process),
}

/// Whether everything is handed out, or only while this process is a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Membership {
    /// Everything.
    Any,
    /// This process is a member.
    Inside,
    /// This process is no member, since before this instance; 0 if it has never been one.
    Outside(Instance),
}

/// See the module's page.
#[derive(Debug)]
pub struct DeliveryQueue {
    me: Option<Process>,
    waiting: VecDeque<Item>,
    bytes: usize,
    most_bytes: usize,
    inbox: Inbox,
    current: Option<(Instance, Process, Service)>,
    /// The processes with a message that goes on though its beginning is forgotten.
    headless: BTreeSet<Process>,
    /// By node: the life whose values were handed out last.
    lives: BTreeMap<NodeId, Incarnation>,
    membership: Membership,
    /// The others take this process for a member, and it has missed what they have told it as one.
    lacks_view: bool,
    /// Messages that could not be put together: their senders break the rules.
    pub malformed: u64,
}

impl DeliveryQueue {
    /// Empty, with the bounds that are set.
    pub const fn new(settings: &URingConfig) -> Self {
        Self {
            me: None,
            membership: if settings.learner.only_as_member {
                Membership::Outside(0)
            } else {
                Membership::Any
            },
            lacks_view: false,
            waiting: VecDeque::new(),
            bytes: 0,
            most_bytes: settings.learner.waiting_bytes,
            inbox: Inbox::new(MOST_MESSAGE_BYTES),
            current: None,
            headless: BTreeSet::new(),
            lives: BTreeMap::new(),
            malformed: 0,
        }
    }

    /// The process has begun.
    pub const fn start(&mut self, me: Process) {
        self.me = Some(me);
    }

    /// Whether it takes more.
    pub const fn has_room(&self) -> bool {
        self.bytes < self.most_bytes
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.current.is_none()
    }

    /// Whether nothing can be handed out before members are named once more.
    pub const fn lacks_view(&self) -> bool {
        self.lacks_view
    }

    /// A value that counts.
    pub fn packet(&mut self, instance: Instance, id: ValueId, frame: Bytes) {
        self.bytes += frame.len() + usize::from(mutants::on(Mutant::I07));
        let item = match self.membership {
            Membership::Any | Membership::Inside => Item::Packet(instance, id.process, frame),
            Membership::Outside(_) => Item::Part(id.process, frame),
        };
        self.waiting.push_back(item);
    }

    /// A notice for the merge that this ring feeds.
    pub fn notice(&mut self, instance: Instance, notice: Bytes) {
        self.waiting.push_back(Item::Notice(instance, notice));
    }

    /// The members from here on; `inside`: this process is one. Its messages up to `own` are delivered.
    pub fn members(&mut self, instance: Instance, members: Arc<[Process]>, inside: bool, own: u64) {
        self.lacks_view = false;
        match (self.membership, inside) {
            (Membership::Outside(_), false) => return,
            (Membership::Inside, false) => {
                self.membership = Membership::Outside(instance + 1);
                self.waiting.push_back(Item::Excluded(instance, members));
                return;
            }
            (Membership::Outside(since), true) => {
                self.membership = Membership::Inside;
                // A process that has never been a member, as far as it has seen, may also have missed the fate of its
                // messages.
                if since > 0 || own > 0 {
                    let since = if since > 0 { since } else { instance };
                    let count = instance.saturating_sub(since);
                    self.waiting.push_back(Item::Missed(since, count, own));
                }
            }
            (Membership::Any, _) | (Membership::Inside, true) => {}
        }
        self.waiting.push_back(Item::Members(instance, members));
    }

    /// Everything from `first` up to a snapshot is missed, as it is forgotten. `inside`: this process is a member
    /// there.
    pub fn missed(&mut self, first: Instance, base: &Snapshot, inside: bool, own: u64) {
        match self.membership {
            Membership::Any => self.missed_by_all(first, base, own),
            Membership::Inside => {
                self.membership = Membership::Outside(first);
                let members = base.table.members().collect();
                let last = base.next.saturating_sub(1);
                self.waiting.push_back(Item::Excluded(last, members));
            }
            Membership::Outside(_) => {}
        }
        self.lacks_view = inside && self.membership != Membership::Any;
        self.begin(base);
    }

    /// Messages that go on behind a snapshot: their beginnings are in it, or are forgotten.
    pub fn begin(&mut self, base: &Snapshot) {
        self.waiting.push_back(Item::Forget);
        for (process, open) in &base.open {
            if open.values.is_empty() {
                self.waiting.push_back(Item::Headless(*process));
            }
            for (_, value) in &open.values {
                self.bytes += value.len();
                self.waiting.push_back(Item::Begun(*process, value.clone()));
            }
        }
    }

    /// The same if everything is handed out: the members that were named last in there are not named again behind it.
    fn missed_by_all(&mut self, first: Instance, base: &Snapshot, own: u64) {
        let mut from = first;
        if let Some((at, members)) = base.view.clone().filter(|(at, _)| *at >= first) {
            self.leave_out(first, at, own);
            self.waiting.push_back(Item::Members(at, members));
            from = at + 1;
        }
        self.leave_out(from, base.next, own);
    }

    fn leave_out(&mut self, from: Instance, upto: Instance, own: u64) {
        if from < upto {
            self.waiting.push_back(Item::Missed(from, upto - from, own));
        }
    }

    /// The next delivery.
    pub fn next(&mut self) -> Option<Delivery> {
        loop {
            if let Some(message) = self.message() {
                return Some(Delivery::Message(message));
            }
            match self.waiting.pop_front()? {
                Item::Packet(instance, process, bytes) if self.headless.contains(&process) => {
                    if let Some(missed) = self.go_on_headless(instance, process, bytes) {
                        return Some(missed);
                    }
                }
                Item::Packet(instance, process, bytes) => self.open(instance, process, bytes),
                Item::Part(process, bytes) if self.headless.contains(&process) => {
                    let _ = self.go_on_headless(0, process, bytes);
                }
                Item::Part(process, bytes) => {
                    self.open(0, process, bytes);
                    while self.message().is_some() {}
                }
                Item::Begun(process, bytes) => self.begin_with(process, bytes),
                Item::Headless(process) => {
                    self.headless.insert(process);
                }
                Item::Members(instance, members) => {
                    return Some(Delivery::Configuration(configuration(instance, &members)));
                }
                Item::Notice(seq, bytes) => return Some(Delivery::Notice { seq, bytes }),
                Item::Forget => {
                    self.headless.clear();
                    self.inbox.retain(|_| false);
                    self.lives.clear();
                }
                Item::Excluded(instance, members) => {
                    return Some(Delivery::Excluded(ring_id(instance, &members)));
                }
                Item::Missed(seq, count, own) => {
                    return Some(Delivery::Missed { seq, count, own });
                }
            }
        }
    }

    /// Takes the messages that a value begins, and nothing of the one that it ends: the beginning of that is forgotten.
    fn begin_with(&mut self, process: Process, bytes: Bytes) {
        let malformed = self.malformed;
        self.open(0, process, bytes);
        while self.message().is_some() {}
        self.malformed = malformed;
    }

    /// A value of a process whose message goes on without its beginning. The whole instance in which the message ends
    /// is missed.
    fn go_on_headless(
        &mut self,
        instance: Instance,
        process: Process,
        bytes: Bytes,
    ) -> Option<Delivery> {
        let is_middle = super::value::cut(&bytes) == Some(true);
        let ends = !is_middle;
        let mut own = 0;
        if ends {
            self.headless.remove(&process);
            if self.me == Some(process) && !mutants::on(Mutant::U68) {
                own = super::value::last_whole(&bytes);
            }
        }
        match is_middle {
            true => self.bytes -= bytes.len(),
            false => self.begin_with(process, bytes),
        }
        (ends && !mutants::on(Mutant::U61)).then_some(Delivery::Missed {
            seq: instance,
            count: 1,
            own,
        })
    }

    fn open(&mut self, instance: Instance, process: Process, bytes: Bytes) {
        self.bytes -= bytes.len();
        let Some((service, frame)) = super::value::read(bytes) else {
            self.malformed += 1;
            return;
        };
        let Process { node, incarnation } = process;
        if self.lives.insert(node, incarnation) != Some(incarnation) {
            // Another life of the node does not go on with messages that the one before had begun.
            self.inbox.retain(|other| other != node);
        }
        self.inbox.take(node, frame);
        self.current = Some((instance, process, service));
    }

    fn message(&mut self) -> Option<Message> {
        let (seq, process, service) = self.current?;
        while let Some(unpacked) = self.inbox.next_message() {
            let Ok(unpacked) = unpacked else {
                self.malformed += 1;
                continue;
            };
            let service = if unpacked.reliable {
                Service::Reliable
            } else {
                service
            };
            return Some(Message {
                id: MessageId {
                    process,
                    counter: unpacked.counter,
                },
                service,
                seq,
                index: unpacked.index,
                payload: unpacked.payload,
            });
        }
        self.current = None;
        None
    }
}

/// The configuration of these members, in their order.
fn configuration(instance: Instance, members: &[Process]) -> Configuration {
    let mut sorted: Vec<Process> = members.to_vec();
    sorted.sort_unstable();
    Configuration {
        kind: ConfigurationKind::Regular(ring_id(instance, members)),
        members: sorted,
    }
}

/// A configuration is named by the instance in which it was decided: the same everywhere.
fn ring_id(instance: Instance, members: &[Process]) -> RingId {
    let first = members.iter().min();
    RingId {
        ring_seq: instance,
        rep: first.map_or(NOBODY, |first| first.node),
        incarnation: first.map_or(Incarnation(0), |first| first.incarnation),
    }
}

impl DeliveryQueue {
    /// Its invariants.
    pub fn check(&self) {
        assert!(
            !self.lacks_view || self.membership != Membership::Any,
            "only members wait to be named"
        );
        if self.waiting.len() <= FEW {
            let bytes = |item: &Item| match item {
                Item::Packet(_, _, bytes) | Item::Part(_, bytes) | Item::Begun(_, bytes) => {
                    bytes.len()
                }
                _ => 0,
            };
            assert_eq!(
                self.bytes,
                self.waiting.iter().map(bytes).sum(),
                "bytes are counted"
            );
        }
    }
}
