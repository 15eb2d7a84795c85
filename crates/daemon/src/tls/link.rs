//! One client: bytes between its socket and the pair that leads to the ring's thread.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::time::Instant;

use mio::net::{TcpStream, UnixStream};
use rustls::ServerConnection;
use rustls::pki_types::UnixTime;

use crate::seats::Seat;

/// Bytes carried in one turn of a client, before others have theirs.
const TURN_BYTES: usize = 256 << 10;

/// One client.
#[derive(Debug)]
pub(super) struct Link {
    pub socket: TcpStream,
    pub tls: ServerConnection,
    /// Leads to the ring's thread, once the client has shown who it is.
    pub pair: Option<UnixStream>,
    pub address: IpAddr,
    /// Tells it from later ones with its key.
    pub number: u64,
    /// The number of the certificates with which the handshake began.
    pub terms: u64,
    /// The time at which the handshake began.
    pub since: UnixTime,
    /// The time at which the link is closed in any case: the end of the handshake's time, or of the time to take the
    /// last frames.
    pub deadline: Option<Instant>,
    pub socket_ready: Ready,
    pub pair_ready: Ready,
    /// The client says nothing more, and the ring's thread has been told.
    inbound_over: bool,
    /// Not all that the client wanted to say has been read: it was cut off before it had said that this was all, or the
    /// ring's thread has closed its end before. An end in order would tell it that all was read.
    torn: bool,
    /// The ring's thread says nothing more, and the client has been told.
    outbound_over: bool,
    /// The ring's thread has closed its end.
    pub abandoned: bool,
    pub scheduled: bool,
    /// The client is refused: all that it still sends is dropped, so that it can read the reason.
    pub refused: bool,
    _seat: Seat,
}

/// The readiness of a socket that the kernel has reported, and that has not turned out to be over since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub read: bool,
    pub write: bool,
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
    pub fn new(
        socket: TcpStream,
        tls: ServerConnection,
        (address, seat): (IpAddr, Seat),
        (number, terms): (u64, u64),
        deadline: Instant,
    ) -> Self {
        let ready = Ready {
            read: true,
            write: true,
        };
        Self {
            socket,
            tls,
            pair: None,
            address,
            number,
            terms,
            since: UnixTime::now(),
            deadline: Some(deadline),
            socket_ready: ready,
            pair_ready: ready,
            inbound_over: false,
            torn: false,
            outbound_over: false,
            abandoned: false,
            scheduled: false,
            refused: false,
            _seat: seat,
        }
    }

    /// Carries what there is, a bounded part of it.
    pub fn turn(&mut self, scratch: &mut [u8]) -> Standing {
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
                    let _ = self.socket.shutdown(Shutdown::Write);
                    self.refused = true;
                    // To the ring's thread it has gone.
                    self.pair = None;
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
        while self.socket_ready.read {
            match self.socket.read(scratch) {
                Ok(bytes) if bytes > 0 => dropped += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.socket_ready.read = false;
                }
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
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        Ok(moved)
    }

    /// Reads what the client sends; whether there was anything.
    fn read_socket(&mut self, moved: &mut usize) -> Result<bool, Stop> {
        if !self.socket_ready.read || self.inbound_over {
            return Ok(false);
        }
        match self.tls.read_tls(&mut self.socket) {
            Ok(bytes) => {
                *moved += bytes;
                self.socket_ready.read = bytes > 0;
                if bytes == 0 && self.tls.is_handshaking() {
                    return Err(Stop::Broken);
                }
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.socket_ready.read = false;
                Ok(false)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands on what the client has sent; whether that was everything.
    fn deliver(&mut self, moved: &mut usize) -> Result<bool, Stop> {
        let Some(pair) = &mut self.pair else {
            return Ok(true);
        };
        while !self.inbound_over {
            let mut reader = self.tls.reader();
            let taken = match reader.fill_buf() {
                // The client closes, or it is cut off: the ring's thread ignores an incomplete frame.
                Ok([]) => {
                    self.inbound_over = true;
                    let _ = pair.shutdown(Shutdown::Write);
                    break;
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    (self.inbound_over, self.torn) = (true, true);
                    let _ = pair.shutdown(Shutdown::Write);
                    break;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
                Ok(_) if !self.pair_ready.write => return Ok(false),
                Ok(bytes) => pair.write(bytes),
            };
            match taken {
                Ok(bytes) => {
                    reader.consume(bytes);
                    *moved += bytes;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.pair_ready.write = false;
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
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
        let Some(pair) = &mut self.pair else {
            return;
        };
        if !self.pair_ready.read || self.outbound_over || self.tls.wants_write() {
            return;
        }
        match pair.read(scratch) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.pair_ready.read = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // An end that was closed before it had read everything is an error here.
            end @ (Ok(0) | Err(_)) => {
                self.outbound_over = true;
                self.torn |= end.is_err();
                if !self.torn {
                    self.tls.send_close_notify();
                }
            }
            Ok(bytes) => {
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
        while self.socket_ready.write && self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(bytes) => moved += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.socket_ready.write = false;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
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
        self.pair.is_none() && !self.refused && !self.tls.is_handshaking()
    }

    /// The ring's thread has said its last word: the client has only so long to take it.
    pub const fn is_ending(&self) -> bool {
        self.outbound_over || self.abandoned
    }
}
