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

/// What is read at once.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// Bytes of one client that are looked at before others have their turn.
const TURN_BYTES: usize = READ_BYTES;

/// Bytes that one client is offered before others have their turn: one that reads as fast as they are written could be
/// written for without end.
const WRITE_BYTES: usize = 256 << 10;

/// What a read costs at least, as if it had brought so many bytes: nobody has many short ones in one turn.
const READ_COST: usize = 1 << 10;

/// A client and its socket.
#[derive(Debug)]
pub(crate) struct Session {
    stream: Stream,
    pub speech: Speech,
    /// Who it is, and what it may do.
    pub guest: Guest,
    pub connection: Option<Connection>,
    /// While the client is made to skip: its earlier connection, whose events it misses.
    pub before: Option<Connection>,
    /// Tells it from later ones with its key.
    pub number: u64,
    /// When it came, or when it was told to go.
    pub since: Time,
    /// Read and not looked at yet.
    rest: Vec<u8>,
    /// Has to be tried again, before anything else of this client.
    stalled: Option<Ask>,
    readable: bool,
    writable: bool,
    /// The client writes no more: the end is still to be read.
    closed: bool,
    /// Messages that it was told.
    pub messages: u64,
    /// What the largest event for it took in its queue, in bytes.
    pub largest: usize,
    /// It was told that it reads too slowly, and has not caught up since.
    pub warned: bool,
    /// It is behind: by what, and who waits for it.
    pub lag: Option<Box<Lag>>,
    /// It waits for another client that is.
    pub held_for: Option<HeldFor>,
    /// It looks again whether it still has to.
    pub listed_as_held: bool,
    /// Bytes wait that were not offered to the socket yet.
    pub dirty: bool,
    /// What the ordered stream has brought of these, and cost.
    pub fresh: usize,
    /// What of its memory counts in the sum of all.
    pub counted: usize,
    /// Too much waits for it, and has for a moment.
    pub full: Option<Full>,
    /// It is looked at again whether it has had its time to read.
    pub listed_as_full: bool,
    /// It waits for a little credit.
    pub owed: bool,
    /// It asks, and is looked at again whether it has read.
    pub has_to_read: bool,
    /// It has its turn soon.
    pub scheduled: bool,
    /// It has its turn once the ring has delivered something.
    pub parked: bool,
    /// Its socket is full since then, and has taken nothing.
    unread_since: Option<Time>,
    /// The socket takes nothing any more; there may still be something to read.
    deaf: bool,
    /// Its client says that it has taken more than it was given.
    lies: bool,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Done {
    Yes,
    /// There is no room for it yet.
    Later(Ask),
    /// Lists have cost enough for now: it has its turn when others and the ring have had theirs.
    Soon(Ask),
    /// It would change a group, and changes before it have to be told first.
    Change(Ask),
    /// It waits for another client.
    Held(Ask),
}

/// How a session stands after its turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// It waits for bytes.
    Idle,
    /// It has more to look at.
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
    /// How much may wait for it, where so much is configured: daemons whose clients may send larger messages than those of this one
    /// may be on the ring, and two of them are no long queue.
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
                    // Where less than there was room for is all there was, the kernel tells of more.
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

    /// Offers what waits to the socket, as much as others can wait for; says how much that has taken. What a socket does
    /// not take any more is dropped.
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

    /// Bytes that are kept for the client: that wait for it, and of it, but for a read or two.
    pub fn kept(&self) -> usize {
        self.speech.backlog() + self.speech.buffered() + self.rest.len()
    }

    /// Something waits, and its socket may take it.
    pub const fn can_write(&self) -> bool {
        self.writable && !self.deaf && self.speech.backlog() > 0
    }

    /// For how long its socket has taken nothing, though something waits; in nanoseconds.
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
