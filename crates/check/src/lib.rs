//! What must hold of Rota's engines, as predicates over what processes saw.
//!
//! [`event`] is what is looked at, whether it comes from a trace file or from a simulation. A
//! [`trace::Trace`] holds what all processes saw, and [`check_all`] checks every property of Extended
//! Virtual Synchrony on it. Of [`properties`], each is one file that says what must hold and what it
//! leaves alone.

mod bits;
pub mod counters;
pub mod event;
mod graph;
pub mod name;
pub mod online;
pub mod properties;
pub mod report;
pub mod trace;
mod view;

pub use properties::check_all;
pub use report::{Options, Report, Verdict, Violation};
