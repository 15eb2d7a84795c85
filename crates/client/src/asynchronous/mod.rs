//! The client for tokio: the same session, with another way to wait.

mod client;
mod dial;
mod reconnecting;
mod stream;

pub use client::AsyncClient;
pub use reconnecting::AsyncReconnecting;
