//! The replies of a server, as a client reads them.

use std::fmt;

use bytes::{Buf as _, Bytes, BytesMut};

use crate::number;
use crate::reply::Reply;

/// The bytes of a line, at most.
const LINE_BYTES: usize = 1 << 20;
/// The depth of lists in lists, at most.
const DEPTH: usize = 64;

/// An error in bytes that no server writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyError {
    /// The first byte of a reply is not known.
    Kind(u8),
    /// A number, or a length, is none.
    Number,
    /// A line, a bulk string or a reply does not end where it has to.
    End,
    /// Lists are in lists too many times, or a line or a reply is too long.
    Large,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(first) => write!(f, "no reply begins with '{}'", char::from(*first)),
            Self::Number => f.write_str("a number in a reply is none"),
            Self::End => f.write_str("a reply does not end where it has to"),
            Self::Large => f.write_str("a reply is too large"),
        }
    }
}

impl std::error::Error for ReplyError {}

/// Replies of one server, as their bytes come. A reply that has not ended is read from its beginning when more comes:
/// that is for clients, not for servers.
#[derive(Debug)]
pub struct Replies {
    most_bytes: usize,
    buffer: BytesMut,
    /// The least number of bytes with which a reply can be whole.
    needs: usize,
}

impl Replies {
    /// No bytes yet. A reply has at most `most_bytes`.
    pub fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            buffer: BytesMut::new(),
            needs: 1,
        }
    }

    /// Takes bytes that have come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next reply, if all of it has come.
    ///
    /// # Errors
    /// [`ReplyError`]: nothing more can be read.
    #[expect(clippy::should_implement_trait, reason = "it may have one later")]
    pub fn next(&mut self) -> Result<Option<Reply>, ReplyError> {
        if self.buffer.len() < self.needs {
            return Ok(None);
        }
        let mut source = Source {
            all: &self.buffer,
            at: 0,
            needs: 0,
        };
        match source.reply(0) {
            Ok(reply) => {
                let at = source.at;
                self.buffer.advance(at);
                self.needs = 1;
                Ok(Some(reply))
            }
            Err(Stop::More) => {
                self.needs = source.needs;
                match self.needs > self.most_bytes {
                    true => Err(ReplyError::Large),
                    false => Ok(None),
                }
            }
            Err(Stop::Wrong(error)) => Err(error),
        }
    }
}

enum Stop {
    More,
    Wrong(ReplyError),
}

impl From<ReplyError> for Stop {
    fn from(error: ReplyError) -> Self {
        Self::Wrong(error)
    }
}

struct Source<'a> {
    all: &'a [u8],
    at: usize,
    /// The number of bytes that there have to be.
    needs: usize,
}

impl Source<'_> {
    fn line(&mut self) -> Result<&[u8], Stop> {
        let rest = &self.all[self.at..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            self.needs = self.all.len() + 1;
            return Err(match rest.len() > LINE_BYTES {
                true => ReplyError::Large.into(),
                false => Stop::More,
            });
        };
        let line = rest[..end].strip_suffix(b"\r");
        self.at += end + 1;
        line.ok_or(Stop::Wrong(ReplyError::End))
    }

    fn number(&mut self) -> Result<i64, Stop> {
        let line = self.line()?;
        number::parse(line).ok_or(Stop::Wrong(ReplyError::Number))
    }

    /// The length that the next line announces; `None`: there is no list or string at all.
    fn length(&mut self) -> Result<Option<usize>, Stop> {
        let length = self.number()?;
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(ReplyError::Number.into()),
        }
    }

    fn bulk(&mut self) -> Result<Option<Bytes>, Stop> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        let end = self.at.checked_add(length).ok_or(ReplyError::Large)?;
        let behind = end.checked_add(2).ok_or(ReplyError::Large)?;
        let Some(ended) = self.all.get(end..behind) else {
            self.needs = behind;
            return Err(Stop::More);
        };
        if ended != b"\r\n" {
            return Err(ReplyError::End.into());
        }
        let bytes = Bytes::copy_from_slice(&self.all[self.at..end]);
        self.at = behind;
        Ok(Some(bytes))
    }

    fn list(&mut self, depth: usize) -> Result<Option<Vec<Reply>>, Stop> {
        let Some(count) = self.length()? else {
            return Ok(None);
        };
        self.items(count, depth).map(Some)
    }

    fn items(&mut self, count: usize, depth: usize) -> Result<Vec<Reply>, Stop> {
        // Room is made for the items that come, not for those that are announced.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(self.reply(depth + 1)?);
        }
        Ok(items)
    }

    fn text(&mut self) -> Result<String, Stop> {
        Ok(String::from_utf8_lossy(self.line()?).into_owned())
    }

    fn reply(&mut self, depth: usize) -> Result<Reply, Stop> {
        if depth > DEPTH {
            return Err(ReplyError::Large.into());
        }
        let Some(first) = self.all.get(self.at).copied() else {
            self.needs = self.all.len() + 1;
            return Err(Stop::More);
        };
        self.at += 1;
        Ok(match first {
            b'+' => self.simple()?,
            b'-' => Reply::Error(self.text()?),
            b':' => Reply::Integer(self.number()?),
            b'$' => self.bulk()?.map_or(Reply::Null, Reply::Bulk),
            b'*' => self.list(depth)?.map_or(Reply::NullArray, Reply::Array),
            b'_' => match self.line()? {
                [] => Reply::Null,
                _ => return Err(ReplyError::End.into()),
            },
            b'~' => Reply::Set(self.list(depth)?.ok_or(ReplyError::Number)?),
            b'>' => Reply::Push(self.list(depth)?.ok_or(ReplyError::Number)?),
            b'%' => self.map(depth)?,
            b',' => {
                let number = self.text()?.parse();
                Reply::Double(number.map_err(|_| ReplyError::Number)?)
            }
            b'#' => match self.line()? {
                b"t" => Reply::Boolean(true),
                b"f" => Reply::Boolean(false),
                _ => return Err(ReplyError::Number.into()),
            },
            b'=' => {
                let text = self.bulk()?.ok_or(ReplyError::Number)?;
                let text = text.get(4..).ok_or(ReplyError::End)?;
                Reply::Text(String::from_utf8_lossy(text).into_owned())
            }
            // A number of any size is a text, and an error may have line ends.
            b'(' => Reply::Text(self.text()?),
            b'!' => {
                let text = self.bulk()?.ok_or(ReplyError::Number)?;
                Reply::Error(String::from_utf8_lossy(&text).into_owned())
            }
            other => return Err(ReplyError::Kind(other).into()),
        })
    }

    /// A word; a word that is not known becomes bytes.
    fn simple(&mut self) -> Result<Reply, Stop> {
        Ok(match self.line()? {
            b"OK" => Reply::OK,
            b"QUEUED" => Reply::Simple("QUEUED"),
            b"PONG" => Reply::Simple("PONG"),
            other => Reply::Bulk(Bytes::copy_from_slice(other)),
        })
    }

    fn map(&mut self, depth: usize) -> Result<Reply, Stop> {
        let count = self.length()?.ok_or(ReplyError::Number)?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            let key = self.reply(depth + 1)?;
            pairs.push((key, self.reply(depth + 1)?));
        }
        Ok(Reply::Map(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::{Replies, ReplyError};
    use crate::{Reply, Version};

    fn read(bytes: &[u8]) -> Result<Vec<Reply>, ReplyError> {
        let mut replies = Replies::new(1 << 20);
        let mut all = Vec::new();
        for byte in bytes {
            replies.push(&[*byte]);
            while let Some(reply) = replies.next()? {
                all.push(reply);
            }
        }
        Ok(all)
    }

    fn some() -> Vec<Reply> {
        vec![
            Reply::OK,
            Reply::error("ERR no"),
            Reply::Integer(-5),
            Reply::from("bytes\r\n"),
            Reply::Null,
            Reply::Array(vec![Reply::from("a"), Reply::Array(Vec::new())]),
            Reply::Map(vec![(Reply::from("key"), Reply::Integer(1))]),
            Reply::Set(vec![Reply::Integer(2)]),
            Reply::Double(1.5),
            Reply::Double(f64::INFINITY),
            Reply::Boolean(true),
            Reply::Text("for people".to_owned()),
            Reply::Push(vec![Reply::from("message")]),
        ]
    }

    fn written(version: Version) -> Vec<u8> {
        let mut out = Vec::new();
        some()
            .iter()
            .for_each(|reply| reply.write(version, &mut out));
        out
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(read(&written(Version::Resp3)), Ok(some()));
        let old = read(&written(Version::Resp2)).expect("replies");
        assert_eq!(old.len(), some().len());
        assert_eq!(
            old[6],
            Reply::Array(vec![Reply::from("key"), Reply::Integer(1)])
        );
        assert_eq!(old[8], Reply::from("1.5"));
        assert_eq!(old[10], Reply::Integer(1));
        assert_eq!(old[11], Reply::from("for people"));
    }

    #[test]
    fn errors_have_one_line() {
        let mut out = Vec::new();
        Reply::error("ERR a\r\n+OK\n").write(Version::Resp2, &mut out);
        assert_eq!(out, b"-ERR a  +OK \r\n");
    }

    #[test]
    fn what_no_server_writes_is_refused() {
        for (bytes, error) in [
            ("?\r\n", ReplyError::Kind(b'?')),
            (":x\r\n", ReplyError::Number),
            ("$-2\r\n", ReplyError::Number),
            ("$1\r\nab\r\n", ReplyError::End),
            ("$9223372036854775807\r\n", ReplyError::Large),
            ("+OK\n", ReplyError::End),
            ("#x\r\n", ReplyError::Number),
            ("=2\r\nab\r\n", ReplyError::End),
        ] {
            assert_eq!(read(bytes.as_bytes()), Err(error), "{bytes:?}");
        }
        let deep = "*1\r\n".repeat(100);
        assert_eq!(read(deep.as_bytes()), Err(ReplyError::Large));
        let mut replies = Replies::new(1000);
        replies.push(b"$2000\r\n");
        assert_eq!(replies.next(), Err(ReplyError::Large));
    }
}
