//! Golden files: the bytes of a format on a wire or a disk, field by field, as they were when they were last agreed on.
//!
//! A file has comments (`#`), and values: a line with the name of the value, then a line for each field, indented by two
//! spaces: its name, two spaces or more, its bytes in hex. Long fields go on in lines that are indented further. A test
//! encodes the same value and compares; the first field that differs is what it fails with.
//!
//! `<8>` in place of the bytes of a field stands for eight bytes that are not known yet, `<*>` for all the rest.
//! `ROTA_BLESS=1` writes the bytes of today into such fields, and into those that have changed without growing; the
//! diff is what to review.

#![allow(dead_code, reason = "each test uses a part of it")]

// Also tests of crates without `std` use it.
extern crate std;

use std::borrow::ToOwned;
use std::fmt::Write;
use std::format;
use std::fs;
use std::path::PathBuf;
use std::string::String;
use std::vec::Vec;

/// Bytes in a line of a file.
const LINE_BYTES: usize = 24;
/// The column at which bytes begin.
const BYTES_AT: usize = 34;

/// A line of a file, or a field of several lines.
enum Line {
    /// A comment, or nothing.
    Comment(String),
    /// The name of a value.
    Value(String),
    Field(Field),
}

struct Field {
    name: String,
    bytes: Bytes,
}

#[derive(Clone)]
enum Bytes {
    Known(Vec<u8>),
    Count(usize),
    Rest,
}

/// A golden file.
pub struct Golden {
    path: PathBuf,
    format: String,
    lines: Vec<Line>,
    compared: Vec<String>,
    is_blessing: bool,
}

impl Golden {
    /// The file of a format, in `testdata/golden` of the crate at `crate_dir`.
    pub fn open(crate_dir: &str, format: &str) -> Self {
        let path = PathBuf::from(crate_dir)
            .join("testdata/golden")
            .join(format)
            .with_extension("txt");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{format}: {error}"));
        Self {
            path,
            format: format.to_owned(),
            lines: parse(&text),
            compared: Vec::new(),
            is_blessing: std::env::var_os("ROTA_BLESS").is_some(),
        }
    }

    /// Compares the bytes of a value with the file, and answers with those of the file.
    pub fn compare(&mut self, value: &str, encoded: &[u8]) -> Vec<u8> {
        self.compared.push(value.to_owned());
        let format = &self.format;
        let is_it = |line: &Line| matches!(line, Line::Value(name) if name == value);
        let at = self.lines.iter().position(is_it);
        let at = at.unwrap_or_else(|| panic!("{format}: the file has no `{value}`"));
        let mut rest = encoded;
        for line in &mut self.lines[at + 1..] {
            let field = match line {
                Line::Value(_) => break,
                Line::Comment(_) => continue,
                Line::Field(field) => field,
            };
            let count = match &field.bytes {
                Bytes::Known(bytes) => bytes.len(),
                Bytes::Count(count) => *count,
                Bytes::Rest => rest.len(),
            };
            let name = &field.name;
            assert!(
                count <= rest.len(),
                "{format}: `{value}`: the bytes end in the field `{name}`"
            );
            let (now, behind) = rest.split_at(count);
            match &field.bytes {
                Bytes::Known(bytes) if bytes == now => {}
                _ if self.is_blessing => field.bytes = Bytes::Known(now.to_vec()),
                Bytes::Known(bytes) => panic!(
                    "{format}: `{value}`: the field `{name}` is {}, and was {}",
                    hex(now),
                    hex(bytes)
                ),
                Bytes::Count(_) | Bytes::Rest => {
                    panic!("{format}: `{value}`: no bytes of the field `{name}` are written down")
                }
            }
            rest = behind;
        }
        assert!(
            rest.is_empty(),
            "{format}: `{value}`: {} bytes behind the last field: {}",
            rest.len(),
            hex(rest)
        );
        encoded.to_vec()
    }

    /// Sees that every value of the file was compared, once, and writes what was blessed.
    pub fn finish(mut self) {
        let format = &self.format;
        self.compared.sort();
        let mut written: Vec<&String> = (self.lines.iter())
            .filter_map(|line| match line {
                Line::Value(name) => Some(name),
                _ => None,
            })
            .collect();
        written.sort();
        let compared: Vec<&String> = self.compared.iter().collect();
        assert_eq!(
            compared, written,
            "{format}: what was compared, and what the file has"
        );
        if self.is_blessing {
            fs::write(&self.path, print(&self.lines)).expect("a writable file");
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{}{byte:02x}", if text.is_empty() { "" } else { " " }).expect("a string");
    }
    text
}

fn parse(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            lines.push(Line::Comment(line.to_owned()));
        } else if !line.starts_with(' ') {
            lines.push(Line::Value(line.to_owned()));
        } else if line.starts_with("    ") {
            let Some(Line::Field(Field {
                bytes: Bytes::Known(bytes),
                ..
            })) = lines.last_mut()
            else {
                panic!("bytes without a field: {line}");
            };
            bytes.extend(read_hex(line));
        } else {
            let (name, bytes) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
            let name = name.to_owned();
            let bytes = match bytes.trim() {
                "<*>" => Bytes::Rest,
                count if count.starts_with('<') => {
                    let count = count.trim_matches(['<', '>']).parse();
                    Bytes::Count(count.unwrap_or_else(|_| panic!("no count: {line}")))
                }
                known => Bytes::Known(read_hex(known)),
            };
            lines.push(Line::Field(Field { name, bytes }));
        }
    }
    lines
}

fn read_hex(text: &str) -> Vec<u8> {
    let byte = |word| u8::from_str_radix(word, 16).unwrap_or_else(|_| panic!("no hex: {text}"));
    text.split_whitespace().map(byte).collect()
}

fn print(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        match line {
            Line::Comment(line) | Line::Value(line) => writeln!(text, "{line}").expect("a string"),
            Line::Field(Field { name, bytes }) => {
                let begin = format!("  {name}  ");
                let Bytes::Known(bytes) = bytes else {
                    panic!("no bytes of the field `{name}` are known");
                };
                let mut chunks = bytes.chunks(LINE_BYTES);
                let first = hex(chunks.next().unwrap_or_default());
                writeln!(text, "{}", format!("{begin:<BYTES_AT$}{first}").trim_end())
                    .expect("a string");
                for chunk in chunks {
                    writeln!(text, "{:BYTES_AT$}{}", "", hex(chunk)).expect("a string");
                }
            }
        }
    }
    text
}
