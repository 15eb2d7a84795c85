//! The durable state of Rota's nodes, in files.
//!
//! The newest ring id's number, in a [`RingIdFile`]; of nodes that take part in dynamic voting, their records of
//! primary configurations, in a [`PrimaryFile`]; of acceptors, their promises and votes, in an [`acceptor`] log, and
//! the number of its openings, in a [`LifeFile`]; of replicas, their [checkpoints](checkpoint). The module of each
//! describes the outcome of each fault that a disk can have.

#![forbid(unsafe_code)]

pub mod acceptor;
pub mod checkpoint;
mod copies;
mod disk;
mod error;
pub mod life;
pub mod primary;
pub mod ring_id;
mod slot;

pub use disk::{Disk, FileDisk, Name};
pub use error::{Kept, OpenError, StoreError};
pub use life::LifeFile;
pub use primary::{Opening, PrimaryFile};
pub use ring_id::{OnDamage, RingIdFile};
