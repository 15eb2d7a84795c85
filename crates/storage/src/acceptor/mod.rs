//! An acceptor's log: promises and votes, durable before they are sent.
//!
//! An acceptor that has promised or voted must know of it for ever, or it can help to decide two values in one
//! instance. So its answers wait for this log (Multi-Ring Paxos, 2014, §5: an acceptor logs its answer to Phase 1 and
//! Phase 2 before it sends it). Processes that come back also read here what was decided meanwhile, until it is
//! trimmed.
//!
//! # Layout and use
//!
//! One directory for each ring, with files of one size, the *segments*, of which the newest is appended to. They are
//! written in full before they are used, and those that are not needed any more serve again: where blocks are
//! overwritten, a sync does not wait for the file system's own log. The earlier contents of a file are never taken for
//! records: the number of the segment and the life of the log in which it was made go into the checksum of each record,
//! with the record's offset.
//!
//! The caller appends all that waits, syncs once, and then answers all of it (*group commit*): [`DiskLog::append`],
//! [`DiskLog::commit`]. The log has no thread and no clock of its own; a sync can be handed to another thread
//! ([`DiskLog::start_sync`]), and so can the writing of new segments ([`DiskLog::start_upkeep`]).
//!
//! Records may be gathered elsewhere ([`Group`], [`DiskLog::append_group`]), in the memory that the disk takes them
//! from. Groups are written in whole blocks. With [`Mode::Sync`] they go past the system's memory (`O_DIRECT`) where
//! the file system has that: groups that are written once and read again only by processes that come back need not be
//! copied there. Large ones are gathered in huge pages.
//!
//! A segment begins with the records that must not be forgotten: the trim, the newest configuration, the promises, the
//! state under keys. So segments in which no instance is wanted any more can be dropped, oldest first. It also says
//! where the records of the segment before end.
//!
//! In memory there are eight bytes for each instance that is kept, and the records that wait to be written.
//!
//! # Durable records, and writes that were cut off
//!
//! A write that was cut off by a crash and damage look the same: a record that is not good. They must not be
//! treated the same. The first can be forgotten, since nobody was told of it; the second is a promise lost. Three
//! things tell them apart:
//!
//! * the *mark*, a file of its own, says how far all was durable; it is written after each sync, and synced
//!   itself when segments change, and by [`DiskLog::settle`];
//! * the first record of each group says that all before it was durable;
//! * a segment is begun when all before it is durable.
//!
//! A record that is not good before any of these is damage, and the log is refused. Behind all of them the log ends
//! where its last good record does. The exception, after a *loss of power*, is the last group that was synced, if the
//! mark had not come to the disk by itself: damage to that group then passes for a write that was cut off.
//!
//! # Faults and their outcomes
//!
//! | fault | outcome |
//! |---|---|
//! | no log | made if the options say so, else refused as lost |
//! | no directory | refused; it is not made, since a missing mount looks the same |
//! | crash of the process | what was written is there; what was committed was written |
//! | loss of power | what was synced is there, and of the rest a first part, up to some record. With [`Mode::Async`] that may be less than was answered, and the log says so ([`DiskLog::lost_some`]): the mark knows how the log was kept, and in which run of the machine |
//! | crash or loss of power at any step of a first start, a new segment, a trim | as before the step or after it |
//! | torn last write | cut off before the first record that is not whole; then zeros are written behind it |
//! | a byte changed, or a part cut off or zero, before what is known to be durable | refused as damaged, with file and offset |
//! | the same behind it | cut off there |
//! | one copy of the mark bad | the other counts, which knows of a little less |
//! | both bad, or no mark beside segments | refused as damaged |
//! | a segment missing, too short, or under another's name | refused as damaged |
//! | damage found while records are read back | [`FetchError::Damaged`]; what is good can still be read |
//! | no room for a new segment | [`AppendError::NoSpace`]: nothing was appended; a later try may work. Of a [`Group`] a first part may be appended, so who uses these opens the log again, when there is room ([`DiskLog::make_room`]) |
//! | any other error in a write, also a short one | [`AppendError::Io`]: failed until it is opened again. Where the disk has larger blocks than are written (`EINVAL`), all is written through the system's memory |
//! | any error in a sync, also for want of room | the same: it is never tried again, and what can be read is written once more when the log is opened |
//! | error in a write, sync or rename of the mark, a header or a name | the same |
//! | slow sync | nothing but delay |
//! | a rename that did not come to the disk | the segment is not there, and nothing was appended to it |
//! | error while it is opened | refused; it can be opened again |
//! | with [`Mode::Async`], any error in a write or sync | also answers from before may be lost: [`DiskLog::lost_some`] when it is opened again, unless the disk does not even take that word |
//! | a file or directory that says another cluster, node or ring | refused |
//! | a later version's file | refused |
//! | another process has it | refused |
//! | an older copy of the whole directory | not seen by the log alone. It counts its openings ([`DiskLog::life`]); whoever keeps that number elsewhere, too, has it refused ([`LogOptions::least_life`]), unless the copy was made after the last opening. A log that is made where there is none goes on counting from there, so that what was put away is not taken for it |
//!
//! In memory ([`Mode::Memory`]) nothing survives the process, and a caller that asks for instances further back than it
//! keeps is told so.
//!
//! # Limits
//!
//! The log does not know what a promise means: a caller that appends a vote against its own promise finds it there. It
//! does not repair: an acceptor whose log is refused is one that is lost, and is replaced.

mod any;
mod blocks;
mod contents;
mod dir;
mod error;
mod fetch;
mod group;
mod header;
mod index;
mod inspect;
mod log;
mod mark;
mod memory;
mod open;
mod options;
mod pages;
mod record;
mod scan;
mod segments;
mod spares;
mod sticky;
mod survey;
mod sync;

pub use any::AcceptorLog;
pub use contents::{Contents, read_all, read_all_on};
pub use dir::{Access, FileDir, LogDisk, LogFile, RealFile};
pub use error::{AppendError, Damage, FetchError, LogOpenError};
pub use fetch::Fetched;
pub use group::Group;
pub use header::{Identity, Position};
pub use inspect::{RecordSeen, Seen, SegmentSeen, inspect, inspect_on};
pub use log::DiskLog;
pub use mark::BootId;
pub use memory::MemoryLog;
pub use options::{LogOptions, Mode, boot_id};
pub use record::{Kind, PAYLOAD_LIMIT, Record, RecordRef};
pub use spares::{SpareJob, Upkeep};
pub use sync::{SyncDone, SyncJob};
