//! The nodes that a node's sockets send to and hear, which may change while they are open.

use bytes::Bytes;
use rota_core::contract::NodeId;
use std::net::IpAddr;

use super::{Seal, Sockets};
use crate::network::Network;

impl Sockets {
    /// Sends to the nodes that are listed there, and hears them and no others, from now on. Everything else about the
    /// sockets stays as it was. No burst may be on its way out.
    pub fn relist(&mut self, network: &Network) {
        self.peers.relist(network);
        if let Seal::Keyed(seal) = &mut self.seal {
            seal.relist(network);
        }
    }

    /// The next notice of another node, as it came, with the room for its seal at the end.
    pub fn next_notice(&mut self) -> Option<Bytes> {
        self.notices.next()
    }

    /// A peer whose name has another address than before, once for each: it may be there now.
    pub fn next_moved(&mut self) -> Option<(NodeId, IpAddr)> {
        self.peers.next_moved()
    }

    /// The notes about peers that have no address yet, a sentence for each.
    pub fn unknown_peers(&self) -> Vec<String> {
        self.peers.without_address()
    }
}
