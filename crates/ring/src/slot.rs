//! What is kept of a packet.

use rota_core::contract::Service;
use rota_core::wire::Frame;

/// A packet that is kept. It has to fit a cache line: a busy ring goes through all of them in every
/// rotation.
#[derive(Clone, Hash, Debug)]
pub struct Slot {
    pub frame: Frame,
    /// Index of its sender among the members.
    pub member: u16,
    pub round: u16,
    pub service: Service,
    /// It carries a packet of an old ring, and nothing for the application.
    pub encapsulated: bool,
    /// Delivered ahead of its turn.
    pub delivered: bool,
}

const _: () = assert!(size_of::<Option<Slot>>() <= 64);
