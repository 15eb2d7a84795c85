//! A stream of bytes from a daemon to a client of the same host: most of it through memory that both see, the
//! rest through their Unix socket, which also says what is where.
//!
//! A socket costs a call and a copy into the kernel on one side, and the same on the other; here bytes are
//! copied into the memory and out of it. The socket carries *records*, 8 bytes each:
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | the number of bytes of the stream that the record is about |
//! | 4..8 | their place in the memory; `u32::MAX` if they follow on the socket |
//!
//! So the order of the stream, waking up the reader, its end, and the case of full memory all remain the socket's. In
//! the memory itself there are two numbers besides the bytes: the count of bytes that the reader has taken, and the
//! writer's mark that the memory is there. The reader may write what it likes there: the writer believes only possible
//! counts, and reads nothing else.
//!
//! | file | holds |
//! |---|---|
//! | `region` | the memory; all `unsafe` of the stream |
//! | `writer` | [`Writer`], the daemon's side |
//! | `reader` | [`Reader`], the client's |
//! | `pass` | the descriptor, on its way from one to the other |
//! | `process` | [`process_id`]: memory that no two processes see, for whoever must know that it was not forked |

mod pass;
mod process;
mod reader;
mod region;
#[cfg(test)]
mod tests;
mod writer;

pub use pass::{receive, send};
pub use process::process_id;
pub use reader::Reader;
pub use region::MOST_BYTES;
pub use writer::Writer;

/// Bytes of a record on the socket.
const RECORD_BYTES: usize = 8;
/// In a record: the bytes follow on the socket.
const INLINE: u32 = u32::MAX;
