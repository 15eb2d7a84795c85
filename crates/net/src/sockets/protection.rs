//! The protection of datagrams: by checksums, or by keys.

use rota_core::contract::{Burst, Class, NodeId, Target};

use super::SocketError;
use crate::keys::{KeyError, KeyRing};
use crate::network::Network;
use crate::seal::checksum::{self, Bursts};
use crate::seal::{KeyedSeal, Keys};

/// The protection that the configuration asks for.
pub(super) enum Seal {
    Plain(Bursts),
    Keyed(Box<KeyedSeal>),
}

impl Seal {
    pub(super) fn new(network: &Network, me: NodeId) -> Result<Self, SocketError> {
        let Some(path) = &network.key_file else {
            return Ok(Self::Plain(Bursts::new()));
        };
        let wrong = |error| SocketError::Key(path.clone(), error);
        let keys = KeyRing::load(path).map_err(wrong)?;
        let keyed = KeyedSeal::new(network, me, &keys);
        let keyed = keyed.map_err(|error| wrong(KeyError::Io(error)))?;
        Ok(Self::Keyed(Box::new(keyed)))
    }

    /// Seals the datagrams of a burst.
    pub(super) fn seal(&mut self, class: Class, to: Target, burst: &mut Burst) {
        match self {
            Self::Plain(_) => burst.datagrams_mut().for_each(checksum::seal),
            Self::Keyed(seal) => seal.seal(class, to, burst.datagrams_mut()),
        }
    }

    /// The handle for giving this node other keys; `None` if it has none.
    pub(super) fn keys(&self) -> Option<Keys> {
        match self {
            Self::Plain(_) => None,
            Self::Keyed(seal) => Some(seal.keys()),
        }
    }
}
