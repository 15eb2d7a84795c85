//! Redis' streams for the logs: commands and replies. Without I/O.
//!
//! The entry at position 7 has the id `7-0`.

mod change;
mod connection;
mod ids;
mod parse;
mod read;
mod table;

pub use change::Change;
pub use connection::{Connection, Step, Task};
pub use ids::{After, id_of};
pub use read::{Names, Read, Streams};
pub use table::{TABLE, find};
