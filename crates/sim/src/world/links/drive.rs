//! Links in the world: the processes that may have one, and their use of links.

use bytes::Bytes;
use rota_core::contract::{Channel, Input, NodeId, Session};

use super::super::queue::LinkStep;
use super::super::{Phase, System, World};
use super::{Pair, Told};

/// Bytes of a message for which sending and receiving cost as much as for a datagram.
const SEGMENT_BYTES: usize = 1448;

impl<S: System> World<'_, S> {
    /// Something happens to a link.
    pub(in crate::world) fn link(&mut self, way: u16, step: LinkStep) {
        let Some(links) = &mut self.links else { return };
        let (at, peer) = links.hosts_of(way);
        match step {
            LinkStep::Tend => {
                let pair = self.pair(at, peer);
                if let Some(links) = &mut self.links {
                    links.tend(&mut self.queue, self.now, &pair);
                }
                self.wake_now(at);
                self.wake_now(peer);
            }
            LinkStep::Open => {
                links.open(at, peer);
                self.wake_now(at);
            }
            LinkStep::Close => {
                links.close(self.now, at, peer);
                self.wake_now(at);
            }
            LinkStep::Move => {
                let cut = self.network.is_cut(at, peer);
                links.carry(&mut self.queue, self.now, (at, peer), cut);
                self.wake_now(peer);
            }
        }
    }

    fn pair(&self, low: usize, high: usize) -> Pair {
        let runs = |at: usize| {
            let host = &self.hosts[at];
            let life = host.life.as_ref().filter(|_| host.paused_until <= self.now);
            life.map(|life| life.process)
        };
        let processes = runs(low).and_then(|one| Some([one, runs(high)?]));
        Pair {
            hosts: [low, high],
            processes,
            cut: self.network.is_cut(low, high) || self.network.is_cut(high, low),
            fragile: self.phase == Phase::Faulty,
        }
    }

    /// Sends a message over a link, and says how long that takes.
    pub(in crate::world) fn send_over_link(
        &mut self,
        at: usize,
        peer: NodeId,
        session: Session,
        bytes: Bytes,
    ) -> u64 {
        let Some(peer) = self.hosts.iter().position(|host| host.node == peer) else {
            self.found("links", format!("a message for {peer}, which is nobody"));
            return 0;
        };
        let length = bytes.len();
        let cost = self.plan.cost.send
            + length.div_ceil(SEGMENT_BYTES) as u64 * self.plan.cost.send_datagram / 4;
        let delay = cost + self.network.stream_delay(at, peer);
        let Some(links) = &mut self.links else {
            self.found("links", "a message for a link where there are none");
            return cost;
        };
        let message = (session.0, bytes);
        let sent = links.send(&mut self.queue, self.now, (at, peer), message, delay);
        if let Err(room) = sent {
            let what = format!("host {at} sends {length} bytes to {peer}, which takes {room}");
            self.found("links", what);
        }
        cost
    }

    /// Tells a process the next thing about its links, and says how long that takes.
    pub(in crate::world) fn read_link(&mut self, at: usize) -> Option<u64> {
        let (peer, session, told, room) = self.links.as_mut()?.next(at)?;
        self.wake_now(peer);
        let session = Session(session);
        let node = self.hosts[peer].node;
        let mut cost = self.plan.cost.turn;
        let input = match told {
            Told::Up(peer) => Input::LinkUp { peer, session },
            Told::Down => Input::LinkDown {
                peer: node,
                session,
            },
            Told::Room => Input::Writable {
                peer: node,
                session,
                bytes: room,
            },
            Told::Message(bytes) => {
                let segments = bytes.len().div_ceil(SEGMENT_BYTES) as u64;
                cost += self.plan.cost.receive + segments * self.plan.cost.receive_datagram / 4;
                Input::LinkMessage {
                    peer: node,
                    session,
                    channel: Channel::default(),
                    bytes,
                }
            }
        };
        self.hand_in(at, input);
        Some(cost)
    }
}
