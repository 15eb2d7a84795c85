//! The protocol of Spread's clients, held against the layouts in `docs/protocols/spread.md`.

mod client;
mod fragments;
mod golden;
mod handshake;
mod hostile;
mod hub;
mod known_bugs;
mod python;
mod requests;
mod support;
