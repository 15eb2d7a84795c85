//! Loads a cluster and measures it; measures the same sockets without a protocol.
//!
//! A benchmark builds a [`Testbed`], starts a process for each node (the same program with a hidden
//! subcommand), gives all of them one start time, and merges what they measured. Nodes and
//! coordinator talk in lines of JSON over pipes, so the network under test carries nothing else.
//!
//! Start reading at [`run_raw`] (the smallest complete run); `cluster` and `child` are the two sides
//! of the pipe, `testbed` is where nodes live, `hist` what latencies become.

mod above_client;
mod child;
mod clock;
mod cluster;
mod compare;
mod error;
mod figures;
mod hist;
mod host;
mod library;
mod options;
mod raw;
mod scratch;
mod search;
mod shares;
mod socket;
mod testbed;

pub use above_client::{ToGroup, configuration_of, message_of, node_of};
pub use clock::process_cpu_ns_of;
pub use compare::{
    CompareOptions, CompareReport, CompareVerdict, Compared, Metric, Ratio, Side, run_compare,
};
pub use error::BenchError;
pub use figures::{
    Chart, Corner, Figure, FigureReport, FiguresOptions, FiguresReport, Line, Paper, Series,
    draw_figures, run_figures,
};
pub use hist::{Latencies, Summary};
pub use host::Host;
pub use library::{BenchReport, Digest, Point, Setting, bench_node_main, run_bench};
pub use options::{
    BenchOptions, BitRate, Event, Happening, Leveling, LinkShares, Load, ManyRings, Mode, Offload,
    ParseError, Pattern, Pin, Place, RawOptions, RingLimits, Senders, ServiceName, StorageName,
    Subject, Subscribe, TestbedKind, Times, Traffic, Trouble, Votes, WarmUp, parse_duration,
};
pub use raw::{DiskTimes, HopTimes, RawReport, raw_node_main, run_raw};
pub use search::{Bound, SearchReport, Try, run_search};
pub use shares::{SharesOptions, SharesReport, run_shares, shares_node_main};
pub use testbed::{Testbed, Values};
