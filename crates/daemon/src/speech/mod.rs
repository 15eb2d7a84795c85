//! One client's protocol: bytes to requests, events to bytes. Which protocol it is, nobody else has to know.

mod spread;

use std::io::IoSlice;

use rota_core::groups::{ClientName, Directory, Event, GroupName, Member, RequestError, Send};

pub(crate) use spread::SpreadSpeech;

/// What a client asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// To be let in, under this name or one that the daemon invents.
    Connect(Option<ClientName>),
    Join(GroupName),
    Leave(GroupName),
    Send(Send),
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
}

/// A client's protocol and how far it has come.
#[derive(Debug)]
pub(crate) enum Speech {
    Spread(SpreadSpeech),
}

impl Speech {
    /// Takes bytes off the front of `input` up to the end of the next request. An error is a line for the
    /// log: nothing that this client sends can be understood any more.
    pub fn pull(
        &mut self,
        input: &mut &[u8],
        directory: &Directory,
    ) -> Result<Option<Ask>, String> {
        match self {
            Self::Spread(speech) => speech.pull(input, directory),
        }
    }

    /// The client is let in as this.
    pub fn accept(&mut self, member: Member) {
        match self {
            Self::Spread(speech) => speech.accept(member),
        }
    }

    /// The client is not let in, and told why.
    pub fn refuse(&mut self, refusal: Refusal) {
        match self {
            Self::Spread(speech) => speech.refuse(refusal),
        }
    }

    /// A request is not done, now or ever.
    pub fn failed(&mut self, ask: &Ask, error: RequestError) {
        match self {
            Self::Spread(speech) => speech.failed(ask, error),
        }
    }

    /// Tells the client what has happened.
    pub fn tell(&mut self, event: &Event, directory: &Directory) {
        match self {
            Self::Spread(speech) => speech.tell(event, directory),
        }
    }

    /// Bytes for the socket, as many pieces of them as there is room for.
    pub fn chunks<'a>(&'a self, into: &mut Vec<IoSlice<'a>>, most: usize) {
        match self {
            Self::Spread(speech) => speech.chunks(into, most),
        }
    }

    /// The socket has taken so many bytes.
    pub fn sent(&mut self, bytes: usize) {
        match self {
            Self::Spread(speech) => speech.sent(bytes),
        }
    }

    /// Bytes that wait for the socket.
    pub const fn backlog(&self) -> usize {
        match self {
            Self::Spread(speech) => speech.backlog(),
        }
    }

    /// The client was let in and has not gone.
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Spread(speech) => speech.is_open(),
        }
    }

    /// Nothing more is read of it.
    pub const fn is_ended(&self) -> bool {
        match self {
            Self::Spread(speech) => speech.is_ended(),
        }
    }
}
