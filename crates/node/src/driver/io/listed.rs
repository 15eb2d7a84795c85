//! The nodes that are sent to and heard, and the notices between them.

use bytes::Bytes;
use rota_core::contract::{Burst, Class, NodeId, Target};

use super::Io;
use crate::driver::DriverError;
use rota_net::Network;

impl Io {
    /// Sends to the nodes that are listed there, and hears them and no others, from now on. `false`: a burst is on its
    /// way out, and nothing has changed.
    pub(in crate::driver) fn relist(&mut self, network: &Network) -> bool {
        let may = !self.sending.is_stuck();
        if may {
            self.sockets.relist(network);
        }
        may
    }

    /// The next notice of another node.
    pub(in crate::driver) fn next_notice(&mut self) -> Option<Bytes> {
        self.sockets.next_notice()
    }

    /// Sends a notice to a node, unless something is stuck or the kernel does not take it now: it may be lost as any
    /// datagram may.
    pub(in crate::driver) fn send_notice(
        &mut self,
        to: NodeId,
        notice: Vec<u8>,
    ) -> Result<(), DriverError> {
        if self.sending.is_stuck() {
            return Ok(());
        }
        let (class, to) = (Class::Token, Target::Node(to));
        let mut out = self.sockets.seal(class, to, Burst::single(notice));
        let sent = self.sockets.send(&mut out);
        sent.map(drop).map_err(DriverError::Socket)
    }
}
