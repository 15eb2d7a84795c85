//! Refusals: by this host's kernel, or by a peer or the network, which are told of later.

use std::io;
use std::net::SocketAddr;

use rota_core::contract::Class;

use socket2::SockAddr;

use super::refusals::Refusals;
use super::{Outgoing, Sockets};
use crate::mutants::{self, Mutant};
use crate::socket::{Port, Progress};
use crate::sys;

/// Entries of an error queue read in one go, and tries for one burst: bounds the work that refusals can cause.
pub(super) const REFUSALS_AT_ONCE: usize = 64;

impl Sockets {
    /// Sends what is left of a burst to one peer, or to the group.
    pub(super) fn send_to(
        &mut self,
        out: &mut Outgoing,
        peer: Option<usize>,
    ) -> io::Result<Progress> {
        self.remember(out, peer);
        let mut of_others = 0;
        while of_others < REFUSALS_AT_ONCE {
            let to = match (peer.and_then(|place| self.peers.get(place)), &self.group) {
                (Some(peer), _) if out.class == Class::Token => &peer.token,
                (Some(peer), _) => &peer.data,
                (None, Some(group)) => group,
                (None, None) => return Ok(Progress::Done),
            };
            let ports = (&mut self.data, &mut self.token, &mut self.sender);
            let port = sender(out.class, ports);
            let sent = port.send(to, &out.burst, &mut out.at, &mut self.stats);
            if let Some(code) = port.take_refusal() {
                note(&mut self.refusals, code, to);
            }
            let error = match sent {
                Ok(progress) => return Ok(progress),
                Err(error) => error,
            };
            let to = to.clone();
            // A refusal is reported by whatever is sent next and says nothing about that: it is tried again.
            if self.read_errors() {
                of_others += 1;
                continue;
            }
            // This host's kernel refuses this burst itself.
            let ports = (&mut self.data, &mut self.token, &mut self.sender);
            let port = sender(out.class, ports);
            let given_up = port.on_send_error(&error, &out.burst, &mut out.at, &mut self.stats);
            if let Some(code) = port.take_refusal() {
                note(&mut self.refusals, code, &to);
            }
            if let Some(progress) = given_up {
                return Ok(progress);
            }
        }
        self.stats.send_errors += 1;
        Ok(Progress::Done)
    }

    /// Reads the errors about datagrams that were sent before. Says whether a peer, the network, or a forger has
    /// reported anything.
    pub(super) fn read_errors(&mut self) -> bool {
        let mut any = false;
        let ports = [Some(&self.data), Some(&self.token), self.sender.as_ref()];
        for port in ports.into_iter().flatten() {
            for _ in 0..REFUSALS_AT_ONCE {
                let Some(error) = port.take_error() else {
                    break;
                };
                any |= !error.local;
                if error.code == libc::ECONNREFUSED {
                    let is_true = |to: &SocketAddr| {
                        mutants::on(Mutant::O01) || self.quotes.is_quoted(*to, error.quote())
                    };
                    match error.to.filter(is_true).and_then(|to| self.peers.at(to)) {
                        Some(peer) => {
                            self.stats.unreachable += 1;
                            if !self.refused.contains(&peer) {
                                self.refused.push_back(peer);
                            }
                        }
                        None => self.stats.unreachable_unproved += 1,
                    }
                }
                // Refusals of the own kernel were counted at once.
                let lost_on_the_way = error.code == libc::EMSGSIZE && !error.local;
                self.stats.too_large += u64::from(lost_on_the_way);
            }
        }
        any
    }
}

fn note(refusals: &mut Refusals, code: i32, to: &SockAddr) {
    if let Some(to) = to.as_socket() {
        refusals.note(sys::monotonic(), code, to.ip());
    }
}

/// The socket by which datagrams of a class leave: data has one of its own where there is multicast.
const fn sender<'a>(
    class: Class,
    (data, token, sender): (&'a mut Port, &'a mut Port, &'a mut Option<Port>),
) -> &'a mut Port {
    match (class, sender) {
        (Class::Token, _) => token,
        (Class::Data, Some(sender)) => sender,
        (Class::Data, None) => data,
    }
}
