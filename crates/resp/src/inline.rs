//! Requests that a person types: words in a line, which may be quoted.

/// The words of a line, as Redis takes them: double quotes with `\n`, `\r`, `\t`, `\b`, `\a`, `\xHH` and `\` before any other character; single quotes,
/// with `\'` only. `None`: quotes do not end, or something follows a quote that ends.
pub fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut rest = line;
    let mut words = Vec::new();
    loop {
        let skipped = rest.iter().take_while(|byte| is_space(**byte)).count();
        rest = &rest[skipped..];
        if rest.is_empty() || rest[0] == 0 {
            return Some(words);
        }
        words.push(word(&mut rest)?);
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The next word, of which the first byte is no space.
fn word(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut word = Vec::new();
    while let Some((first, behind)) = rest.split_first() {
        match *first {
            0 => break,
            byte if is_space(byte) => break,
            b'"' => {
                *rest = behind;
                double(rest, &mut word)?;
                return Some(word);
            }
            b'\'' => {
                *rest = behind;
                single(rest, &mut word)?;
                return Some(word);
            }
            byte => {
                word.push(byte);
                *rest = behind;
            }
        }
    }
    Some(word)
}

/// Reads a word in double quotes, from behind the first quote to behind the last one.
fn double(rest: &mut &[u8], word: &mut Vec<u8>) -> Option<()> {
    loop {
        let (byte, used) = match **rest {
            [] => return None,
            [b'"', ref behind @ ..] => return end(rest, behind),
            [b'\\', b'x', high, low, ..] if hex(high).is_some() && hex(low).is_some() => {
                (hex(high)? << 4 | hex(low)?, 4)
            }
            [b'\\', escaped, ..] => (unescaped(escaped), 2),
            [byte, ..] => (byte, 1),
        };
        word.push(byte);
        *rest = &rest[used..];
    }
}

fn single(rest: &mut &[u8], word: &mut Vec<u8>) -> Option<()> {
    loop {
        let (byte, used) = match **rest {
            [] => return None,
            [b'\'', ref behind @ ..] => return end(rest, behind),
            [b'\\', b'\'', ..] => (b'\'', 2),
            [byte, ..] => (byte, 1),
        };
        word.push(byte);
        *rest = &rest[used..];
    }
}

/// Ends a quoted word: a space or nothing follows its last quote.
fn end<'a>(rest: &mut &'a [u8], behind: &'a [u8]) -> Option<()> {
    *rest = behind;
    let is_end = behind.first().is_none_or(|byte| is_space(*byte));
    is_end.then_some(())
}

const fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn hex(byte: u8) -> Option<u8> {
    let digit = (byte as char).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::words;

    fn of(line: &str) -> Option<Vec<String>> {
        let words = words(line.as_bytes())?;
        let text = |word| String::from_utf8(word).expect("text");
        Some(words.into_iter().map(text).collect())
    }

    #[test]
    fn words_are_quoted_as_redis_has_it() {
        for (line, wanted) in [
            ("", Some(vec![])),
            ("  \t ", Some(vec![])),
            ("SET a 1", Some(vec!["SET", "a", "1"])),
            (r#"SET "a b" 'c d'"#, Some(vec!["SET", "a b", "c d"])),
            (r#""\x41\n\"\q""#, Some(vec!["A\n\"q"])),
            (r"'it\'s \n'", Some(vec![r"it's \n"])),
            (r#"a"b""#, Some(vec!["ab"])),
            (r#""""#, Some(vec![""])),
            (r#""\xZZ""#, Some(vec!["xZZ"])),
            (r#""a"b"#, None),
            (r#""a"#, None),
            ("'a", None),
            (r#"a '"#, None),
        ] {
            let wanted = wanted.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(of(line), wanted, "{line:?}");
        }
    }
}
