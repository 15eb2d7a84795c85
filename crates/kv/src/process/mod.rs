//! A process of the store: a replica of a partition, its clients, and its way to the other processes.

mod client;
mod desk;
mod door;
mod frame;
mod gateway;
mod info;
mod lane;
mod link;
mod listen;
mod order;
mod start;
mod walks;

pub use start::{Kv, StartError};
