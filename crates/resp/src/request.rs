//! The requests of clients.

use std::fmt;

use bytes::{Buf as _, Bytes, BytesMut};

use crate::{inline, number};

/// The bytes of a line, at most.
const LINE_BYTES: usize = 64 << 10;
/// The memory that each argument of a request takes beside its bytes, about.
const ARGUMENT_BYTES: usize = 32;
/// The size below which an argument is copied.
const COPIED_BYTES: usize = 32 << 10;
/// The bytes of an argument, at most, as with Redis.
const MOST_BYTES: usize = 512 << 20;

/// The limits for requests of one client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Arguments of a request.
    pub arguments: usize,
    /// Bytes of an argument. A request with more (up to 512 MiB) is read and thrown away ([`Request::is_too_large`]).
    pub argument_bytes: usize,
    /// Bytes of a request in all; a larger request is thrown away, too.
    pub request_bytes: usize,
}

impl Default for Limits {
    /// As many arguments, and as large ones, as Redis takes; one gibibyte in all.
    fn default() -> Self {
        Self {
            arguments: 1 << 20,
            argument_bytes: 512 << 20,
            request_bytes: 1 << 30,
        }
    }
}

impl Limits {
    /// The limits before a login, as Redis has them.
    pub const fn before_login() -> Self {
        Self {
            arguments: 10,
            argument_bytes: 16 << 10,
            request_bytes: 64 << 10,
        }
    }
}

/// An error in bytes that are no request. The words are those of Redis, which clients know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProtocolError {
    /// The number of arguments is none, or too large.
    Count,
    /// The same of a client that has not logged in.
    CountBeforeLogin,
    /// The length of an argument is none, or too large.
    Length,
    /// The same of a client that has not logged in.
    LengthBeforeLogin,
    /// The first byte of an argument is this, and not `$`.
    NoBulk(u8),
    /// A line does not end.
    Line,
    /// The line with the number of arguments does not end.
    CountLine,
    /// The line with the length of an argument does not end.
    LengthLine,
    /// Quotes do not end.
    Quotes,
    /// All arguments together are too large, of a client that has not logged in.
    Request,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::Count => f.write_str("invalid multibulk length"),
            Self::CountBeforeLogin => f.write_str("unauthenticated multibulk length"),
            Self::Length => f.write_str("invalid bulk length"),
            Self::LengthBeforeLogin => f.write_str("unauthenticated bulk length"),
            Self::NoBulk(byte) => write!(f, "expected '$', got '{}'", char::from(*byte)),
            Self::Line => f.write_str("too big inline request"),
            Self::CountLine => f.write_str("too big mbulk count string"),
            Self::LengthLine => f.write_str("too big bulk count string"),
            Self::Quotes => f.write_str("unbalanced quotes in request"),
            Self::Request => f.write_str("too big request"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// A command and its arguments; at least the command's name, unless that was too large itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    arguments: Vec<Bytes>,
    is_too_large: bool,
}

impl Request {
    /// The name of the command, and its arguments behind it.
    pub fn arguments(&self) -> &[Bytes] {
        &self.arguments
    }

    /// The same, for a caller that keeps them.
    pub fn into_arguments(self) -> Vec<Bytes> {
        self.arguments
    }

    /// Whether the request was larger than it may be, so that all of it but the command's name was thrown away.
    pub const fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// The bytes of all arguments.
    pub fn bytes(&self) -> usize {
        self.arguments.iter().map(Bytes::len).sum()
    }

    /// Writes a request as a client sends it.
    pub fn write<A: AsRef<[u8]>>(arguments: &[A], out: &mut Vec<u8>) {
        let bytes: usize = arguments.iter().map(|of| of.as_ref().len()).sum();
        out.reserve(bytes + ARGUMENT_BYTES * (arguments.len() + 1));
        number::head(out, b'*', arguments.len() as i64);
        for argument in arguments.iter().map(AsRef::as_ref) {
            number::head(out, b'$', argument.len() as i64);
            out.extend_from_slice(argument);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// A request that has come in part.
#[derive(Debug)]
struct Begun {
    left: usize,
    arguments: Vec<Bytes>,
    bytes: usize,
    /// The length of the next argument, if it is known.
    length: Option<usize>,
    is_too_large: bool,
    /// The number of bytes that are still to be thrown away.
    skips: usize,
}

/// Requests of one client, as their bytes come.
#[derive(Debug)]
pub struct Requests {
    limits: Limits,
    has_logged_in: bool,
    buffer: BytesMut,
    /// The number of bytes in the buffer that are known to have no end of a line.
    looked: usize,
    begun: Option<Begun>,
    failed: Option<ProtocolError>,
}

impl Requests {
    /// No bytes yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            has_logged_in: true,
            buffer: BytesMut::new(),
            looked: 0,
            begun: None,
            failed: None,
        }
    }

    /// The requests of a client that has to log in first: [`Limits::before_login`] hold until [`Self::log_in`].
    pub fn before_login(limits: Limits) -> Self {
        Self {
            has_logged_in: false,
            ..Self::new(limits)
        }
    }

    /// Sets whether the client has logged in.
    pub const fn log_in(&mut self, has_logged_in: bool) {
        self.has_logged_in = has_logged_in;
    }

    /// Takes bytes that have come.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The memory of bytes that have come and are part of no request that was taken.
    pub fn waiting_bytes(&self) -> usize {
        let begun = self.begun.as_ref();
        self.buffer.capacity() + begun.map_or(0, |begun| begun.bytes)
    }

    /// The next request, if all of it has come.
    ///
    /// # Errors
    /// [`ProtocolError`]: nothing more can be read.
    #[expect(clippy::should_implement_trait, reason = "it may have one later")]
    pub fn next(&mut self) -> Result<Option<Request>, ProtocolError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let next = self.try_next();
        if let Err(error) = &next {
            self.failed = Some(error.clone());
            self.buffer = BytesMut::new();
            self.begun = None;
        }
        next
    }

    fn limits(&self) -> Limits {
        match self.has_logged_in {
            true => self.limits,
            false => Limits::before_login(),
        }
    }

    fn try_next(&mut self) -> Result<Option<Request>, ProtocolError> {
        loop {
            if self.begun.is_some() {
                return self.go_on();
            }
            let Some(first) = self.buffer.first() else {
                return Ok(None);
            };
            if *first == b'*' {
                let Some(line) = self.line(ProtocolError::CountLine)? else {
                    return Ok(None);
                };
                self.begin(&line[1..])?;
                continue;
            }
            let Some(line) = self.line(ProtocolError::Line)? else {
                return Ok(None);
            };
            let words = inline::words(&line).ok_or(ProtocolError::Quotes)?;
            // An empty line is no request.
            if !words.is_empty() {
                let words = words.into_iter().map(Bytes::from);
                return Ok(Some(Request {
                    arguments: words.collect(),
                    is_too_large: false,
                }));
            }
        }
    }

    /// The next line without its end.
    fn line(&mut self, too_long: ProtocolError) -> Result<Option<BytesMut>, ProtocolError> {
        let new = &self.buffer[self.looked..];
        let Some(end) = new.iter().position(|byte| *byte == b'\n') else {
            self.looked = self.buffer.len();
            return match self.looked > LINE_BYTES {
                true => Err(too_long),
                false => Ok(None),
            };
        };
        let end = self.looked + end;
        self.looked = 0;
        if end > LINE_BYTES {
            return Err(too_long);
        }
        let mut line = self.buffer.split_to(end + 1);
        line.truncate(end);
        if line.last() == Some(&b'\r') {
            line.truncate(end - 1);
        }
        Ok(Some(line))
    }

    /// Begins a request with this number of arguments.
    fn begin(&mut self, count: &[u8]) -> Result<(), ProtocolError> {
        let limits = self.limits();
        let count = number::parse(count).ok_or(ProtocolError::Count)?;
        let Ok(count) = usize::try_from(count) else {
            return Ok(()); // Less than nothing is nothing.
        };
        if count > limits.arguments {
            return Err(match self.has_logged_in {
                true => ProtocolError::Count,
                false => ProtocolError::CountBeforeLogin,
            });
        }
        if count > 0 {
            self.begun = Some(Begun {
                left: count,
                // Room is made for the arguments that come, not for those that are announced.
                arguments: Vec::new(),
                bytes: 0,
                length: None,
                is_too_large: false,
                skips: 0,
            });
        }
        Ok(())
    }

    /// Reads the next arguments of the request that has begun.
    fn go_on(&mut self) -> Result<Option<Request>, ProtocolError> {
        while let Some(mut begun) = self.begun.take() {
            if begun.left == 0 && begun.skips == 0 {
                return Ok(Some(Request {
                    arguments: begun.arguments,
                    is_too_large: begun.is_too_large,
                }));
            }
            let has_come = self.next_argument(&mut begun)?;
            self.begun = Some(begun);
            if !has_come {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Reads the next argument of the request that has begun. `false`: not all of it has come.
    fn next_argument(&mut self, begun: &mut Begun) -> Result<bool, ProtocolError> {
        if begun.skips > 0 {
            let gone = begun.skips.min(self.buffer.len());
            self.buffer.advance(gone);
            begun.skips -= gone;
            return Ok(gone > 0);
        }
        let length = match begun.length {
            Some(length) => length,
            None => match self.length()? {
                Some(length) => length,
                None => return Ok(false),
            },
        };
        begun.length = Some(length);
        let (limits, bytes) = (self.limits(), begun.bytes + length + ARGUMENT_BYTES);
        if length > limits.argument_bytes || bytes > limits.request_bytes {
            if !self.has_logged_in {
                return Err(ProtocolError::Request);
            }
            begun.is_too_large = true;
            begun.arguments.truncate(1);
            begun.bytes = begun.arguments.iter().map(Bytes::len).sum();
        }
        if begun.is_too_large {
            begun.skips = length + 2;
        } else if self.buffer.len() < length + 2 {
            return Ok(false);
        } else {
            begun.arguments.push(self.take(length));
            begun.bytes = bytes;
        }
        begun.left -= 1;
        begun.length = None;
        Ok(true)
    }

    /// The length of the next argument, if its line has come.
    fn length(&mut self) -> Result<Option<usize>, ProtocolError> {
        if let Some(first) = self.buffer.first().filter(|first| **first != b'$') {
            return Err(ProtocolError::NoBulk(*first));
        }
        let Some(line) = self.line(ProtocolError::LengthLine)? else {
            return Ok(None);
        };
        let length = line.get(1..).and_then(number::parse);
        let length = length.and_then(|length| usize::try_from(length).ok());
        let most = match self.has_logged_in {
            true => MOST_BYTES,
            false => self.limits().argument_bytes,
        };
        match length {
            None => Err(ProtocolError::Length),
            Some(length) if length > most && !self.has_logged_in => {
                Err(ProtocolError::LengthBeforeLogin)
            }
            Some(length) if length > most => Err(ProtocolError::Length),
            length => Ok(length),
        }
    }

    /// Takes an argument, all of which has come, and the end of its line.
    fn take(&mut self, length: usize) -> Bytes {
        // A small part would hold all of a large buffer.
        let argument = match length < COPIED_BYTES || length < self.buffer.len() / 2 {
            true => Bytes::copy_from_slice(&self.buffer.split_to(length)),
            false => self.buffer.split_to(length).freeze(),
        };
        self.buffer.advance(2);
        if self.buffer.is_empty() {
            // An empty buffer holds no memory while nothing comes.
            self.buffer = BytesMut::new();
        }
        argument
    }
}
