//! What has become of a request, of a turn, and of an event.

use crate::speech::Ask;

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Done {
    Yes,
    /// There is no room for the request yet.
    Later(Ask),
    /// Lists have cost enough for now: the request has its turn when others and the ring have had theirs.
    Soon(Ask),
    /// The request would change a group, and changes before it have to be told first.
    Change(Ask),
    /// The message waits for another client.
    Held(Ask),
}

/// The state of a session after its turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// The session waits for bytes.
    Idle,
    /// The session has more to handle.
    More,
    /// A request waits for room.
    Stalled,
    /// A question waits until lists have cost less.
    Asks,
    /// A change of a group waits for others.
    Changes,
    /// A message waits for another client.
    Held,
    /// Its client has gone: why.
    Gone(String),
    /// Its client cannot be understood any more: why.
    Garbled(String),
}

/// What an event for a client has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    /// The bytes that it adds to the client's queue.
    pub bytes: usize,
    /// The bytes that wait for the client.
    pub waiting: usize,
}
