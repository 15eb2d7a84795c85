//! The rates at which members may send (FastCast §3.5, figure 4): shares of the links that all members compute alike.
//!
//! A link of the network takes in the packets of all members but one. [`max_min`] divides its capacity by the
//! requirements of the members; [`Shares`] keeps these requirements, in the one order, so that the rates in force never
//! exceed any link together, whichever member is slow; [`Demand`] turns the application's load into a requirement;
//! [`Estimate`] turns losses into a capacity; [`Pacer`] turns a rate into bursts. `docs/protocols/shares.md` has the
//! rules, and the reasons for which they are safe.

mod capacity;
mod demand;
mod estimate;
mod links;
mod machine;
mod max_min;
mod pacer;
mod word;

pub use capacity::Capacity;
pub use demand::{Demand, Waiting};
pub use estimate::{Estimate, Losses};
pub use machine::Shares;
pub use max_min::max_min;
pub use pacer::{Bursts, Pacer};
pub use word::{Note, Word, WordError};
