//! The protocol of Spread's clients, held against the layouts in `docs/protocols/spread.md`.

mod client;
mod fragments;
mod golden;
mod handshake;
mod hostile;
mod known_bugs;
mod requests;
mod support;
