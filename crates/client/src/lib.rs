//! The library by which applications speak with a daemon.
//!
//! A [`Client`] joins groups by name and sends messages to groups and to single clients. All members of a group get its
//! messages in one order, and with [`Builder::membership`] also its views: the members of the group from there on.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rota_client::{Client, Event};
//!
//! let mut client = Client::builder().name("alice").membership(true).connect("/run/rota/rota.sock")?;
//! client.join("orders")?;
//! client.send("orders", b"hello")?;
//! loop {
//!     match client.recv()? {
//!         Event::View(view) => println!("{} has {} members", view.group, view.members.len()),
//!         Event::Message(message) => println!("{}: {:?}", message.sender, message.payload),
//!         _ => {}
//!     }
//! }
//! # }
//! ```
//!
//! | start here | for |
//! |---|---|
//! | [`Client`] | one thread that sends and receives; [`Client::split`] for two threads |
//! | [`Envelope`] | several destinations, another service, a kind |
//! | [`Event`] | the events of a client |
//! | `AsyncClient` | the same for tokio, with the feature of that name |
//! | [`Client::try_read`], [`Pending`] | the same for any loop of events: nothing waits |
//! | [`Reconnecting`], `AsyncReconnecting` | a client that connects again, and says what may be missing |
//! | `Tls` | daemons of other hosts, with the feature `tls` |
//! | [`protocol`] | the bytes, without sockets, for both sides |

#![forbid(unsafe_code)]

mod address;
#[cfg(feature = "tokio")]
mod asynchronous;
mod backoff;
mod blocking;
#[cfg(all(test, feature = "tokio"))]
mod early_tests;
mod envelope;
mod error;
mod event;
mod memory;
mod owner;
pub mod protocol;
mod quiet;
mod session;
mod tcp;
#[cfg(feature = "tls")]
mod tls;

pub use address::Address;
#[cfg(feature = "tokio")]
pub use asynchronous::{AsyncClient, AsyncReconnecting};
pub use backoff::Backoff;
pub use blocking::{
    Builder, Client, GroupSizes, Messages, Pending, Receiver, Reconnecting, Sender,
};
pub use envelope::Envelope;
pub use error::{ConnectError, ConnectionLost, RequestError, SendError};
pub use event::{Event, Gap};
pub use owner::Owner;
pub use protocol::{Cause, Code, Destination, Message, PrivateName, SlowPolicy, View};
pub use rota_core::contract::Service;
pub use rota_core::groups::{ClientName, GroupName, NameError, ViewId};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsFileError};
