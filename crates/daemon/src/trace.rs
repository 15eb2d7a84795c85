//! Writes the requests of clients and the events for them among the lines of the node's trace.
//!
//! A trace must not lie when the process is killed: a client's message is in the file before the ring gets it, and an
//! event for a client before its socket does. So lines are gathered and written before the one and the other.

use rota_core::contract::{MessageId, Process, Service};
use rota_core::groups::{self, Destination, Member};
use rota_net::monotonic;
use rota_node::trace::{self, TraceFile};
use rota_trace::TraceWriter;
use rota_trace::event::{ClientEvent, ClientSaw, Event, EventKind, GroupView, Post};

use crate::names::Names;

/// The trace of this daemon's clients, on its way to the file.
#[derive(Debug)]
pub(crate) struct ClientTrace {
    /// The ring's lines go to the same file, each of them whole.
    file: TraceFile,
    me: Process,
    lines: TraceWriter<Vec<u8>>,
    /// Messages of all clients, which are numbered.
    sent: u64,
}

impl ClientTrace {
    /// Goes on with the file that this process has begun.
    pub fn new(file: TraceFile, me: Process) -> Self {
        Self {
            file,
            me,
            lines: TraceWriter::new(Vec::new()),
            sent: 0,
        }
    }

    /// A client did or saw something.
    pub fn note(&mut self, client: &Member, saw: ClientSaw, names: &mut Names) {
        let client = names.member(client).to_string();
        let written = self.lines.event(&Event {
            time: monotonic(),
            process: self.me,
            kind: EventKind::Client(ClientEvent { client, saw }),
        });
        debug_assert!(written.is_ok(), "memory takes everything");
    }

    /// Numbers a message that a client sends. The result is for [`Self::sent`].
    pub fn number(&self, send: &mut groups::Send, names: &mut Names) -> ClientSaw {
        let number = self.sent + 1;
        send.number = Some(number);
        let post = post(
            self.me,
            number,
            send.service,
            &send.to,
            &send.payload,
            names,
        );
        let discard = send.self_discard;
        ClientSaw::Send { post, discard }
    }

    /// A message that was numbered has been taken.
    pub fn sent(&mut self, client: &Member, saw: ClientSaw, names: &mut Names) {
        self.sent += 1;
        self.note(client, saw, names);
    }

    /// Hands all gathered lines to the kernel.
    pub fn flush(&mut self) {
        let lines = self.lines.out();
        self.file.write(lines);
        lines.clear();
    }
}

/// The event as a client sees it; `None` for a message of a daemon that keeps no count.
pub(crate) fn saw(event: &groups::Event, names: &mut Names) -> Option<ClientSaw> {
    let mut name = |client, node| names.client(client, node).to_string();
    Some(match event {
        groups::Event::Message(message) => ClientSaw::Deliver(post(
            message.sender.daemon,
            message.number?,
            message.service,
            &message.to,
            &message.payload,
            names,
        )),
        groups::Event::View(view) => ClientSaw::View(GroupView::new(view, &mut name)),
        groups::Event::Transitional { group, view } => ClientSaw::Transition {
            group: group.to_string(),
            gid: (*view).into(),
        },
        groups::Event::SelfLeave { group } => ClientSaw::SelfLeave(group.to_string()),
        groups::Event::Excluded => ClientSaw::Excluded,
        groups::Event::Included { missed } => ClientSaw::Included { missed: *missed },
    })
}

fn post(
    process: Process,
    counter: u64,
    service: Service,
    to: &[Destination],
    payload: &[u8],
    names: &mut Names,
) -> Post {
    let id = MessageId { process, counter };
    let mut name = |client, node| names.client(client, node).to_string();
    Post::new(id, to, service, trace::hash(payload), &mut name)
}
