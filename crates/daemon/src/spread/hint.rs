//! The 16 bits an application puts on a message, in the byte order of the sender.

use super::order::{ByteOrder, MARK};

/// The place of the application's bits in the hint.
const TYPE_BITS: u32 = 0x00ff_ff00;

/// The hint of a message, exactly as it came.
///
/// A daemon forwards the hint untouched: by it a receiver learns that the sender's numbers, those inside the data as
/// well, are in the other byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hint([u8; 4]);

impl Hint {
    /// The hint of a sender that numbers in `order`.
    pub const fn new(order: ByteOrder, mess_type: u16) -> Self {
        Self(order.put_marked((mess_type as u32) << 8))
    }

    /// Reads a hint; `None` if it has bits that mean nothing, or half a mark.
    pub fn read(bytes: [u8; 4]) -> Option<Self> {
        let order = ByteOrder::marked(bytes)?;
        (order.get(bytes) & !(MARK | TYPE_BITS) == 0).then_some(Self(bytes))
    }

    /// As it is on the wire.
    pub const fn bytes(self) -> [u8; 4] {
        self.0
    }

    /// The byte order of its sender.
    pub fn order(self) -> ByteOrder {
        ByteOrder::marked(self.0).unwrap_or(ByteOrder::Big)
    }

    /// The application's type of message.
    pub fn mess_type(self) -> u16 {
        let [_, high, low, _] = self.order().get(self.0).to_be_bytes();
        u16::from_be_bytes([high, low])
    }
}
