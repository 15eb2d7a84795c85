//! Digests of a stream of messages: one that depends on their order, one that does not.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// A set of messages, whatever their order: their number, their bytes, and the sum (modulo 2¹²⁸) of a 128-bit SHA-256
/// prefix of each.
///
/// Two such sums are equal when the sorted messages are; a lost, doubled or changed message changes
/// the sum, except with a probability of 2⁻¹²⁸. It needs no memory, where sorting needs all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// The number of messages.
    pub messages: u64,
    /// Their payload bytes.
    pub bytes: u64,
    sum: u128,
}

impl Census {
    /// Adds a message whose SHA-256 this is.
    fn add_hashed(&mut self, hash: &[u8], bytes: u64) {
        let mut prefix = [0; 16];
        prefix.copy_from_slice(&hash[..16]);
        self.sum = self.sum.wrapping_add(u128::from_le_bytes(prefix));
        self.messages += 1;
        self.bytes += bytes;
    }

    /// Adds a message.
    pub fn add(&mut self, payload: &[u8]) {
        self.add_hashed(&Sha256::digest(payload), payload.len() as u64);
    }

    /// The sum, to be told over a pipe.
    pub fn sum(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

/// Takes the census of lines that come in arbitrary pieces.
#[derive(Debug, Default)]
pub struct LineCensus {
    census: Census,
    line: Sha256,
    line_bytes: u64,
    longest: u64,
    longest_line: u64,
}

impl LineCensus {
    /// The next piece of the input.
    pub fn feed(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.take(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.take(rest);
    }

    fn take(&mut self, part: &[u8]) {
        self.line.update(part);
        self.line_bytes += part.len() as u64;
    }

    fn end_line(&mut self) {
        if self.line_bytes > self.longest {
            self.longest = self.line_bytes;
            self.longest_line = self.census.messages + 1;
        }
        self.census
            .add_hashed(&self.line.finalize_reset(), self.line_bytes);
        self.line_bytes = 0;
    }

    /// The input has ended. A last line without a newline counts.
    pub fn finish(mut self) -> (Census, Longest) {
        if self.line_bytes > 0 {
            self.end_line();
        }
        (
            self.census,
            Longest {
                line: self.longest_line,
                bytes: self.longest,
            },
        )
    }
}

/// The longest line of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    /// The line, from 1; 0 if none has any bytes.
    pub line: u64,
    /// Its length without the newline.
    pub bytes: u64,
}

/// The deliveries of a node: a census, and the digest of the messages in their order.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The messages, whatever the order.
    pub census: Census,
    order: Sha256,
}

impl Tally {
    /// The next delivery.
    pub fn add(&mut self, payload: &[u8]) {
        self.census.add(payload);
        self.order.update(payload);
        self.order.update(b"\n");
    }

    /// SHA-256 of all payloads, each followed by a newline.
    pub fn digest(&self) -> String {
        hex(&self.order.clone().finalize())
    }
}

/// A digest in words.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], piece: usize) -> (Census, Longest) {
        let mut lines = LineCensus::default();
        text.chunks(piece).for_each(|piece| lines.feed(piece));
        lines.finish()
    }

    #[test]
    fn pieces_do_not_matter() {
        let text = b"a\n\n\xff\xfe long line\nlast";
        let (whole, longest) = lines(text, 1000);
        assert_eq!((whole.messages, whole.bytes), (4, 1 + 12 + 4));
        assert_eq!(longest, Longest { line: 3, bytes: 12 });
        for piece in 1..8 {
            assert_eq!(lines(text, piece), (whole.clone(), longest));
        }
    }

    #[test]
    fn only_a_last_line_with_bytes_needs_no_newline() {
        assert_eq!(lines(b"", 1).0.messages, 0);
        assert_eq!(lines(b"\n", 1).0.messages, 1);
        assert_eq!(lines(b"\n\n", 1).0.messages, 2);
        assert_eq!(lines(b"a\n\nb", 1).0.messages, 3);
    }

    #[test]
    fn the_census_ignores_order_and_sees_everything_else() {
        let of = |payloads: &[&[u8]]| {
            let mut census = Census::default();
            payloads.iter().for_each(|payload| census.add(payload));
            census
        };
        assert_eq!(of(&[b"a", b"b", b""]), of(&[b"", b"b", b"a"]));
        assert_ne!(of(&[b"a", b"b"]), of(&[b"a", b"a"]));
        assert_ne!(of(&[b"a", b""]), of(&[b"a"]));
        assert_eq!(of(&[b"x", b""]), lines(b"\nx\n", 1).0);
    }

    #[test]
    fn the_digest_is_that_of_the_lines() {
        let mut tally = Tally::default();
        tally.add(b"a");
        tally.add(b"");
        assert_eq!(tally.digest(), hex(&Sha256::digest(b"a\n\n")));
    }
}
