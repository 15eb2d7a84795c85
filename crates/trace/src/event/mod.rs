//! The events of a process: the lines of a trace, typed.

mod client;
mod told;

use rota_core::contract::{ConfigurationKind, MessageId, Process, RingId, Service, Time};

pub use client::{Cause, ClientEvent, ClientSaw, Gid, GroupView, Post};
pub use told::Naming;

/// An event that one process saw, or that the harness caused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The time, in nanoseconds of a clock that all processes of a simulation share and real ones do not.
    pub time: Time,
    /// The process; a restarted node is a new one.
    pub process: Process,
    /// The kind of the event.
    pub kind: EventKind,
}

/// The kinds of events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// The process starts.
    Start,
    /// A configuration was delivered.
    Configuration(Conf),
    /// The application's message was accepted.
    Send(Sent),
    /// A message got its place in the order of a ring.
    Originated(Placed),
    /// A message was accepted for broadcast, and has no place yet: other processes number it. Engines with one order
    /// over primary views say so instead of [`EventKind::Originated`].
    Broadcast(Sent),
    /// A message was delivered.
    Delivered(Placed),
    /// The current configuration, which is regular and has this ring, was reported as primary.
    Primary(RingId),
    /// The process is in no primary configuration, and its ring is this one.
    Excluded(RingId),
    /// The process never gets the messages before a position.
    Missed {
        /// The position.
        upto: u64,
        /// Its own messages up to this counter are in the order.
        own: u64,
    },
    /// A client of the process saw or did something.
    Client(ClientEvent),
    /// The process was killed.
    Crash,
    /// The process left of its own will.
    Leave,
}

/// A configuration as an application sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conf {
    /// Its identity, which says of what kind it is.
    pub id: ConfigurationKind,
    /// Its members, as listed.
    pub members: Vec<Process>,
}

/// A message, accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// The name of the message.
    pub message: MessageId,
    /// The guarantee it asks for.
    pub service: Service,
    /// The first 64 bits of the SHA-256 of its payload.
    pub hash: u64,
}

/// A message at a place in the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The name of the message.
    pub message: MessageId,
    /// The configuration that was current.
    pub conf: ConfigurationKind,
    /// Its place: `rota_core::contract::position` of packet and index.
    pub position: u64,
    /// The guarantee it asked for.
    pub service: Service,
    /// The first 64 bits of the SHA-256 of its payload.
    pub hash: u64,
}

/// The configuration of a process that knows of none: it has missed the one that was named last.
pub const fn nowhere(process: Process) -> ConfigurationKind {
    ConfigurationKind::Regular(RingId {
        ring_seq: 0,
        rep: process.node,
        incarnation: process.incarnation,
    })
}

/// The regular configuration that a configuration is, or that a transitional one ends.
pub const fn regular_of(id: ConfigurationKind) -> RingId {
    match id {
        ConfigurationKind::Regular(ring) => ring,
        ConfigurationKind::Transitional { old, .. } => old,
    }
}
