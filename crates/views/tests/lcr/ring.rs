//! The common parts of the search and the network: processes, frames, views.

use bytes::Bytes;
use rota_core::contract::{Incarnation, NodeId, Process, RingId, Service};
use rota_views::lcr::{Config, Lcr};
use rota_views::{Backlog, DataPath, View};

/// Room for one message of [`MESSAGE`] bytes in a frame, and not for two.
pub const FRAME: usize = 40;
pub const MESSAGE: usize = 30;

pub fn process(index: usize) -> Process {
    Process {
        node: NodeId::new(index as u16 + 1).expect("not 0"),
        incarnation: Incarnation(7),
    }
}

pub fn view(ring_seq: u64, count: usize, me: usize) -> View {
    View {
        ring: RingId {
            ring_seq,
            rep: process(0).node,
            incarnation: process(0).incarnation,
        },
        members: (0..count).map(process).collect(),
        me,
    }
}

/// A path of process `me` that has not begun.
pub fn path(config: &Config, me: usize) -> Lcr {
    let mut lcr = Lcr::new(config.clone());
    lcr.start(process(me), 1);
    lcr
}

/// A backlog with so many frames in it.
pub fn backlog(frames: usize) -> Backlog {
    let mut backlog = Backlog::new(FRAME, 1000, 1 << 30);
    for _ in 0..frames {
        backlog
            .push(Service::Safe, &[1; MESSAGE])
            .expect("there is room");
    }
    backlog
}

/// The notes of so many paths.
pub fn notes(paths: &[Lcr]) -> Vec<Bytes> {
    paths.iter().map(|path| path.note().into()).collect()
}
