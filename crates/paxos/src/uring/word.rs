//! The messages between processes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use crate as paxos;
use crate::{AcceptorId, Config, Instance, Promise, Round, ValueId, Vote};

/// A message of the register, about configurations.
pub type Arbitration = paxos::Word<Arc<Config>>;

/// A message from one process to another, past the ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// The speaker, about itself.
    Hello(Hello),
    /// The newest configuration that the speaker knows.
    Known(Arc<Config>),
    /// A candidate asks the acceptors of the configuration before `number`.
    Ask(Round, Arbitration),
    /// One of them answers.
    Answer(Round, AcceptorId, Arbitration),
    /// Phase 1A.
    Prepare(Round, Instance),
    /// Phase 1B, or a part of it: `true` if more votes come.
    Promise(Promise, bool),
    /// To the predecessor: send, from this place in the round on; proposals in these instances with their values.
    ResumeFrom(ResumeFrom, Vec<Instance>),
    /// A question for the decided values of these instances.
    Fetch(Instance, Instance),
    /// The answer: these values, or the first of them.
    Chosen(Vec<Vote>),
    /// The answer if the instances are forgotten: the next bytes of the snapshot to begin at, and the number of bytes
    /// before them. `true` if more come.
    Forgotten(u64, Bytes, bool),
    /// The speaker leaves of its own will.
    Leaving,
    /// The coordinator lacks the receiver's values with these counters.
    Want(Vec<u64>),
    /// The speaker's value with this counter.
    Value(u64, Bytes),
    /// The speaker waits until everything before this instance is known.
    Need(Instance),
    /// The speaker observes, and knows everything before this instance: it is to be told when more is decided.
    Watch(Instance),
    /// The answer if much is: everything before this instance is decided.
    Decided(Instance),
    /// The speaker is to vote, and would as this acceptor: it has learnt everything before this instance.
    Offer(AcceptorId, Instance),
}

/// The message of a process about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The newest configuration it knows; 0 if none.
    pub number: Round,
    /// The acceptor as which it would vote; `None` if it would not.
    pub acceptor: Option<AcceptorId>,
    /// The newest configuration that it knows to be complete; 0 if none.
    pub complete: Round,
    /// The process wants to be taken in.
    pub joins: bool,
}

/// A message to the predecessor: the place from which on it is to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResumeFrom {
    /// In the ring of this configuration.
    pub round: Round,
    /// The epoch, which grows with each of these messages. Batches name it.
    pub epoch: u32,
    /// The first instance of the round without a proposal; 0 if there is none at all.
    pub next: Instance,
}

/// The head of every batch along the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Head {
    /// The foundation.
    pub founded: u64,
    /// The number of the configuration.
    pub round: Round,
    /// The epoch of the successor's last [`ResumeFrom`].
    pub epoch: u32,
    /// The first instance of the round; 0 if that is not known yet.
    pub start: Instance,
    /// Some acceptor has forgotten the values decided before this instance. If the round has not begun: the amount that
    /// its coordinator was told for that.
    pub kept: Instance,
    /// The first instance of the batch's proposals, or of those that follow: proposals before it were sent, or are
    /// forgotten.
    pub from: Instance,
    /// The configuration is complete.
    pub complete: bool,
}

/// One record of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// On its way to the coordinator.
    Value(ValueId, Bytes),
    /// Proposals follow each other without a gap.
    Proposal(Proposal),
    /// The acceptor with this index in the configuration has voted for everything before this instance.
    Voted(u8, Instance),
    /// The acceptor with this index has learnt everything before this instance.
    Learnt(u8, Instance),
    /// The process at this place of the ring had to ask for values this number of times.
    Lost(u8, u64),
    /// The acceptor with this index votes for nothing more in this round: its log has failed, or something is missing before.
    LogFailed(u8),
}

impl Proposal {
    /// The number of instances that it takes.
    pub const fn span(&self) -> u64 {
        match self {
            Self::Named(_) | Self::Packet { .. } | Self::Members(..) => 1,
            Self::Skip(count) => *count,
        }
    }
}

/// A proposal as it travels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Proposal {
    /// The receiver has the value: it came by on its way to the coordinator.
    Named(ValueId),
    /// With the value. `whole`: it goes with the proposal all the way.
    Packet {
        /// Its name.
        id: ValueId,
        /// Its bytes.
        frame: Bytes,
        /// No process has had it before.
        whole: bool,
    },
    /// The members from here on, by the configuration with this number.
    Members(Round, Arc<[rota_core::contract::Process]>),
    /// A skip of this number of instances.
    Skip(u64),
}
