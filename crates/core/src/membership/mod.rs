//! Who is on the ring.
//!
//! In this release the members are a configured list. All that happens here is that the listed
//! processes find each other, agree on a ring id that carries the representative's incarnation, and
//! start; a member that dies stops the ring, and a restarted one stays outside. [`RingEngine`] is
//! the seam where Totem's membership and recovery go: it owns the ordering of the installed ring and
//! is the only one to install another.

mod engine;
mod forming;

pub use engine::RingEngine;
