//! The layer that says which configurations are primary: an optional layer over any engine that delivers
//! configurations.
//!
//! When a network splits, Extended Virtual Synchrony lets every part go on. An application whose state
//! must not fork lets only one part serve, the *primary* one. [`Primary`] wraps an engine, is one
//! itself, and adds [`crate::contract::Delivery::Primary`] to its stream: from there to the next
//! configuration the application is in the primary one. By which [`Rule`] is a setting, the same on all
//! nodes.
//!
//! * **static majority**: a regular configuration with more than half of the configured nodes; where nodes are configured with
//!   different lists, with more than half of each that its members have, or have met and not seen replaced
//!   ([`Engine::electorates`](crate::contract::Engine::electorates)). Nothing is sent.
//! * **dynamic linear voting** (Jajodia and Mutchler, *Dynamic voting algorithms for maintaining the
//!   consistency of a replicated database*, TODS 1990): one with more than half of the members of
//!   the last primary, or with half of them and the smallest. Nodes that fail one after the other leave
//!   a primary behind that a static majority would have given up long ago.
//!
//! # How the dynamic rule stays safe
//!
//! In each new regular configuration the members tell each other, by safe messages, what they know: the
//! last primary, and the attempts since then of which they do not know what came of them. If the rule
//! holds, each member makes durable that it attempts, then says so; when all have said it, the
//! configuration is primary, and each reports it once it has made that durable. An attempt that was
//! interrupted may have become primary somewhere, so until it is settled the next primary needs a quorum
//! of it as well (Yeger-Lotem, Keidar and Dolev, *Dynamic voting for consistent primary components*,
//! PODC 1997). An attempt is settled when
//!
//! * a later primary is known: it had a quorum of this one, if this one became primary;
//! * a member of it has not attempted, and never will, as its rings only grow in number;
//! * all members of it are here, and none has made durable that it became primary.
//!
//! Members need not have been in the primary before, and do not have its state at first. They count in
//! quorums all the same; but a configuration becomes primary only if one of its members carries the
//! state of all primaries before it, because it was in each of them or because its application says
//! that it has got it ([`Primary::caught_up`]). This is an addition to the published rule.
//!
//! No node tells what is not durable: a crash must not make it forget what it has told.
//!
//! # What this does not do
//!
//! It does not survive a disk that loses what was durable: such a node must not count as one that
//! knows (give it an empty `first`), and who starts it has to see to that. It moves no state: after
//! `Primary`, those who were not in the primary before have to be brought up to date by the
//! application, which then says so; and what it keeps over a crash is its own matter: a node that
//! restarts still counts as one that carries the state it had. It is no lease: a process that was cut
//! off believes itself in the primary until it loses the token, and what it delivers until then as
//! *safe* is in every later primary, anything weaker may not be.
//!
//! A disk that fails, or does not answer for a second, holds nobody's deliveries up; that node's report
//! comes later, or not at all.
//!
//! | file | holds |
//! |---|---|
//! | `layer` | [`Primary`]: the layer as an engine |
//! | `counting` | the nodes that count, where nodes are configured with different lists; static majorities |
//! | `voting` | one node's part in dynamic linear voting, step by step |
//! | `decide` | the decision whether a configuration may become primary |
//! | `session` | sessions, quorums, and the knowledge of a node |
//! | `message` | the bytes of all this |
//! | `patience` | the time for which a disk that fails, or does not answer, is waited for |
//! | `requests` | the requests to the disk, of the layer and of the engine below |

#[cfg(test)]
mod bytes_tests;
mod counting;
mod decide;
mod layer;
mod message;
mod own;
mod patience;
mod requests;
mod session;
#[cfg(test)]
mod tests;
mod voting;

pub use layer::Primary;
pub use message::{HEADER_BYTES, OWN_BYTES};
pub use session::Rule;
pub use voting::PRIMARY_LOG;

/// The record on the disk of a node that has never been in a primary, in [`PRIMARY_LOG`]: `first` counts as the last
/// primary. With an empty `first` it is the record of a node that has forgotten what it knew, and
/// does not count until it has been in a primary.
pub fn first_record(first: &[crate::contract::NodeId]) -> alloc::vec::Vec<u8> {
    session::Knowledge::first(first).to_record()
}
