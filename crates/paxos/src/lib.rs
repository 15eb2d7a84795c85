//! The consensus that Ring Paxos and U-Ring Paxos have in common (Benz et al. 2014, §4, §5.1; Lamport 1998).
//!
//! Both order *values* by a sequence of *instances* of Paxos, and differ only in the ways of values and votes. The
//! machines here know nothing of that: each is small, takes the messages that have come, and says what follows.
//!
//! * [`Config`]: the acceptors, the coordinator and the ring. Each configuration has a number, and that is the *round*
//!   of Paxos: so a round has one coordinator, for ever, and no round is used again;
//! * [`Register`], [`Candidate`]: the agreement of the acceptors of one configuration on the next;
//! * [`Acceptor`]: promises and votes; [`Votes`]: votes by instance;
//! * [`Coordinator`]: the values to propose again when a round begins, and the instance of the next value;
//! * [`Learner`]: the decided values, in order;
//! * [`VOTES_LOG`], [`STATE_LOG`]: the logs of an engine;
//! * [`Proposer`]: own values until they are delivered; [`Proposers`]: the values that count, so that one that is
//!   proposed again is delivered once.
//!
//! # One number tells all votes of an acceptor
//!
//! In a round the coordinator proposes one instance after the other, from the start of the round on, and an acceptor
//! votes for them in that order and no other. So an acceptor tells its votes by one number, the first instance without
//! a vote, and an instance is decided when the numbers of a majority are beyond it. No list of votes, and no decision,
//! has to travel for each instance. `docs/protocols/paxos.md` has the rules, and the reason why they are enough.
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
pub(crate) use config::has_acceptor_of;
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
