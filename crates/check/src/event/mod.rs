//! What a process saw: the lines of a trace, typed.

mod client;
mod told;

use rota_core::contract::{ConfigurationKind, MessageId, Process, RingId, Service, Time};

pub use client::{Cause, ClientEvent, ClientSaw, Gid, GroupView, Post};
pub use told::Naming;

/// Something that one process saw, or the harness did to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, in nanoseconds of a clock that all processes of a simulation share and real ones do not.
    pub time: Time,
    /// Which process; a restarted node is a new one.
    pub process: Process,
    /// What.
    pub kind: EventKind,
}

/// What was seen.
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
    /// A message was accepted for broadcast, and has no place yet: others number it. Engines with one order
    /// over primary views say so instead of [`EventKind::Originated`].
    Broadcast(Sent),
    /// A message was delivered.
    Delivered(Placed),
    /// The current configuration, which is regular and has this ring, was reported as primary.
    Primary(RingId),
    /// The process is in no primary configuration, and its ring is this one.
    Excluded(RingId),
    /// The process gets nothing of what stands before a position.
    Missed {
        /// This position.
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
    /// Which message.
    pub message: MessageId,
    /// The guarantee it asks for.
    pub service: Service,
    /// The first 64 bits of the SHA-256 of its payload.
    pub hash: u64,
}

/// A message at a place in the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Which message.
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

/// The configuration of a process that knows of none: what was named last it has missed.
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
