//! An engine that sends over links what the test wants, as far as they take it, and remembers all it hears.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rota_core::contract::{
    Channel, Class, Delivery, Engine, Input, NodeId, Output, Pieces, Process, Service, Session,
    Status, SubmitError, Time, TimerReason,
};

/// An event of the links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    Up(Process, Session),
    Down(NodeId, Session),
    Message(NodeId, Session, Channel, Bytes),
}

#[derive(Debug)]
struct Link {
    peer: Process,
    session: Session,
    credit: usize,
}

/// A message to be sent.
type Wanted = (Channel, Bytes);

#[derive(Debug, Default)]
pub struct Chatty {
    pub heard: Vec<Heard>,
    /// The number of times that there was room again.
    pub rooms: usize,
    /// The least that room has ever grown by.
    pub least_growth: Option<usize>,
    /// Bytes that links have taken.
    pub taken: usize,
    links: BTreeMap<NodeId, Link>,
    wanted: BTreeMap<NodeId, VecDeque<Wanted>>,
    outputs: VecDeque<Output>,
}

impl Chatty {
    pub fn new() -> Self {
        Self::default()
    }

    /// Says this to a node, now or when its link takes it.
    pub fn say(&mut self, to: NodeId, bytes: impl Into<Bytes>) {
        self.say_on(to, Channel(0), bytes);
    }

    pub fn say_on(&mut self, to: NodeId, channel: Channel, bytes: impl Into<Bytes>) {
        let wanted = self.wanted.entry(to).or_default();
        wanted.push_back((channel, bytes.into()));
        self.flush(to);
    }

    /// Sends in a session, whether it lasts or not.
    pub fn force(&mut self, peer: NodeId, session: Session, bytes: &'static [u8]) {
        self.outputs.push_back(Output::LinkSend {
            peer,
            session,
            channel: Channel(0),
            bytes: Bytes::from_static(bytes).into(),
        });
    }

    /// The number of messages that no link has taken yet.
    pub fn held_back(&self, to: NodeId) -> usize {
        self.wanted.get(&to).map_or(0, VecDeque::len)
    }

    pub fn session(&self, with: NodeId) -> Option<Session> {
        self.links.get(&with).map(|link| link.session)
    }

    /// The process at the other end now.
    pub fn peer(&self, node: NodeId) -> Option<Process> {
        self.links.get(&node).map(|link| link.peer)
    }

    /// The number of links that are up.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// All messages of a node, in one session.
    pub fn messages(&self, of: NodeId, in_session: Session) -> Vec<Bytes> {
        let mut found = Vec::new();
        for heard in &self.heard {
            if let Heard::Message(from, session, _, bytes) = heard
                && (*from, *session) == (of, in_session)
            {
                found.push(bytes.clone());
            }
        }
        found
    }

    pub fn count(&self, of: NodeId) -> usize {
        let is_it = |heard: &&Heard| matches!(heard, Heard::Message(from, ..) if *from == of);
        self.heard.iter().filter(is_it).count()
    }

    fn flush(&mut self, to: NodeId) {
        let (Some(link), Some(wanted)) = (self.links.get_mut(&to), self.wanted.get_mut(&to)) else {
            return;
        };
        while let Some((channel, bytes)) =
            wanted.pop_front_if(|(_, bytes)| bytes.len() <= link.credit)
        {
            link.credit -= bytes.len();
            self.taken += bytes.len();
            self.outputs.push_back(Output::LinkSend {
                peer: to,
                session: link.session,
                channel,
                bytes: halves(bytes),
            });
        }
    }

    fn on_room(&mut self, peer: NodeId, session: Session, bytes: usize) {
        let link = self.links.get_mut(&peer).expect("room of a link");
        assert_eq!(link.session, session, "room of a session that ended");
        let growth = bytes.checked_sub(link.credit).expect("room never shrinks");
        self.least_growth = Some(self.least_growth.map_or(growth, |least| least.min(growth)));
        self.rooms += 1;
        link.credit = bytes;
        self.flush(peer);
    }
}

impl Engine for Chatty {
    fn handle(&mut self, _: Time, input: Input) {
        match input {
            Input::LinkUp { peer, session } => {
                let before = self.links.insert(
                    peer.node,
                    Link {
                        peer,
                        session,
                        credit: 0,
                    },
                );
                assert!(before.is_none(), "two sessions with {peer:?} at once");
                self.heard.push(Heard::Up(peer, session));
            }
            Input::LinkDown { peer, session } => {
                let ended = self.links.remove(&peer).expect("a link that was up");
                assert_eq!(ended.session, session);
                self.heard.push(Heard::Down(peer, session));
            }
            Input::LinkMessage {
                peer,
                session,
                channel,
                bytes,
            } => {
                assert_eq!(self.session(peer), Some(session), "of no session");
                self.heard
                    .push(Heard::Message(peer, session, channel, bytes));
            }
            Input::Writable {
                peer,
                session,
                bytes,
            } => self.on_room(peer, session, bytes),
            _ => {}
        }
    }

    fn submit(&mut self, _: Time, _: Service, _: &[u8]) -> Result<u64, SubmitError> {
        Err(SubmitError::Unsupported)
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        None
    }

    fn reading(&self) -> Class {
        Class::Token
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        None
    }

    fn wants_links(&self) -> bool {
        true
    }

    fn status(&self) -> Status {
        Status::default()
    }
}

/// A message in two pieces.
fn halves(mut bytes: Bytes) -> Pieces {
    let mut pieces = Pieces::from(bytes.split_to(bytes.len() / 2));
    pieces.push(bytes);
    pieces
}
