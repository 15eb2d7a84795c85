//! The state of the link to one node.

use rota_core::contract::{NodeId, Session, Time};
use std::net::{IpAddr, SocketAddr};

use super::Context;
use super::dial::{Attempt, Failure, Patience};
use super::handshake::{Agreed, Own};
use super::session::Live;
use super::stream::Stream;
use crate::epoll::Epoll;

#[derive(Debug)]
enum Link {
    /// `None`: the other node connects.
    Down(Option<Time>),
    Dialing(Box<Attempt>),
    Up(Box<Live>),
}

/// Another node, and the link to it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) node: NodeId,
    pub(super) address: SocketAddr,
    /// Where it may be instead, now that its name has another address.
    elsewhere: Option<SocketAddr>,
    /// The attempt under way is to there.
    tries_elsewhere: bool,
    dialed: bool,
    link: Link,
    /// The last session there was.
    last: Session,
    patience: Patience,
    is_cut: bool,
}

impl Peer {
    pub(super) fn new(node: NodeId, address: SocketAddr, me: NodeId, now: Time) -> Self {
        let dialed = me < node;
        Self {
            node,
            address,
            elsewhere: None,
            tries_elsewhere: false,
            dialed,
            link: Link::Down(dialed.then_some(now)),
            last: Session(0),
            patience: Patience::new(),
            is_cut: false,
        }
    }

    /// Whether this node connects to the other one, and not the other one to this.
    pub(super) const fn is_dialed(&self) -> bool {
        self.dialed
    }

    /// The node may be at this address now: attempts go there and to where it was in turns, until one has succeeded.
    pub(super) fn may_be_at(&mut self, ip: IpAddr) {
        let there = SocketAddr::new(ip, self.address.port());
        self.elsewhere = Some(there).filter(|there| *there != self.address);
    }

    /// The address for the next attempt; `None` where none is known yet.
    fn choose(&mut self) -> Option<SocketAddr> {
        let known = Some(self.address).filter(|address| !address.ip().is_unspecified());
        self.tries_elsewhere = match (known, self.elsewhere) {
            (Some(_), Some(_)) => !self.tries_elsewhere,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        self.elsewhere.filter(|_| self.tries_elsewhere).or(known)
    }

    /// The last session with the node, if that may begin another by connecting to this one.
    pub(super) fn may_dial_here(&self) -> Option<Session> {
        (!self.dialed && !self.is_cut).then_some(self.last)
    }

    pub(super) fn live(&mut self) -> Option<&mut Live> {
        match &mut self.link {
            Link::Up(live) => Some(live),
            Link::Down(_) | Link::Dialing(_) => None,
        }
    }

    /// The connection of the link, if it has this name.
    pub(super) fn stream(&mut self, name: u64) -> Option<&mut Stream> {
        let stream = match &mut self.link {
            Link::Up(live) => &mut live.stream,
            Link::Dialing(attempt) => &mut attempt.stream,
            Link::Down(_) => return None,
        };
        (stream.name == name).then_some(stream)
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        match &self.link {
            Link::Down(at) => at.filter(|_| !self.is_cut),
            Link::Dialing(attempt) => Some(attempt.deadline),
            Link::Up(_) => None,
        }
    }

    /// Whether there is something to read, or to go on with.
    pub(super) fn is_ready(&self) -> bool {
        match &self.link {
            Link::Up(live) => live.stream.is_readable(),
            Link::Dialing(attempt) => attempt.is_ready(),
            Link::Down(_) => false,
        }
    }

    /// Connects where it is time, and goes on with what was begun. An attempt that failed is over.
    pub(super) fn dial(
        &mut self,
        (own, from): (Own, IpAddr),
        epoll: &Epoll,
        next_name: &mut u64,
        context: &Context<'_>,
    ) -> Result<Option<(Agreed, Stream)>, Failure> {
        let now = context.now;
        let result = match &mut self.link {
            Link::Down(Some(at)) if *at <= now && !self.is_cut => {
                let Some(address) = self.choose() else {
                    self.link = Link::Down(Some(self.patience.again(now)));
                    return Ok(None);
                };
                let to = (self.node, address);
                let attempt = Attempt::begin((from, to), (now, &self.patience), epoll, next_name);
                attempt.map_err(Failure::from).map(|attempt| {
                    self.link = Link::Dialing(Box::new(attempt));
                    None
                })
            }
            Link::Dialing(attempt) if attempt.is_ready() => attempt.go_on(own, self.last, context),
            Link::Dialing(attempt) if attempt.deadline <= now => Err(Failure::timed_out()),
            _ => Ok(None),
        };
        match result {
            Ok(None) => Ok(None),
            Ok(Some(agreed)) => {
                if let Some(there) = self.elsewhere.take_if(|_| self.tries_elsewhere) {
                    self.address = there;
                }
                let link = std::mem::replace(&mut self.link, Link::Down(None));
                Ok(match link {
                    Link::Dialing(attempt) => Some((agreed, attempt.stream)),
                    Link::Down(_) | Link::Up(_) => None,
                })
            }
            Err(failure) => {
                self.link = Link::Down(Some(self.patience.again(now)));
                Err(failure)
            }
        }
    }

    /// A session begins; the one before has ended.
    pub(super) fn begin(&mut self, live: Live) {
        self.last = live.number;
        self.link = Link::Up(Box::new(live));
    }

    /// Ends the session; returns it if there was one.
    pub(super) fn end(&mut self, now: Time) -> Option<Box<Live>> {
        let Link::Up(live) = &self.link else {
            return None;
        };
        self.patience.lasted(live.since, now);
        let down = Link::Down(self.dialed.then(|| self.patience.again(now)));
        match std::mem::replace(&mut self.link, down) {
            Link::Up(live) => Some(live),
            Link::Down(_) | Link::Dialing(_) => None,
        }
    }

    /// No link may begin, or one may again.
    pub(super) fn cut(&mut self, is_cut: bool, now: Time) {
        self.is_cut = is_cut;
        if is_cut && matches!(self.link, Link::Dialing(_)) {
            self.link = Link::Down(Some(now));
        }
    }
}
