//! The names of traces, read: `1.7` is a process, `1.7.42` a message, `12.1.7` a ring and
//! `12.1.7>16.2.3` the transitional configuration between two. `12.1.7/3` is a view of a group: the third
//! that was made in that configuration.

use rota_core::contract::{
    ConfigurationKind, Incarnation, MessageId, NodeId, Process, RingId, Service,
};

use crate::event::{Cause, Gid};

pub use rota_trace::name::Name;

/// Three numbers with points between them.
fn triple(text: &str) -> Option<(u64, u64, u64)> {
    let (first, rest) = text.split_once('.')?;
    let (second, third) = rest.split_once('.')?;
    Some((number(first)?, number(second)?, number(third)?))
}

/// A decimal number; unlike `str::parse`, without a plus sign.
fn number(text: &str) -> Option<u64> {
    if text.starts_with('+') {
        None
    } else {
        text.parse().ok()
    }
}

/// A process; `None` for numbers that name none.
pub(crate) fn process(node: u64, incarnation: u64) -> Option<Process> {
    Some(Process {
        node: NodeId::new(u16::try_from(node).ok()?)?,
        incarnation: (incarnation <= Incarnation::MAX).then_some(Incarnation(incarnation))?,
    })
}

pub(crate) fn message(text: &str) -> Option<MessageId> {
    let (node, incarnation, counter) = triple(text)?;
    let process = process(node, incarnation)?;
    Some(MessageId { process, counter })
}

pub(crate) fn ring(text: &str) -> Option<RingId> {
    let (ring_seq, node, incarnation) = triple(text)?;
    let rep = process(node, incarnation)?;
    Some(RingId {
        ring_seq,
        rep: rep.node,
        incarnation: rep.incarnation,
    })
}

pub(crate) fn configuration(text: &str) -> Option<ConfigurationKind> {
    match text.split_once('>') {
        None => Some(ConfigurationKind::Regular(ring(text)?)),
        Some((old, new)) => Some(ConfigurationKind::Transitional {
            old: ring(old)?,
            new: ring(new)?,
        }),
    }
}

pub(crate) fn gid(text: &str) -> Option<Gid> {
    let (conf, index) = text.split_once('/')?;
    Some(Gid {
        conf: configuration(conf)?,
        index: number(index)?,
    })
}

pub(crate) fn cause(text: &str) -> Option<Cause> {
    let all = [Cause::Join, Cause::Leave, Cause::Disconnect, Cause::Network];
    all.into_iter().find(|cause| cause.name() == text)
}

pub(crate) fn service(text: &str) -> Option<Service> {
    Some(match text {
        "reliable" => Service::Reliable,
        "fifo" => Service::Fifo,
        "causal" => Service::Causal,
        "agreed" => Service::Agreed,
        "safe" => Service::Safe,
        _ => return None,
    })
}

/// Sixteen hexadecimal digits.
pub(crate) fn hash(text: &str) -> Option<u64> {
    if text.len() != 16 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(text, 16).ok()
}
