//! The properties that must hold of Rota's engines, as predicates over the events of processes.
//!
//! [`event`] has the events that are looked at, from a trace file or from a simulation. A [`trace::Trace`] holds the
//! events of all processes, and [`check_all`] checks every property of Extended Virtual Synchrony on it. Each of the
//! [`properties`] is one file that says what must hold and what it leaves alone. [`online::Online`] checks what can be
//! judged while a simulation runs, and [`online::UniformOnline`] the same of engines with one order over primary views.
//!
//! ```
//! use rota_check::event::{Event, EventKind};
//! use rota_check::{Options, check_all, online::Online, trace::Trace};
//! # use rota_core::contract::{Incarnation, NodeId, Process, Time};
//! # let process = Process { node: NodeId::new(1).unwrap(), incarnation: Incarnation(7) };
//!
//! let (mut online, mut trace) = (Online::new(), Trace::new());
//! for kind in [EventKind::Start, EventKind::Crash] {
//!     let event = Event { time: Time(5), process, kind };
//!     online.observe(&event)?;
//!     trace.push(&event);
//! }
//! trace.quiesce();
//! let report = check_all(&trace, &Options::default());
//! assert!(report.holds() && report.counters.crashed == 1);
//! # Ok::<(), rota_check::Violation>(())
//! ```

mod bits;
pub mod counters;
mod graph;
mod groups;
pub mod history;
pub mod logs;
pub mod multicast;
pub mod name;
pub mod online;
pub mod properties;
pub mod report;
pub mod trace;
mod uniform;
mod view;
mod whole;

pub use properties::{check_all, check_order, check_uniform};
pub use report::{Options, Order, PrimaryRule, Report, Verdict, Violation};
pub use rota_trace::event;
pub use uniform::counters::UniformCounters;
