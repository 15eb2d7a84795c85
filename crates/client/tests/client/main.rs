//! Clients against a peer that speaks the protocol by a script, on real sockets.

mod asynchronous;
mod batches;
mod connecting;
mod credit;
mod halves;
mod memory;
mod patience;
mod peer;
mod reconnecting;
mod reconnecting_async;
mod stepwise;
mod stream;
mod vanished;
