//! The newest event of a handle, laid out for C.

use std::ffi::c_char;
use std::fmt::Display;
use std::io::Write;
use std::ptr::null;

use bytes::Bytes;
use rota_client::{ConnectionLost, Event as Told, Service as Asked};

use crate::event::{Cause, Event, EventType, Gap, Message, Skipped, View};

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
    gap: Gap,
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
            gap: no_gap(),
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
        gap: null(),
    }
}

const fn no_gap() -> Gap {
    Gap {
        lost: null(),
        code: 0,
        duration_ms: 0,
        unsettled_bytes: 0,
        name: null(),
        not_joined: null(),
        not_joined_count: 0,
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
            Told::Reconnected(gap) => self.fill_gap(&gap),
            // A later one, which this version cannot name.
            _ => self.event = nothing(EventType::Lagging),
        }
        &raw const self.event
    }

    fn fill_gap(&mut self, gap: &rota_client::Gap) {
        // A daemon's text may have a zero.
        self.texts.push(gap.lost.to_string().replace('\0', " "));
        self.texts.push(gap.name);
        gap.not_joined
            .iter()
            .for_each(|(group, _)| self.texts.push(group));
        self.texts.settle();
        let texts = self.texts.pointers();
        self.gap = Gap {
            lost: texts[0],
            code: match &gap.lost {
                ConnectionLost::Goodbye { code, .. } => code.number(),
                _ => 0,
            },
            duration_ms: gap.duration.as_millis().try_into().unwrap_or(u64::MAX),
            unsettled_bytes: gap.unsettled_bytes,
            name: texts[1],
            not_joined: texts[2..].as_ptr(),
            not_joined_count: gap.not_joined.len(),
        };
        self.event = nothing(EventType::Reconnected);
        self.event.gap = &raw const self.gap;
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
