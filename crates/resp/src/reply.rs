//! The replies of servers.

use bytes::Bytes;

use crate::number::head;

/// The version of the protocol, which a client asks for with `HELLO`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Version {
    /// RESP2, unless the client asks for another one.
    #[default]
    Resp2,
    /// RESP3.
    Resp3,
}

/// A reply, or a part of one. In RESP2 the kinds that only RESP3 has are written as Redis writes them.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// A word, as `OK`. Without line ends.
    Simple(&'static str),
    /// An error: a word in capitals, as `ERR`, and a text. Without line ends, which become spaces.
    Error(String),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Bytes),
    /// There is no value.
    Null,
    /// There is no list, as after a transaction that was not executed.
    NullArray,
    /// A list.
    Array(Vec<Reply>),
    /// Keys with their values; in RESP2 a list of both.
    Map(Vec<(Reply, Reply)>),
    /// A list of items that are there once each; in RESP2 a list.
    Set(Vec<Reply>),
    /// A number with a fraction; in RESP2 bytes.
    Double(f64),
    /// Yes or no; in RESP2 one or nought.
    Boolean(bool),
    /// A text for people; in RESP2 bytes.
    Text(String),
    /// A message that the client did not ask for; in RESP2 a list.
    Push(Vec<Reply>),
}

impl Reply {
    /// `OK`.
    pub const OK: Self = Self::Simple("OK");

    /// An error.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }

    /// The memory that the reply takes, about.
    pub fn memory_bytes(&self) -> usize {
        let own = size_of::<Self>();
        let all = |replies: &[Self]| replies.iter().map(Self::memory_bytes).sum::<usize>();
        own + match self {
            Self::Error(text) | Self::Text(text) => text.len(),
            Self::Bulk(bytes) => bytes.len(),
            Self::Array(replies) | Self::Set(replies) | Self::Push(replies) => all(replies),
            Self::Map(pairs) => {
                let of = |(key, value): &(Self, Self)| key.memory_bytes() + value.memory_bytes();
                pairs.iter().map(of).sum()
            }
            _ => 0,
        }
    }

    /// Whether the reply is an error.
    pub const fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Writes the bytes of the reply.
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        let is_new = version == Version::Resp3;
        match self {
            Self::Simple(text) => line(out, b'+', text.as_bytes()),
            Self::Error(text) => {
                let is_end = |byte: u8| matches!(byte, b'\r' | b'\n');
                out.push(b'-');
                out.extend(
                    text.bytes()
                        .map(|byte| if is_end(byte) { b' ' } else { byte }),
                );
                out.extend_from_slice(b"\r\n");
            }
            Self::Integer(number) => head(out, b':', *number),
            Self::Bulk(bytes) => bulk(out, bytes),
            Self::Null if is_new => out.extend_from_slice(b"_\r\n"),
            Self::Null => out.extend_from_slice(b"$-1\r\n"),
            Self::NullArray if is_new => out.extend_from_slice(b"_\r\n"),
            Self::NullArray => out.extend_from_slice(b"*-1\r\n"),
            Self::Array(items) => list(out, b'*', items, version),
            Self::Set(items) => list(out, if is_new { b'~' } else { b'*' }, items, version),
            Self::Push(items) => list(out, if is_new { b'>' } else { b'*' }, items, version),
            Self::Map(pairs) => {
                let (first, each) = if is_new { (b'%', 1) } else { (b'*', 2) };
                head(out, first, (pairs.len() * each) as i64);
                for (key, value) in pairs {
                    key.write(version, out);
                    value.write(version, out);
                }
            }
            Self::Double(number) if is_new => line(out, b',', double(*number).as_bytes()),
            Self::Double(number) => bulk(out, double(*number).as_bytes()),
            Self::Boolean(yes) if is_new => line(out, b'#', if *yes { b"t" } else { b"f" }),
            Self::Boolean(yes) => head(out, b':', i64::from(*yes)),
            Self::Text(text) if is_new => {
                head(out, b'=', text.len() as i64 + 4);
                out.extend_from_slice(b"txt:");
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            Self::Text(text) => bulk(out, text.as_bytes()),
        }
    }
}

fn line(out: &mut Vec<u8>, first: u8, text: &[u8]) {
    out.push(first);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    head(out, b'$', bytes.len() as i64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn list(out: &mut Vec<u8>, first: u8, items: &[Reply], version: Version) {
    head(out, first, items.len() as i64);
    items.iter().for_each(|item| item.write(version, out));
}

fn double(number: f64) -> String {
    match number {
        number if number.is_nan() => "nan".to_owned(),
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        number => number.to_string(),
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::Bulk(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::Bulk(text.into())
    }
}

impl From<Bytes> for Reply {
    fn from(bytes: Bytes) -> Self {
        Self::Bulk(bytes)
    }
}

impl From<i64> for Reply {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl<T: Into<Self>> From<Option<T>> for Reply {
    fn from(some: Option<T>) -> Self {
        some.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Reply {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}
