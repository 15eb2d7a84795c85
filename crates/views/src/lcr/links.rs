//! The links of this process: the session of each, its room, and the process at its other end.

use alloc::collections::BTreeMap;

use super::wire::Hello;
use rota_core::contract::{Channel, NodeId, Output, Pieces, Process, Session};

/// This part of a link's queue may be full of packets.
const QUEUED_SHARE: usize = 8;

#[derive(Clone, Hash, Debug)]
pub struct Up {
    pub peer: Process,
    pub session: Session,
    /// The bytes that the link still takes.
    pub room: usize,
    /// The most bytes that it ever took.
    most: usize,
    /// The last hello that came over it, of a view that was not (yet) installed here.
    pub early: Option<Hello>,
}

impl Up {
    /// Notes the room of the link, in bytes.
    pub fn on_room(&mut self, bytes: usize) {
        self.room = bytes;
        self.most = self.most.max(bytes);
    }

    /// The room for packets, in bytes. Words that open windows wait behind the packets in the link's queue: so few
    /// packets are to wait there, but enough that the link never waits for this process.
    pub const fn room_for_packets(&self) -> usize {
        let queued = self.most - self.room;
        if queued > self.most / QUEUED_SHARE {
            0
        } else {
            self.room
        }
    }

    /// Sends a message, for which there has to be room.
    pub fn send(&mut self, bytes: Pieces) -> Output {
        debug_assert!(bytes.len() <= self.room);
        self.room = self.room.saturating_sub(bytes.len());
        Output::LinkSend {
            peer: self.peer.node,
            session: self.session,
            channel: Channel::default(),
            bytes,
        }
    }
}

/// At most one session with each node.
#[derive(Clone, Hash, Debug, Default)]
pub struct Links {
    up: BTreeMap<NodeId, Up>,
}

impl Links {
    pub fn on_up(&mut self, peer: Process, session: Session) {
        let up = Up {
            peer,
            session,
            room: 0,
            most: 0,
            early: None,
        };
        self.up.insert(peer.node, up);
    }

    /// `false` if it was another session that ended.
    pub fn on_down(&mut self, peer: NodeId, session: Session) -> bool {
        let same = self.session(peer, session).is_some();
        if same {
            self.up.remove(&peer);
        }
        same
    }

    /// The link to a node, if this is its session.
    pub fn session(&mut self, peer: NodeId, session: Session) -> Option<&mut Up> {
        self.up.get_mut(&peer).filter(|up| up.session == session)
    }

    /// The link to a process: not to another life of the same node.
    pub fn to(&mut self, peer: Process) -> Option<&mut Up> {
        self.up.get_mut(&peer.node).filter(|up| up.peer == peer)
    }
}
