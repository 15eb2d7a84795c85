//! The protocol between clients and a daemon: bytes and typed frames, for both sides.
//!
//! A connection is a stream of frames in each direction. All numbers are little-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | length of what follows, from 1 to a limit |
//! | 4 | kind |
//! | 5.. | body |
//!
//! A client says [`Hello`] and waits for [`Welcome`], or is refused. From then on it sends [`Request`]s, and the daemon
//! sends [`Reply`]s: one stream in the one order, in which a join, for instance, is answered where it has taken effect.
//! [`Credit`] bounds the bytes that a client may send before the daemon has taken some of them.
//!
//! [`Inbox`] takes bytes in pieces of any size and gives frames; [`Request::decode`] and
//! [`Reply::decode`] are the same without state. Reading is total: any bytes give a frame, a number of
//! bytes to wait for, or an error. Memory grows with what has arrived, never with what a peer says will
//! arrive. Writing appends to a buffer, so that many frames are one write; the payload of a message can
//! be shared between all its receivers ([`Reply::chunks`]).
//!
//! This module knows no sockets, keeps no time, and does not say which frame may come when. `docs/protocols/client.md`
//! does, with every body byte by byte.

mod bytes;
mod code;
mod credit;
mod error;
mod frame;
mod heads;
mod hello;
mod message;
mod name;
mod reply;
mod request;
mod skim;
mod view;

pub use bytes::set_payload_bytes;
pub use code::Code;
pub use credit::{Credit, CreditExceeded};
pub use error::{DecodeError, EncodeError};
pub use frame::{
    Decoded, Frame, HEAD_BYTES, Inbox, MAX_HELLO_BYTES, MAX_REPLY_BYTES, MAX_REPLY_BYTES_1,
    largest_message_frame, request_limit,
};
pub use hello::{Hello, SlowPolicy, Welcome};
pub use message::{Message, Send, SendHead};
pub use name::{Destination, PrivateName};
pub use reply::Reply;
pub use request::Request;
pub use skim::{Skimmed, groups_in, skim};
pub use view::{Cause, View, own_index};

/// The version of the protocol that this crate speaks.
pub const VERSION: u16 = 3;

/// The oldest version that it speaks with those who do not know the newest: without [`Reply::Skipped`],
/// and with smaller frames. Version 2 has no [`Reply::Excluded`] and [`Reply::Included`].
pub const OLDEST_VERSION: u16 = 1;

/// Most destinations of one message.
pub const MAX_DESTINATIONS: usize = rota_core::groups::MOST_DESTINATIONS;

/// Most bytes of a text for people; longer ones are cut where a character ends.
pub const MAX_TEXT_BYTES: usize = 255;
