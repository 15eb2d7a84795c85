//! The membership of the ring: Totem's single-ring membership, with Extended Virtual Synchrony kept exactly (membership
//! A1 to A10).
//!
//! A process is *operational* on an installed ring; when the ring breaks, or another is heard of, it *gathers* with the
//! processes that it can hear, *commits* to a ring with them, *recovers* the messages of their old rings, and installs
//! the new one.
//!
//! The engine takes the inputs, and the steps from phase to phase; a phase asks for a step and never takes one itself.
//! Each phase is a machine that ends with it:
//!
//! | file | holds |
//! |---|---|
//! | `engine` | [`RingEngine`]: the dispatch of its inputs, its steps, and the loss of the token of a ring in use |
//! | `driven` | the engine as its driver sees it |
//! | `parting` | giving up members that are gone or of no use; leaving |
//! | `phase` | the phases, the steps, and the packets that a phase takes |
//! | `gather` | consensus: from a broken ring to an agreed set |
//! | `commit` | the commit token: from an agreed set to a ring with a name |
//! | `recovery` | from a ring with a name to an installed one |
//!
//! and so is each part of what a process keeps in every phase:
//!
//! | file | holds |
//! |---|---|
//! | `local` | all of it, lent to the phases |
//! | `installed` | the ring installed last, and the debts to its members |
//! | `stages` | the deliveries of earlier rings that wait for the application: rules R1 to R5 |
//! | `outputs` | the outputs that the driver has not taken |
//! | `sets` | the process set and the fail set, and the effect of a join on them |
//! | `joins` | the joins that a process sends while it gathers, and their pace |
//! | `presence` | rings that hear of each other |
//! | `durable` | ring numbers and electorates, and a disk that may fail |
//! | `silence` | the reasons why a process says nothing for a while |
//! | `others` | the processes that were heard, are gone, or are left alone for a while |
//!
//! These are made of smaller ones:
//!
//! | file | holds |
//! |---|---|
//! | `ring_seq` | numbers of rings, durable before they are used |
//! | `electorates` | the nodes that count in primaries, where nodes are configured with different lists |
//! | `evidence` | signs that a process is gone; the back-off from processes better left alone |
//! | `plan` | the packets that processes from the same ring have to send each other |
//! | `wrap` | packets of an old ring inside packets of a new one |

mod commit;
mod driven;
mod durable;
mod electorates;
mod engine;
mod evidence;
mod gather;
mod installed;
mod joins;
mod local;
mod others;
mod outputs;
mod parting;
mod phase;
mod plan;
mod presence;
mod recovery;
mod ring_seq;
mod sets;
mod silence;
mod stages;
#[cfg(test)]
mod tests;
mod wrap;

pub use electorates::ELECTORATES_LOG;
pub use engine::RingEngine;
pub use ring_seq::RING_SEQ_LOG;
