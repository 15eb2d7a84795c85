//! What a link takes, and what of it is set aside.

/// One part in so many of a link is set aside for control messages and for who has no share.
const RESERVE: u64 = 50;

/// What a member's link takes in, in bits per second of UDP payload: what `rota bench raw` measures with
/// datagrams of the same size (FastCast §3.5: the capacity links have with the messages that are sent).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Capacity(u64);

impl Capacity {
    /// More than any link takes in: nothing is known of it.
    pub const UNKNOWN: Self = Self(1_000_000_000_000);

    /// No link is taken to take in less, whatever a peer says: nobody could send.
    pub const LEAST: Self = Self(1_000_000);

    /// The capacity of the slowest link.
    pub const fn new(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }

    /// All of it, in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// What shares are made of, in bits per second: 98 % of the link.
    pub const fn shared(self) -> u64 {
        self.0 - self.0 / RESERVE
    }

    /// What each of `members` may send beyond its share, in bits per second, so that who has none can ask for
    /// one. All but one of them together fill the other 2 % of a link.
    pub const fn reserved(self, members: usize) -> u64 {
        match members {
            0 | 1 => self.0 / RESERVE,
            _ => self.0 / RESERVE / (members as u64 - 1),
        }
    }
}
