//! One client's protocol: bytes to requests, events to bytes. The rest of the daemon does not depend on the protocol.

mod admin;
mod answers;
mod missed;
mod native;
mod outbox;
mod spread;

use std::collections::BTreeMap;
use std::io::IoSlice;

use rota_client::protocol::{self, Code, Reply};
use rota_core::groups::{ClientName, Event, GroupName, Member, RequestError, Send};

use crate::door::Port;
use crate::names::Names;
use crate::spread::{self as spread_protocol, Common, Outgoing};

pub(crate) use admin::AdminSpeech;
pub(crate) use native::{NativeSpeech, Terms};
pub(crate) use spread::SpreadSpeech;

/// A request of a client. The numbers are the client's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// To be let in, under this name or one that the daemon invents.
    Connect(Option<ClientName>),
    Join(GroupName, u32),
    Leave(GroupName, u32),
    Send(Send),
    /// All groups, or the members of one.
    List(u32, Option<GroupName>),
    /// To go.
    Bye,
}

/// Why a client is not let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// Another client has its name.
    NotUnique,
    /// There are as many clients as there may be.
    Quota,
    /// Nothing allows it.
    NotAllowed,
}

/// The farewell to a peer whose address or user has as many connections as it may, before anything is read of it.
pub(crate) fn crowded(port: Port) -> Vec<u8> {
    match port {
        Port::Admin => Vec::new(),
        Port::Spread => vec![spread_protocol::Refusal::Quota.code().cast_unsigned()],
        Port::Native => {
            let code = Code::TooManyClients;
            let text = "this address or user has as many connections as it may".to_owned();
            let mut bytes = Vec::new();
            let encoded = Reply::Refused { code, text }.encode(&mut bytes);
            debug_assert!(encoded.is_ok(), "a reason always fits");
            bytes
        }
    }
}

/// The answer to [`Ask::List`].
#[derive(Debug)]
pub(crate) enum Listed {
    /// All groups, each with the number of its members.
    Groups(BTreeMap<GroupName, usize>),
    Members(Vec<Member>),
}

/// An event in the protocols of its receivers.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    /// Kept from event to event.
    native: native::Encoded,
    has_native: bool,
    spread: Option<Option<Outgoing>>,
    spread_common: Common,
}

impl Encoded {
    /// Empties the value for the next event.
    pub fn clear(&mut self) {
        self.has_native = false;
        self.spread = None;
        self.spread_common = Common::default();
    }
}

/// A client's protocol and how far it has come.
#[derive(Debug)]
pub(crate) enum Speech {
    Admin(AdminSpeech),
    Native(Box<NativeSpeech>),
    Spread(Box<SpreadSpeech>),
}

/// The same for all protocols.
macro_rules! each {
    ($speech:expr, $it:ident => $does:expr) => {
        match $speech {
            Speech::Admin($it) => $does,
            Speech::Native($it) => $does,
            Speech::Spread($it) => $does,
        }
    };
}

impl Speech {
    /// Takes bytes off the front of `input` up to the end of the next request. An error is a line for the
    /// log: nothing that this client sends can be understood any more.
    pub fn pull(&mut self, input: &mut &[u8], names: &Names) -> Result<Option<Ask>, String> {
        match self {
            Self::Admin(_) => {
                *input = &[];
                Ok(None)
            }
            Self::Native(speech) => speech.pull(input, names),
            Self::Spread(speech) => speech.pull(input, names),
        }
    }

    /// Whether the client can be told things through memory.
    pub const fn wants_memory(&self) -> bool {
        match self {
            Self::Native(speech) => speech.wants_memory(),
            Self::Spread(_) | Self::Admin(_) => false,
        }
    }

    /// The client is let in as this.
    pub fn accept(&mut self, member: Member, names: &mut Names, memory: u32) {
        match self {
            Self::Admin(_) => {}
            Self::Native(speech) => speech.accept(member, names, memory),
            Self::Spread(speech) => speech.accept(member),
        }
    }

    /// The client is not let in, and told why.
    pub fn refuse(&mut self, refusal: Refusal) {
        match self {
            Self::Admin(_) => {}
            Self::Native(speech) => speech.refuse(refusal),
            Self::Spread(speech) => speech.refuse(refusal),
        }
    }

    /// The message that was asked for last is on its way.
    pub fn taken(&mut self) {
        match self {
            Self::Native(speech) => speech.taken(),
            Self::Admin(_) | Self::Spread(_) => {}
        }
    }

    /// The client gets credit back for what it has sent.
    pub const fn owes(&self) -> bool {
        match self {
            Self::Native(speech) => speech.owes(),
            Self::Admin(_) | Self::Spread(_) => false,
        }
    }

    /// It is so much that the client may soon wait for it.
    pub const fn owes_much(&self) -> bool {
        match self {
            Self::Native(speech) => speech.owes_much(),
            Self::Admin(_) | Self::Spread(_) => false,
        }
    }

    /// Gives the credit back.
    pub fn give_credit(&mut self) {
        match self {
            Self::Native(speech) => speech.give_credit(),
            Self::Admin(_) | Self::Spread(_) => {}
        }
    }

    /// The message that was asked for last will never be on its way.
    pub fn not_sent(&mut self, error: RequestError) {
        match self {
            Self::Native(speech) => speech.not_sent(error),
            // Their protocol has no word for it, and its limits are checked before.
            Self::Admin(_) | Self::Spread(_) => {}
        }
    }

    /// A request is not done, now or ever.
    pub fn failed(&mut self, ask: &Ask, error: RequestError) {
        match self {
            Self::Admin(_) => {}
            Self::Native(speech) => speech.failed(ask, error),
            Self::Spread(speech) => speech.failed(ask, error),
        }
    }

    /// A request is not done, because this client may not: `to` is what it may not reach.
    pub fn denied(&mut self, ask: Ask, to: protocol::Destination, names: &mut Names) {
        match self {
            Self::Admin(_) => {}
            Self::Native(speech) => speech.denied(&ask, to),
            Self::Spread(speech) => speech.denied(ask, names),
        }
    }

    /// The answer to a question. Spread's clients have no such questions.
    pub fn listed(&mut self, request: u32, listed: Listed, names: &mut Names) {
        match self {
            Self::Native(speech) => speech.listed(request, listed, names),
            Self::Admin(_) | Self::Spread(_) => {}
        }
    }

    /// Tells the client what has happened. `encoded` is the same for all who are told.
    pub fn tell(&mut self, event: &Event, encoded: &mut Encoded, names: &mut Names) {
        match self {
            Self::Admin(_) => {}
            Self::Native(speech) => {
                if !encoded.has_native {
                    native::encode(event, names, &mut encoded.native);
                    encoded.has_native = true;
                }
                speech.tell(event, &encoded.native);
            }
            Self::Spread(speech) => {
                let outgoing = encoded
                    .spread
                    .get_or_insert_with(|| spread::outgoing(event, names));
                speech.tell(outgoing.as_ref(), &mut encoded.spread_common);
            }
        }
    }

    /// The client can be made to skip: its protocol has a word for it, and it has not declined.
    pub const fn can_skip(&self) -> bool {
        match self {
            Self::Native(speech) => speech.can_skip(),
            Self::Admin(_) | Self::Spread(_) => false,
        }
    }

    /// Others may be made to wait for the client: it has not declined.
    pub const fn can_throttle(&self) -> bool {
        match self {
            Self::Native(speech) => speech.can_throttle(),
            Self::Spread(speech) => speech.is_open(),
            Self::Admin(_) => false,
        }
    }

    /// The client is being made to skip.
    pub const fn skips(&self) -> bool {
        match self {
            Self::Native(speech) => speech.skips(),
            Self::Admin(_) | Self::Spread(_) => false,
        }
    }

    /// Drops the waiting messages of the client, which is this member from here on.
    pub fn skip(&mut self, member: Member) {
        if let Self::Native(speech) = self {
            speech.skip(member);
        }
    }

    /// Has the client leave a group. Spread's clients are told as if they had asked for it.
    pub fn expel(&mut self, group: GroupName) {
        if let Self::Native(speech) = self {
            speech.expel(group);
        }
    }

    /// The client is not told of this.
    pub fn miss(&mut self, event: &Event) {
        if let Self::Native(speech) = self {
            speech.miss(event);
        }
    }

    /// The client is told what it has missed.
    pub fn go_on(&mut self) {
        if let Self::Native(speech) = self {
            speech.go_on();
        }
    }

    /// The client is warned that soon too much waits for it, if its protocol has a word for that.
    pub fn lag(&mut self, limit: usize) {
        if let Self::Native(speech) = self {
            speech.lag(limit);
        }
    }

    /// The daemon closes, and says why to those whose protocol has words for it.
    pub fn goodbye(&mut self, code: Code) {
        match self {
            Self::Native(speech) => speech.goodbye(code),
            Self::Admin(_) | Self::Spread(_) => {}
        }
    }

    /// The bytes for the socket, in at most `most` pieces.
    pub fn chunks<'a>(&'a self, into: &mut Vec<IoSlice<'a>>, most: usize) {
        match self {
            Self::Admin(speech) => speech.chunks(into),
            Self::Native(speech) => speech.chunks(into, most),
            Self::Spread(speech) => speech.chunks(into, most),
        }
    }

    /// Notes that the socket has taken this many bytes.
    pub fn sent(&mut self, bytes: usize) {
        each!(self, speech => speech.sent(bytes));
    }

    /// The socket takes no more for now.
    pub fn wait(&mut self) {
        if let Self::Native(speech) = self {
            speech.wait();
        }
    }

    /// Bytes of a request that is not whole yet.
    pub fn buffered(&self) -> usize {
        match self {
            Self::Admin(_) => 0,
            Self::Native(speech) => speech.buffered(),
            Self::Spread(speech) => speech.buffered(),
        }
    }

    /// Bytes that wait for the socket.
    pub const fn backlog(&self) -> usize {
        each!(self, speech => speech.backlog())
    }

    /// Bytes that wait for the socket, but for what others share.
    #[cfg(test)]
    pub fn kept_alone(&self) -> usize {
        match self {
            Self::Native(speech) => speech.kept_alone(),
            Self::Admin(_) | Self::Spread(_) => self.backlog(),
        }
    }

    /// The name of the protocol.
    pub const fn protocol(&self) -> &'static str {
        match self {
            Self::Admin(_) => "admin",
            Self::Native(_) => "native",
            Self::Spread(_) => "spread",
        }
    }

    /// The client was let in and has not gone.
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Admin(_) => false,
            Self::Native(speech) => speech.is_open(),
            Self::Spread(speech) => speech.is_open(),
        }
    }

    /// Nothing more is read of it.
    pub const fn is_ended(&self) -> bool {
        each!(self, speech => speech.is_ended())
    }
}
