//! The bits of a message's type.

/// Do not send it back to the connection it came from.
pub(super) const SELF_DISCARD: u32 = 0x40;
pub(super) const CAUSED_BY_JOIN: u32 = 0x100;
pub(super) const CAUSED_BY_LEAVE: u32 = 0x200;
pub(super) const CAUSED_BY_DISCONNECT: u32 = 0x400;
pub(super) const CAUSED_BY_NETWORK: u32 = 0x800;
/// A view of a group.
pub(super) const REGULAR_MEMBERSHIP: u32 = 0x1000;
pub(super) const TRANSITION: u32 = 0x2000;
pub(super) const JOIN: u32 = 0x1_0000;
pub(super) const LEAVE: u32 = 0x2_0000;
pub(super) const DISCONNECT: u32 = 0x4_0000;
/// Speech between daemons. From a client it took whole clusters of Spread down.
pub(super) const GROUPS: u32 = 0x8_0000;
pub(super) const REJECT: u32 = 0x40_0000;

/// A client sets exactly one of these. All other bits but [`SELF_DISCARD`] and [`GROUPS`] mean nothing
/// from a client, and go no further.
pub(super) const KINDS: u32 = 0x3f | JOIN | LEAVE | DISCONNECT;

/// The guarantee a message is sent with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum Service {
    /// May get lost.
    Unreliable = 0x01,
    /// Arrives, in any order.
    Reliable = 0x02,
    /// In the order of its sender.
    Fifo = 0x04,
    /// After all that its sender had seen.
    Causal = 0x08,
    /// In the one order of all.
    Agreed = 0x10,
    /// In the one order of all, and only when all daemons have it.
    Safe = 0x20,
}

impl Service {
    /// All of them, weakest first.
    pub const ALL: [Self; 6] = [
        Self::Unreliable,
        Self::Reliable,
        Self::Fifo,
        Self::Causal,
        Self::Agreed,
        Self::Safe,
    ];

    /// Its bit in the type.
    pub(super) const fn bit(self) -> u32 {
        self as u32
    }

    pub(super) fn of_bit(bit: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.bit() == bit)
    }
}
