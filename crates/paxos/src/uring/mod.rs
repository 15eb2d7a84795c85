//! U-Ring Paxos: a sequence of instances of Paxos, in which everything goes along one ring of reliable links (Benz,
//! Marandi, Pedone and Garbinato, Middleware 2014, §4).
//!
//! What is agreed on, and why that is safe, is [`crate`]. Here is how it travels:
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
//! The parts of a process, each a machine with its own state:
//!
//! * `membership`: the newest configuration, and which one follows (`due`: when, `campaign`: how);
//! * `voter`: the acceptor with its log (`disk`: what is durable, `found`: what is found, `voter/refill`: a log that is opened again);
//! * `learning`: what is decided, what of it counts, and what the application has got (`hand_out`; `resume`: an application with a state);
//! * `catch_up`: what did not come along the ring (`questions`);
//! * `stream`: the ring of the configuration (`window`: its proposals, `queue`: values on their way; `stream/neighbours`, `stream/pass`: what goes to them);
//!   where values are multicast also `stream/multicast`, `stream/watch`, `cast` (what is missing), `held` (proposals that wait for values), `parts` (datagrams) and `rate`;
//! * `lead`: the coordinator; `round`: where its round starts, and how far each acceptor is;
//! * `accounts`: who needs what, so that it is not forgotten; `backlog`: how much that is;
//! * `own`: messages of this process until they are delivered; `sending`: its datagrams; `need`: what a merge of several rings waits for;
//! * `peers`: its links.
//!
//! `engine` puts them together and has the pump, `URing::settle`; `members`, `rounds`, `ring` and `requests` are what words of others do to more than one of
//! them, `driven` is the contract, `status` has words for people. `word`, `wire`, `write`, `codec`, `value`, `snapshot_bytes`, `accounts_bytes`: bytes.

pub mod accounts;
mod accounts_bytes;
mod backlog;
mod cast;
mod catch_up;
mod codec;
mod config;
mod context;
mod counters;
mod disk;
mod driven;
mod engine;
mod found;
mod hand_out;
mod held;
mod lead;
mod learning;
mod members;
mod membership;
mod need;
mod own;
mod pace;
mod parts;
mod peers;
mod questions;
mod queue;
mod rate;
mod requests;
mod resume;
mod ring;
mod round;
mod rounds;
mod sending;
mod snapshot;
mod snapshot_bytes;
mod status;
mod stream;
mod successor;
mod value;
mod voter;
mod window;
mod wire;
mod word;
mod write;
mod written;

pub use config::{Arbiter, Multicast, Timeouts, URingConfig};
pub use counters::URingCounters;
pub use engine::URing;
pub use snapshot::Snapshot;
pub use wire::{MAX_FRAME_BYTES, Records, Said, decode};
pub use word::{Head, Hello, Proposal, Record, ResumeFrom, Word};
pub use write::Writer;

/// Proposals that a learner which does not vote keeps while something before them is missing. What comes then is asked for later.
const MOST_KEPT: usize = 16 * 1024;

/// The largest batch, in bytes.
const MOST_BATCH: usize = 512 << 10;

/// With less room than this for it nothing is sent, in bytes.
const LEAST_ROOM: usize = 256;
