//! Peers at whose addresses no process listens, as the network tells of what was sent to them before.

use rota_core::contract::NodeId;
use std::collections::VecDeque;
use std::net::SocketAddr;

use super::peers::Peers;
use super::ports::Ports;
use super::quotes::Quotes;
use crate::mutants::{self, Mutant};
use crate::stats::NetStats;

/// Entries of an error queue read in one go, and tries for one burst: bounds the work that refusals can cause.
pub(super) const REFUSALS_AT_ONCE: usize = 64;

/// What was sent lately, by which a true refusal is told from a forged one, and the peers that were refused.
#[derive(Debug)]
pub(super) struct Refused {
    quotes: Quotes,
    /// Each of them once.
    peers: VecDeque<NodeId>,
}

impl Refused {
    pub(super) const fn new() -> Self {
        Self {
            quotes: Quotes::new(),
            peers: VecDeque::new(),
        }
    }

    /// Remembers a control datagram that leaves: a refusal of it quotes it.
    pub(super) fn remember(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.quotes.remember(to, datagram);
    }

    /// The next peer that was refused, once for each sign of it.
    pub(super) fn next(&mut self) -> Option<NodeId> {
        self.peers.pop_front()
    }

    /// Reads the errors about datagrams that were sent before. Says whether a peer, the network, or a forger has
    /// reported anything.
    pub(super) fn read_errors(
        &mut self,
        ports: &Ports,
        known: &Peers,
        stats: &mut NetStats,
    ) -> bool {
        let mut any = false;
        for port in ports.all() {
            for _ in 0..REFUSALS_AT_ONCE {
                let Some(error) = port.take_error() else {
                    break;
                };
                any |= !error.local;
                if error.code == libc::ECONNREFUSED {
                    let is_true = |to: &SocketAddr| {
                        mutants::on(Mutant::O01) || self.quotes.is_quoted(*to, error.quote())
                    };
                    match error.to.filter(is_true).and_then(|to| known.at(to)) {
                        Some(peer) => {
                            stats.unreachable += 1;
                            if !self.peers.contains(&peer) {
                                self.peers.push_back(peer);
                            }
                        }
                        None => stats.unreachable_unproved += 1,
                    }
                }
                // Refusals of the own kernel were counted at once.
                let lost_on_the_way = error.code == libc::EMSGSIZE && !error.local;
                stats.too_large += u64::from(lost_on_the_way);
            }
        }
        any
    }
}
