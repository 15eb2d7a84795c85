//! LCR: uniform total order on a ring of reliable links (Guerraoui, Levy, Pochon and Quéma, TOCS 2010;
//! FastCast §2 and §4 compare with it).
//!
//! Every packet goes round the ring once, from its sender to its sender's predecessor, so that each link carries each
//! packet at most once: with `n` members the throughput is `n / (n - 1)` times that of a link. A packet carries a
//! vector clock, from which all members derive one order ([`precedes`]). The last member that gets a packet tells,
//! round the ring again, that all hold it. A packet is delivered when all hold it and no packet before it is pending.
//!
//! `docs/protocols/lcr.md` has the reasons why this is enough, the messages on the links, the steps when a link breaks,
//! and the differences from the published protocol.
//!
//! * `run`: one process in one view; `run/receive` and `run/send`: the messages from the neighbours, and to them; where a link
//!   begins again: [`rota_core::resume`];
//! * `log`: the packets for the successor; `flight`: own packets under way;
//! * `member`: the knowledge of one member's packets; `order`: ≺; the choice between own packets and those of others is
//!   in [`rota_core::fair`];
//! * `links`: sessions; `wire`: bytes, and `write` those of a batch.

mod flight;
mod links;
mod log;
mod member;
mod order;
mod run;
mod wire;
mod write;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use crate::{Backlog, DataPath, Frozen, Held, Link, Packet, PacketId, View};
use links::Links;
pub use order::precedes;
use rota_core::contract::{Class, NodeId, Output, Process, RingId, Session, Time, TimerReason};
use rota_core::mutants::{self, Mutant};
use run::Run;
pub use wire::{Batch, Entry, Hello, MAX_FRAME_BYTES, Record, Records, Said, decode};
pub use write::Writer;

/// The settings of LCR. All members of a view use the smallest window of theirs.
#[derive(Clone, Debug, Hash)]
pub struct Config {
    /// The largest own frame, in bytes: that of the backlog; at most [`MAX_FRAME_BYTES`].
    pub frame_bytes: usize,
    /// The most bytes of own packets that not all members have delivered. Every process keeps up to as much for each
    /// member.
    pub window_bytes: usize,
    /// The size of a message to the successor, in bytes. One packet may be larger. The size that links seal as one
    /// record is best: a message that is cut has to be put together again.
    pub batch_bytes: usize,
}

/// Bytes that all members together may have under way.
const BYTES: usize = 8 << 20;

impl Default for Config {
    fn default() -> Self {
        Self {
            frame_bytes: 16_000,
            window_bytes: 1 << 20,
            batch_bytes: 32_000,
        }
    }
}

impl Config {
    /// The defaults, with a window of this process's share in what so many members together may have under way.
    pub fn shared_by(members: usize) -> Self {
        let mut config = Self::default();
        config.window_bytes = (BYTES / members.max(1)).max(config.window_bytes);
        config
    }

    /// The settings of this process that others have to know.
    fn note(&self) -> Vec<u8> {
        let frame = self.frame_bytes.min(MAX_FRAME_BYTES) as u32;
        let mut note = (self.window_bytes as u64).to_le_bytes().to_vec();
        note.extend(frame.to_le_bytes());
        note
    }

    /// The smallest window and the largest frame of all members. Malformed notes are passed over.
    fn agreed(&self, notes: &[Bytes]) -> (usize, usize) {
        let own = (self.window_bytes, self.frame_bytes.min(MAX_FRAME_BYTES));
        notes.iter().fold(own, |(window, frame), note| {
            let (Some(their_window), Some(their_frame)) = (note.get(..8), note.get(8..12)) else {
                return (window, frame);
            };
            let number = |bytes: &[u8]| {
                let number = bytes
                    .iter()
                    .rfold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
                usize::try_from(number).unwrap_or(usize::MAX)
            };
            let their_frame = number(their_frame).min(MAX_FRAME_BYTES);
            (window.min(number(their_window)), frame.max(their_frame))
        })
    }
}

/// The counters, for people.
#[derive(Clone, Debug, Default)]
struct Count {
    batches: u64,
    batch_bytes: u64,
    delivered: u64,
    hellos: u64,
    duplicates: u64,
    refused: u64,
    stale: u64,
    datagrams: u64,
}

impl core::hash::Hash for Count {
    /// The counters decide nothing: a search over all schedules need not tell states apart by them.
    fn hash<H: core::hash::Hasher>(&self, _: &mut H) {}
}

/// The data path. See the module's page.
#[derive(Clone, Hash, Debug)]
pub struct Lcr {
    config: Config,
    links: Links,
    run: Option<Run>,
    now: Time,
    count: Count,
}

impl Lcr {
    /// A data path without a view.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            links: Links::default(),
            run: None,
            now: Time::default(),
            count: Count::default(),
        }
    }

    /// The bytes of the packets that are kept and were not delivered here: at most the window, or one packet, for each
    /// member.
    pub fn kept_bytes(&self) -> usize {
        self.run.as_ref().map_or(0, Run::kept_bytes)
    }

    /// The current view, if it has not ended.
    fn live(&mut self) -> Option<&mut Run> {
        self.run.as_mut().filter(|run| run.is_live())
    }

    fn on_up(&mut self, peer: Process, session: Session) {
        self.links.on_up(peer, session);
        self.on_change(peer.node);
    }

    fn on_down(&mut self, peer: NodeId, session: Session) {
        if self.links.on_down(peer, session) {
            self.on_change(peer);
        }
    }

    /// Adapts to a session with a node that has ended, or to another that has begun.
    fn on_change(&mut self, node: NodeId) {
        if let Some(run) = self.live() {
            run.on_link(node);
        }
    }

    fn on_message(&mut self, peer: NodeId, session: Session, bytes: Bytes) {
        let Some(link) = self.links.session(peer, session) else {
            self.count.stale += 1;
            return;
        };
        let run = self.run.as_mut().filter(|run| run.is_live());
        let said = wire::decode(bytes);
        match (said, run) {
            (Ok(Said::Hello(hello)), Some(run)) if hello.ring == run.ring() => {
                if run.is_successor(link.peer) {
                    run.on_hello(session, hello, &mut self.count);
                } else {
                    self.count.refused += 1;
                }
            }
            (Ok(Said::Hello(hello)), _) => link.early = Some(hello),
            (Ok(Said::Batch(batch)), Some(run)) if run.is_predecessor(link.peer) => {
                let ours = batch.ring == run.ring() || mutants::on(Mutant::L09);
                if ours && run.is_answered_by(batch.epoch) {
                    run.on_batch(self.now, batch, &mut self.count);
                } else {
                    self.count.stale += 1;
                }
            }
            (Ok(Said::Batch(_)), _) => self.count.stale += 1,
            (Err(_), Some(run)) if run.is_predecessor(link.peer) => {
                run.refuse(self.now, &mut self.count);
            }
            (Err(_), _) => self.count.refused += 1,
        }
    }

    /// Tells the predecessor which packets are here, if a hello is due and the link has room.
    fn hello(&mut self) -> Option<Output> {
        let run = self.run.as_mut()?;
        let link = self.links.to(run.greets()?)?;
        let bytes = run.hello().encode();
        if bytes.len() > link.room {
            return None;
        }
        run.on_hello_sent();
        Some(link.send(Bytes::from(bytes).into()))
    }

    fn batch(&mut self, backlog: &mut Backlog) -> Option<Output> {
        let run = self.run.as_mut()?;
        if run.is_alone() {
            run.broadcast_alone(backlog);
            return None;
        }
        let session = run.session()?;
        let link = self.links.to(run.successor_process())?;
        if link.session != session {
            return None;
        }
        let bytes = run.batch(&self.config, link.room_for_packets(), backlog)?;
        self.count.batches += 1;
        self.count.batch_bytes += bytes.len() as u64;
        Some(link.send(bytes))
    }
}

impl DataPath for Lcr {
    fn start(&mut self, _me: Process, _seed: u64) {}

    fn install(&mut self, now: Time, view: &View, notes: &[Bytes]) {
        self.now = now;
        let mut run = Run::new(&self.config, view, notes);
        if let Some(link) = self.links.to(run.successor_process())
            && let Some(hello) = link.early.take_if(|hello| hello.ring == run.ring())
        {
            run.on_hello(link.session, hello, &mut self.count);
        }
        self.run = Some(run);
    }

    fn freeze(&mut self, now: Time) -> Frozen {
        self.now = now;
        self.live().map(Run::freeze).unwrap_or_default()
    }

    fn note(&self) -> Vec<u8> {
        self.config.note()
    }

    fn arrange(held: &mut Vec<Held>) {
        order::arrange(held);
    }

    fn on_datagram(&mut self, now: Time, _class: Class, _datagram: Bytes) {
        self.now = now;
        self.count.datagrams += 1;
    }

    fn on_link(&mut self, now: Time, link: Link) {
        self.now = now;
        match link {
            Link::Up { peer, session } => self.on_up(peer, session),
            Link::Down { peer, session } => self.on_down(peer, session),
            Link::Message {
                peer,
                session,
                bytes,
            } => self.on_message(peer, session, bytes),
            Link::Writable {
                peer,
                session,
                bytes,
            } => {
                if let Some(link) = self.links.session(peer, session) {
                    link.on_room(bytes);
                }
            }
        }
    }

    fn on_timer(&mut self, now: Time) {
        self.now = now;
        if let Some(run) = self.live() {
            run.on_time(now);
        }
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        let run = self.run.as_ref().filter(|run| run.is_live())?;
        run.next_time(self.now)
    }

    fn poll_output(&mut self, now: Time, backlog: &mut Backlog) -> Option<Output> {
        self.now = now;
        self.live()?;
        let output = self.hello().or_else(|| self.batch(backlog));
        if output.is_none()
            && let Some(run) = self.live()
        {
            run.rest();
        }
        output
    }

    fn poll_packet(&mut self) -> Option<Packet> {
        let packet = self.live()?.deliver()?;
        self.count.delivered += 1;
        Some(packet)
    }

    fn progress(&self) -> Option<u64> {
        self.run.as_ref().filter(|run| run.is_live())?.progress()
    }

    fn reading(&self) -> Class {
        Class::Token
    }

    fn count(&self, counters: &mut BTreeMap<&'static str, u64>) {
        let count = &self.count;
        counters.extend([
            ("lcr_batches_sent", count.batches),
            ("lcr_batch_bytes_sent", count.batch_bytes),
            ("lcr_packets_delivered", count.delivered),
            ("lcr_hellos_received", count.hellos),
            ("lcr_packets_duplicate", count.duplicates),
            ("lcr_messages_refused", count.refused),
            ("lcr_messages_stale", count.stale),
            ("lcr_datagrams_ignored", count.datagrams),
        ]);
    }

    fn uses_links(&self) -> bool {
        true
    }

    fn check(&self) {
        if let Some(run) = &self.run {
            run.check();
        }
    }

    fn holds(&self, view: RingId, id: PacketId) -> Option<bool> {
        let run = self.run.as_ref().filter(|run| run.ring() == view)?;
        Some(run.holds(id))
    }
}
