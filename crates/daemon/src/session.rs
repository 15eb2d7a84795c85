//! One client's socket: bytes in, bytes out.

use std::io::{ErrorKind, IoSlice, Read, Write};

use rota_core::contract::Time;
use rota_core::groups::{Connection, Member};
use rota_net::monotonic;

use crate::access::Guest;
use crate::door::Notice;
use crate::lag::{Full, HeldFor, Lag};
use crate::names::Names;
use crate::speech::{Ask, Speech};
use crate::stream::Stream;

/// Pieces handed to the kernel at once.
const PIECES: usize = 256;

/// The bytes that are read at once.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// The bytes of one client that are handled before others have their turn.
const TURN_BYTES: usize = READ_BYTES;

/// The bytes that one client is offered before others have their turn: a client that reads as fast as they are written
/// could take all the time.
const WRITE_BYTES: usize = 256 << 10;

/// The least cost of a read, in bytes: a client must not have many short reads in one turn.
const READ_COST: usize = 1 << 10;

/// A client and its socket.
#[derive(Debug)]
pub(crate) struct Session {
    stream: Stream,
    pub speech: Speech,
    /// The peer, and its rights.
    pub guest: Guest,
    pub connection: Option<Connection>,
    /// While the client is made to skip: its earlier connection, whose events it misses.
    pub before: Option<Connection>,
    /// Distinguishes the session from later ones with its key.
    pub number: u64,
    /// The time at which the client came, or was told to go.
    pub since: Time,
    /// Bytes that were read and not handled yet.
    rest: Vec<u8>,
    /// The request that has to be tried again, before anything else of this client.
    stalled: Option<Ask>,
    readable: bool,
    writable: bool,
    /// The client writes no more: the end is still to be read.
    closed: bool,
    /// Messages that the client was told.
    pub messages: u64,
    /// The bytes that the largest event for the client took in its queue.
    pub largest: usize,
    /// The client was told that it reads too slowly, and has not caught up since.
    pub warned: bool,
    /// The lag, if the client is behind, with the senders that wait for it.
    pub lag: Option<Box<Lag>>,
    /// The hold by which a message of the client waits for a slower one.
    pub held_for: Option<HeldFor>,
    /// The session is on the list of those that look again whether they still have to wait.
    pub listed_as_held: bool,
    /// Bytes wait that were not offered to the socket yet.
    pub dirty: bool,
    /// The bytes and the cost that the ordered stream has added to these.
    pub fresh: usize,
    /// The bytes of this session that count in the sum of all.
    pub counted: usize,
    /// The state of a queue that is full, or was a moment ago.
    pub full: Option<Full>,
    /// The session is on the list of those whose time to read is judged.
    pub listed_as_full: bool,
    /// The client waits for a little credit.
    pub owed: bool,
    /// The client asks, and a later look decides whether it has read.
    pub has_to_read: bool,
    /// The session has its turn soon.
    pub scheduled: bool,
    /// The session has its turn once the ring has delivered something.
    pub parked: bool,
    /// Its socket is full since then, and has taken nothing.
    unread_since: Option<Time>,
    /// The socket takes nothing any more; there may still be something to read.
    deaf: bool,
    /// Its client says that it has taken more than it was given.
    lies: bool,
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Done {
    Yes,
    /// There is no room for the request yet.
    Later(Ask),
    /// Lists have cost enough for now: the request has its turn when others and the ring have had theirs.
    Soon(Ask),
    /// The request would change a group, and changes before it have to be told first.
    Change(Ask),
    /// The message waits for another client.
    Held(Ask),
}

/// The state of a session after its turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// The session waits for bytes.
    Idle,
    /// The session has more to handle.
    More,
    /// A request waits for room.
    Stalled,
    /// A question waits until lists have cost less.
    Asks,
    /// A change of a group waits for others.
    Changes,
    /// A message waits for another client.
    Held,
    /// Its client has gone: why.
    Gone(String),
    /// Its client cannot be understood any more: why.
    Garbled(String),
}

impl Session {
    /// The most bytes that may wait for the client: the configured limit, or twice its largest event. Other daemons on
    /// the ring may allow larger messages than this one, and two of them are no long queue.
    pub fn queue_limit(&self, configured: usize) -> usize {
        configured.max(2 * self.largest)
    }

    pub const fn new(stream: Stream, speech: Speech, guest: Guest, number: u64, now: Time) -> Self {
        Self {
            stream,
            speech,
            guest,
            connection: None,
            before: None,
            number,
            since: now,
            rest: Vec::new(),
            stalled: None,
            readable: true,
            writable: true,
            closed: false,
            messages: 0,
            largest: 0,
            warned: false,
            lag: None,
            held_for: None,
            listed_as_held: false,
            dirty: false,
            fresh: 0,
            counted: 0,
            full: None,
            listed_as_full: false,
            owed: false,
            has_to_read: false,
            scheduled: false,
            parked: false,
            unread_since: None,
            deaf: false,
            lies: false,
        }
    }

    /// The client is let in. One of this host gets memory for what it is told, if it wants it and there is
    /// any; whether it got some.
    pub fn welcome(&mut self, member: Member, names: &mut Names, memory_bytes: usize) -> bool {
        let wants = self.speech.wants_memory() && self.guest.tls.is_none() && memory_bytes > 0;
        let shared = wants && self.stream.share(memory_bytes).is_ok();
        let memory = if shared { memory_bytes as u32 } else { 0 };
        self.speech.accept(member, names, memory);
        self.stream.welcomed(self.speech.backlog());
        shared
    }

    pub const fn notice(&mut self, notice: Notice) {
        self.readable |= notice.readable;
        self.closed |= notice.closed;
        self.writable |= notice.writable;
    }

    /// Takes in what the client asks for, as long as there is room for it.
    pub fn take_in(
        &mut self,
        scratch: &mut [u8],
        names: &mut Names,
        act: &mut impl FnMut(&mut Self, &mut Names, Ask) -> Done,
    ) -> Standing {
        if std::mem::take(&mut self.lies) {
            let why = "it says that it has read what it was not told";
            return Standing::Garbled(why.to_owned());
        }
        if let Some(ask) = self.stalled.take() {
            let done = act(self, names, ask);
            if let Some(standing) = self.put_off(done) {
                return standing;
            }
        }
        let rest = std::mem::take(&mut self.rest);
        match self.pull(&rest, names, act) {
            Standing::Idle => {}
            other => return other,
        }
        let mut taken = 0;
        while self.readable {
            if taken >= TURN_BYTES {
                return Standing::More;
            }
            match self.stream.read(scratch) {
                Ok(0) => return Standing::Gone("it has closed the connection".to_owned()),
                Ok(length) => {
                    taken += length.max(READ_COST);
                    // If a short read has taken all there was, the kernel tells of later bytes.
                    let all = length < scratch.len() && !self.stream.reads_stop_early();
                    self.readable = !all || self.closed;
                    match self.pull(&scratch[..length], names, act) {
                        Standing::Idle => {}
                        other => return other,
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Standing::Gone(error.to_string()),
            }
        }
        Standing::Idle
    }

    fn pull(
        &mut self,
        mut input: &[u8],
        names: &mut Names,
        act: &mut impl FnMut(&mut Self, &mut Names, Ask) -> Done,
    ) -> Standing {
        loop {
            match self.speech.pull(&mut input, names) {
                Ok(None) => return Standing::Idle,
                Ok(Some(ask)) => {
                    let done = act(self, names, ask);
                    if let Some(standing) = self.put_off(done) {
                        self.rest = input.to_vec();
                        return standing;
                    }
                }
                Err(why) => return Standing::Garbled(why),
            }
        }
    }

    /// Keeps a request that was not done.
    fn put_off(&mut self, done: Done) -> Option<Standing> {
        let (ask, standing) = match done {
            Done::Yes => return None,
            Done::Later(ask) => (ask, Standing::Stalled),
            Done::Soon(ask) => (ask, Standing::Asks),
            Done::Change(ask) => (ask, Standing::Changes),
            Done::Held(ask) => (ask, Standing::Held),
        };
        self.stalled = Some(ask);
        Some(standing)
    }

    /// Offers the waiting bytes to the socket, as many as others can wait for, and returns the number that it has
    /// taken. A socket that takes nothing any more loses its bytes.
    pub fn write(&mut self) -> usize {
        self.dirty = false;
        let mut taken = 0;
        if self.speech.backlog() > 0 {
            self.speech.give_credit();
        }
        while self.can_write() && taken < WRITE_BYTES {
            let mut pieces: Vec<IoSlice<'_>> = Vec::new();
            self.speech.chunks(&mut pieces, PIECES);
            match self.stream.write_vectored(&pieces) {
                Ok(bytes) => {
                    taken += bytes;
                    self.speech.sent(bytes);
                    if let Some(full) = &mut self.full {
                        full.read += bytes;
                    }
                    self.unread_since = None;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.writable = false;
                    self.speech.wait();
                    self.unread_since.get_or_insert_with(monotonic);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.lies |= error.kind() == ErrorKind::InvalidData;
                    self.deaf = true;
                    self.readable = true;
                }
            }
        }
        if self.deaf {
            self.speech.sent(self.speech.backlog());
        }
        taken
    }

    /// Offers all that waits to the socket: it is over soon, and so is the wait of others.
    pub fn write_all(&mut self) {
        while self.can_write() && self.write() > 0 {}
    }

    /// Bytes that are kept for the client: those that wait for it, and those read from it, but for a read or two.
    pub fn kept(&self) -> usize {
        self.speech.backlog() + self.speech.buffered() + self.rest.len()
    }

    /// True if bytes wait, and the socket may take some.
    pub const fn can_write(&self) -> bool {
        self.writable && !self.deaf && self.speech.backlog() > 0
    }

    /// The time for which the socket has taken nothing, though bytes wait; in nanoseconds.
    pub fn unread_nanos(&self, now: Time) -> u64 {
        self.unread_since.map_or(0, |since| now.since(since))
    }

    /// The client hears nothing any more.
    pub const fn is_deaf(&self) -> bool {
        self.deaf
    }

    /// A question waits to be answered.
    pub const fn is_asking(&self) -> bool {
        matches!(self.stalled, Some(Ask::List(..)))
    }

    /// A request waits for room.
    pub const fn is_stalled(&self) -> bool {
        self.stalled.is_some() && self.held_for.is_none()
    }

    /// The session is over: the memory that its client may still read from.
    pub fn take_unread(&mut self) -> Option<rota_memory::Writer> {
        self.stream.take_unread()
    }

    /// Tells the client's side that nothing more comes.
    pub fn hang_up(&mut self) {
        self.stream.hang_up();
    }
}
