//! Bugs that other systems have had, each a scenario named after it: `p_01_…` is pitfall P-01 of the table in
//! `docs/verification.md`. The scenarios have real engines, a network moved by hand, and explicit expectations.

#![allow(dead_code, reason = "not every scenario uses all of the network")]

mod app;
mod commit;
mod former;
mod gather;
mod identity;
mod net;
mod ordering;
mod pauses;
mod recovery;
mod restarts;
