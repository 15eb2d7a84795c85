//! K8, one order of all groups: the events of all clients of all groups fit into one order of time.
//!
//! The graph is O1's, of clients: a node for each message, which stands for all its deliveries in all groups, one for
//! each view, and one for each sending. Edges lead from each event of a client to its next, and from the sending of a
//! message to the message. It must have no cycle.
//!
//! Reliable and fifo messages are left out, as they have no place in the total order; and transitions,
//! which have no place that all share.

use crate::graph::Graph;
use crate::groups::Groups;
use crate::report::Findings;
use crate::trace::clients::Saw;
use crate::view::{View, is_ordered};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    let nodes = Nodes::of(&view.groups);
    let graph = Graph::new(nodes.count(), |edge| {
        nodes.walk(&mut |from, to, _| edge(from, to));
    });
    let cycle = graph.cycle();
    if nodes.count() > 0 {
        findings.check(cycle.is_none(), || {
            nodes.describe(&cycle.unwrap_or_default())
        });
    }
}

/// Numbers the nodes: messages, then views, then sendings.
struct Nodes<'a> {
    groups: &'a Groups<'a>,
    messages: u32,
    views: u32,
    /// By sending: its message.
    sendings: Vec<u32>,
}

impl<'a> Nodes<'a> {
    fn of(groups: &'a Groups<'a>) -> Self {
        let saw = groups.connections().flat_map(|(_, one)| &one.saw);
        let sendings = saw.filter_map(|saw| match saw {
            Saw::Send { post, .. } if is_ordered(post.service) => Some(post.message),
            _ => None,
        });
        Self {
            groups,
            messages: groups.clients.messages().len() as u32,
            views: groups.clients.views().len() as u32,
            sendings: sendings.collect(),
        }
    }

    fn count(&self) -> usize {
        (self.messages + self.views) as usize + self.sendings.len()
    }

    /// Gives every edge, with the client that saw it; none for that of a message.
    fn walk(&self, edge: &mut dyn FnMut(u32, u32, Option<u32>)) {
        let mut sending = self.messages + self.views;
        for (number, connection) in self.groups.connections() {
            let mut last = None;
            for saw in &connection.saw {
                let node = match saw {
                    Saw::View(given) => self.messages + given,
                    Saw::Deliver(post) if is_ordered(post.service) => post.message,
                    Saw::Send { post, .. } if is_ordered(post.service) => {
                        sending += 1;
                        edge(sending - 1, post.message, None);
                        sending - 1
                    }
                    _ => continue,
                };
                if let Some(before) = last.replace(node) {
                    edge(before, node, Some(number));
                }
            }
        }
    }

    fn describe(&self, cycle: &[u32]) -> String {
        let mut seen_by = vec![None; cycle.len()];
        let successor = |place: usize| cycle[(place + 1) % cycle.len()];
        self.walk(&mut |from, to, client| {
            let place = cycle.iter().position(|node| *node == from);
            if let Some(place) = place.filter(|place| successor(*place) == to) {
                seen_by[place].get_or_insert(client);
            }
        });
        let mut text = String::from("a cycle: ");
        for (node, client) in cycle.iter().zip(seen_by) {
            text += &self.name(*node);
            match client.flatten() {
                Some(client) => text += &format!(", then at {} ", self.groups.who(client)),
                None => text += ", and so ",
            }
        }
        let first = cycle.first().map(|node| self.name(*node));
        text + &first.unwrap_or_default()
    }

    fn name(&self, node: u32) -> String {
        if node < self.messages {
            return self.groups.what(node);
        }
        let place = node - self.messages;
        if place < self.views {
            return self.groups.shown(place);
        }
        let message = self.sendings[(place - self.views) as usize];
        format!("the sending of {}", self.groups.what(message))
    }
}
