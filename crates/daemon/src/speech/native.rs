//! A client that speaks Rota's own protocol.

mod encode;
mod heads;
mod told;

use std::io::IoSlice;

use rota_client::protocol::{
    self, Code, Credit, Hello, Inbox, MAX_HELLO_BYTES, MAX_REPLY_BYTES_1, Reply, Request,
    SlowPolicy, Welcome, largest_message_frame, request_limit,
};
use rota_core::groups::{self, GroupName, Member, RequestError};

use super::answers::{Answers, Wish};
use super::missed::Missed;
use super::outbox::Outbox;
use super::{Ask, Listed, Refusal};
use crate::names::Names;
pub(super) use encode::{Encoded, encode};

/// The limits of what a client may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Bytes that it may send before the daemon has handed some of them on.
    pub credit: u32,
    /// The most bytes of an application in one message.
    pub largest_payload: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Greeting,
    Deciding(Hello),
    Open {
        membership: bool,
        me: Member,
        /// The client speaks a version that has words for daemons that are in no view.
        knows_exclusion: bool,
        can_skip: bool,
        can_throttle: bool,
    },
    Ended,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct NativeSpeech {
    terms: Terms,
    stage: Stage,
    inbox: Inbox<Request>,
    outbox: Outbox,
    credit: Credit,
    /// The message that is being looked at, in bytes of its frame.
    spent: usize,
    /// To be given back with the next frame of credit.
    owed: u64,
    answers: Answers,
    /// The messages missed so far, while the client is made to skip.
    missed: Option<Box<Missed>>,
}

impl NativeSpeech {
    pub fn new(terms: Terms) -> Self {
        Self {
            terms,
            stage: Stage::Greeting,
            inbox: Inbox::new(MAX_HELLO_BYTES),
            outbox: Outbox::default(),
            credit: Credit::new(terms.credit),
            spent: 0,
            owed: 0,
            answers: Answers::default(),
            missed: None,
        }
    }

    pub fn pull(&mut self, input: &mut &[u8], names: &Names) -> Result<Option<Ask>, String> {
        if self.is_ended() {
            *input = &[];
            return Ok(None);
        }
        self.inbox.feed(std::mem::take(input));
        loop {
            let request = self.inbox.pull().map_err(|error| {
                let text = error.to_string();
                self.give_up(error.code(), text)
            })?;
            let Some(request) = request else {
                return Ok(None);
            };
            if let Some(ask) = self.look_at(request, names)? {
                return Ok(Some(ask));
            }
        }
    }

    /// `None` if there is nothing to be done for it.
    fn look_at(&mut self, request: Request, names: &Names) -> Result<Option<Ask>, String> {
        let is_hello = matches!(request, Request::Hello(_));
        if is_hello != (self.stage == Stage::Greeting) {
            let text = "a hello comes first, and only then";
            return Err(self.give_up(Code::ProtocolError, text.to_owned()));
        }
        match request {
            Request::Hello(hello) => self.greeted(hello).map(Some),
            Request::Join { request, group } => self.wish(group, Wish::Join, request),
            Request::Leave { request, group } => self.wish(group, Wish::Leave, request),
            Request::List { request, group } => Ok(Some(Ask::List(request, group))),
            Request::Send(send) => self.on_send(send, names),
            Request::Bye => {
                self.stage = Stage::Ended;
                Ok(Some(Ask::Bye))
            }
        }
    }

    fn greeted(&mut self, hello: Hello) -> Result<Ask, String> {
        let version = hello.agreed_version();
        if version.is_none_or(|version| !self.fits(version)) {
            let text = format!("this daemon speaks version {}", protocol::VERSION);
            let code = Code::Version;
            self.push(&Reply::Refused { code, text });
            self.stage = Stage::Ended;
            return Err("its versions of the protocol are others".to_owned());
        }
        self.stage = Stage::Deciding(hello);
        Ok(Ask::Connect(hello.name))
    }

    /// Whether the largest message can be told a client of this version.
    const fn fits(&self, version: u16) -> bool {
        let largest = largest_message_frame(self.terms.largest_payload as usize);
        version >= 2 || largest <= MAX_REPLY_BYTES_1
    }

    fn wish(&mut self, group: GroupName, wish: Wish, request: u32) -> Result<Option<Ask>, String> {
        if self.answers.ask(group, wish, request) {
            self.push(&Reply::Done { request });
            return Ok(None);
        }
        if self.answers.are_too_many() {
            let text = "too many joins and leaves wait for an answer";
            return Err(self.give_up(Code::Quota, text.to_owned()));
        }
        Ok(Some(match wish {
            Wish::Join => Ask::Join(group, request),
            Wish::Leave => Ask::Leave(group, request),
        }))
    }

    fn on_send(&mut self, send: protocol::Send, names: &Names) -> Result<Option<Ask>, String> {
        let bytes = send.frame_bytes();
        if self.credit.spend(bytes).is_err() {
            let text = "more was sent than the credit".to_owned();
            return Err(self.give_up(Code::CreditExceeded, text));
        }
        self.spent = bytes;
        let to = send.to.iter().filter_map(|to| names.destination(to));
        let to: Vec<groups::Destination> = to.collect();
        if to.is_empty() {
            self.taken();
            return Ok(None);
        }
        Ok(Some(Ask::Send(groups::Send {
            service: send.service,
            self_discard: send.self_discard,
            kind: send.kind,
            big_endian: false,
            number: None,
            to,
            payload: send.payload,
        })))
    }

    /// The message that was asked for last is on its way: its credit comes back.
    pub fn taken(&mut self) {
        self.owed += self.spent as u64;
        self.credit.give_back(self.spent as u64);
        self.spent = 0;
    }

    /// There is credit to give back.
    pub const fn owes(&self) -> bool {
        self.owed > 0
    }

    /// It is so much that the client may soon wait for it.
    pub const fn owes_much(&self) -> bool {
        self.owed >= self.credit.limit() / 4
    }

    /// Gives it back.
    pub fn give_credit(&mut self) {
        while self.owed > 0 && self.is_open() {
            let bytes = u32::try_from(self.owed).unwrap_or(u32::MAX);
            self.owed -= u64::from(bytes);
            self.push(&Reply::Credit { bytes });
        }
    }

    /// Whether the client can be told things through memory.
    pub const fn wants_memory(&self) -> bool {
        matches!(self.stage, Stage::Deciding(Hello { memory: true, .. }))
    }

    /// The client is let in; `memory` says how much memory comes with the welcome.
    pub fn accept(&mut self, member: Member, names: &mut Names, memory: u32) {
        let Stage::Deciding(hello) = self.stage else {
            return;
        };
        let largest = self.terms.largest_payload as usize;
        self.inbox.set_limit(request_limit(largest));
        // The hello was accepted only if there is one.
        let version = hello.agreed_version().unwrap_or(protocol::VERSION);
        self.stage = Stage::Open {
            membership: hello.membership,
            me: member,
            knows_exclusion: version >= 3,
            can_skip: version >= 2 && hello.when_slow.is_none_or(SlowPolicy::skips),
            can_throttle: hello.when_slow.is_none_or(SlowPolicy::throttles),
        };
        self.push(&Reply::Welcome(Welcome {
            version,
            name: names.member(&member),
            credit: self.terms.credit,
            largest_payload: self.terms.largest_payload,
            memory,
        }));
    }

    pub fn refuse(&mut self, refusal: Refusal) {
        let code = match refusal {
            Refusal::NotUnique => Code::NameInUse,
            Refusal::Quota => Code::TooManyClients,
            Refusal::NotAllowed => Code::NotAllowed,
        };
        let text = code.to_string();
        self.push(&Reply::Refused { code, text });
        self.stage = Stage::Ended;
    }

    pub fn failed(&mut self, ask: &Ask, error: RequestError) {
        self.fail(ask, code_of(error), error.to_string());
    }

    fn fail(&mut self, ask: &Ask, code: Code, text: String) {
        let request = match ask {
            Ask::Join(group, request) | Ask::Leave(group, request) => {
                self.answers.failed(*group);
                *request
            }
            Ask::List(request, _) => *request,
            Ask::Connect(_) | Ask::Send(_) | Ask::Bye => return,
        };
        self.push(&Reply::Failed {
            request,
            code,
            text,
        });
    }

    /// The client has no right to the request. A message without a receiver costs no credit.
    pub fn denied(&mut self, ask: &Ask, to: protocol::Destination) {
        let code = Code::NotAllowed;
        let text = to.to_string();
        let Ask::Send(send) = ask else {
            return self.fail(ask, code, text);
        };
        self.taken();
        self.push(&Reply::NotSent {
            kind: send.kind,
            to,
            code,
            text: code.to_string(),
        });
    }

    /// A message has no number to be told about.
    pub fn not_sent(&mut self, error: RequestError) {
        let _ = self.give_up(code_of(error), error.to_string());
    }

    pub fn listed(&mut self, request: u32, listed: Listed, names: &mut Names) {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        self.push(&match listed {
            Listed::Groups(groups) => {
                let groups = groups.into_iter();
                let groups = groups.map(|(name, members)| (name, number(members)));
                let groups = groups.collect();
                Reply::Groups { request, groups }
            }
            Listed::Members(members) => {
                let members = members.iter().map(|member| names.member(member)).collect();
                Reply::Members { request, members }
            }
        });
    }

    /// The client is told why nothing more is read of it.
    fn give_up(&mut self, code: Code, text: String) -> String {
        let line = text.clone();
        let reply = match self.stage {
            Stage::Open { .. } => Reply::Goodbye { code, text },
            _ => Reply::Refused { code, text },
        };
        self.push(&reply);
        self.stage = Stage::Ended;
        line
    }

    /// The daemon closes.
    pub fn goodbye(&mut self, code: Code) {
        if self.is_open() {
            let _ = self.give_up(code, code.to_string());
        }
    }

    fn push(&mut self, reply: &Reply) {
        if let Err(error) = self.outbox.append(|bytes| reply.encode(bytes)) {
            tracing::warn!(%error, "a client cannot be told something");
        }
    }

    pub fn chunks<'a>(&'a self, into: &mut Vec<IoSlice<'a>>, most: usize) {
        self.outbox.pieces(into, most);
    }

    pub fn sent(&mut self, bytes: usize) {
        self.outbox.sent(bytes);
    }

    pub fn wait(&mut self) {
        self.outbox.wait();
    }

    #[cfg(test)]
    pub fn kept_alone(&self) -> usize {
        self.outbox.kept_alone()
    }

    pub fn buffered(&self) -> usize {
        self.inbox.buffered()
    }

    pub const fn backlog(&self) -> usize {
        self.outbox.len()
    }

    pub const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open { .. })
    }

    pub const fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }
}

const fn code_of(error: RequestError) -> Code {
    match error {
        RequestError::TooLarge { .. } => Code::TooLarge,
        RequestError::TooMany => Code::Quota,
        _ => Code::Unavailable,
    }
}
