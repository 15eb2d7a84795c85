//! The protocol of Spread's clients, on the daemon's side: bytes and typed requests and messages.
//!
//! A client connects by TCP or a Unix socket, the bytes are the same. It says who it is and is taken
//! or refused ([`Session::pull`] gives [`Event::Connect`]; the daemon calls [`Session::accept`] or
//! [`Session::refuse`]). From then on both sides send messages of one layout:
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | type: service or kind, see `bits`; marks the byte order of all numbers but the hint |
//! | 4..36 | sender: `#name#daemon`, or of membership messages the group |
//! | 36..40 | number of groups |
//! | 40..44 | hint: the application's 16-bit type, with a mark of its own ([`Hint`]) |
//! | 44..48 | length of the data |
//! | 48.. | the groups, 32 bytes each, then the data |
//!
//! [`Session`] is all that a socket loop needs: it takes bytes in pieces of any size, and gives
//! requests; it takes what the daemon tells a client, and gives bytes. [`decode`] and
//! [`Outgoing::encode`] are the same without state. Reading is total: any bytes give a request, a
//! number of bytes to wait for, or an error. Memory grows with what has arrived, never with what a
//! peer says will arrive, and holds at most one message.
//!
//! This module knows no groups, orders no members, keeps no time and counts no sessions. The owner of the sockets
//! limits the time of a handshake ([`Session::is_open`]) and the bytes that may wait for a slow client
//! ([`Session::backlog`]). `docs/protocols/spread.md` lists where this differs from Spread on purpose.

mod auth;
mod bits;
mod connect;
mod error;
mod hint;
mod name;
mod order;
mod outgoing;
mod request;
mod session;
mod settings;
mod view;

pub use auth::AuthMethod;
pub use bits::Service;
pub use connect::{Connect, Version};
pub use error::{EncodeError, Refusal, RequestError, SessionError, WrongStage};
pub use hint::Hint;
pub use name::{GroupName, Name, NameError, PrivateName};
pub use order::ByteOrder;
pub use outgoing::{Common, Message, Outgoing, Rejected, Rejection};
pub use request::{Decoded, Multicast, Request, decode};
pub use session::{Event, Session};
pub use settings::{Settings, SettingsError};
pub use view::{Cause, GroupId, View};

/// Bytes of a name on the wire; the last is always 0.
pub const NAME_BYTES: usize = 32;

/// Most characters of the name a client chooses for itself.
pub const MAX_PRIVATE_NAME: usize = 10;

/// Most characters of a daemon's name.
pub const MAX_DAEMON_NAME: usize = 19;

/// Bytes of the header every message starts with.
pub const HEADER_BYTES: usize = 48;

/// Most groups a client may send one message to.
pub const MAX_GROUPS: usize = 100;

/// Most bytes a client may send in one message, with header and groups.
pub const MAX_MESSAGE_BYTES: usize = 144_000;
