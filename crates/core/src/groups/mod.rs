//! Groups of clients and their views: a layer over any engine that delivers configurations.
//!
//! Clients connect to a daemon, join groups by name and send messages to groups, whether they are in them
//! or not, and to single clients (`#client#daemon`). All daemons know of all groups: joins, leaves and
//! disconnects are messages in the one order of the engine, so every daemon changes its copy at the
//! same place, and every member gets the same *view* there, without the daemons having to agree on
//! anything.
//!
//! When the network splits, each side goes on with its members. When sides meet, they know of different groups, and
//! tell each other: for each set of daemons that came together one speaks, and when all sets have been heard, all
//! daemons have the same copy again.
//!
//! # States
//!
//! ```text
//!              transitional                regular, all came together
//! Operational ------------> Transitional ---------------------------> Operational
//!      ^                         | regular, others came too
//!      | all heard               v
//!      +--------------------- Gathering <------------------+ regular
//!                                | transitional            |
//!                                v                         |
//!                            Interrupted ------------------+
//!                                | all heard
//!                                +---------> views of Operational, then Transitional
//! ```
//!
//! Requests of clients wait while daemons are not operational. A request that was handed to the engine earlier and
//! finds its place only in a later configuration counts for nobody: each request is stamped with the configuration it
//! was sent for, and its daemon sends it again. So no request is ordered during an exchange, where it would have to be
//! kept and argued about when the exchange is cut off.
//!
//! # What this does not do
//!
//! It opens no sockets and has no opinion on slow clients: its driver disconnects them, has them miss something
//! ([`Groups::restart`]), or has senders to their groups wait ([`Groups::hold`]). Views are no primary component: each
//! side of a split has its own. Over engines that go from one regular configuration to the next without a transitional
//! one there are no transitional signals, and every daemon tells its knowledge at each change.
//!
//! | file | holds |
//! |---|---|
//! | `machine` | [`Groups`]: the states |
//! | `requests` | the requests of clients, the messages that the engine is offered, and the events that are taken |
//! | `changes` | the ordered changes: messages, joins, leaves, disconnects; exclusion |
//! | `knowledge`, `part` | the knowledge of daemons, by those that came together, and its merge |
//! | `views` | the names of views, and the views that local members were told |
//! | `routes` | messages whose head repeats an earlier one |
//! | `gather` | the exchange of the knowledge of daemons |
//! | `large` | messages that are sent in parts |
//! | `exclusion` | daemons that are in no view, over engines with primary views alone |
//! | `hold` | senders that wait for a client that reads too slowly |
//! | `clients`, `limits` | clients of this daemon, their requests; also of clients that go, or come back |
//! | `layer` | [`Daemon`]: the state machine over an engine |
//! | `name`, `event` | names; the events of clients |
//! | `message`, `state`, `bytes` | the messages between daemons |

pub(crate) mod bytes;
mod changes;
mod clients;
mod counters;
mod event;
mod exclusion;
mod gather;
mod hold;
mod knowledge;
mod large;
mod layer;
mod limits;
mod machine;
mod message;
mod name;
mod part;
mod requests;
mod routes;
mod state;
#[cfg(test)]
mod tests;
mod views;

pub use counters::Counters;
pub use event::{Cause, ClientEvent, Connection, Event, Member, Received, View, ViewId};
pub use hold::{Hold, HoldFor, MOST_HELD, MOST_HOLD_MS};
pub use layer::Daemon;
pub use limits::{Limits, Owner, RequestError};
pub use machine::{Groups, Phase};
pub use message::{MOST_DESTINATIONS, MOST_PAYLOAD_BYTES, OVERHEAD_BYTES, PIECE_BYTES};
pub use name::{ClientName, DaemonName, Destination, Directory, GroupName, Name, NameError};
pub use requests::Send;
