//! A process: a replica of all logs, its store, and its clients.

mod answer;
mod around;
mod client;
mod door;
mod info;
mod lag;
mod merging;
mod metrics;
mod names;
mod parts;
mod pulse;
mod question;
mod reading;
mod scrub;
mod server;
mod source;
mod start;
mod streams;
mod waiters;
mod way;

use crate::store::lock;

pub use start::{LogProcess, StartError};
