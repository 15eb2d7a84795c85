//! Events in the layout that C reads.

use std::ffi::{c_char, c_void};
use std::fmt::Display;
use std::io::Write;
use std::ptr::null;

use bytes::Bytes;
use rota_client::{Event as Told, Service as Asked};

/// What an event is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventType {
    /// A message, once, however many of its destinations the client matches: `message`.
    Message = 1,
    /// A new view of a group that the client is in, with membership only, as the next two: `group`,
    /// `view_id`, `view`.
    View = 2,
    /// Until the next view of the group, delivery is only with respect to those who stay with this client's
    /// daemon: `group`, and `view_id` of the view that ends.
    Transitional = 3,
    /// The client has left the group, and gets nothing more of it: `group`. Without membership this comes only
    /// if it has not asked to: the daemon's rules do not let it be there any more.
    SelfLeave = 4,
    /// A warning: the client takes its events more slowly than they come: `waiting`, `limit`.
    Lagging = 5,
    /// A message of this client, sent before, went to nobody: `group`, `kind`, `reason`.
    NotSent = 6,
    /// The client has missed something, because it took its events too slowly: `skipped`. For everybody else
    /// it has disconnected and joined its groups again, here in the order; with membership the views of that
    /// follow.
    Skipped = 7,
    /// The client's daemon is in no view of the daemons: until the next event there are no messages and no views,
    /// and what the client sends waits. Only where the daemons order in primary views alone.
    Excluded = 8,
    /// The daemon is in a view again: `missed`. With membership a view of each group follows if it is true.
    Included = 9,
}

/// Why there is a new view.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A client joined.
    Join = 1,
    /// A client left.
    Leave = 2,
    /// A client is not connected any more.
    Disconnect = 3,
    /// Daemons have come or gone.
    Network = 4,
}

/// A message.
#[repr(C)]
pub struct Message {
    /// The private name of who sent it; not necessarily a member of anything.
    pub sender: *const c_char,
    /// All the destinations that it was sent to.
    pub to: *const *const c_char,
    /// How many.
    pub to_count: usize,
    /// The application's bytes. Not NULL, also if there are none.
    pub payload: *const c_void,
    /// How many.
    pub bytes: usize,
    /// The guarantee it was sent with: one of rota_service.
    pub service: u32,
    /// The application's number for this kind of message.
    pub kind: u16,
    /// Its sender did not want it back.
    pub self_discard: bool,
}

/// Who is in a group from here on.
#[repr(C)]
pub struct View {
    /// Private names, in an order that is the same for all members.
    pub members: *const *const c_char,
    /// How many.
    pub member_count: usize,
    /// Where in `members` the receiver is.
    pub own: usize,
    /// Why there is a new view.
    pub cause: Cause,
    /// The private name of who joined, left or disconnected; NULL if the cause is the network.
    pub changed: *const c_char,
    /// If the cause is the network: for each member the number of its set. Members of one set had the same
    /// view before this one, and have got the same messages in it. Otherwise NULL.
    pub sets: *const u32,
    /// How many sets there are.
    pub set_count: usize,
}

/// What a client has missed.
#[repr(C)]
pub struct Skipped {
    /// So many messages.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Those of the client's groups that they went to, ascending.
    pub groups: *const *const c_char,
    /// How many.
    pub group_count: usize,
}

/// What a client is told. What does not belong to the type is NULL or 0.
#[repr(C)]
pub struct Event {
    /// What it is.
    pub event_type: EventType,
    /// Of a message.
    pub message: *const Message,
    /// Of a view.
    pub view: *const View,
    /// Of a view, a transitional signal, a self-leave. Of a message that was not sent, the first of its
    /// destinations that it may not go to.
    pub group: *const c_char,
    /// Of a view or a transitional signal: equal texts are equal views.
    pub view_id: *const c_char,
    /// Bytes that waited for the client at the daemon.
    pub waiting: u64,
    /// At so many the daemon does what rota_when_slow says.
    pub limit: u64,
    /// Why a message was not sent, for people.
    pub reason: *const c_char,
    /// The application's number for the kind of message that was not sent.
    pub kind: u16,
    /// What was missed.
    pub skipped: *const Skipped,
    /// What was delivered while the daemon was excluded is missing; otherwise everything goes on where it stopped.
    pub missed: bool,
}

/// Texts that end with a zero, one behind the other, and where each begins. Their memory is used again.
#[derive(Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    begins: Vec<usize>,
    pointers: Vec<*const c_char>,
}

impl Texts {
    /// These texts instead of those before.
    pub fn fill<T: Display>(&mut self, texts: impl IntoIterator<Item = T>) {
        self.clear();
        texts.into_iter().for_each(|text| self.push(text));
        self.settle();
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.begins.clear();
        self.pointers.clear();
    }

    fn push(&mut self, text: impl Display) {
        self.begins.push(self.bytes.len());
        // Memory takes all.
        let _ = write!(self.bytes, "{text}\0");
    }

    /// No text is added any more, so none moves.
    fn settle(&mut self) {
        let bytes = &self.bytes;
        let pointers = self.begins.iter().map(|begin| bytes[*begin..].as_ptr());
        self.pointers.extend(pointers.map(<*const u8>::cast));
    }

    /// Where the texts are, until the next are filled in.
    pub fn pointers(&self) -> &[*const c_char] {
        &self.pointers
    }
}

/// An event, and all that it points to. It stays where it is while somebody reads it.
pub(crate) struct Held {
    event: Event,
    message: Message,
    view: View,
    skipped: Skipped,
    texts: Texts,
    sets: Vec<u32>,
    payload: Bytes,
}

// SAFETY: it points to its own data on the heap, which does not move with it but for the two parts of an event;
// [`crate::handle::Inside`] keeps it in a box. One thread at a time writes it, behind a lock.
unsafe impl Send for Held {}

impl Default for Held {
    fn default() -> Self {
        Self {
            event: nothing(EventType::Lagging),
            message: no_message(),
            view: no_view(Cause::Network),
            skipped: nothing_skipped(),
            texts: Texts::default(),
            sets: Vec::new(),
            payload: Bytes::new(),
        }
    }
}

const fn nothing(event_type: EventType) -> Event {
    Event {
        event_type,
        message: null(),
        view: null(),
        group: null(),
        view_id: null(),
        waiting: 0,
        limit: 0,
        reason: null(),
        kind: 0,
        skipped: null(),
        missed: false,
    }
}

const fn nothing_skipped() -> Skipped {
    Skipped {
        messages: 0,
        bytes: 0,
        groups: null(),
        group_count: 0,
    }
}

const fn no_message() -> Message {
    Message {
        sender: null(),
        to: null(),
        to_count: 0,
        payload: null(),
        bytes: 0,
        service: 0,
        kind: 0,
        self_discard: false,
    }
}

const fn no_view(cause: Cause) -> View {
    View {
        members: null(),
        member_count: 0,
        own: 0,
        cause,
        changed: null(),
        sets: null(),
        set_count: 0,
    }
}

impl Held {
    /// This event instead of the one before.
    pub fn fill(&mut self, told: Told) -> *const Event {
        self.texts.clear();
        self.payload = Bytes::new();
        match told {
            Told::Message(message) => self.fill_message(message),
            Told::View(view) => self.fill_view(&view),
            Told::Transitional { group, view } => {
                self.texts.push(group);
                self.texts.push(view);
                self.fill_group(EventType::Transitional);
            }
            Told::SelfLeave { group } => {
                self.texts.push(group);
                self.fill_group(EventType::SelfLeave);
            }
            Told::Lagging { waiting, limit } => {
                self.event = nothing(EventType::Lagging);
                (self.event.waiting, self.event.limit) = (waiting, limit);
            }
            Told::NotSent { kind, to, text, .. } => {
                self.texts.push(to);
                self.texts.push(text);
                self.texts.settle();
                let texts = self.texts.pointers();
                self.event = nothing(EventType::NotSent);
                (self.event.group, self.event.reason) = (texts[0], texts[1]);
                self.event.kind = kind;
            }
            Told::Skipped {
                messages,
                bytes,
                groups,
            } => {
                self.texts.fill(&groups);
                self.skipped = Skipped {
                    messages,
                    bytes,
                    groups: self.texts.pointers().as_ptr(),
                    group_count: groups.len(),
                };
                self.event = nothing(EventType::Skipped);
                self.event.skipped = &raw const self.skipped;
            }
            Told::Excluded => self.event = nothing(EventType::Excluded),
            Told::Included { missed } => {
                self.event = nothing(EventType::Included);
                self.event.missed = missed;
            }
            // Of another kind of client only.
            _ => self.event = nothing(EventType::Lagging),
        }
        &raw const self.event
    }

    /// The texts begin with the group, and with the id of the view if the type has one.
    fn fill_group(&mut self, event_type: EventType) {
        self.texts.settle();
        let texts = self.texts.pointers();
        self.event = nothing(event_type);
        self.event.group = texts[0];
        if event_type != EventType::SelfLeave {
            self.event.view_id = texts[1];
        }
    }

    fn fill_message(&mut self, message: rota_client::Message) {
        self.texts.push(message.sender);
        message.to.iter().for_each(|to| self.texts.push(to));
        self.texts.settle();
        self.payload = message.payload;
        let texts = self.texts.pointers();
        self.message = Message {
            sender: texts[0],
            to: texts[1..].as_ptr(),
            to_count: texts.len() - 1,
            payload: self.payload.as_ptr().cast(),
            bytes: self.payload.len(),
            service: service_number(message.service),
            kind: message.kind,
            self_discard: message.self_discard,
        };
        self.event = nothing(EventType::Message);
        self.event.message = &raw const self.message;
    }

    fn fill_view(&mut self, view: &rota_client::View) {
        use rota_client::Cause as Why;
        self.texts.push(view.group);
        self.texts.push(view.id);
        view.members.iter().for_each(|name| self.texts.push(name));
        let (cause, changed) = match &view.cause {
            Why::Join(name) => (Cause::Join, Some(name)),
            Why::Leave(name) => (Cause::Leave, Some(name)),
            Why::Disconnect(name) => (Cause::Disconnect, Some(name)),
            Why::Network(_) => (Cause::Network, None),
        };
        changed.into_iter().for_each(|name| self.texts.push(name));
        self.fill_group(EventType::View);
        self.view = no_view(cause);
        let count = view.members.len();
        let texts = &self.texts.pointers()[2..];
        self.view.members = texts.as_ptr();
        self.view.member_count = count;
        self.view.own = view.own as usize;
        self.view.changed = texts.get(count).copied().unwrap_or(null());
        if let Why::Network(sets) = &view.cause {
            self.fill_sets(sets, count);
        }
        self.event.view = &raw const self.view;
    }

    fn fill_sets(&mut self, sets: &[Vec<u32>], members: usize) {
        self.sets.clear();
        self.sets.resize(members, 0);
        for (number, set) in (0..).zip(sets) {
            // A view has each member in one set.
            for member in set {
                self.sets[*member as usize] = number;
            }
        }
        self.view.sets = self.sets.as_ptr();
        self.view.set_count = sets.len();
    }
}

const fn service_number(service: Asked) -> u32 {
    use crate::send::Service;
    (match service {
        Asked::Reliable => Service::Reliable,
        Asked::Fifo => Service::Fifo,
        Asked::Causal => Service::Causal,
        Asked::Agreed => Service::Agreed,
        Asked::Safe => Service::Safe,
    }) as u32
}
