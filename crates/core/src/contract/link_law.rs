//! The law of links, as [`super::Checked`] sees it kept.

use alloc::collections::BTreeMap;

use super::{Input, NodeId, Output, Session};

/// What was said of the links of a process.
#[derive(Debug, Default)]
pub struct LinkLaw {
    /// Of each node: its newest session, and while that is up what its link takes, in bytes.
    links: BTreeMap<NodeId, (Session, Option<usize>)>,
}

impl LinkLaw {
    /// Nothing was said yet.
    pub const fn new() -> Self {
        Self {
            links: BTreeMap::new(),
        }
    }

    /// What the driver says.
    pub fn told(&mut self, input: &Input) {
        match input {
            Input::LinkUp { peer, session } => {
                let before = self.links.insert(peer.node, (*session, Some(0)));
                debug_assert!(
                    before.is_none_or(|(before, _)| before < *session),
                    "sessions of links to node {} do not ascend",
                    peer.node
                );
            }
            Input::LinkDown { peer, session } => {
                if let Some((_, room)) = self.known(*peer, *session, "ended") {
                    *room = None;
                }
            }
            Input::LinkMessage { peer, session, .. } => {
                let link = self.known(*peer, *session, "brought a message");
                debug_assert!(
                    link.is_none_or(|(_, room)| room.is_some()),
                    "a message of a session that has ended"
                );
            }
            Input::Writable {
                peer,
                session,
                bytes,
            } => {
                if let Some((_, Some(room))) = self.known(*peer, *session, "has room") {
                    *room = *bytes;
                }
            }
            _ => {}
        }
    }

    /// The link of a node, if this is its newest session. One that was never up is none.
    fn known(
        &mut self,
        node: NodeId,
        session: Session,
        what: &str,
    ) -> Option<&mut (Session, Option<usize>)> {
        let link = self.links.get_mut(&node);
        debug_assert!(
            link.as_ref().is_none_or(|(newest, _)| session <= *newest),
            "a link to node {node} {what} before it was up"
        );
        link.filter(|(newest, _)| *newest == session)
    }

    /// What the engine asks for: never more than a link said it can take. What is meant for a session that has ended is dropped.
    pub fn asked(&mut self, output: &Output) {
        let Output::LinkSend {
            peer,
            session,
            bytes,
            ..
        } = output
        else {
            return;
        };
        let size = bytes.len();
        if let Some((_, Some(room))) = self.known(*peer, *session, "is to carry a message") {
            debug_assert!(
                size <= *room,
                "{size} bytes for node {peer}, whose link takes {room}"
            );
            *room = room.saturating_sub(size);
        }
    }
}
