//! Numbers in the heads of lines.

use std::io::Write as _;

/// A decimal number with an optional sign, as Redis reads them: no spaces, no plus, no leading zeros, nothing behind it.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [] => false,
        [b'0'] => digits.len() == text.len(),
        [first, ..] => *first != b'0' && digits.iter().all(u8::is_ascii_digit),
    };
    if !is_plain {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Writes a line of a kind and a number.
pub(crate) fn head(out: &mut Vec<u8>, first: u8, number: i64) {
    out.push(first);
    // A vector takes all that is written.
    let _ = write!(out, "{number}\r\n");
}

#[cfg(test)]
mod tests {
    use super::{head, parse};

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for number in [0, 1, -1, 9, 10, 1000, -90, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            head(&mut out, b':', number);
            assert_eq!(out, format!(":{number}\r\n").into_bytes());
        }
    }

    #[test]
    fn only_plain_numbers_are_some() {
        for (text, number) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("1a", None),
        ] {
            assert_eq!(parse(text.as_bytes()), number, "{text:?}");
        }
    }
}
