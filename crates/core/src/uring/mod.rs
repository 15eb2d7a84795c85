//! U-Ring Paxos: a sequence of instances of Paxos, in which everything goes along one ring of reliable links (Benz,
//! Marandi, Pedone and Garbinato, Middleware 2014, §4).
//!
//! What is agreed on, and why that is safe, is [`crate::paxos`]. Here is how it travels:
//!
//! * a value goes from its proposer along the ring to the coordinator, which puts it into the next instance. The
//!   proposal goes on from there, with the value only to those who have not had it on the first way;
//! * an acceptor votes for proposals in their order; how far its votes go, as far as they are durable, goes round the
//!   ring with whatever else does. Proposals do not wait for that: all acceptors write at the same time;
//! * whoever knows how far a majority has voted knows what is decided.
//!
//! *Ring Paxos* differs in one thing: values do not go along the ring, their proposers multicast them. The ring carries
//! names, votes and configurations. Both are this engine ([`URingConfig::multicast`]).
//!
//! `docs/protocols/uring.md` and `docs/protocols/ring-paxos.md` have the words, what is on the links and in the log, and
//! what happens when processes die.
//!
//! * `engine`: the state, and what is told to it; `run`: what comes and goes; `driven`: the contract;
//! * `stream`: one process in the ring of one configuration, `window`: its proposals, `queue`: values on their way; `lead`: the coordinator; `promise`: phase 1 at an acceptor; `learn`: what is decided;
//! * `multicast`: Ring Paxos, with `cast` (what is missing), `parts` (datagrams), `held`
//!   (proposals that wait for values) and `rate`;
//! * `known`, `stand`, `elect`: configurations, and which one follows; `fetch`, `questions`: what did not come along the ring; `disk`: what is durable, `found`, `restore`: what is found, and the log that fails and is opened again;
//! * `counters`: what is counted, with words for people;
//! * `own`, `hand_out`: from and to the application; `word`, `wire`, `write`, `codec`, `value`: bytes.

mod base;
mod base_bytes;
mod cast;
mod codec;
mod config;
mod counters;
mod disk;
mod driven;
mod elect;
mod engine;
mod fetch;
mod found;
mod hand_out;
mod held;
mod known;
mod lead;
mod learn;
mod multicast;
mod need;
mod own;
mod pace;
mod parts;
mod peers;
mod promise;
mod questions;
mod queue;
mod rate;
mod refill;
mod restore;
mod resume;
mod run;
mod stand;
mod stream;
mod successor;
mod value;
mod window;
mod wire;
mod word;
mod write;
mod written;

pub use base::Base;
pub use config::{Arbiter, Multicast, Patience, URingConfig};
pub use counters::URingCounters;
pub use engine::URing;
pub use wire::{MAX_FRAME_BYTES, Records, Said, decode};
pub use word::{Follow, Head, Here, Proposal, Record, Word};
pub use write::Writer;

/// Proposals that a learner which does not vote keeps while something before them is missing. What comes then is asked for later.
const MOST_KEPT: usize = 16 * 1024;

/// The largest batch, in bytes.
const MOST_BATCH: usize = 512 << 10;

/// With less room than this for it nothing is sent, in bytes.
const LEAST_ROOM: usize = 256;
