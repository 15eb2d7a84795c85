//! Real daemons on this host, and clients that talk to them.

mod cluster;
mod spread;
