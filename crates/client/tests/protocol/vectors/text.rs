//! The text of vectors: blocks of lines `KEY VALUE`, with an empty line between two of them.

use std::fmt::{Display, Write as _};

/// So many equal bytes are written as one and a number.
const RUN: usize = 32;
/// The most characters of bytes on a line, but for a run.
const WIDTH: usize = 96;

/// One vector.
pub struct Block(String);

impl Block {
    pub fn new(what: &str, name: &str) -> Self {
        Self(format!("{what} {name}\n"))
    }

    pub fn line(&mut self, key: &str, value: impl Display) {
        writeln!(self.0, "{key} {value}").expect("a string takes it");
    }

    pub fn flag(&mut self, key: &str, value: bool) {
        self.line(key, if value { "yes" } else { "no" });
    }

    /// A text for people: the rest of the line, between quotes.
    pub fn quoted(&mut self, key: &str, text: &str) {
        self.line(key, format_args!("\"{text}\""));
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.named_bytes("bytes", bytes);
    }

    /// Lines of `HEX`, or `HH*COUNT` for equal bytes; `-` if there are none.
    pub fn named_bytes(&mut self, key: &str, bytes: &[u8]) {
        let mut line = String::new();
        let mut lines = Vec::new();
        for run in bytes.chunk_by(|one, next| one == next) {
            if run.len() >= RUN {
                lines.extend((!line.is_empty()).then(|| std::mem::take(&mut line)));
                lines.push(format!("{:02x}*{}", run[0], run.len()));
                continue;
            }
            for byte in run {
                if line.len() >= WIDTH {
                    lines.push(std::mem::take(&mut line));
                }
                write!(line, "{byte:02x}").expect("a string takes it");
            }
        }
        lines.extend((!line.is_empty()).then_some(line));
        if lines.is_empty() {
            lines.push("-".to_owned());
        }
        lines.iter().for_each(|line| self.line(key, line));
    }
}

pub fn file(about: &str, blocks: &[Block]) -> String {
    let mut text = format!("# {about}\n# README.md has the format.\n");
    for Block(block) in blocks {
        text.push('\n');
        text.push_str(block);
    }
    text
}
