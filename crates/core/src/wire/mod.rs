//! The common parts of the datagrams of all protocols: their header, frames of messages, and the errors of decoding.
//!
//! Reading is total. All numbers are little-endian. Every datagram starts with the same 36 bytes and ends with room to
//! seal it:
//!
//! | bytes | field |
//! |---|---|
//! | 0 | version, [`VERSION`] |
//! | 1 | kind (low four bits), service of a data packet (high four bits) |
//! | 2..4 | round of a data packet: low bits of the `token_seq` of its sender's visit |
//! | 4..8 | cluster |
//! | 8..16 | ring id: `ring_seq`; of a join, the largest its sender knows of |
//! | 16..24 | ring id: incarnation of the representative |
//! | 24..32 | `seq` of a data packet, `token_seq` of a token or commit token, else 0 |
//! | 32..34 | sender |
//! | 34..36 | ring id: representative; 0 where there is no ring yet |
//! | last | left 0 here, filled in and checked by the owner of the sockets, which says how many they are; a
//! |  | checksum's [`SEAL_BYTES`] if it says nothing |

mod error;
mod frame;
mod header;
mod part;
mod range;

pub use error::DecodeError;
pub use frame::{
    FIRST_RECORD_BYTES, Frame, FrameCursor, MAX_FRAGMENTS, NEXT_RECORD_BYTES, Record, RecordKind,
    Records, WHOLE_RECORD_BYTES, push_first, push_next, push_whole, put_varint, read_varint,
    start_frame,
};
pub use header::{
    HEADER_BYTES, Header, Kind, MAX_SEAL_BYTES, SEAL_BYTES, VERSION, expect_empty,
    is_for_data_path, read_header, read_incarnation, service_code, service_of, split_header,
};
pub use part::{Part, PartHead, part_bytes};
pub use range::{RequestRange, push_merged};

/// The most members that a ring has: an obligation set is a mask of as many bits.
pub const MAX_MEMBERS: usize = 128;
