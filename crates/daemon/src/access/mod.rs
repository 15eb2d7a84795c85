//! The rights of peers: the rules of the section `[[daemon.access]]`.
//!
//! Without a rule a peer that can open a socket may do everything. With rules a client has the rights that the rules
//! that match it give, taken together, and no others: no rule takes anything away, so their order does not matter.

mod error;
mod list;
mod pattern;
mod peer;
mod rights;
mod rule;

pub use error::AccessError;
pub use pattern::{Pattern, PatternError};
pub use rule::{AccessRule, Who};

pub(crate) use list::Access;
pub(crate) use peer::{Guest, Peer};
pub(crate) use rights::Rights;
pub(crate) use rule::Reach;
