//! One client's socket: bytes in, bytes out.

mod inbound;
mod membership;
mod outcome;
mod socket;

use std::io::IoSlice;

use rota_core::contract::Time;
use rota_core::groups::{Connection, Event, Hold, Member};
use rota_net::monotonic;

use crate::access::{Guest, Rights};
use crate::door::Notice;
use crate::lag::{HeldFor, Lag, Queue};
use crate::names::Names;
use crate::speech::{Ask, Encoded, Speech};
use crate::stream::Stream;
use inbound::Inbound;
use membership::Membership;
use socket::{Came, ClientSocket, Went};

pub(crate) use outcome::{Done, Standing, Told};

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

/// A client: its socket, its protocol, and what is known of it.
#[derive(Debug)]
pub(crate) struct Session {
    socket: ClientSocket,
    inbound: Inbound,
    speech: Speech,
    /// The peer, and its rights.
    guest: Guest,
    membership: Membership,
    lag: Lag,
    /// Distinguishes the session from later ones with its key.
    number: u64,
    /// The time at which the client came, or was told to go.
    since: Time,
    /// Messages that the client was told.
    messages: u64,
    /// The bytes that events have added to its queue since the socket was offered it last.
    fresh: usize,
    /// The bytes of this session that count in the sum of all.
    counted: usize,
}

impl Session {
    pub const fn new(stream: Stream, speech: Speech, guest: Guest, number: u64, now: Time) -> Self {
        Self {
            socket: ClientSocket::new(stream),
            inbound: Inbound::new(),
            speech,
            guest,
            membership: Membership::new(),
            lag: Lag::new(),
            number,
            since: now,
            messages: 0,
            fresh: 0,
            counted: 0,
        }
    }

    /// The number that distinguishes the session from later ones with its key.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The time at which the client came, or was told to go.
    pub const fn since(&self) -> Time {
        self.since
    }

    /// The client is to go, from now on.
    pub const fn goes(&mut self, now: Time) {
        self.since = now;
    }

    pub const fn guest(&self) -> &Guest {
        &self.guest
    }

    /// Other rules give the client other rights.
    pub fn set_rights(&mut self, rights: Rights) {
        self.guest.rights = rights;
    }

    pub const fn speech(&self) -> &Speech {
        &self.speech
    }

    /// The client's protocol, to tell it something other than an event.
    pub const fn speech_mut(&mut self) -> &mut Speech {
        &mut self.speech
    }

    /// The connections of the client among those of the groups.
    pub const fn membership(&self) -> Membership {
        self.membership
    }

    /// The one that it has, if it was let in.
    pub const fn connection(&self) -> Option<Connection> {
        self.membership.connection()
    }

    /// The client is let in. One of this host gets memory for what it is told, if it wants it and there is
    /// any; whether it got some.
    pub fn welcome(&mut self, member: Member, names: &mut Names, memory_bytes: usize) -> bool {
        self.membership.begin(member.connection);
        let wants = self.speech.wants_memory() && self.guest.tls.is_none() && memory_bytes > 0;
        let shared = wants && self.socket.share(memory_bytes);
        let memory = if shared { memory_bytes as u32 } else { 0 };
        self.speech.accept(member, names, memory);
        self.socket.welcomed(self.speech.backlog());
        shared
    }

    /// The client is made to skip what it was told and has not read: from here on it is this member, and misses the
    /// events of its connection before.
    pub fn skip(&mut self, member: Member) {
        self.membership.skip_to(member.connection);
        self.speech.skip(member);
    }

    /// The client is told what it has missed, and all events from here on.
    pub fn go_on(&mut self) {
        self.membership.go_on();
        self.speech.go_on();
    }

    /// The client is not connected any more; it was until now as the result says.
    pub const fn disconnect(&mut self) -> Membership {
        self.membership.end()
    }

    pub const fn notice(&mut self, notice: Notice) {
        self.socket.notice(notice);
    }

    /// Takes in what the client asks for, as long as there is room for it.
    pub fn take_in(
        &mut self,
        scratch: &mut [u8],
        names: &mut Names,
        act: &mut impl FnMut(&mut Self, &mut Names, Ask) -> Done,
    ) -> Standing {
        let standing = self.read_and_act(scratch, names, act);
        if cfg!(debug_assertions) {
            self.check();
        }
        standing
    }

    fn read_and_act(
        &mut self,
        scratch: &mut [u8],
        names: &mut Names,
        act: &mut impl FnMut(&mut Self, &mut Names, Ask) -> Done,
    ) -> Standing {
        if self.socket.take_lie() {
            let why = "it says that it has read what it was not told";
            return Standing::Garbled(why.to_owned());
        }
        if let Some(ask) = self.inbound.take_waiting() {
            let done = act(self, names, ask);
            if let Some(standing) = self.inbound.put_off(done) {
                return standing;
            }
        }
        let rest = self.inbound.take_rest();
        match self.pull(&rest, names, act) {
            Standing::Idle => {}
            other => return other,
        }
        let mut taken = 0;
        while self.socket.is_readable() {
            if taken >= TURN_BYTES {
                return Standing::More;
            }
            match self.socket.read(scratch) {
                Came::Gone(why) => return Standing::Gone(why),
                Came::Nothing => {}
                Came::Bytes(length) => {
                    taken += length.max(READ_COST);
                    match self.pull(&scratch[..length], names, act) {
                        Standing::Idle => {}
                        other => return other,
                    }
                }
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
                    if let Some(standing) = self.inbound.put_off(done) {
                        self.inbound.keep(input);
                        return standing;
                    }
                }
                Err(why) => return Standing::Garbled(why),
            }
        }
    }

    /// Tells the client what has happened to the client of this connection, or has it miss that.
    pub fn tell(
        &mut self,
        to: Connection,
        event: &Event,
        encoded: &mut Encoded,
        names: &mut Names,
    ) -> Option<Told> {
        if self.membership.before() == Some(to) {
            self.speech.miss(event);
            return None;
        }
        self.messages += u64::from(matches!(event, Event::Message(_)));
        let before = self.speech.backlog();
        self.speech.tell(event, encoded, names);
        let waiting = self.speech.backlog();
        let bytes = waiting.saturating_sub(before);
        self.fresh += bytes;
        self.lag.told(bytes);
        Some(Told { bytes, waiting })
    }

    /// Messages that the client was told.
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// The bytes that events have added to the queue since [`Self::take_fresh`] was called last.
    pub const fn fresh(&self) -> usize {
        self.fresh
    }

    /// The same, which count no more.
    pub const fn take_fresh(&mut self) -> usize {
        std::mem::replace(&mut self.fresh, 0)
    }

    /// Offers the waiting bytes to the socket, as many as others can wait for, and returns the number that it has
    /// taken. A socket that takes nothing any more loses its bytes.
    pub fn write(&mut self) -> usize {
        let mut taken = 0;
        if self.speech.backlog() > 0 {
            self.speech.give_credit();
        }
        while self.can_write() && taken < WRITE_BYTES {
            let mut pieces: Vec<IoSlice<'_>> = Vec::new();
            self.speech.chunks(&mut pieces, PIECES);
            match self.socket.write(&pieces) {
                Went::Bytes(bytes) => {
                    taken += bytes;
                    self.speech.sent(bytes);
                    self.lag.read(bytes);
                }
                Went::Full => self.speech.wait(),
                Went::Nothing => {}
            }
        }
        if self.socket.is_deaf() {
            self.speech.sent(self.speech.backlog());
        }
        taken
    }

    /// Offers all that waits to the socket: it is over soon, and so is the wait of others.
    pub fn write_all(&mut self) {
        while self.can_write() && self.write() > 0 {}
    }

    /// Counts the bytes that are kept for the client: those that wait for it, and those read from it, but for a read or
    /// two. Returns how many they were before, and are.
    pub fn count_kept(&mut self) -> (usize, usize) {
        let now = self.kept();
        (std::mem::replace(&mut self.counted, now), now)
    }

    /// The bytes that were counted last.
    pub const fn counted(&self) -> usize {
        self.counted
    }

    /// The bytes that are kept for the client.
    pub fn kept(&self) -> usize {
        self.speech.backlog() + self.speech.buffered() + self.inbound.bytes()
    }

    /// True if bytes wait, and the socket may take some.
    pub const fn can_write(&self) -> bool {
        self.socket.can_write() && self.speech.backlog() > 0
    }

    /// The time for which the socket has taken nothing, though bytes wait; in nanoseconds.
    pub fn unread_nanos(&self, now: Time) -> u64 {
        let since = self.socket.unread_since();
        since.map_or(0, |since| now.since(since))
    }

    /// The client hears nothing any more.
    pub const fn is_deaf(&self) -> bool {
        self.socket.is_deaf()
    }

    /// A question waits to be answered.
    pub const fn is_asking(&self) -> bool {
        self.inbound.is_asking()
    }

    /// A request waits for room.
    pub const fn is_stalled(&self) -> bool {
        self.inbound.is_stalled()
    }

    /// The hold by which a message of the client waits for a slower one.
    pub const fn held_for(&self) -> Option<HeldFor> {
        self.inbound.held_for()
    }

    /// A message of the client waits for this hold. Whether it begins to wait now.
    pub fn wait_for_slow(&mut self, hold: Hold, now: Time) -> bool {
        self.inbound.wait_for_slow(hold, now)
    }

    /// Lets a message of the client go on. Returns the time for which it has waited for another client, in nanoseconds.
    pub fn let_go(&mut self, now: Time) -> Option<u64> {
        self.inbound.let_go(now)
    }

    /// How far the client is behind.
    pub const fn lag(&self) -> &Lag {
        &self.lag
    }

    /// How far the client is behind, to note more of it.
    pub const fn lag_mut(&mut self) -> &mut Lag {
        &mut self.lag
    }

    /// The length of the client's queue against this limit.
    pub fn judge_queue(&mut self, limit: usize) -> Queue {
        let waiting = self.speech.backlog();
        let unread_since = self.socket.unread_since();
        self.lag.judge(waiting, limit, unread_since, monotonic)
    }

    /// Whether others may be made to wait for the client: it has not declined, and is not made to skip.
    pub const fn can_throttle(&self) -> bool {
        self.speech.can_throttle() && !self.speech.skips()
    }

    /// The session is over: the memory that its client may still read from.
    pub fn take_unread(&mut self) -> Option<rota_memory::Writer> {
        self.socket.take_unread()
    }

    /// Tells the client's side that nothing more comes.
    pub fn hang_up(&mut self) {
        self.socket.hang_up();
    }

    /// What holds between inputs.
    pub fn check(&self) {
        self.inbound.check();
        self.lag.check();
        self.membership.check();
    }
}
