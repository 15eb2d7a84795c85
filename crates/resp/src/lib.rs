//! The Redis protocol, versions 2 and 3 (RESP2, RESP3), without I/O: what a server reads and writes, and what a client does.
//!
//! ```
//! use rota_resp::{Limits, Reply, Requests, Version};
//!
//! let mut requests = Requests::new(Limits::default());
//! requests.push(b"*2\r\n$4\r\nECHO\r\n$5\r\nhel");
//! assert_eq!(requests.next(), Ok(None));
//! requests.push(b"lo\r\n");
//! let request = requests.next().unwrap().unwrap();
//! assert_eq!(request.arguments(), ["ECHO", "hello"]);
//!
//! let mut out = Vec::new();
//! Reply::from("hello").write(Version::Resp2, &mut out);
//! assert_eq!(out, b"$5\r\nhello\r\n");
//! ```
//!
//! | where | what |
//! |---|---|
//! | [`Requests`], [`Request`] | what clients send: arrays of bulk strings, and lines ([`inline`]) |
//! | [`Reply`] | what servers answer, of either version |
//! | [`Replies`] | the same, read by a client |
//! | [`slot`] | where a key belongs in a cluster |
//!
//! Reading is total: any bytes are requests, a request that has not ended, or a [`ProtocolError`], after which a connection is of no use. Memory grows
//! with what has come, never with what was announced.

#![forbid(unsafe_code)]

pub mod inline;
mod number;
mod replies;
mod reply;
mod request;
pub mod slot;

pub use replies::{Replies, ReplyError};
pub use reply::{Reply, Version};
pub use request::{Limits, ProtocolError, Request, Requests};
