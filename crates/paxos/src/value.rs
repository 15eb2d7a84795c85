//! What is ordered, and where.

use alloc::sync::Arc;
use bytes::Bytes;

use rota_core::contract::Process;

/// A place in the order of consensus, from 1.
pub type Instance = u64;

/// A round of Paxos: the number of a configuration.
pub type Round = u64;

/// Names a value for ever: whoever proposes it again uses the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueId {
    /// Who proposed it, in which of its lives.
    pub process: Process,
    /// Its place among that process's values: dense, from 1.
    pub counter: u64,
}

/// What an instance, or a range of them, can be decided as.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Value {
    /// A proposer's packet.
    Packet {
        /// Its name.
        id: ValueId,
        /// Whole messages and parts of messages.
        frame: Bytes,
    },
    /// From here on the values of these processes count, and of no others: those of the ring of the configuration with
    /// this number. Nothing changes if a later configuration's were named before.
    Members(Round, Arc<[Process]>),
    /// So many instances carry nothing. At least 1.
    Skip(u64),
}

impl Value {
    /// How many instances it takes.
    pub fn span(&self) -> u64 {
        match self {
            Self::Skip(count) => (*count).max(1),
            Self::Packet { .. } | Self::Members(..) => 1,
        }
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
    /// In which round.
    pub round: Round,
    /// For what.
    pub value: Value,
}

impl Vote {
    /// The first instance behind it.
    pub fn end(&self) -> Instance {
        self.value.end(self.first)
    }

    /// What there is of it in `[from, to)`. Only skips have parts.
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
