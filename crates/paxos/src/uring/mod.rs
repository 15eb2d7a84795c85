//! U-Ring Paxos: a sequence of instances of Paxos, in which everything goes along one ring of reliable links (Benz,
//! Marandi, Pedone and Garbinato, Middleware 2014, §4).
//!
//! [`crate`] has the agreement, and the reason why it is safe. The ways of its messages are here:
//!
//! * a value goes from its proposer along the ring to the coordinator, which puts it into the next instance. The
//!   proposal goes on from there, with the value only to processes that have not had it on the first way;
//! * an acceptor votes for proposals in their order; the first instance without its durable vote goes round the ring
//!   with all other messages. Proposals do not wait for that: all acceptors write at the same time;
//! * a process that knows how far a majority has voted knows the decisions.
//!
//! *Ring Paxos* differs in one thing: values do not go along the ring, their proposers multicast them. The ring carries
//! names, votes and configurations. Both are this engine ([`URingConfig::multicast`]).
//!
//! `docs/protocols/uring.md` and `docs/protocols/ring-paxos.md` have the messages, the bytes on links and in the log,
//! and the steps when processes die.
//!
//! The parts of a process, each a machine with its own state:
//!
//! * `membership`: the newest configuration, and the choice of the next one (`due`: its time, `campaign`: its steps).
//!   Of it `candidacy`: the questions of a candidate, `election`: the age of the configuration and the patience with it,
//!   `absent`: processes that are away, `outside`: the waits of a process that is not in the ring, `seats`: the way
//!   of the acceptors to their list, `foundation`: the cluster that this process belongs to;
//! * `voter`: the acceptor with its log (`disk`: what is to be written, and what was asked for; `found`: the state at a
//!   start, `voter/refill`: a log that is opened again);
//! * `learning`: the decided values, those that count, and those that the application has got (`hand_out`; `resume`: an
//!   application with a state);
//! * `catch_up`: decided instances that did not come along the ring (`questions`);
//! * `watching`: an observer, which learns and is in no ring;
//! * `reading`: votes that have left memory (`voter/memory`, `voter/archive`), and are read back from the log;
//! * `stream`: the ring of the configuration: its `places`, the `predecessor`, the `successor` with what it was told
//!   (`following`), `pass`: batches, and `window`: proposals;
//! * `dissemination`: the ways of values. `along_ring` is that of U-Ring Paxos. `by_multicast` is that of Ring Paxos,
//!   with `received` (values that have come), `sender` and `loss_window` (own ones), `late` (values that have not),
//!   `held` (proposals that wait for values), `parts` (datagrams) and `rate`; `queue` is of both;
//! * `lead`: the coordinator; `round`: the start of its round, and the progress of each acceptor;
//! * `accounts`: the instances that partitions and recovering replicas need; `backlog`: the bytes of these;
//!   `charters`: the rings that are founded while processes run; `acceptor_list`: the nodes that are to vote;
//! * `own`: messages of this process until they are delivered; `sending`: its datagrams; `need`: the instances that a
//!   merge of several rings waits for;
//! * `peers`: its links.
//!
//! `engine` puts them together and has the pump, `URing::settle`; `members`, `rounds`, `ring` and `requests` have the
//! messages of others that concern more than one of them, `driven` is the contract, `status` has sentences for people.
//! `word`, `wire`, `write`, `codec`, `value`, `snapshot_bytes`, `accounts_bytes`: bytes.

pub mod acceptor_list;
pub mod accounts;
mod accounts_bytes;
mod backlog;
mod catch_up;
pub mod charters;
mod codec;
mod config;
mod context;
mod counters;
mod disk;
mod dissemination;
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
mod reading;
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
mod value;
mod voter;
mod watching;
mod window;
mod wire;
mod word;
mod write;
mod written;

pub use config::{
    AcceptorConfig, Arbiter, LearnerConfig, Multicast, ProposerConfig, Timeouts, URingConfig,
};
pub use counters::URingCounters;
pub use engine::URing;
pub use snapshot::Snapshot;
pub use wire::{MAX_FRAME_BYTES, Records, Said, decode};
pub use word::{Head, Hello, Proposal, Record, ResumeFrom, Word};
pub use write::Writer;

/// The most proposals that a learner without a vote keeps while something before them is missing. Further ones are
/// asked for later.
const MOST_KEPT: usize = 16 * 1024;

/// The largest batch, in bytes.
const MOST_BATCH: usize = 512 << 10;

/// The least room for a batch, in bytes.
const LEAST_ROOM: usize = 256;
