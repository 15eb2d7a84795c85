//! The process of a service that is asked, and the output of answers.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use rota_resp::Reply;

use super::who::Who;
use crate::say::{complain, failed};

/// Which process.
#[derive(Clone, Debug, clap::Args)]
pub struct Where {
    /// Any process, where clients of Redis' protocol connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6379")]
    connect: SocketAddr,
    /// How long an answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    patience: u64,
    #[command(flatten)]
    who: Who,
}

impl Where {
    /// The time that an answer may take.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.patience.max(1))
    }

    /// The answers to commands, on a connection of their own.
    pub fn ask(&self, commands: &[Vec<Vec<u8>>]) -> Result<Vec<Reply>, String> {
        let mut talk = self.who.connect(self.connect, self.patience())?;
        let replies = talk.say(commands);
        replies.map_err(|error| format!("{}: {error}", self.connect))
    }

    /// The same of one; an error is one here, too.
    pub fn ask_one(&self, words: &[&str]) -> Result<Reply, String> {
        self.who.ask(self.connect, self.patience(), words)
    }

    /// A connection on which who asks has said who it is.
    pub fn connect(&self) -> Result<super::talk::RpcConnection, String> {
        self.who.connect(self.connect, self.patience())
    }
}

/// It was not done, and why.
pub fn refused(what: &str) -> ExitCode {
    complain(&what);
    ExitCode::FAILURE
}

/// Bytes of others as part of a line: whatever would end the line or part it, or tell a terminal something, is written as in
/// a string of C, and so is a backslash. Double quotes around it make it a word of [`rota_resp::inline`] again, but for quotes
/// in it.
pub fn escaped(bytes: &[u8]) -> String {
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

/// Prints bytes as they are, and a line's end.
pub fn line(parts: &[&[u8]]) {
    let mut out = io::stdout().lock();
    let bytes = [&parts.concat()[..], b"\n"].concat();
    if let Err(error) = out.write_all(&bytes).and_then(|()| out.flush()) {
        failed(&error);
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
