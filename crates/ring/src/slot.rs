//! The entry of a packet in a member's buffer.

use rota_core::contract::Service;
use rota_core::wire::Frame;

/// A packet in the buffer. The entry has to fit a cache line: a busy ring goes through all entries in every rotation.
#[derive(Clone, Hash, Debug)]
pub struct Slot {
    pub frame: Frame,
    /// Index of its sender among the members.
    pub member: u16,
    pub round: u16,
    pub service: Service,
    /// The frame wraps a packet of an old ring, and has nothing for the application.
    pub encapsulated: bool,
    /// Delivered ahead of its turn.
    pub delivered: bool,
}

const _: () = assert!(size_of::<Option<Slot>>() <= 64);
