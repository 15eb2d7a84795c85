//! What a daemon speaks with its clients, without sockets, threads or clock.
//!
//! There is no daemon yet. This crate has its first room: [`spread`], the protocol between Spread's
//! clients and their daemon. Nothing listens, and no groups are kept: both will be put around it.

#![forbid(unsafe_code)]

pub mod spread;
