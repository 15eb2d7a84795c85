//! The law of links, which [`super::Checked`] asserts.

use alloc::collections::BTreeMap;

use super::{Input, NodeId, Output, Session};

/// The inputs about the links of a process so far.
#[derive(Debug, Default)]
pub struct LinkLaw {
    /// For each node its newest session, and, while that is up, the bytes that its link takes.
    links: BTreeMap<NodeId, (Session, Option<usize>)>,
}

impl LinkLaw {
    /// A law without any link yet.
    pub const fn new() -> Self {
        Self {
            links: BTreeMap::new(),
        }
    }

    /// Asserts the law for an input of the driver.
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

    /// The link of a node, if this is its newest session; `None` for a link that was never up.
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

    /// Asserts that a message of the engine is no larger than its link takes. A message for a session that has ended is
    /// not looked at: the driver drops it.
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
