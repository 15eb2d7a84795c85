//! Patterns of names, as Redis has them: `*`, `?`, `[abc]`, `[^a-z]`, and `\` before a character that stands for
//! itself.

/// Whether a name is like a pattern. The steps are at most the product of both lengths.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    // The pattern behind the last star, and the rest of the name from which the star may take one more byte.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            star = Some((rest, name));
            pattern = rest;
            continue;
        }
        match (one(pattern, name.first().copied()), name) {
            (Some(rest), [_, others @ ..]) => (pattern, name) = (rest, others),
            (_, []) if pattern.is_empty() => return true,
            _ => {
                let Some((behind, [_, others @ ..])) = star else {
                    return false;
                };
                star = Some((behind, others));
                (pattern, name) = (behind, others);
            }
        }
    }
}

/// The rest of a pattern behind its first part, if the byte is like that part.
fn one(pattern: &[u8], byte: Option<u8>) -> Option<&[u8]> {
    let byte = byte?;
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => {
            let (is_in, rest) = set(rest, byte);
            is_in.then_some(rest)
        }
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (*literal == byte).then_some(rest),
        [] => None,
    }
}

/// Whether a byte is in a set, and the pattern behind the set. A set without an end ends with the pattern.
fn set(set: &[u8], byte: u8) -> (bool, &[u8]) {
    let (is_not, mut set) = match set {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, set),
    };
    let mut is_in = false;
    loop {
        set = match set {
            [] => return (is_in != is_not, set),
            [b']', rest @ ..] => return (is_in != is_not, rest),
            [b'\\', literal, rest @ ..] => {
                is_in |= *literal == byte;
                rest
            }
            [one, b'-', other, rest @ ..] if *other != b']' => {
                is_in |= (*one.min(other)..=*one.max(other)).contains(&byte);
                rest
            }
            [literal, rest @ ..] => {
                is_in |= *literal == byte;
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn names_are_like_patterns_as_redis_has_them() {
        let like = [
            ("*", ""),
            ("*", "anything"),
            ("a?c", "abc"),
            ("a*c*e", "abcde"),
            ("a*c*e", "ace"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-c]llo", "hbllo"),
            ("h[c-a]llo", "hbllo"),
            ("h\\*llo", "h*llo"),
            ("[\\]]", "]"),
            ("[a", "a"),
            ("user:*:name", "user:1:2:name"),
            ("**a", "ba"),
        ];
        for (pattern, name) in like {
            assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern}");
        }
        let unlike = [
            ("", "a"),
            ("a?c", "ac"),
            ("a*c*e", "acd"),
            ("h[^a]llo", "hallo"),
            ("h[a-c]llo", "hdllo"),
            ("h\\*llo", "hello"),
            ("abc", "abcd"),
            ("?", ""),
        ];
        for (pattern, name) in unlike {
            assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern}");
        }
        let many = "a*".repeat(1_000) + "b";
        assert!(!matches(many.as_bytes(), "a".repeat(10_000).as_bytes()));
    }
}
