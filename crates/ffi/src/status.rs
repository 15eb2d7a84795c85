//! The status of a call, and the text of its error.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use rota_client::{Code, ConnectError, ConnectionLost, RequestError, SendError};

/// What came of a call. All but ROTA_STATUS_OK leave a text (rota_error_text).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It is done.
    Ok = 0,
    /// An argument is NULL that must not be, or a number or a flag has no meaning.
    InvalidArgument = 1,
    /// A text is not the name of a group or a client.
    BadName = 2,
    /// A message needs from 1 to ROTA_MAX_DESTINATIONS destinations.
    BadDestinations = 3,
    /// The payload is larger than rota_largest_payload: split it.
    TooLarge = 4,
    /// There is no credit now, and the call was not to wait: receive some events first.
    WouldBlock = 5,
    /// There was no event, or no answer, in time. A join or leave may still take effect, and may be made
    /// again.
    TimedOut = 6,
    /// While the call waited, more events arrived than may lie unread: receive some, then call again. A
    /// message was not sent; a join or leave may still take effect.
    Unread = 7,
    /// The daemon does not take this client; rota_error_code says why.
    Refused = 8,
    /// The daemon would not join or leave; nothing has changed; rota_error_code says why.
    Failed = 9,
    /// The connection has ended, and stays so; rota_error_code says why if the daemon did.
    Lost = 10,
    /// There is no connection: nobody listens there, or may not be reached.
    NoConnection = 11,
    /// The address is not on this machine, and TCP protects nothing: use a Unix socket, or say insecure.
    Insecure = 12,
    /// The daemon speaks another version.
    Version = 13,
    /// Another thread is in a call with this handle.
    Busy = 14,
    /// The handle is the other half: the sending one cannot receive, nor the receiving one send.
    WrongHalf = 15,
    /// The library has failed, which is a bug of it: nothing but rota_free can be done with the handle.
    Bug = 16,
    /// One side does not take the other's certificate, or there is no TLS: the text says which. Nothing but
    /// another certificate helps.
    Tls = 17,
    /// A file with certificates or a key cannot be read, or has none.
    BadFile = 18,
}

/// Why a call came to nothing.
pub(crate) struct Failure {
    pub(crate) status: Status,
    /// The daemon's, or 0.
    code: u16,
    text: Cow<'static, CStr>,
}

impl Failure {
    pub(crate) const fn new(status: Status, text: &'static CStr) -> Self {
        let text = Cow::Borrowed(text);
        let code = 0;
        Self { status, code, text }
    }

    pub(crate) const fn argument(text: &'static CStr) -> Self {
        Self::new(Status::InvalidArgument, text)
    }

    pub(crate) fn told(status: Status, error: &dyn std::fmt::Display) -> Self {
        Self::coded(status, None, error)
    }

    fn coded(status: Status, code: Option<Code>, error: &dyn std::fmt::Display) -> Self {
        // No text of ours holds one; a daemon's might.
        let text = error.to_string().replace('\0', " ");
        Self {
            status,
            code: code.map_or(0, Code::number),
            text: Cow::Owned(CString::new(text).unwrap_or_default()),
        }
    }

    /// Keeps it for [`rota_error_text`].
    pub(crate) fn keep(self) -> Status {
        let status = self.status;
        LAST.with(|last| last.replace(self));
        status
    }
}

impl From<ConnectionLost> for Failure {
    fn from(lost: ConnectionLost) -> Self {
        let code = match &lost {
            ConnectionLost::Goodbye { code, .. } => Some(*code),
            _ => None,
        };
        Self::coded(Status::Lost, code, &lost)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Name(_) => Self::told(Status::BadName, &error),
            ConnectError::Tls(_) => Self::told(Status::Tls, &error),
            ConnectError::Insecure(_) => Self::told(Status::Insecure, &error),
            ConnectError::Refused { code, .. } => Self::coded(Status::Refused, Some(code), &error),
            ConnectError::Version(_) => Self::told(Status::Version, &error),
            ConnectError::Lost(lost) => lost.into(),
            ConnectError::TimedOut => Self::told(Status::TimedOut, &error),
            _ => Self::told(Status::NoConnection, &error),
        }
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        let status = match error {
            SendError::Lost(lost) => return lost.into(),
            // It comes often, and needs no memory.
            SendError::WouldBlock => {
                return Self::new(Status::WouldBlock, c"there is no credit now");
            }
            SendError::Destination(_) => Status::BadName,
            SendError::Destinations => Status::BadDestinations,
            SendError::TooLarge { .. } => Status::TooLarge,
            SendError::Unread { .. } => Status::Unread,
            // A later one, which this version cannot name.
            _ => Status::Bug,
        };
        Self::told(status, &error)
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        let status = match error {
            RequestError::Lost(lost) => return lost.into(),
            RequestError::Failed { code, .. } => {
                return Self::coded(Status::Failed, Some(code), &error);
            }
            RequestError::Name(_) => Status::BadName,
            RequestError::Unread { .. } => Status::Unread,
            RequestError::TimedOut => Status::TimedOut,
            // As above.
            _ => Status::Bug,
        };
        Self::told(status, &error)
    }
}

thread_local! {
    static LAST: RefCell<Failure> = const { RefCell::new(Failure::new(Status::Ok, c"")) };
}

/// Why the last call of this thread that failed did so, for people. Never NULL; valid until the next call
/// of this thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn rota_error_text() -> *const c_char {
    LAST.with(|last| last.borrow().text.as_ptr())
}

/// The daemon's reason for what rota_error_text says, one of ROTA_CODE_; 0 if the daemon gave none. Later
/// daemons may give others.
#[unsafe(no_mangle)]
pub extern "C" fn rota_error_code() -> u16 {
    LAST.with(|last| last.borrow().code)
}

/// The version of this library.
#[unsafe(no_mangle)]
pub extern "C" fn rota_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// The two sides have no version of the protocol in common.
pub const ROTA_CODE_VERSION: u16 = 1;
/// Another client of this daemon has the name: take another, or none and have one invented.
pub const ROTA_CODE_NAME_IN_USE: u16 = 2;
/// The name is none.
pub const ROTA_CODE_ILLEGAL_NAME: u16 = 3;
/// The daemon has as many clients as it may: try another daemon, or later.
pub const ROTA_CODE_TOO_MANY_CLIENTS: u16 = 4;
/// Who asks may not.
pub const ROTA_CODE_NOT_ALLOWED: u16 = 5;
/// The daemon is being stopped: try another, or later.
pub const ROTA_CODE_SHUTTING_DOWN: u16 = 6;
/// Too much waited for this client: it has to take its events faster.
pub const ROTA_CODE_TOO_SLOW: u16 = 7;
/// What the client sent was not the protocol.
pub const ROTA_CODE_PROTOCOL_ERROR: u16 = 8;
/// The client sent more than its credit.
pub const ROTA_CODE_CREDIT_EXCEEDED: u16 = 9;
/// The daemon takes no more of these: its clients are in as many groups as they may.
pub const ROTA_CODE_QUOTA: u16 = 10;
/// A message is larger than the largest.
pub const ROTA_CODE_TOO_LARGE: u16 = 11;
/// The client did not say hello in time.
pub const ROTA_CODE_TIMED_OUT: u16 = 12;
/// The daemon cannot do it now, for a reason of its own: try later.
pub const ROTA_CODE_UNAVAILABLE: u16 = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_of_the_protocol() {
        let codes = [
            (ROTA_CODE_VERSION, Code::Version),
            (ROTA_CODE_NAME_IN_USE, Code::NameInUse),
            (ROTA_CODE_ILLEGAL_NAME, Code::IllegalName),
            (ROTA_CODE_TOO_MANY_CLIENTS, Code::TooManyClients),
            (ROTA_CODE_NOT_ALLOWED, Code::NotAllowed),
            (ROTA_CODE_SHUTTING_DOWN, Code::ShuttingDown),
            (ROTA_CODE_TOO_SLOW, Code::TooSlow),
            (ROTA_CODE_PROTOCOL_ERROR, Code::ProtocolError),
            (ROTA_CODE_CREDIT_EXCEEDED, Code::CreditExceeded),
            (ROTA_CODE_QUOTA, Code::Quota),
            (ROTA_CODE_TOO_LARGE, Code::TooLarge),
            (ROTA_CODE_TIMED_OUT, Code::TimedOut),
            (ROTA_CODE_UNAVAILABLE, Code::Unavailable),
        ];
        for (number, code) in codes {
            assert_eq!(code.number(), number);
        }
        let next = ROTA_CODE_UNAVAILABLE + 1;
        assert_eq!(Code::from_number(next), Code::Other(next), "one is missing");
    }
}
