//! The rules for the deliveries, checked with each of them.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{Configuration, Message, MessageId, NodeId, Seq, Service};

type Place = (Seq, u16);
/// A message, as its sender knows it: who and which.
type Key = (NodeId, u64);

/// What one node has received.
#[derive(Default, Debug)]
struct Seen {
    configuration: Option<Configuration>,
    messages: BTreeSet<MessageId>,
    /// Messages of the total order.
    ordered: usize,
    last_ordered: Option<Place>,
    /// By sender: counter of its last message that is not reliable.
    last_in_fifo: BTreeMap<NodeId, u64>,
}

#[derive(Default, Debug)]
pub struct Oracle {
    nodes: Vec<NodeId>,
    seen: Vec<Seen>,
    sent: BTreeMap<Key, (Service, Vec<u8>)>,
    /// The one total order, as the first node to deliver each place found it.
    order: Vec<MessageId>,
    places: BTreeMap<Place, MessageId>,
    originated: BTreeMap<Key, Place>,
    tracing: bool,
}

impl Oracle {
    pub fn new(nodes: Vec<NodeId>, tracing: bool) -> Self {
        let seen = nodes.iter().map(|_| Seen::default()).collect();
        Self {
            nodes,
            seen,
            tracing,
            ..Self::default()
        }
    }

    pub fn submitted(&mut self, node: NodeId, counter: u64, service: Service, payload: &[u8]) {
        let before = self
            .sent
            .insert((node, counter), (service, payload.to_vec()));
        assert!(
            before.is_none(),
            "counter {counter} of {node} is given out twice"
        );
    }

    pub fn originated(&mut self, node: NodeId, counter: u64, place: Place) {
        assert!(self.tracing, "a trace nobody asked for");
        assert!(
            self.sent.contains_key(&(node, counter)),
            "originated before it was submitted"
        );
        assert!(
            self.originated.insert((node, counter), place).is_none(),
            "originated twice"
        );
        if let Some(id) = self.places.get(&place) {
            assert_eq!(
                (id.process.node, id.counter),
                (node, counter),
                "delivered elsewhere"
            );
        }
    }

    pub fn configured(&mut self, at: usize, configuration: Configuration) {
        if let Some(first) = self
            .seen
            .iter()
            .find_map(|seen| seen.configuration.as_ref())
        {
            assert_eq!(*first, configuration);
        }
        let before = self.seen[at].configuration.replace(configuration);
        assert!(before.is_none(), "a static ring has one configuration");
    }

    /// Node `at` delivers `message`, while the nodes have everything up to `lowest_aru`.
    pub fn delivered(&mut self, at: usize, message: &Message, lowest_aru: Seq) {
        let MessageId { process, counter } = message.id;
        let place = (message.seq, message.index);
        assert!(
            self.seen[at].configuration.is_some(),
            "a message before the configuration"
        );
        let sent = self
            .sent
            .get(&(process.node, counter))
            .expect("nobody sent this");
        assert_eq!(
            (sent.0, sent.1.as_slice()),
            (message.service, &message.payload[..])
        );
        let there = *self.places.entry(place).or_insert(message.id);
        assert_eq!(there, message.id, "two messages at {place:?}");
        self.check_trace(at, process.node, counter, place);
        if message.service == Service::Safe {
            assert!(
                lowest_aru >= message.seq,
                "safe {place:?}, but somebody is at {lowest_aru}"
            );
        }
        assert!(
            self.seen[at].messages.insert(message.id),
            "{} is delivered twice",
            message.id
        );
        if message.service != Service::Reliable {
            let last = self.seen[at]
                .last_in_fifo
                .insert(process.node, counter)
                .unwrap_or(0);
            assert!(
                last < counter,
                "{} comes after message {last} of its sender",
                message.id
            );
        }
        if message.service >= Service::Causal {
            self.in_total_order(at, message.id, place);
        }
    }

    /// At the others a message comes after its trace. Its sender may deliver it while the trace is
    /// still among the outputs.
    fn check_trace(&self, at: usize, sender: NodeId, counter: u64, place: Place) {
        match self.originated.get(&(sender, counter)) {
            Some(traced) => assert_eq!(*traced, place, "the trace has another place"),
            None => assert!(
                !self.tracing || self.nodes[at] == sender,
                "not traced before sent"
            ),
        }
    }

    fn in_total_order(&mut self, at: usize, id: MessageId, place: Place) {
        let seen = &mut self.seen[at];
        assert!(
            seen.last_ordered < Some(place),
            "{place:?} after {:?}",
            seen.last_ordered
        );
        seen.last_ordered = Some(place);
        match self.order.get(seen.ordered) {
            Some(first) => assert_eq!(*first, id, "another order at node {at}"),
            None => self.order.push(id),
        }
        seen.ordered += 1;
    }

    /// Everybody has delivered everything.
    pub fn is_complete(&self) -> bool {
        let complete = |seen: &Seen| seen.messages.len() == self.sent.len();
        assert!(self.originated.len() <= self.sent.len());
        self.seen
            .iter()
            .all(|seen| seen.configuration.is_some() && complete(seen))
    }

    /// What is missing where, for a failure's text.
    pub fn missing(&self) -> Vec<(usize, usize)> {
        let count = |seen: &Seen| self.sent.len() - seen.messages.len();
        self.seen
            .iter()
            .map(count)
            .enumerate()
            .filter(|(_, missing)| *missing > 0)
            .collect()
    }
}
