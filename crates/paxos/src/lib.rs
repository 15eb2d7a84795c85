//! The consensus that Ring Paxos and U-Ring Paxos have in common (Benz et al. 2014, §4, §5.1; Lamport 1998).
//!
//! Both order *values* by a sequence of *instances* of Paxos, and differ only in how values and votes travel. What is
//! here knows nothing of that: small machines, each of which is told what has come and says what follows.
//!
//! * [`Config`]: who votes, who coordinates, in which ring. Each has a number, and that is the *round* of Paxos: a
//!   round has so one coordinator, for ever, and none is used again;
//! * [`Register`], [`Candidate`]: how the acceptors of one configuration agree on the next;
//! * [`Acceptor`]: promises and votes; [`Votes`]: those it has cast;
//! * [`Coordinator`]: what has to be proposed again when a round begins, and where the next value goes;
//! * [`Learner`]: what is decided, in order;
//! * [`VOTES_LOG`], [`STATE_LOG`]: where an engine keeps what has to be durable;
//! * [`Proposer`]: own values until they are delivered; [`Proposers`]: which values count, so that one that is proposed
//!   again is delivered once.
//!
//! # Votes are counted by how far they go
//!
//! In a round the coordinator proposes one instance after the other, from where the round starts, and an acceptor
//! votes for them in that order and no other. So all that an acceptor has to say of its votes is up to where they go, and an
//! instance is decided when a majority has got beyond it. No list of votes, and no decision, has to travel for each
//! instance. `docs/protocols/paxos.md` has the rules, and why they are enough.
//!
//! Nothing here has a socket, a clock, a thread or a file.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod acceptor;
mod config;
mod coordinator;
mod durable;
mod learner;
mod promise;
mod proposer;
mod proposers;
mod register;
pub mod uring;
mod value;
mod votes;

pub use acceptor::{Acceptor, Mark, Record, Refused, Verdict};
pub use config::{AcceptorId, Config, Prior};
pub use coordinator::{Coordinator, Progress};
pub use durable::{STATE_KEYS, STATE_LOG, VOTES_LOG, VoteHead, state_key};
pub use learner::Learner;
pub use promise::Promise;
pub use proposer::Proposer;
pub use proposers::Proposers;
pub use register::{Ballot, Candidate, Register, Slot, Word};
pub use value::{Instance, Round, Value, ValueId, Vote};
pub use votes::Votes;
