//! O1, one order: the events of all processes fit into one order of time.
//!
//! The graph has a node for every origination, one for every message, which stands for all its deliveries, and one for
//! every configuration. Edges lead from each event of a process to its next, and from a message's origination to the
//! message. It must have no cycle: then originations, deliveries and configuration changes can be numbered so that
//! causes come before effects and all processes agree, as the definition asks of its function `ord`.
//!
//! Reliable and fifo messages are left out if they have no place in the total order. Engines with one order over
//! primary views give them one. If that order begins anew, a message has a node in each order.

use std::collections::BTreeMap;

use rota_core::contract::Service;

use crate::graph::Graph;
use crate::report::Findings;
use crate::trace::{Place, Step};
use crate::uniform::{Begins, Uniform};
use crate::view::{View, is_ordered};

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    check_graph(&Nodes::of(view, is_ordered), findings);
}

/// The same check, if messages of all services are ordered.
pub(super) fn check_all_services(uniform: &Uniform<'_>, findings: &mut Findings) {
    let mut nodes = Nodes::of(&uniform.base, |_| true);
    nodes.orders = vec![0; nodes.configurations as usize];
    for view in &uniform.views {
        if !matches!(view.begins, Begins::Again { .. }) {
            nodes.orders[view.conf as usize] = view.order;
            continue;
        }
        for stay in view.stays.iter().map(|stay| &uniform.stays[*stay as usize]) {
            let from = stay.excluded.unwrap_or(stay.steps.start);
            nodes
                .again
                .insert((stay.process, view.conf), (from, view.order));
        }
    }
    check_graph(&nodes, findings);
}

fn check_graph(nodes: &Nodes<'_>, findings: &mut Findings) {
    let graph = Graph::new(nodes.count(), |edge| {
        nodes.walk(&mut |from, to, _| edge(from, to))
    });
    let cycle = graph.cycle();
    findings.check(cycle.is_none(), || {
        nodes.describe(&cycle.unwrap_or_default())
    });
}

/// Numbers the nodes: messages, once for each order, then configurations, then originations.
struct Nodes<'a> {
    view: &'a View<'a>,
    is_ordered: fn(Service) -> bool,
    messages: u32,
    configurations: u32,
    /// By configuration: its order. Empty if there is but one.
    orders: Vec<u32>,
    /// By process and configuration that it went back to: the first of its events that is of another order, and that
    /// order.
    again: BTreeMap<(u32, u32), (usize, u32)>,
    /// By origination: its message.
    originations: Vec<u32>,
}

impl<'a> Nodes<'a> {
    fn of(view: &'a View<'a>, is_ordered: fn(Service) -> bool) -> Self {
        let originations = view.all_steps().filter_map(|(_, _, step)| match step {
            Step::Orig(place) if is_ordered(place.service) => Some(place.message),
            Step::Broadcast {
                message, service, ..
            } if is_ordered(*service) => Some(*message),
            _ => None,
        });
        Self {
            view,
            is_ordered,
            messages: view.homes.len() as u32,
            configurations: view.trace.configurations().len() as u32,
            orders: Vec::new(),
            again: BTreeMap::new(),
            originations: originations.collect(),
        }
    }

    /// The first node that is no message.
    fn first(&self) -> u32 {
        let last = self.orders.iter().max().copied().unwrap_or(0);
        self.messages * (last + 1)
    }

    fn count(&self) -> usize {
        (self.first() + self.configurations) as usize + self.originations.len()
    }

    /// The node of a message that a process delivers in a configuration, in the order of that; if there is none yet,
    /// in the first.
    fn message(&self, message: u32, (process, at): (u32, usize), conf: Option<u32>) -> u32 {
        let again = conf.and_then(|conf| self.again.get(&(process, conf)));
        let again = again.filter(|(from, _)| *from <= at);
        let order = conf.and_then(|conf| self.orders.get(conf as usize));
        let order = again.map(|(_, order)| order).or(order);
        order.copied().unwrap_or(0) * self.messages + message
    }

    /// Gives every edge, with the process that saw it; none for that of a message.
    fn walk(&self, edge: &mut dyn FnMut(u32, u32, Option<u32>)) {
        let first = self.first();
        let mut originated = first + self.configurations;
        let mut last: Option<(u32, u32)> = None;
        let mut current: Option<u32> = None;
        for (process, at, step) in self.view.all_steps() {
            let last_of = last.filter(|(who, _)| *who == process);
            if last_of.is_none() {
                current = None;
            }
            let node = match step {
                Step::Conf { conf, .. } => {
                    current = Some(*conf);
                    first + conf
                }
                Step::Deliver(place) if (self.is_ordered)(place.service) => {
                    self.message(place.message, (process, at), current)
                }
                Step::Orig(Place {
                    message, service, ..
                })
                | Step::Broadcast {
                    message, service, ..
                } if (self.is_ordered)(*service) => {
                    let node = originated;
                    originated += 1;
                    for message in (*message..first).step_by(self.messages as usize) {
                        edge(node, message, None);
                    }
                    node
                }
                _ => continue,
            };
            if let Some((_, before)) = last_of {
                edge(before, node, Some(process));
            }
            last = Some((process, node));
        }
    }

    fn describe(&self, cycle: &[u32]) -> String {
        let mut seen_by = vec![None; cycle.len()];
        let successor = |place: usize| cycle[(place + 1) % cycle.len()];
        self.walk(&mut |from, to, process| {
            let place = cycle.iter().position(|node| *node == from);
            if let Some(place) = place.filter(|place| successor(*place) == to) {
                seen_by[place].get_or_insert(process);
            }
        });
        let mut text = String::from("a cycle: ");
        for (node, process) in cycle.iter().zip(seen_by) {
            text += &self.name(*node);
            match process.flatten() {
                Some(process) => text += &format!(", then at {} ", self.view.who(process)),
                None => text += ", and so ",
            }
        }
        text + &cycle
            .first()
            .map_or_else(String::new, |node| self.name(*node))
    }

    fn name(&self, node: u32) -> String {
        let Some(conf) = node.checked_sub(self.first()) else {
            return self.view.what(node % self.messages);
        };
        if conf < self.configurations {
            return self.view.conf(conf);
        }
        let message = self.originations[(conf - self.configurations) as usize];
        format!("the origination of {}", self.view.message(message))
    }
}
