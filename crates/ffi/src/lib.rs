//! The client for C: the functions and types of `include/rota.h`, over [`rota_client`].
//!
//! Each function is one call of the client's, between the check of its arguments (`arguments`) and the status of its
//! outcome (`status`). A handle knows when two threads use it at once, and no panic leaves a function (`handle`).
//! Events are laid out for C (`event`) in memory that their handle keeps (`held`).
//!
//! The header is made from these sources by `cargo xtask header`: comments on public items are read by
//! programmers of C.

// The header says once, for all functions, what holds for pointers.
#![allow(clippy::missing_safety_doc)]

mod arguments;
mod client;
mod event;
mod handle;
mod held;
mod list;
mod receive;
mod send;
mod status;
mod tls;

pub use client::*;
pub use event::*;
pub use handle::Client;
pub use list::*;
pub use receive::*;
pub use send::*;
pub use status::*;
pub use tls::*;
