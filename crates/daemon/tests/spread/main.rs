//! The protocol of Spread's clients, held against the layouts in `docs/protocols/spread.md`.

mod golden;
mod handshake;
mod requests;
mod support;
