//! What processes say to each other.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use crate as paxos;
use crate::{AcceptorId, Config, Instance, Promise, Round, ValueId, Vote};

/// What is agreed on in the register.
pub type Arbitration = paxos::Word<Arc<Config>>;

/// What goes from one process to another, past the ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// Who speaks.
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
    /// What was decided in these instances?
    Fetch(Instance, Instance),
    /// That, or a first part of it.
    Chosen(Vec<Vote>),
    /// What was asked for is forgotten: the next bytes of the base to begin at, and how many come before them. `true` if
    /// more come.
    Forgotten(u64, Bytes, bool),
    /// The speaker leaves of its own will.
    Leaving,
    /// The coordinator lacks the receiver's values with these counters.
    Want(Vec<u64>),
    /// The speaker's value with this counter.
    Value(u64, Bytes),
    /// The speaker waits until everything before this instance is known.
    Need(Instance),
}

/// What a process says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The newest configuration it knows; 0 if none.
    pub number: Round,
    /// What it would vote as.
    pub acceptor: Option<AcceptorId>,
    /// The newest configuration that it knows to be complete; 0 if none.
    pub complete: Round,
    /// It wants to be taken in.
    pub joins: bool,
}

/// To the predecessor: what is sent from here on, and what has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResumeFrom {
    /// In the ring of this configuration.
    pub round: Round,
    /// Grows with each of them. What is sent names it.
    pub epoch: u32,
    /// The first instance of the round without a proposal; 0 if there is none at all.
    pub next: Instance,
}

/// What every batch along the ring begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Head {
    /// Of which foundation.
    pub founded: u64,
    /// Of which configuration.
    pub round: Round,
    /// Of the successor's last [`ResumeFrom`].
    pub epoch: u32,
    /// Where the round starts; 0 if that is not known yet.
    pub start: Instance,
    /// Before this somebody has forgotten what was decided. Where the round has not begun: how much its coordinator was told
    /// for that.
    pub kept: Instance,
    /// The first instance of the batch's proposals, or of those that follow: what is before is here, or forgotten.
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
    /// The process at this place of the ring had to ask for values so often.
    Lost(u8, u64),
    /// The acceptor with this index votes for nothing more in this round: its log has failed, or something is missing before.
    LogFailed(u8),
}

impl Proposal {
    /// How many instances it takes.
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
        /// Nobody has it.
        whole: bool,
    },
    /// Who is a member from here on, by the configuration with this number.
    Members(Round, Arc<[rota_core::contract::Process]>),
    /// Nothing, in so many instances.
    Skip(u64),
}
