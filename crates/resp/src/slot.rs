//! The 16,384 slots of keys in a cluster.

/// The number of slots.
pub const SLOTS: u16 = 16_384;

/// The slot of a key: the CRC16 of it, or of its tag, the bytes between its first `{` and the next `}`, if there are
/// any. So keys with the same tag are together.
pub fn of(key: &[u8]) -> u16 {
    let tag = tag(key).unwrap_or(key);
    crc16(tag) % SLOTS
}

/// The slot of all keys that begin so; `None`: they may be in several, as no tag ends in the prefix.
pub fn of_prefix(prefix: &[u8]) -> Option<u16> {
    tag(prefix).map(|tag| crc16(tag) % SLOTS)
}

fn tag(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|byte| *byte == b'{')?;
    let behind = &key[open + 1..];
    let close = behind.iter().position(|byte| *byte == b'}')?;
    (close > 0).then_some(&behind[..close])
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        let at = (crc >> 8) as u8 ^ byte;
        (crc << 8) ^ TABLE[usize::from(at)]
    })
}

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = (at as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            let carry = crc & 0x8000 != 0;
            crc <<= 1;
            if carry {
                crc ^= 0x1021;
            }
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{crc16, of};

    #[test]
    fn keys_are_where_redis_has_them() {
        // The check value of CRC-16/XMODEM, and slots that Redis' documentation names.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (key, slot) in [("foo", 12182), ("bar", 5061), ("hello", 866), ("", 0)] {
            assert_eq!(of(key.as_bytes()), slot, "{key}");
        }
        assert_eq!(of(b"{user1000}.following"), of(b"{user1000}.followers"));
        assert_eq!(of(b"foo{}{bar}"), super::crc16(b"foo{}{bar}") % 16_384);
        assert_eq!(of(b"foo{{bar}}zap"), of(b"{bar"));
        assert_eq!(of(b"foo{bar}{zap}"), of(b"bar"));
    }
}
