//! `rota bench`. With `--mode library` the application lives in the ring's own thread, so that what is
//! measured is the ring and nothing else; with `--mode daemon` each node is a daemon, a process, and a client
//! of it, another one.

mod client;
mod coordinator;
mod load;
mod node;
mod order;
mod report;
mod verdict;

pub use coordinator::run_bench;
pub use node::bench_node_main;
pub use order::Digest;
pub use report::BenchReport;
