//! The Redis protocol, versions 2 and 3 (RESP2, RESP3), without I/O: requests and replies, for servers and clients.
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
//! | module or type | contents |
//! |---|---|
//! | [`Requests`], [`Request`] | the requests of clients: arrays of bulk strings, and lines ([`inline`]) |
//! | [`Reply`] | the replies of servers, of either version |
//! | [`Replies`] | replies, read by a client |
//! | [`slot`] | the slot of a key in a cluster |
//!
//! Reading is total: any bytes are requests, a request that has not ended, or a [`ProtocolError`], after which a
//! connection is of no use. Memory grows with the bytes that have come, never with a length that was announced.

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
