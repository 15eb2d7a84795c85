//! The sockets themselves: one for each class, and with multicast a third, by which data leaves.

use rota_core::contract::Class;
use std::io;
use std::os::fd::RawFd;

use super::wait::{PollSet, Ready, Wait};
use crate::socket::Port;

/// A node's sockets.
pub(super) struct Ports {
    data: Port,
    token: Port,
    /// Sends data, where the data socket is bound to a multicast group.
    sender: Option<Port>,
    /// Own multicasts come back, and the data socket's filter drops them.
    filtered: bool,
}

impl Ports {
    pub(super) const fn new(data: Port, token: Port, sender: Option<Port>, filtered: bool) -> Self {
        Self {
            data,
            token,
            sender,
            filtered,
        }
    }

    /// The socket at which datagrams of a class arrive.
    pub(super) const fn receiver(&mut self, class: Class) -> &mut Port {
        match class {
            Class::Data => &mut self.data,
            Class::Token => &mut self.token,
        }
    }

    /// The socket by which datagrams of a class leave: data has one of its own where there is multicast.
    pub(super) const fn sender(&mut self, class: Class) -> &mut Port {
        match (class, &mut self.sender) {
            (Class::Token, _) => &mut self.token,
            (Class::Data, Some(sender)) => sender,
            (Class::Data, None) => &mut self.data,
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Port> {
        let ports = [Some(&self.data), Some(&self.token), self.sender.as_ref()];
        ports.into_iter().flatten()
    }

    /// The socket that has joined the multicast group, and the one that sends to it, if there is a group.
    pub(super) fn of_group(&self) -> Option<(&Port, &Port)> {
        self.sender.as_ref().map(|sender| (&self.data, sender))
    }

    /// Data has left for the group: what comes back of it is to be dropped.
    pub(super) fn expect_own(&mut self) {
        if self.filtered
            && let Some(sender) = &mut self.sender
        {
            self.data.expect_own(sender.take_units());
        }
    }

    /// The data socket's receive buffer, in bytes.
    pub(super) fn receive_buffer_bytes(&self) -> io::Result<usize> {
        self.data.receive_buffer_bytes()
    }

    /// The descriptors to ask the kernel about.
    pub(super) fn poll_set(&self, wait: &Wait) -> PollSet {
        let reading = |port: &Port| libc::pollfd {
            fd: port.raw(),
            events: libc::POLLIN,
            revents: 0,
        };
        // A negative descriptor is skipped by the kernel.
        let waiting = |fd: Option<RawFd>, events| libc::pollfd {
            fd: fd.unwrap_or(-1),
            events,
            revents: 0,
        };
        let mut fds = [
            reading(&self.data),
            reading(&self.token),
            waiting(wait.waker, libc::POLLIN),
            waiting(None, 0),
            waiting(wait.stored, libc::POLLIN),
            waiting(wait.links, libc::POLLIN),
        ];
        if wait.no_token {
            fds[1].events = 0;
        }
        match (wait.writable, &self.sender) {
            (Some(Class::Token), _) => fds[1].events |= libc::POLLOUT,
            (Some(Class::Data), Some(sender)) => {
                fds[3].fd = sender.raw();
                fds[3].events |= libc::POLLOUT;
            }
            (Some(Class::Data), None) => fds[0].events |= libc::POLLOUT,
            (None, _) => {}
        }
        fds
    }
}

/// Whether the kernel has errors to tell about one of these descriptors.
pub(super) fn has_errors(fds: &[libc::pollfd]) -> bool {
    fds.iter().any(|fd| fd.revents & libc::POLLERR != 0)
}

/// The answer of the kernel about a [`PollSet`].
pub(super) fn ready(fds: &[libc::pollfd]) -> Ready {
    let readable = |at: usize| fds.get(at).is_some_and(|fd| fd.revents & libc::POLLIN != 0);
    Ready {
        data: readable(0),
        token: readable(1),
        woken: readable(2),
        links: readable(5),
    }
}
