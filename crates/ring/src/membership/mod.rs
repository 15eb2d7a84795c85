//! Who is on the ring: Totem's single-ring membership, with Extended Virtual Synchrony kept exactly
//! (membership A1 to A10).
//!
//! A process is *operational* on an installed ring; when the ring breaks, or another is heard of, it
//! *gathers* with whom it can hear, *commits* to a ring with them, *recovers* what messages they have
//! of their old rings, and installs the new one.
//!
//! | file | holds |
//! |---|---|
//! | `engine` | [`RingEngine`]: what it is told goes to the right place |
//! | `driven` | the engine as its driver sees it |
//! | `phase` | the four states, and what is kept in each |
//! | `sets` | who is wanted on the ring and who was given up; when a set is agreed on |
//! | `gather` | joins, consensus: from a broken ring to an agreed set |
//! | `joins` | what a process says while it gathers, and of whom |
//! | `presence` | rings that hear of each other |
//! | `parting` | giving up members that are gone or of no use; leaving |
//! | `commit` | the commit token: from an agreed set to a ring with a name |
//! | `electorates` | who counts in primaries, where nodes are configured with different lists |
//! | `plan` | what those who come from the same ring have to send each other |
//! | `wrap` | packets of an old ring inside packets of a new one |
//! | `recovery` | from a ring with a name to an installed one |
//! | `stages` | what an application is still to get of the rings before: rules R1 to R5 |
//! | `steady` | who falls silent again and again, and is left alone |
//! | `ring_seq` | numbers of rings, durable before they are used |
//! | `fingerprint` | what two states are told apart by, and who has the token |
//! | `evidence` | signs that a process is gone; who is better left alone for a while |

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
