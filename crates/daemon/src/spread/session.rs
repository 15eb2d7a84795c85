//! One client's connection, from its first byte to its last.
//!
//! ```text
//!             too old, illegal name        unknown method
//!                 |                             |
//!   Greeting -----+----> Choosing --------------+----> Deciding ----> Open ----> Ended
//!       |                                                 ^  |          disconnect,
//!       +------------- library before 3.16 ---------------+  +------->  not a request
//!                                                              refuse
//! ```
//!
//! Every refusal leads to Ended, with its code as the last byte that is sent.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use bytes::{Buf, Bytes};

use super::connect::{Greeting, checks, greeting, unasked};
use super::{
    Common, Connect, EncodeError, Name, Outgoing, PrivateName, Refusal, Request, SessionError,
    Settings, Version, WrongStage, auth, request,
};

/// The meaning of a client's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The client wants to connect: [`Session::accept`] or [`Session::refuse`] it. Until then nothing more is read.
    Connect(Connect),
    /// A request of the client.
    Request(Request),
}

/// One client's connection.
///
/// * [`Self::pull`] takes bytes from the socket and gives events, one a call.
/// * [`Self::accept`], [`Self::refuse`] answer [`Event::Connect`]; [`Self::send`] tells a client more.
/// * [`Self::chunks`] are the bytes to write to the socket, [`Self::sent`] says how many were taken.
#[derive(Debug)]
pub struct Session {
    settings: Arc<Settings>,
    stage: Stage,
    inbox: Vec<u8>,
    outbox: VecDeque<Bytes>,
    backlog: usize,
}

#[derive(Debug)]
enum Stage {
    Greeting,
    /// Waits for the choice of methods.
    Choosing(Connect),
    /// The daemon has to accept or refuse.
    Deciding {
        version: Version,
        membership: bool,
    },
    Open {
        own: Name,
        membership: bool,
    },
    Ended,
}

impl Session {
    /// The session of a client that has just connected.
    pub const fn new(settings: Arc<Settings>) -> Self {
        Self {
            settings,
            stage: Stage::Greeting,
            inbox: Vec::new(),
            outbox: VecDeque::new(),
            backlog: 0,
        }
    }

    /// Takes bytes off the front of `input` up to the end of the next event, and gives that event.
    ///
    /// `None` leaves bytes in `input` only while a client waits to be accepted. After an error, a
    /// refusal or a disconnect all further bytes are dropped, so that the socket can be drained.
    pub fn pull(&mut self, input: &mut &[u8]) -> Result<Option<Event>, SessionError> {
        let pulled = match self.stage {
            Stage::Greeting => self.pull_greeting(input),
            Stage::Choosing(_) => self.pull_choice(input),
            Stage::Deciding { .. } => Ok(None),
            Stage::Open { own, .. } => self.pull_request(input, &own),
            Stage::Ended => {
                *input = &[];
                Ok(None)
            }
        };
        pulled.inspect_err(|error| self.fail(*error))
    }

    fn pull_greeting(&mut self, input: &mut &[u8]) -> Result<Option<Event>, SessionError> {
        let connect = loop {
            match greeting(&self.inbox)? {
                Greeting::Whole(connect) => break connect,
                Greeting::Needs(bytes) if !self.fill(input, bytes) => return Ok(None),
                Greeting::Needs(_) => {}
            }
        };
        self.inbox = Vec::new();
        if !connect.version.chooses() {
            let methods = unasked(&self.settings.allowed);
            return Ok(Some(self.decide(connect, methods)?));
        }
        self.push(auth::offer(&self.settings.allowed).into());
        self.stage = Stage::Choosing(connect);
        self.pull_choice(input)
    }

    fn pull_choice(&mut self, input: &mut &[u8]) -> Result<Option<Event>, SessionError> {
        if !self.fill(input, auth::CHOICE_BYTES) {
            return Ok(None);
        }
        let inbox = mem::take(&mut self.inbox);
        let chosen = auth::choice(&inbox, &self.settings.allowed).ok_or(Refusal::Auth)?;
        match mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Choosing(connect) => Ok(Some(self.decide(connect, chosen)?)),
            _ => Ok(None),
        }
    }

    fn decide(
        &mut self,
        mut connect: Connect,
        chosen: Vec<super::AuthMethod>,
    ) -> Result<Event, Refusal> {
        connect.methods = checks(chosen, &self.settings.required)?;
        let (version, membership) = (connect.version, connect.membership);
        self.stage = Stage::Deciding {
            version,
            membership,
        };
        Ok(Event::Connect(connect))
    }

    fn pull_request(
        &mut self,
        input: &mut &[u8],
        own: &Name,
    ) -> Result<Option<Event>, SessionError> {
        loop {
            let length = request::length(&self.inbox, own)?;
            if self.inbox.len() >= length {
                break;
            }
            if !self.fill(input, length) {
                return Ok(None);
            }
        }
        let request = request::read(&mem::take(&mut self.inbox).into(), own)?;
        if request == Request::Disconnect {
            self.stage = Stage::Ended;
        }
        Ok(Some(Event::Request(request)))
    }

    /// Collects bytes until there are `length`. Room grows with what arrives: at most to twice that,
    /// and never beyond `length`.
    fn fill(&mut self, input: &mut &[u8], length: usize) -> bool {
        let have = self.inbox.len();
        let missing = length.saturating_sub(have);
        let (taken, rest) = input.split_at(missing.min(input.len()));
        if self.inbox.capacity() < have + taken.len() {
            let room = length.min(2 * have).max(have + taken.len());
            self.inbox.reserve_exact(room - have);
        }
        self.inbox.extend_from_slice(taken);
        *input = rest;
        taken.len() == missing
    }

    fn fail(&mut self, error: SessionError) {
        if let SessionError::Refused(refusal) = error {
            self.push_refusal(refusal);
        }
        self.inbox = Vec::new();
        self.stage = Stage::Ended;
    }

    /// Takes the client in under this name: the one it asked for, or one invented for it. Gives its
    /// private group.
    pub fn accept(&mut self, name: PrivateName) -> Result<Name, WrongStage> {
        let Stage::Deciding {
            version,
            membership,
        } = self.stage
        else {
            return Err(WrongStage);
        };
        let own = Name::private(name, &self.settings.daemon);
        let told = self.settings.version;
        let mut reply = vec![1, told.major, told.minor];
        if version.is_told_patch() {
            reply.push(told.patch);
        }
        let text = own.as_bytes();
        // A name has 31 bytes at most.
        reply.push(text.len() as u8);
        reply.extend_from_slice(text);
        self.push(reply.into());
        self.stage = Stage::Open { own, membership };
        Ok(own)
    }

    /// Turns the client away. Possible until it is accepted, also before its first byte.
    pub fn refuse(&mut self, refusal: Refusal) -> Result<(), WrongStage> {
        if matches!(self.stage, Stage::Open { .. } | Stage::Ended) {
            return Err(WrongStage);
        }
        self.fail(refusal.into());
        Ok(())
    }

    fn push_refusal(&mut self, refusal: Refusal) {
        self.push(vec![refusal.code().cast_unsigned()].into());
    }

    /// Tells the client something. False if it did not ask for membership and this is one.
    pub fn send(&mut self, outgoing: &Outgoing) -> Result<bool, EncodeError> {
        self.send_common(outgoing, &mut Common::default())
    }

    /// The same, as one of many who are told it.
    pub fn send_common(
        &mut self,
        outgoing: &Outgoing,
        common: &mut Common,
    ) -> Result<bool, EncodeError> {
        let Stage::Open { own, membership } = self.stage else {
            return Err(EncodeError::Stage(WrongStage));
        };
        if outgoing.is_membership() && !membership {
            return Ok(false);
        }
        for chunk in outgoing.encode_for(self.settings.order, &own, common)? {
            self.push(chunk);
        }
        Ok(true)
    }

    fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.backlog += chunk.len();
            self.outbox.push_back(chunk);
        }
    }

    /// The bytes to write to the socket, in order. Data of messages is shared, not copied.
    pub fn chunks(&self) -> impl Iterator<Item = &Bytes> {
        self.outbox.iter()
    }

    /// Notes that the socket has taken this many bytes.
    pub fn sent(&mut self, mut bytes: usize) {
        debug_assert!(bytes <= self.backlog, "more was sent than there was");
        while bytes > 0 {
            let Some(chunk) = self.outbox.front_mut() else {
                return;
            };
            let taken = bytes.min(chunk.len());
            chunk.advance(taken);
            self.backlog -= taken;
            bytes -= taken;
            if self.outbox.front().is_some_and(Bytes::is_empty) {
                self.outbox.pop_front();
            }
        }
    }

    /// The bytes that wait for the socket.
    pub const fn backlog(&self) -> usize {
        self.backlog
    }

    /// The bytes of memory that hold an incomplete event.
    pub const fn buffered(&self) -> usize {
        self.inbox.capacity()
    }

    /// The client is accepted, and has not gone. The owner of the sockets drops a session that is not accepted in time.
    pub const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open { .. })
    }

    /// Nothing more is read. Bytes that wait, a refusal's code for instance, are still sent.
    pub const fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    /// The client's private group, while it is open.
    pub const fn name(&self) -> Option<&Name> {
        match &self.stage {
            Stage::Open { own, .. } => Some(own),
            _ => None,
        }
    }
}
