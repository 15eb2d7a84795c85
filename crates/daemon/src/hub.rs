//! Clients and their groups: the requests of clients, and the events for each.

mod admission;
mod askers;
mod budget;
mod changes;
mod clientele;
mod coming;
mod counters;
mod credit;
mod fanout;
mod journal;
mod lists;
mod overfull;
mod pace;
mod policy;
mod report;
mod requests;
mod sessions;
mod sums;
mod throttle;
mod turns;
mod unread;

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use rota_core::contract::{Delivery, Process, Service, Time};
use rota_core::groups::{Directory, Limits};

use crate::access::Access;
use crate::config::DaemonConfig;
use crate::door::Door;
use crate::session::READ_BYTES;
use crate::speech::Terms;
use crate::spread::Settings;
use crate::trace::ClientTrace;
use admission::Admission;
use clientele::{Clientele, Departures};

/// All clients of a daemon, from the listeners to the groups: who comes in, by which rules, and who asked how the daemon
/// is. What becomes of a client that is in is the [`Clientele`]'s.
#[derive(Debug)]
pub(crate) struct Hub {
    door: Door,
    admission: Admission,
    access: Arc<Access>,
    clientele: Clientele,
    /// What native clients are told as they come in.
    terms: Terms,
    spread: Arc<Settings>,
    /// Sessions that asked for the status of the daemon, by key and number.
    asked: Vec<(usize, u64)>,
    /// The nodes of the ring's last configuration.
    members: Vec<u16>,
    /// What is read of clients' sockets.
    scratch: Vec<u8>,
    /// The kernel has just said that no socket is ready.
    is_quiet: bool,
}

impl Hub {
    /// The clients that come in at this door, to daemon `me`.
    pub fn new(
        door: Door,
        me: Process,
        config: &DaemonConfig,
        access: Arc<Access>,
        (directory, spread): (Directory, Arc<Settings>),
    ) -> Self {
        let (limits, terms) = bounds(config);
        Self {
            door,
            admission: Admission::new(config),
            access,
            clientele: Clientele::new(me, limits, config, directory),
            terms,
            spread,
            asked: Vec::new(),
            members: Vec::new(),
            scratch: vec![0; READ_BYTES],
            is_quiet: false,
        }
    }

    /// From here on, events of clients are also traced.
    pub fn trace_to(&mut self, trace: ClientTrace) {
        self.clientele.journal().trace_to(trace);
    }

    /// Daemons have these names from now on.
    pub fn rename(&mut self, directory: Directory) {
        self.clientele.rename(directory);
    }

    /// The rules that are in force.
    pub const fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Readable when a client's socket has become ready.
    pub fn fd(&self) -> RawFd {
        self.door.fd()
    }

    /// The loop is awake. Unless the door has signalled it, the kernel has just said that no socket is ready.
    pub const fn awake(&mut self, signalled: bool) {
        self.is_quiet = !signalled;
    }

    /// Whether there is something to do without waiting.
    pub fn has_work(&self) -> bool {
        self.clientele.has_work() || self.door.has_work(!self.admission.is_held())
    }

    /// The next time at which there is work even without an event.
    pub fn next_wake(&self) -> Option<Time> {
        let clients = self.clientele.next_wake();
        let coming = self.admission.next_wake();
        clients.into_iter().chain(coming).min()
    }

    /// Takes in what clients ask for.
    pub fn serve(&mut self, now: Time) -> io::Result<()> {
        // A turn may also write what a client was told before.
        self.clientele.journal().flush();
        if !std::mem::take(&mut self.is_quiet) {
            self.door.look()?;
        }
        while let Some(notice) = self.door.next_notice() {
            self.clientele.notice(notice);
        }
        self.clientele.pass(now);
        self.clientele.take_turns(&mut self.scratch, now);
        self.mind_departures();
        self.let_some_in(now);
        self.sweep(now);
        self.clientele.end_turns();
        self.after_input();
        Ok(())
    }

    /// Takes one delivery of the ring.
    pub fn deliver(&mut self, delivery: Delivery) {
        if let Delivery::Configuration(now) = &delivery {
            self.members = now.members.iter().map(|member| member.node.get()).collect();
        }
        self.clientele.deliver(delivery);
    }

    /// Whether the ring may deliver something.
    pub fn has_room(&self) -> bool {
        self.clientele.has_room()
    }

    /// Offers the waiting bytes of clients to their sockets if they are many, or have waited for a turn.
    pub fn flush_if_due(&mut self) {
        self.clientele.flush_if_due();
        self.after_input();
    }

    /// Offers the waiting bytes of clients to their sockets, as many as can be done at once.
    pub fn flush(&mut self) {
        self.clientele.flush();
        self.after_input();
    }

    /// This daemon, in this life.
    pub const fn me(&self) -> Process {
        self.clientele.groups().me()
    }

    /// Whether something is to be ordered.
    pub fn has_to_submit(&self) -> bool {
        self.clientele.groups().has_to_submit()
    }

    /// What is to be ordered next. The same again, until [`Self::submitted`] or [`Self::refused`].
    pub fn next_to_submit(&mut self) -> Option<(Service, &[u8])> {
        self.clientele.groups_mut().to_submit()
    }

    /// The ring has taken it, as its message with this counter.
    pub fn submitted(&mut self, counter: u64) {
        self.clientele.groups_mut().submitted(counter);
    }

    /// The ring will never take it.
    pub fn refused(&mut self) {
        self.clientele.groups_mut().refused();
    }

    /// The daemon stops: clients are told, as far as their sockets take it.
    pub fn close(&mut self) {
        self.clientele.close();
    }

    fn after_input(&mut self) {
        self.mind_departures();
        if cfg!(debug_assertions) {
            self.clientele.check();
        }
    }

    /// Takes note of sessions that are over or going.
    fn mind_departures(&mut self) {
        let Departures { over, going } = self.clientele.take_departures();
        going
            .into_iter()
            .for_each(|session| self.admission.end(session));
        if over {
            // A client may have waited for one of their descriptors.
            self.door.try_again();
        }
    }
}

#[cfg(test)]
mod tests;

/// The limits of clients, and the part of them that clients are told.
fn bounds(config: &DaemonConfig) -> (Limits, Terms) {
    let limits = Limits {
        clients: config.clients,
        payload_bytes: config.message_bytes,
        client_memberships: config.client_memberships,
        ..Limits::default()
    };
    let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let terms = Terms {
        credit: number(limits.backlog_bytes),
        largest_payload: number(limits.payload_bytes),
    };
    (limits, terms)
}
