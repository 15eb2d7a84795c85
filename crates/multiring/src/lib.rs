//! Many rings, one order wherever they meet.
//!
//! Each ring orders instances, densely from 1. A ring's constants say which *round* an instance belongs to; the order
//! of rounds, of rings within a round, and of instances within a ring is one order of all instances of all rings, and a
//! process that subscribes to some rings delivers that order without the others' instances. So no two processes
//! contradict each other, whatever they subscribe to, whenever they started, and however often they crashed (Benz et
//! al. 2014, §4; rounds are absolute here, and not taken in turn).
//!
//! * [`order`]: rounds, places and points.
//! * [`merge`]: the delivery of several rings in that order.
//! * [`learner`]: the same with engines, and the points at which an application keeps its state.
//! * [`subscribe`]: the rings that a partition subscribes to, each from a round on; [`notice`]: the commands that say so;
//!   `wishes`: what a process has ordered for a change that it wants.
//! * [`charter`]: the charter of a ring that is founded while processes run.
//! * [`feed`]: an engine that orders one of the rings, with its leveling.
//! * [`level`]: the leveling by which a ring with little to order keeps up with the others.
//!
//! Nothing here has a socket, a clock, a thread or a file.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod charter;
pub mod feed;
pub mod learner;
pub mod level;
pub mod merge;
pub mod mutants;
pub mod notice;
pub mod order;
pub mod resume;
pub mod subscribe;
mod wishes;

pub use charter::Charter;
pub use feed::{Feed, Leveled, RingOf};
pub use learner::{RingsDelivery, RingsLearner};
pub use merge::{Merge, Merged, PushError};
pub use order::{Constants, Instance, Place, Point, Rank, Round};
pub use resume::{Resume, ResumeRing};
pub use rota_paxos::uring::Snapshot;
pub use rota_paxos::uring::accounts::{self, Partition, Replicas};
pub use rota_paxos::uring::charters::{self, Chartered};
pub use wishes::{Refusal, Wish};
