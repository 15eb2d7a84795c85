//! Who may send how fast (FastCast §3.5, figure 4): shares of the links that all compute alike.
//!
//! A link of the network takes in what all members but one send. [`max_min`] divides its capacity by what
//! each member requires; [`Shares`] keeps what each requires, in the one order, so that the rates that are in
//! force never exceed any link together, whoever is slow; [`Demand`] turns the application's load into a
//! requirement; [`Estimate`] turns losses into a capacity; [`Pacer`] turns a rate into bursts. `docs/protocols/shares.md` has the rules, and why they
//! are safe.

mod capacity;
mod demand;
mod estimate;
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
