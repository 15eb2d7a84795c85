//! One client: bytes between its socket and the pair that leads to the ring's thread.

use std::io::{self, BufRead, ErrorKind, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use mio::event::Event;
use mio::net::{TcpStream, UnixStream};
use rustls::ServerConnection;
use rustls::pki_types::{CertificateDer, UnixTime};

use super::side::Side;
use crate::seats::Seat;

/// Bytes carried in one turn of a client, before others have theirs.
const TURN_BYTES: usize = 256 << 10;

/// A client as it came, before it has shown who it is.
#[derive(Debug)]
pub(super) struct Caller {
    pub address: IpAddr,
    /// Tells it from later ones with its key.
    pub number: u64,
    /// The number of the certificates with which the handshake began.
    pub terms: u64,
    /// The time at which the handshake began.
    pub since: UnixTime,
    /// Its place among the connections of its address.
    pub _seat: Seat,
}

/// One client.
#[derive(Debug)]
pub(super) struct Link {
    client: Side<TcpStream>,
    tls: ServerConnection,
    /// Leads to the ring's thread, once the client has shown who it is.
    ring: Option<Side<UnixStream>>,
    caller: Caller,
    /// The time at which the link is closed in any case: the end of the handshake's time, or of the time to take the
    /// last frames.
    deadline: Option<Instant>,
    /// The client says nothing more, and the ring's thread has been told.
    inbound_over: bool,
    /// Not all that the client wanted to say has been read: it was cut off before it had said that this was all, or the
    /// ring's thread has closed its end before. An end in order would tell it that all was read.
    torn: bool,
    /// The ring's thread says nothing more, and the client has been told.
    outbound_over: bool,
    /// The ring's thread has closed its end.
    abandoned: bool,
    /// The client is refused: all that it still sends is dropped, so that it can read the reason.
    refused: bool,
}

/// The state of a client after its turn.
#[derive(Debug)]
pub(super) enum Standing {
    /// The client waits for one of its sockets.
    Waits,
    /// The client has more bytes to carry.
    More,
    /// The client has shown who it is.
    Shown,
    /// The connection is over.
    Over,
    /// The client does not speak TLS, or its certificate is refused.
    Refused(rustls::Error),
}

/// The reasons that end a turn.
enum Stop {
    Broken,
    Refused(rustls::Error),
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

impl Link {
    /// A client that has so long to show who it is.
    pub const fn new(
        socket: TcpStream,
        tls: ServerConnection,
        caller: Caller,
        deadline: Instant,
    ) -> Self {
        Self {
            client: Side::new(socket),
            tls,
            ring: None,
            caller,
            deadline: Some(deadline),
            inbound_over: false,
            torn: false,
            outbound_over: false,
            abandoned: false,
            refused: false,
        }
    }

    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The certificates that the client has shown, its own first.
    pub fn certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.tls.peer_certificates()
    }

    /// A descriptor of this process.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.client.socket().as_fd()
    }

    /// Takes over what the kernel has said of the client's socket.
    pub fn notice_client(&mut self, event: &Event) {
        self.client.notice(event);
    }

    /// Takes over what the kernel has said of the pair that leads to the ring's thread.
    pub fn notice_ring(&mut self, event: &Event) {
        self.abandoned |= event.is_write_closed();
        if let Some(ring) = &mut self.ring {
            ring.notice(event);
        }
    }

    /// The ring's thread has the other end of this pair, and the client as much time as it likes.
    pub fn hand_over(&mut self, pair: UnixStream) {
        self.ring = Some(Side::new(pair));
        self.deadline = None;
    }

    /// The client has shown who it is, and the ring's thread knows it.
    pub const fn is_handed_over(&self) -> bool {
        self.ring.is_some()
    }

    /// The client has not shown who it is, and was not refused.
    pub const fn is_awaited(&self) -> bool {
        self.ring.is_none() && !self.refused
    }

    /// The time at which the link is closed in any case.
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The link is closed at this time in any case.
    pub const fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Carries what there is, a bounded part of it.
    pub fn turn(&mut self, scratch: &mut [u8]) -> Standing {
        let standing = self.carry(scratch);
        if cfg!(debug_assertions) {
            self.check();
        }
        standing
    }

    fn carry(&mut self, scratch: &mut [u8]) -> Standing {
        if self.refused {
            return self.drop_rest(scratch);
        }
        let mut carried = 0;
        loop {
            let moved = match self.step(scratch) {
                Ok(moved) => moved,
                Err(Stop::Broken) => return Standing::Over,
                Err(Stop::Refused(error)) => {
                    // Why it is refused; a socket that does not take that has no room for it.
                    let _ = self.write_socket();
                    let _ = self.client.socket().shutdown(Shutdown::Write);
                    self.refused = true;
                    // To the ring's thread it has gone.
                    self.ring = None;
                    return Standing::Refused(error);
                }
            };
            if self.is_shown() {
                return Standing::Shown;
            }
            if self.is_over() {
                return Standing::Over;
            }
            if moved == 0 {
                return Standing::Waits;
            }
            carried += moved;
            if carried >= TURN_BYTES {
                return Standing::More;
            }
        }
    }

    fn drop_rest(&mut self, scratch: &mut [u8]) -> Standing {
        let mut dropped = 0;
        while self.client.can_read() {
            match self.client.read_into(scratch) {
                Ok(Some(bytes)) if bytes > 0 => dropped += bytes,
                Ok(None) if !self.client.can_read() => {}
                _ => return Standing::Over,
            }
            if dropped >= TURN_BYTES {
                return Standing::More;
            }
        }
        Standing::Waits
    }

    /// Carries bytes once in each direction, and returns the number of bytes moved.
    fn step(&mut self, scratch: &mut [u8]) -> Result<usize, Stop> {
        let mut moved = 0;
        let delivered = self.deliver(&mut moved)?;
        if delivered && self.read_socket(&mut moved)? {
            self.tls.process_new_packets().map_err(Stop::Refused)?;
            self.deliver(&mut moved)?;
        }
        self.read_pair(scratch, &mut moved);
        moved += self.write_socket()?;
        if self.outbound_over && !self.tls.wants_write() {
            // A client that has gone has no use for it.
            let _ = self.client.socket().shutdown(Shutdown::Write);
        }
        Ok(moved)
    }

    /// Reads what the client sends; whether there was anything.
    fn read_socket(&mut self, moved: &mut usize) -> Result<bool, Stop> {
        if !self.client.can_read() || self.inbound_over {
            return Ok(false);
        }
        let tls = &mut self.tls;
        let Some(bytes) = self.client.read(|socket| tls.read_tls(socket))? else {
            return Ok(false);
        };
        *moved += bytes;
        if bytes == 0 {
            self.client.at_end();
            if self.tls.is_handshaking() {
                return Err(Stop::Broken);
            }
        }
        Ok(true)
    }

    /// Hands on what the client has sent; whether that was everything.
    fn deliver(&mut self, moved: &mut usize) -> Result<bool, Stop> {
        let Some(ring) = &mut self.ring else {
            return Ok(true);
        };
        while !self.inbound_over {
            let mut reader = self.tls.reader();
            let taken = match reader.fill_buf() {
                // The client closes, or it is cut off: the ring's thread ignores an incomplete frame.
                Ok([]) => {
                    self.inbound_over = true;
                    let _ = ring.socket().shutdown(Shutdown::Write);
                    break;
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    (self.inbound_over, self.torn) = (true, true);
                    let _ = ring.socket().shutdown(Shutdown::Write);
                    break;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
                Ok(_) if !ring.can_write() => return Ok(false),
                Ok(bytes) => ring.write_from(bytes),
            };
            match taken {
                Ok(Some(bytes)) => {
                    reader.consume(bytes);
                    *moved += bytes;
                }
                // Without room it is tried when there is some; after a signal, at once.
                Ok(None) if !ring.can_write() => return Ok(false),
                Ok(None) => {}
                // The ring's thread reads no more; its last frames for the client may still arrive.
                Err(_) => {
                    self.abandoned = true;
                    (self.inbound_over, self.torn) = (true, true);
                }
            }
        }
        Ok(true)
    }

    /// Takes the bytes for the client, when it has taken those before.
    fn read_pair(&mut self, scratch: &mut [u8], moved: &mut usize) {
        let Some(ring) = &mut self.ring else {
            return;
        };
        if !ring.can_read() || self.outbound_over || self.tls.wants_write() {
            return;
        }
        match ring.read_into(scratch) {
            Ok(None) => {}
            // An end that was closed before it had read everything is an error here.
            end @ (Ok(Some(0)) | Err(_)) => {
                self.outbound_over = true;
                self.torn |= end.is_err();
                if !self.torn {
                    self.tls.send_close_notify();
                }
            }
            Ok(Some(bytes)) => {
                *moved += bytes;
                // The buffer takes everything: it has no limit but this piece.
                let written = self.tls.writer().write_all(&scratch[..bytes]);
                debug_assert!(written.is_ok(), "a buffer without a limit takes everything");
            }
        }
    }

    /// Sends what is encrypted.
    fn write_socket(&mut self) -> Result<usize, Stop> {
        let mut moved = 0;
        while self.client.can_write() && self.tls.wants_write() {
            let tls = &mut self.tls;
            moved += self
                .client
                .write(|socket| tls.write_tls(socket))?
                .unwrap_or(0);
        }
        Ok(moved)
    }

    /// Nothing is left to be carried.
    fn is_over(&self) -> bool {
        let sent = self.outbound_over && !self.tls.wants_write();
        sent && (self.abandoned || self.inbound_over)
    }

    /// True if the client has shown who it is, and the ring's thread does not know it yet.
    pub fn is_shown(&self) -> bool {
        self.is_awaited() && !self.tls.is_handshaking()
    }

    /// The ring's thread has said its last word: the client has only so long to take it.
    pub const fn is_ending(&self) -> bool {
        self.outbound_over || self.abandoned
    }

    /// The ring's thread never hears of a client that is refused, and nothing is carried for one that it does not know.
    fn check(&self) {
        debug_assert!(!self.refused || self.ring.is_none());
        let carried = self.inbound_over || self.outbound_over || self.torn;
        debug_assert!(!carried || self.ring.is_some() || self.refused);
    }
}
