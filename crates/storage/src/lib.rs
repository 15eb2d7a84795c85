//! What Rota's nodes keep on disk.
//!
//! Today that is one number, the newest ring id's, in a [`RingIdFile`]. Its module says what becomes
//! of each fault a disk can have.

#![forbid(unsafe_code)]

mod disk;
mod error;
pub mod ring_id;
mod slot;

pub use disk::{Disk, FileDisk, Name};
pub use error::{OpenError, StoreError};
pub use ring_id::{OnDamage, RingIdFile};
