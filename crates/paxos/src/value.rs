//! Values, and their instances in the order.

use alloc::sync::Arc;
use bytes::Bytes;

use rota_core::contract::Process;

/// A place in the order of consensus, from 1.
pub type Instance = u64;

/// A round of Paxos: the number of a configuration.
pub type Round = u64;

/// The name of a value, for ever: a process that proposes it again uses the same name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueId {
    /// The process that proposed it.
    pub process: Process,
    /// Its place among that process's values: dense, from 1.
    pub counter: u64,
}

/// The value of an instance, or of a range of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Value {
    /// A proposer's packet.
    Packet {
        /// Its name.
        id: ValueId,
        /// Whole messages and parts of messages.
        frame: Bytes,
    },
    /// From here on the values of these processes count, and of no others: the ring of the configuration with this
    /// number. Nothing changes if the ring of a later configuration was named before.
    Members(Round, Arc<[Process]>),
    /// A skip of this number of instances, at least 1.
    Skip(u64),
}

impl Value {
    /// The number of instances that it takes.
    pub fn span(&self) -> u64 {
        match self {
            Self::Skip(count) => (*count).max(1),
            Self::Packet { .. } | Self::Members(..) => 1,
        }
    }

    /// The messages of a proposer's packet.
    pub const fn frame(&self) -> Option<&Bytes> {
        match self {
            Self::Packet { frame, .. } => Some(frame),
            Self::Members(..) | Self::Skip(_) => None,
        }
    }

    /// The bytes of its messages.
    pub fn bytes(&self) -> usize {
        self.frame().map_or(0, Bytes::len)
    }

    /// The first instance behind it, if it is the value of this one.
    pub(super) fn end(&self, first: Instance) -> Instance {
        first.saturating_add(self.span())
    }
}

/// A value that was proposed, or voted for, in a round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Vote {
    /// The first of its instances.
    pub first: Instance,
    /// The round.
    pub round: Round,
    /// The value.
    pub value: Value,
}

impl Vote {
    /// The first instance behind it.
    pub fn end(&self) -> Instance {
        self.value.end(self.first)
    }

    /// The part of the vote in `[from, to)`. Only skips have several parts.
    pub fn part(&self, from: Instance, to: Instance) -> Option<Self> {
        let (first, end) = (self.first.max(from), self.end().min(to));
        if first >= end {
            return None;
        }
        let value = match &self.value {
            Value::Skip(_) => Value::Skip(end - first),
            other => other.clone(),
        };
        Some(Self {
            first,
            round: self.round,
            value,
        })
    }
}
