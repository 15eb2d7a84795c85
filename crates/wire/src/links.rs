//! Reliable links on the ports of the network: the room that each end knows of.
//!
//! A link is a connection of TCP that neither breaks nor loses. Its bytes go through the same network cards and ports as
//! datagrams, in segments, and are never dropped there: what is under way and unread is bounded by the link's queue. Its
//! acknowledgements take their bytes on the way back, and do not wait there.

use bytes::Bytes;
use rota_core::contract::{Channel, Input, Session};

use crate::engines::process;
use crate::setup::LinkPlan;
use crate::step::index;

/// The part of the queue by which the room has grown when a process is told (`Input::Writable`).
const TOLD: usize = 8;

/// The only session of each link: none breaks.
const SESSION: Session = Session(1);

/// A link to another node is up, and takes so many bytes: what the engine is told.
pub fn up(to: usize, bytes: usize) -> [Input; 2] {
    let up = Input::LinkUp {
        peer: process(to),
        session: SESSION,
    };
    [up, writable(to, bytes)]
}

/// The link to another node takes so many bytes.
fn writable(to: usize, bytes: usize) -> Input {
    Input::Writable {
        peer: process(to).node,
        session: SESSION,
        bytes,
    }
}

/// A message of a link from another node.
pub fn message(from: usize, bytes: Bytes) -> Input {
    Input::LinkMessage {
        peer: process(from).node,
        session: SESSION,
        channel: Channel(0),
        bytes,
    }
}

/// The rooms of all links.
#[derive(Debug)]
pub struct Links {
    nodes: usize,
    plan: LinkPlan,
    /// By sender and receiver.
    ways: Vec<Way>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Bytes that were sent and not read.
    unread: usize,
    /// Bytes that the sender may still send, as it was told.
    granted: usize,
}

/// What comes of an input that a node takes from its kernel.
#[derive(Debug, Default)]
pub struct Opened {
    /// The processor time of it.
    pub cost: u64,
    /// The node that hears of more room, and what it is told.
    pub told: Option<(usize, Input)>,
}

impl Links {
    pub fn new(plan: LinkPlan, nodes: usize) -> Self {
        Self {
            nodes,
            plan,
            ways: vec![
                Way {
                    unread: 0,
                    granted: plan.queue_bytes,
                };
                nodes * nodes
            ],
        }
    }

    /// Bytes that an empty link takes.
    pub const fn queue_bytes(&self) -> usize {
        self.plan.queue_bytes
    }

    /// The processor time of sending, or of receiving, a message.
    pub const fn cost(&self, bytes: usize) -> u64 {
        self.plan.call + bytes as u64 * self.plan.byte / 1000
    }

    /// A message is sent.
    ///
    /// # Panics
    /// If the sender was not told of so much room: engines hold back what a link does not take.
    pub fn send(&mut self, from: usize, to: usize, bytes: usize) {
        let way = &mut self.ways[from * self.nodes + to];
        assert!(
            bytes <= way.granted,
            "node {from} sends {bytes} bytes over a link that takes {}",
            way.granted
        );
        way.granted -= bytes;
        way.unread += bytes;
    }

    /// A node takes from its kernel an input, which is of a link or not. A message that is read makes room for its
    /// sender; and the room that a sender is told of is what it has now, as it has sent more since that was said.
    pub fn open(&mut self, at: usize, input: &mut Input) -> Opened {
        match input {
            Input::Writable { peer, bytes, .. } => {
                *bytes = self.ways[at * self.nodes + index(*peer)].granted;
                Opened::default()
            }
            Input::LinkMessage { peer, bytes, .. } => {
                let (from, length) = (index(*peer), bytes.len());
                let room = self.read(from, at, length);
                Opened {
                    cost: self.cost(length),
                    told: room.map(|bytes| (from, writable(at, bytes))),
                }
            }
            _ => Opened::default(),
        }
    }

    /// A message was read. Returns the room that its sender has to be told of, if it has to be.
    fn read(&mut self, from: usize, to: usize, bytes: usize) -> Option<usize> {
        let way = &mut self.ways[from * self.nodes + to];
        way.unread -= bytes;
        let room = self.plan.queue_bytes - way.unread;
        if room - way.granted < self.plan.queue_bytes / TOLD {
            return None;
        }
        way.granted = room;
        Some(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_told_when_the_room_has_grown_by_an_eighth() {
        let plan = LinkPlan {
            queue_bytes: 800,
            call: 0,
            byte: 0,
        };
        let mut links = Links::new(plan, 2);
        for _ in 0..8 {
            links.send(0, 1, 60);
        }
        assert_eq!(links.read(0, 1, 60), None);
        assert_eq!(links.read(0, 1, 60), Some(440));
        assert_eq!(links.read(0, 1, 60), None);
    }

    fn room_in(input: &Input) -> Option<usize> {
        match input {
            Input::Writable { bytes, .. } => Some(*bytes),
            _ => None,
        }
    }

    #[test]
    fn an_input_of_a_link_says_what_it_costs_and_who_hears_of_it() {
        let plan = LinkPlan {
            queue_bytes: 800,
            call: 5,
            byte: 2000,
        };
        let mut links = Links::new(plan, 2);
        links.send(0, 1, 300);
        let mut read = message(0, Bytes::from_static(&[0; 300]));
        let opened = links.open(1, &mut read);
        assert_eq!(opened.cost, 605);
        let (sender, mut told) = opened.told.expect("there is more room");
        assert_eq!((sender, room_in(&told)), (0, Some(800)));
        // Node 0 sends more before it takes the word from its kernel.
        links.send(0, 1, 100);
        let opened = links.open(0, &mut told);
        assert!(opened.cost == 0 && opened.told.is_none());
        assert_eq!(room_in(&told), Some(700));
        let opened = links.open(0, &mut Input::Timer);
        assert!(opened.cost == 0 && opened.told.is_none());
    }

    #[test]
    #[should_panic(expected = "takes 20")]
    fn more_than_the_room_is_a_fault_of_the_engine() {
        let plan = LinkPlan {
            queue_bytes: 100,
            call: 0,
            byte: 0,
        };
        let mut links = Links::new(plan, 2);
        links.send(1, 0, 80);
        links.send(1, 0, 21);
    }
}
