//! The protocol between clients and a daemon, held against the tables in `docs/protocols/client.md`.

mod any;
mod credit;
mod golden;
mod hostile;
mod round_trip;
mod vectors;
