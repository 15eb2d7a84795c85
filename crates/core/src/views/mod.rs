//! Uniform total order in primary views: what FastCast and LCR have in common (FastCast §3.4).
//!
//! A [`DataPath`] orders packets within one view. Beside it runs an idle ring of this project's own
//! membership, which detects failures and says which configurations are primary: those are the views.
//! `docs/protocols/views.md` has the rules of the change from one view to the next.

mod backlog;
mod path;

pub use backlog::Backlog;
pub use path::{DataPath, Frozen, Held, Link, Load, Packet, PacketId, View};
