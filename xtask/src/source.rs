//! Just enough of Rust's lexical rules to count lines and find words where they are code.
//!
//! [`blank`] turns comments and literals into spaces and keeps every line break, so that what is left
//! can be searched without a parser and still has the line numbers of the file. Code that macros put
//! together is not seen, and neither is the difference between a `fn` of ours and one inside
//! `macro_rules!`.

mod items;
mod types;

pub use items::defines;
pub use types::{structs, types, types_with_methods};

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, without a path.
    pub name: String,
    /// The line of its `fn`, counted from one.
    pub line: usize,
    /// Lines from its `fn` to its closing brace, both included.
    pub lines: usize,
}

/// Whether a file holds nothing but tests, judged by its name.
pub fn is_test_file(path: &str) -> bool {
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    folders
        .iter()
        .any(|folder| matches!(*folder, "tests" | "benches"))
        || name == "tests.rs"
        || name.ends_with("_test.rs")
        || name.ends_with("_tests.rs")
}

/// Replaces comments, strings and character literals by spaces.
pub fn blank(text: &str) -> String {
    let source = text.as_bytes();
    let mut out = Vec::with_capacity(source.len());
    let mut at = 0;
    while at < source.len() {
        let end = blank_end(text, at);
        if end > at {
            out.extend(
                source[at..end]
                    .iter()
                    .map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }),
            );
            at = end;
        } else {
            let end = word_end(source, at).max(at + 1);
            out.extend_from_slice(&source[at..end]);
            at = end;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where the comment or literal that starts here ends; `at` itself when none does.
fn blank_end(text: &str, at: usize) -> usize {
    let source = text.as_bytes();
    let rest = &source[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => at + line_length(rest),
        b'/' if rest.starts_with(b"/*") => at + block_comment_length(rest),
        b'"' => at + string_length(rest),
        b'\'' => at + character_length(rest),
        b'r' | b'b' | b'c' => {
            let prefix = word_end(source, at) - at;
            if matches!(&rest[..prefix], b"r" | b"br" | b"cr") {
                raw_string_length(rest, prefix).map_or(at, |length| at + length)
            } else {
                at
            }
        }
        _ => at,
    }
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(rest.len())
}

fn block_comment_length(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string_length(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a character literal, or 0 where the quote begins a lifetime.
fn character_length(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let closing = rest.iter().skip(3).position(|byte| *byte == b'\'');
        return closing.map_or(rest.len(), |found| found + 4);
    }
    // One character of up to four bytes and then a quote; a lifetime has no quote there.
    let width = match rest.get(1) {
        Some(first) if *first >= 0xf0 => 4,
        Some(first) if *first >= 0xe0 => 3,
        Some(first) if *first >= 0xc0 => 2,
        _ => 1,
    };
    if rest.get(1 + width) == Some(&b'\'') {
        width + 2
    } else {
        0
    }
}

/// The length of a raw string; nothing where the prefix begins a raw identifier or stands alone.
fn raw_string_length(rest: &[u8], prefix: usize) -> Option<usize> {
    let hashes = rest[prefix..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut closing = vec![b'"'];
    closing.resize(1 + hashes, b'#');
    let found = rest[open + 1..]
        .windows(closing.len())
        .position(|window| window == closing);
    Some(found.map_or(rest.len(), |found| open + 1 + found + closing.len()))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn word_end(source: &[u8], at: usize) -> usize {
    at + source[at..]
        .iter()
        .take_while(|byte| is_word(**byte))
        .count()
}

/// The words of blanked code with the position of each.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = code.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && !is_word(bytes[at]) {
            at += 1;
        }
        let start = at;
        at = if start < bytes.len() {
            word_end(bytes, start)
        } else {
            start
        };
        (at > start).then(|| (start, &code[start..at]))
    })
}

fn line_of(code: &str, at: usize) -> usize {
    code.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

/// The lines of blanked code on which a word stands by itself.
pub fn lines_with_word(code: &str, wanted: &str) -> Vec<usize> {
    let found = words(code).filter(|(_, word)| *word == wanted);
    let mut lines: Vec<usize> = found.map(|(at, _)| line_of(code, at)).collect();
    lines.dedup();
    lines
}

/// Where an item that starts here ends: behind its body, or behind its semicolon. Brackets of both
/// other kinds are stepped over, so attributes and signatures may contain either.
fn item_end(code: &str, from: usize) -> (usize, bool) {
    let mut braces = 0_usize;
    let mut others = 0_usize;
    for (offset, byte) in code.as_bytes()[from..].iter().enumerate() {
        match byte {
            b'(' | b'[' => others += 1,
            b')' | b']' => others = others.saturating_sub(1),
            b'{' => braces += 1,
            b'}' if braces > 0 => {
                braces -= 1;
                if braces == 0 && others == 0 {
                    return (from + offset + 1, true);
                }
            }
            b';' if braces == 0 && others == 0 => return (from + offset + 1, false),
            _ => {}
        }
    }
    (code.len(), false)
}

/// Blanks every item behind a `#[cfg(test)]`, or behind any other `cfg` that asks for `test`.
pub fn without_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    let mut from = 0;
    while let Some(found) = code[from..].find("#[cfg(") {
        let start = from + found;
        let open = start + "#[cfg(".len();
        let condition = &code[open..open + code[open..].find(']').unwrap_or(0)];
        from = open;
        let asks = words(condition).any(|(_, word)| word == "test");
        if asks && !condition.contains("not(test") {
            let (end, _) = item_end(code, start);
            for byte in out[start..end].iter_mut().filter(|byte| **byte != b'\n') {
                *byte = b' ';
            }
            from = end;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// All functions with a body in blanked code; one inside another is counted in both.
pub fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let mut previous: Option<(usize, &str)> = None;
    for (at, word) in words(code) {
        // A name follows its `fn` with nothing but space between; a pointer type has a bracket there.
        if let Some((fn_at, "fn")) = previous
            && code[fn_at + 2..at].trim().is_empty()
        {
            let (end, has_body) = item_end(code, at);
            if has_body {
                let line = line_of(code, fn_at);
                let lines = line_of(code, end - 1) - line + 1;
                found.push(Function {
                    name: word.to_owned(),
                    line,
                    lines,
                });
            }
        }
        previous = Some((at, word));
    }
    found
}

#[cfg(test)]
mod tests;
