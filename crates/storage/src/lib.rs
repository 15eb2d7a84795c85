//! What Rota's nodes keep on disk.
//!
//! The newest ring id's number, in a [`RingIdFile`]; and, of nodes that take part in dynamic voting, what they
//! know of primary configurations, in a [`PrimaryFile`]; of acceptors, what they have promised and voted for, in
//! an [`acceptor`] log, and how often that was opened, in a [`LifeFile`]; of replicas, their [checkpoints](checkpoint). The module of each says what becomes of each
//! fault a disk can have.

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
