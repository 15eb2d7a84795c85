//! The protection of a datagram between two nodes: the only place that knows how it works.
//!
//! With a key, datagrams are encrypted and authenticated: [`Sealer`] seals what a node sends, [`Opener`]
//! opens what it receives and refuses what is forged or has come before. Without one they end with a
//! [`checksum`], which finds damage and no attackers: what `insecure = true` stands for.
//!
//! `docs/protocols/wire.md` has the bytes, `docs/operations/security.md` what the protection is good for.

pub mod checksum;
mod cipher;
mod node;
mod opener;
mod sealer;
#[cfg(test)]
mod tests;
mod window;

pub use cipher::{Life, SEALED_BYTES};
pub(crate) use node::KeyedSeal;
pub use node::{Keys, KeysInUse};
pub use opener::{Opener, Senders};
pub use sealer::Sealer;
pub use window::WIDTH;

use std::fmt;

/// Why a received datagram was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// Too short to be a datagram of a node.
    Short,
    /// Its checksum is wrong: damaged on its way, sealed, or not one of ours.
    Checksum,
    /// Sealed under a key that this node does not have, or not sealed.
    UnknownKey,
    /// The datagram names a sender that is not a node.
    UnknownSender,
    /// For another node than this one, or this node's own.
    Misdirected,
    /// Not authentic: another key goes by the same id, damaged on its way, or forged.
    Forged,
    /// So old that it is not known whether it has come before.
    Old,
    /// The datagram has come before.
    Seen,
    /// From a life of its sender that began before the one that is known.
    OldLife,
    /// From an unknown life of a sender, while there are too many of those to look at.
    Unchecked,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "the datagram is too short",
            Self::Checksum => "the datagram's checksum is wrong",
            Self::UnknownKey => "the datagram is sealed under an unknown key",
            Self::UnknownSender => "the datagram names a sender that is no node",
            Self::Misdirected => "the datagram is for another node",
            Self::Forged => "the datagram is not authentic",
            Self::Old => "the datagram is too old",
            Self::Seen => "the datagram has come before",
            Self::OldLife => "the datagram is from an earlier life of its sender",
            Self::Unchecked => "too many datagrams claim to be from nodes that have just started",
        })
    }
}

impl std::error::Error for OpenError {}
