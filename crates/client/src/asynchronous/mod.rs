//! The client for tokio: the same session, with another way to wait.

mod client;
mod dial;
mod stream;

pub use client::AsyncClient;
