//! The source of a node's own messages: its share of the input's lines, or of generated messages.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The source of the messages of the whole cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// The lines of this file.
    Lines(PathBuf),
    /// A number of messages of `size` bytes each.
    Generated {
        /// The number of messages.
        messages: u64,
        /// Bytes of each.
        size: usize,
    },
}

/// Message `index`, from 0, of `messages`: its number, then letters up to `size` bytes. All differ,
/// for `size` is at least [`digits`] of `messages`.
pub fn generate(index: u64, messages: u64, size: usize, into: &mut Vec<u8>) {
    into.clear();
    let width = digits(messages);
    into.extend_from_slice(format!("{:0width$}", index + 1).as_bytes());
    let start = (index % 26) as u8;
    let letters = (0..26)
        .cycle()
        .skip(usize::from(start))
        .map(|letter: u8| b'a' + letter);
    let missing = size.saturating_sub(into.len());
    into.extend(letters.take(missing));
}

/// Bytes that the number of each of so many messages has.
pub fn digits(messages: u64) -> usize {
    messages.max(1).ilog10() as usize + 1
}

/// The number of `messages` that are node `node`'s, from 1, of `nodes`.
pub fn share_of(messages: u64, node: u16, nodes: u64) -> u64 {
    messages / nodes + u64::from(u64::from(node) <= messages % nodes)
}

/// The results of [`Share::load`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// [`Share::current`] is the next message.
    Ready,
    /// The effort was used up; there is more to read.
    More,
    /// There are no more messages.
    End,
}

/// The messages of one node, one after the other.
#[derive(Debug)]
pub struct Share {
    kind: Kind,
    /// Message that the next one will be, counted over the whole cluster.
    index: u64,
    /// First index of this node.
    first: u64,
    /// Number of nodes.
    nodes: u64,
    current: Vec<u8>,
    ready: bool,
}

#[derive(Debug)]
enum Kind {
    Lines(BufReader<File>),
    Generated { messages: u64, size: usize },
    Ended,
}

impl Share {
    /// The share of node `node`, from 1, of `nodes`.
    pub fn open(input: &Input, node: u16, nodes: u64) -> io::Result<Self> {
        let first = u64::from(node) - 1;
        let (kind, index) = match input {
            Input::Lines(path) => (Kind::Lines(open(path)?), 0),
            &Input::Generated { messages, size } => (Kind::Generated { messages, size }, first),
        };
        Ok(Self {
            kind,
            index,
            first,
            nodes,
            current: Vec::new(),
            ready: false,
        })
    }

    /// Makes the next message the current one, reading about `effort` bytes at most.
    pub fn load(&mut self, effort: &mut usize) -> io::Result<Step> {
        if self.ready {
            return Ok(Step::Ready);
        }
        let step = match &mut self.kind {
            Kind::Lines(_) => self.load_line(effort)?,
            &mut Kind::Generated { messages, size } if self.index < messages => {
                generate(self.index, messages, size, &mut self.current);
                self.index += self.nodes;
                Step::Ready
            }
            Kind::Generated { .. } | Kind::Ended => Step::End,
        };
        self.ready = step == Step::Ready;
        if step == Step::End {
            self.kind = Kind::Ended;
        }
        Ok(step)
    }

    /// The message that [`Share::load`] has found.
    pub fn current(&self) -> &[u8] {
        &self.current
    }

    /// The current message has been submitted.
    pub fn advance(&mut self) {
        self.ready = false;
        self.current.clear();
    }

    /// All nodes read the same file and skip each other's lines: dealing the lines through pipes
    /// would tie every node to the slowest.
    fn load_line(&mut self, effort: &mut usize) -> io::Result<Step> {
        let Kind::Lines(reader) = &mut self.kind else {
            return Ok(Step::End);
        };
        loop {
            let mine = self.index % self.nodes == self.first;
            let chunk = reader.fill_buf()?;
            if chunk.is_empty() {
                let last = mine && !self.current.is_empty();
                // The line is not to be found again by the next call.
                self.index += 1;
                return Ok(if last { Step::Ready } else { Step::End });
            }
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if mine {
                self.current.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            reader.consume(used);
            self.index += u64::from(end.is_some());
            if mine && end.is_some() {
                return Ok(Step::Ready);
            }
            *effort = effort.saturating_sub(used);
            if *effort == 0 {
                return Ok(Step::More);
            }
        }
    }
}

fn open(path: &Path) -> io::Result<BufReader<File>> {
    Ok(BufReader::with_capacity(256 << 10, File::open(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn all(input: &Input, node: u16, nodes: u64, effort: usize) -> Vec<Vec<u8>> {
        let mut share = Share::open(input, node, nodes).expect("the file is there");
        let mut found = Vec::new();
        loop {
            match share.load(&mut effort.clone()).expect("readable") {
                Step::Ready => {
                    found.push(share.current().to_vec());
                    share.advance();
                }
                Step::More => {}
                Step::End => return found,
            }
        }
    }

    #[test]
    fn the_shares_are_the_input() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"0\n\n22\n\xff3\n\n5").expect("room");
        let input = Input::Lines(file.path().to_owned());
        let line = |text: &[u8]| text.to_vec();
        for effort in [1, 2, 1000] {
            assert_eq!(
                all(&input, 1, 2, effort),
                [line(b"0"), line(b"22"), line(b"")]
            );
            assert_eq!(
                all(&input, 2, 2, effort),
                [line(b""), line(b"\xff3"), line(b"5")]
            );
            assert_eq!(all(&input, 1, 1, effort).len(), 6);
            assert_eq!(all(&input, 7, 8, effort), Vec::<Vec<u8>>::new());
        }
    }

    #[test]
    fn generated_messages_differ_and_have_their_size() {
        let input = Input::Generated {
            messages: 1000,
            size: 7,
        };
        let mut found: Vec<_> = (1..=3).flat_map(|node| all(&input, node, 3, 1)).collect();
        assert!(
            found
                .iter()
                .all(|message| message.len() == 7 && !message.contains(&b'\n'))
        );
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 1000);
        for node in 1..=3 {
            let share = all(&input, node, 3, 1).len() as u64;
            assert_eq!(share, share_of(1000, node, 3));
        }
    }
}
