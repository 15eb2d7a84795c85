//! `rota bench`. With `--mode library` the application lives in the ring's own thread, so that what is
//! measured is the ring and nothing else; with `--mode daemon` each node is a daemon, a process, and a client
//! of it, another one.

mod client;
mod coordinator;
mod events;
mod load;
mod node;
mod order;
mod report;
mod rings;
mod setup;
mod slow;
mod verdict;
mod warm_up;

pub use coordinator::run_bench;
pub(crate) use coordinator::{FORM_PATIENCE, HEAD_START_NS};
pub(crate) use load::MIN_PAYLOAD;
pub use node::bench_node_main;
pub(crate) use node::{Above, Measuring, form, open, turn_until, wait_for_go};
pub use order::Digest;
pub use report::{BenchReport, Point, Setting};
pub(crate) use setup::node_config;
