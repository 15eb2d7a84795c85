//! A client that speaks Spread's protocol.

use std::io::IoSlice;
use std::sync::Arc;

use bytes::Bytes;
use rota_core::contract;
use rota_core::groups::{self, ClientName, Member, RequestError, ViewId};

use super::{Ask, Refusal};
use crate::names::Names;
use crate::spread::{
    self, ByteOrder, Cause, Common, GroupId, Hint, Message, Multicast, Name, Outgoing, PrivateName,
    Rejected, Rejection, Request, Session, Settings, View,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct SpreadSpeech {
    session: Session,
}

impl SpreadSpeech {
    pub const fn new(settings: Arc<Settings>) -> Self {
        Self {
            session: Session::new(settings),
        }
    }

    pub fn pull(&mut self, input: &mut &[u8], names: &Names) -> Result<Option<Ask>, String> {
        loop {
            let event = self
                .session
                .pull(input)
                .map_err(|error| error.to_string())?;
            let Some(event) = event else { return Ok(None) };
            if let Some(ask) = ask(event, names) {
                return Ok(Some(ask));
            }
        }
    }

    pub fn accept(&mut self, member: Member) {
        // Both kinds of names have the same rule.
        if let Ok(name) = PrivateName::new(member.name.as_bytes()) {
            let accepted = self.session.accept(name);
            debug_assert!(accepted.is_ok(), "only who asks is let in");
        }
    }

    pub fn refuse(&mut self, refusal: Refusal) {
        let refused = self.session.refuse(match refusal {
            Refusal::NotUnique => spread::Refusal::NotUnique,
            Refusal::Quota => spread::Refusal::Quota,
            Refusal::NotAllowed => spread::Refusal::Auth,
        });
        debug_assert!(refused.is_ok(), "only who asks is refused");
    }

    /// The request goes back to the client, as Spread does where a group takes no more members.
    pub fn failed(&mut self, ask: &Ask, _error: RequestError) {
        self.reject(ask);
    }

    /// The same for a request without the right to it: a message comes back as it was sent.
    pub fn denied(&mut self, ask: Ask, names: &mut Names) {
        let Ask::Send(send) = ask else {
            return self.reject(&ask);
        };
        self.send(&Outgoing::Rejected(Rejection {
            what: Rejected::Message {
                service: service_to(send.service),
                self_discard: send.self_discard,
            },
            groups: send.to.iter().filter_map(|to| told(to, names)).collect(),
            hint: Hint::new(order(send.big_endian), send.kind),
            data: send.payload,
        }));
    }

    fn reject(&mut self, ask: &Ask) {
        let (what, group) = match ask {
            Ask::Join(group, _) => (Rejected::Join, group),
            Ask::Leave(group, _) => (Rejected::Leave, group),
            Ask::Connect(_) | Ask::Send(_) | Ask::List(..) | Ask::Bye => return,
        };
        let Ok(group) = Name::new(group.as_bytes()) else {
            return;
        };
        self.send(&Outgoing::Rejected(Rejection {
            what,
            groups: vec![group],
            hint: Hint::new(ByteOrder::Little, 0),
            data: Bytes::new(),
        }));
    }

    pub fn tell(&mut self, outgoing: Option<&Outgoing>, common: &mut Common) {
        if let Some(outgoing) = outgoing {
            self.send_common(outgoing, common);
        }
    }

    fn send(&mut self, outgoing: &Outgoing) {
        self.send_common(outgoing, &mut Common::default());
    }

    fn send_common(&mut self, outgoing: &Outgoing, common: &mut Common) {
        if let Err(error) = self.session.send_common(outgoing, common) {
            tracing::warn!(%error, "a client of Spread's cannot be told something");
        }
    }

    pub fn chunks<'a>(&'a self, into: &mut Vec<IoSlice<'a>>, most: usize) {
        let chunks = self.session.chunks().take(most);
        into.extend(chunks.map(|chunk| IoSlice::new(chunk)));
    }

    pub fn sent(&mut self, bytes: usize) {
        self.session.sent(bytes);
    }

    pub const fn buffered(&self) -> usize {
        self.session.buffered()
    }

    pub const fn backlog(&self) -> usize {
        self.session.backlog()
    }

    pub const fn is_open(&self) -> bool {
        self.session.is_open()
    }

    pub const fn is_ended(&self) -> bool {
        self.session.is_ended()
    }
}

/// `None` if it asks for nothing that there could be.
fn ask(event: spread::Event, names: &Names) -> Option<Ask> {
    let group = |name: spread::GroupName| groups::GroupName::from_bytes(name.name().as_bytes());
    match event {
        spread::Event::Connect(connect) => {
            let name = connect
                .name
                .map(|name| ClientName::from_bytes(name.as_bytes()));
            Some(Ask::Connect(name.and_then(Result::ok)))
        }
        spread::Event::Request(Request::Join(name)) => {
            group(name).ok().map(|group| Ask::Join(group, 0))
        }
        spread::Event::Request(Request::Leave(name)) => {
            group(name).ok().map(|group| Ask::Leave(group, 0))
        }
        spread::Event::Request(Request::Disconnect) => Some(Ask::Bye),
        spread::Event::Request(Request::Multicast(multicast)) => send(multicast, names),
    }
}

/// A message goes to those of its destinations that there can be; names that nobody can have are left out.
fn send(multicast: Multicast, names: &Names) -> Option<Ask> {
    let destination = |name: &Name| {
        let text = str::from_utf8(name.as_bytes()).ok()?;
        names.directory().destination(text).ok()
    };
    let to: Vec<_> = multicast.groups.iter().filter_map(destination).collect();
    if to.is_empty() {
        return None;
    }
    Some(Ask::Send(groups::Send {
        service: service_of(multicast.service),
        self_discard: multicast.self_discard,
        kind: multicast.hint.mess_type(),
        big_endian: multicast.hint.order() == ByteOrder::Big,
        number: None,
        to,
        payload: multicast.data,
    }))
}

const fn service_of(service: spread::Service) -> contract::Service {
    match service {
        // As in Spread: messages of the unreliable service do not get lost, either.
        spread::Service::Unreliable | spread::Service::Reliable => contract::Service::Reliable,
        spread::Service::Fifo => contract::Service::Fifo,
        spread::Service::Causal => contract::Service::Causal,
        spread::Service::Agreed => contract::Service::Agreed,
        spread::Service::Safe => contract::Service::Safe,
    }
}

const fn service_to(service: contract::Service) -> spread::Service {
    match service {
        contract::Service::Reliable => spread::Service::Reliable,
        contract::Service::Fifo => spread::Service::Fifo,
        contract::Service::Causal => spread::Service::Causal,
        contract::Service::Agreed => spread::Service::Agreed,
        contract::Service::Safe => spread::Service::Safe,
    }
}

/// The event for Spread's clients; `None` for names that do not fit, which no configuration has.
pub(super) fn outgoing(event: &groups::Event, names: &mut Names) -> Option<Outgoing> {
    match event {
        groups::Event::Message(message) => received(message, names).map(Outgoing::Message),
        groups::Event::View(view) => view_of(view, names).map(Outgoing::View),
        groups::Event::Transitional { group, view } => Some(Outgoing::Transition {
            group: group_name(group)?,
            old: group_id(*view),
        }),
        groups::Event::SelfLeave { group } => group_name(group).map(Outgoing::SelfLeave),
        // Spread has no word for an exclusion: its clients see the views that come when it is over.
        groups::Event::Excluded | groups::Event::Included { .. } => None,
    }
}

fn received(message: &groups::Received, names: &mut Names) -> Option<Message> {
    let sender = private(&message.sender, names)?;
    Some(Message {
        sender,
        service: service_to(message.service),
        self_discard: message.self_discard,
        groups: message.to.iter().filter_map(|to| told(to, names)).collect(),
        hint: Hint::new(order(message.big_endian), message.kind),
        // The payload points into a receive buffer of the ring, which must not wait for a slow client.
        data: Bytes::copy_from_slice(&message.payload),
    })
}

const fn order(big_endian: bool) -> ByteOrder {
    if big_endian {
        ByteOrder::Big
    } else {
        ByteOrder::Little
    }
}

fn told(to: &groups::Destination, names: &mut Names) -> Option<Name> {
    Name::new(names.told(to).to_string().as_bytes()).ok()
}

fn private(member: &Member, names: &mut Names) -> Option<Name> {
    Name::new(names.member(member).to_string().as_bytes()).ok()
}

fn group_name(group: &groups::GroupName) -> Option<spread::GroupName> {
    spread::GroupName::new(group.as_bytes()).ok()
}

fn view_of(view: &groups::View, names: &mut Names) -> Option<View> {
    let cause = match &view.cause {
        groups::Cause::Join(member) => Cause::Join(private(member, names)?),
        groups::Cause::Leave(member) => Cause::Leave(private(member, names)?),
        groups::Cause::Disconnect(member) => Cause::Disconnect(private(member, names)?),
        groups::Cause::Network => {
            let sets = view.vs_sets.iter().map(|set| all(set, names));
            Cause::Network(sets.collect::<Option<_>>()?)
        }
    };
    Some(View {
        group: group_name(&view.group)?,
        id: group_id(view.id),
        members: all(&view.members, names)?,
        cause,
    })
}

fn all(members: &[Member], names: &mut Names) -> Option<Vec<Name>> {
    members
        .iter()
        .map(|member| private(member, names))
        .collect()
}

/// The twelve bytes that name a view to Spread's clients: a hash of the configuration, and the index.
fn group_id(id: ViewId) -> GroupId {
    let mut hash = Fnv::new();
    for ring in [Some(id.ring), id.next].into_iter().flatten() {
        hash.add(ring.ring_seq);
        hash.add(u64::from(ring.rep.get()));
        hash.add(ring.incarnation.0);
    }
    GroupId {
        leader: (hash.0 >> 32) as u32,
        time: hash.0 as u32,
        index: id.index as u32,
    }
}

/// FNV-1a: every daemon has to come to the same number, whatever its version.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
