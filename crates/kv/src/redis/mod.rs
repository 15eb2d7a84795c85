//! Redis' protocol for the store: commands as operations, and outcomes as replies. Without I/O.

#[cfg(test)]
mod access_tests;
mod admin;
mod changes;
mod cluster;
mod command;
mod connection;
mod parse;
mod queue;
mod reply;
mod scan;
mod table;
mod view;
mod work;

pub use admin::shown;
pub use changes::{Behind, Watching, told, trimmed};
pub use command::{Fold, Plan, Shape};
pub use connection::{Connection, Step};
pub use table::{TABLE, find};
pub use view::{NodeView, View};
pub use work::{Answering, Done, Task, Walk, Work, assemble, done};
