//! The listener from which the other processes get entries that they do not have.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rota_core::contract::{NodeId, Process};
use rota_net::{KeyRing, Landing, RpcConnection};
use rota_storage::acceptor::FileDir;

use super::question::{Ask, MOST_BYTES, Told};
use crate::machine::Position;
use crate::replicated::View;
use crate::store::{ReadError, Store};

/// The number of connections, at most.
const MOST_GUESTS: usize = 64;
/// The time without a question after which a connection ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// The parts that serve the other processes.
pub(super) struct Room {
    pub(super) own: (Process, u32),
    pub(super) keys: Option<KeyRing>,
    /// The nodes that may connect.
    pub(super) others: BTreeSet<NodeId>,
    pub(super) store: Arc<Store<FileDir>>,
    /// The rings of this process.
    pub(super) rings: Vec<u16>,
    /// The logs, once the replica has begun.
    pub(super) view: View,
}

/// Serves the other processes at an address, until the returned value is dropped.
pub(super) fn open(address: SocketAddr, room: Room) -> io::Result<Landing> {
    let of = ("rota-log-guest", MOST_GUESTS);
    Landing::open(address, of, move |stream| room.serve(stream))
}

impl Room {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let may = |node: NodeId| self.others.contains(&node);
        let mut talk = RpcConnection::accept(stream, self.own, may, self.keys.as_ref(), PATIENCE)?;
        loop {
            let ask = Ask::decode(&talk.hear()?);
            let ask = ask.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
            talk.say(&self.told(&ask).encode())?;
        }
    }

    fn told(&self, ask: &Ask) -> Told {
        if *ask == Ask::CONFIGURATION {
            return Told::Configuration(self.rings.clone());
        }
        let most = ask.most.min(MOST_BYTES) as usize;
        match self.store.read(ask.log, ask.from, ask.to, most) {
            Ok(run) => Told::Run(run.into_bytes()),
            Err(ReadError::Trimmed { first }) => Told::Trimmed(first),
            // The store forgets deleted logs after some states.
            Err(_) if self.view.look(|logs| logs.is_gone(ask.log)) => Told::Trimmed(Position::MAX),
            Err(_) => Told::Nothing,
        }
    }
}
