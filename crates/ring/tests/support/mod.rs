//! A ring in memory whose network is moved by hand, one datagram at a time.

pub mod ring;
pub mod script;
