//! The membership of the ring: Totem's single-ring membership, with Extended Virtual Synchrony kept exactly (membership
//! A1 to A10).
//!
//! A process is *operational* on an installed ring; when the ring breaks, or another is heard of, it *gathers* with the
//! processes that it can hear, *commits* to a ring with them, *recovers* the messages of their old rings, and installs
//! the new one.
//!
//! | file | holds |
//! |---|---|
//! | `engine` | [`RingEngine`], and the dispatch of its inputs |
//! | `driven` | the engine as its driver sees it |
//! | `phase` | the states of a process, and the data kept in each |
//! | `sets` | the process set and the fail set, and the effect of a join on them |
//! | `gather` | joins, consensus: from a broken ring to an agreed set |
//! | `joins` | the joins that a process sends while it gathers |
//! | `presence` | rings that hear of each other |
//! | `parting` | giving up members that are gone or of no use; leaving |
//! | `commit` | the commit token: from an agreed set to a ring with a name |
//! | `electorates` | the nodes that count in primaries, where nodes are configured with different lists |
//! | `plan` | the packets that processes from the same ring have to send each other |
//! | `wrap` | packets of an old ring inside packets of a new one |
//! | `recovery` | from a ring with a name to an installed one |
//! | `stages` | the deliveries of earlier rings that wait for the application: rules R1 to R5 |
//! | `steady` | members that fall silent again and again, and are left alone |
//! | `ring_seq` | numbers of rings, durable before they are used |
//! | `fingerprint` | the fingerprint that tells two states apart, and the holder of the token |
//! | `evidence` | signs that a process is gone; the back-off from processes better left alone |

mod commit;
mod driven;
mod electorates;
mod engine;
mod evidence;
mod fingerprint;
mod gather;
mod invariants;
mod joins;
mod parting;
mod phase;
mod plan;
mod presence;
mod recovery;
mod ring_seq;
mod sets;
mod stages;
mod steady;
#[cfg(test)]
mod tests;
mod wrap;

pub use electorates::ELECTORATES_LOG;
pub use engine::RingEngine;
pub use ring_seq::RING_SEQ_LOG;
