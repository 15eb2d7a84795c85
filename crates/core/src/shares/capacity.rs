//! The capacity of a link, and its reserve.

/// The divisor of a link's capacity that gives its reserve: for control messages, and for members without a share.
const RESERVE: u64 = 50;

/// The rate that a member's link takes in, in bits per second of UDP payload: `rota bench raw` measures it with
/// datagrams of the same size (FastCast §3.5: the capacity links have with the messages that are sent).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Capacity(u64);

impl Capacity {
    /// More than any link takes in: the capacity of a link of which nothing is known.
    pub const UNKNOWN: Self = Self(1_000_000_000_000);

    /// The least capacity that is assumed of a link, whatever a peer says: with less nobody could send.
    pub const LEAST: Self = Self(1_000_000);

    /// The capacity of the slowest link.
    pub const fn new(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }

    /// The capacity of links that take in so many bits per second, for datagrams with a payload of so many bytes and
    /// `around` more on the link.
    pub const fn of_link(bits_per_second: u64, payload_bytes: usize, around: usize) -> Self {
        let payload = payload_bytes as u64;
        Self(bits_per_second / (payload + around as u64) * payload)
    }

    /// All of it, in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The part that is divided into shares, in bits per second: 98 % of the link.
    pub const fn shared(self) -> u64 {
        self.0 - self.0 / RESERVE
    }

    /// The rate that each of `members` may send at beyond its share, in bits per second, so that a member without a
    /// share can ask for one. All but one of them together fill the other 2 % of a link.
    pub const fn reserved(self, members: usize) -> u64 {
        match members {
            0 | 1 => self.0 / RESERVE,
            _ => self.0 / RESERVE / (members as u64 - 1),
        }
    }
}
