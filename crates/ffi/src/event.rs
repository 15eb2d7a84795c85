//! Events in the layout that C reads.

use std::ffi::{c_char, c_void};

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
    /// The connection was lost, and there is a new one: `gap`. Of rota_connect_lasting only. All that was ordered between the
    /// last event and the joins of the new connection is missing: messages and views. With membership the first view of each
    /// group has its members now; the program has to ask them for all that they have agreed on meanwhile.
    Reconnected = 10,
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

/// What may be missing between an old connection and a new one.
#[repr(C)]
pub struct Gap {
    /// How the earlier connection ended, for people.
    pub lost: *const c_char,
    /// The daemon's reason, one of ROTA_CODE_; 0 if it gave none.
    pub code: u16,
    /// Milliseconds from the discovery of the loss until all joins were done.
    pub duration_ms: u64,
    /// Bytes of messages, with their frames, that this client had sent and that the daemon had not said to have taken. Each of
    /// these messages was ordered or not, and so was each that the daemon had taken and that had no place in the order when it
    /// died; none is sent again.
    pub unsettled_bytes: u64,
    /// The private name of the client now.
    pub name: *const c_char,
    /// Groups that the daemon does not let it join again.
    pub not_joined: *const *const c_char,
    /// How many.
    pub not_joined_count: usize,
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
    /// What may be missing behind a lost connection.
    pub gap: *const Gap,
}
