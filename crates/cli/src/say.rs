//! Output to people and programs.
//!
//! A reader that has gone away (`| head`) is no error: there is nobody who misses anything. A full disk is one: whoever
//! reads the file believes that it is all there was.

use std::fmt::{Display, Write as _};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use serde::Serialize;

/// The reason why standard output takes nothing more: in words, or none if its reader has gone.
static OVER: OnceLock<Option<String>> = OnceLock::new();

/// Prints text; [`ended`] tells what comes of it.
pub fn print(text: &impl Display) {
    let mut out = io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        failed(&error);
    }
}

/// Standard output does not take what was written.
pub fn failed(error: &io::Error) {
    let words = (error.kind() != ErrorKind::BrokenPipe).then(|| error.to_string());
    // Only the first failure says why.
    let _ = OVER.set(words);
}

/// Whether standard output takes nothing more: its reader has gone, or its disk is full.
pub fn is_over() -> bool {
    OVER.get().is_some()
}

/// The exit status of a command that would have had this one: 1 if its output was lost, and it says so.
pub fn ended(code: ExitCode) -> ExitCode {
    let Some(Some(words)) = OVER.get() else {
        return code;
    };
    complain(&format!("standard output: {words}: some of it is lost"));
    ExitCode::FAILURE
}

/// Prints one JSON object on a line.
pub fn print_json(object: &impl Serialize) {
    match serde_json::to_string(object) {
        Ok(line) => print(&line),
        Err(error) => complain(&error),
    }
}

/// Says on standard error what is wrong.
pub fn complain(what: &impl Display) {
    let _ = writeln!(io::stderr(), "rota: {what}");
}

/// Says on standard error how it goes.
pub fn tell(what: &impl Display) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// Several lines with words of others in them: the lines stay lines, and else it is as [`escaped`].
pub fn escaped_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escaped).collect();
    lines.join("\n")
}

/// Bytes of others as part of a line: whatever would end the line or part it, or tell a terminal something, is written as in
/// a string of C, and so is a backslash. Double quotes around it make it a word of [`rota_resp::inline`] again, but for quotes
/// in it.
pub fn escaped(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                // Some programs take the last two for the end of a line.
                _ if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') => {
                    push_hex(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => text.push(character),
            }
        }
        push_hex(&mut text, chunk.invalid());
    }
    text
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // A string takes everything.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use rota_resp::inline;

    use super::escaped;

    #[test]
    fn bytes_of_others_neither_end_a_line_nor_part_it_nor_tell_a_terminal_anything() {
        for (bytes, text) in [
            (&b"plain text, \xc3\xa9"[..], "plain text, \u{e9}"),
            (b"a\nb\rc\td", r"a\nb\rc\td"),
            (b"\x1b[2J\x07\0\x7f", r"\x1b[2J\x07\x00\x7f"),
            (br"C:\n", r"C:\\n"),
            // What a terminal takes for escape and bracket, as text and as a byte; and a separator of lines.
            ("\u{9b}31m".as_bytes(), r"\xc2\x9b31m"),
            (b"\x9b31m\xff", r"\x9b31m\xff"),
            ("\u{2028}".as_bytes(), r"\xe2\x80\xa8"),
        ] {
            assert_eq!(escaped(bytes), text);
            let word = inline::words(format!("\"{text}\"").as_bytes());
            assert_eq!(word, Some(vec![bytes.to_vec()]), "{text}");
        }
    }
}
