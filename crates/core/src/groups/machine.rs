//! The state machine: the configuration of the daemons, and whether they know of each other's groups.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::clients::Clients;
use super::counters::Counters;
use super::event::ClientEvent;
use super::exclusion::Exclusion;
use super::gather::Gather;
use super::hold::{Holding, Holds};
use super::knowledge::Knowledge;
use super::large::Incoming;
use super::limits::Limits;
use super::message::{
    PIECE_BYTES, Part as LargePart, Piece, Request, Stamped, Told, parse, pieces,
};
use super::routes::Routes;
use super::views::Views;
use crate::contract::{Configuration, ConfigurationKind, Delivery, Message, Process, RingId};
use crate::mutants::{self, Mutant};

/// The state of a daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It has not been in any configuration.
    Idle,
    /// All daemons of the configuration know of the same groups.
    Operational,
    /// They did, and the configuration is ending; this one follows.
    Transitional(RingId),
    /// The daemons tell each other of their groups.
    Gathering,
    /// They do, and the configuration is ending.
    Interrupted {
        /// The configuration that follows.
        next: RingId,
        /// The daemons that go there with this one.
        stay: BTreeSet<Process>,
    },
}

/// The groups of one daemon's clients. See the module page of [`super`].
#[derive(Debug)]
pub struct Groups {
    pub(super) me: Process,
    pub(super) phase: Phase,
    /// The regular configuration, or the one that is ending.
    pub(super) ring: Option<RingId>,
    members: BTreeSet<Process>,
    /// The knowledge of all daemons: one part, unless daemons gather.
    pub(super) knowledge: Knowledge,
    /// The engine goes from one regular configuration to the next without a transitional one.
    pub(super) silent: bool,
    pub(super) exclusion: Exclusion,
    pub(super) gather: Gather,
    incoming: Incoming,
    pub(super) routes: Routes,
    pub(super) clients: Clients,
    pub(super) holds: Holds,
    pub(super) views: Views,
    pub(super) events: VecDeque<ClientEvent>,
    pub(super) counters: Counters,
}

impl Groups {
    /// The groups of the daemon that is this process.
    pub fn new(me: Process, limits: Limits) -> Self {
        Self {
            me,
            phase: Phase::Idle,
            ring: None,
            members: BTreeSet::new(),
            knowledge: Knowledge::default(),
            silent: false,
            exclusion: Exclusion::default(),
            gather: Gather::default(),
            incoming: Incoming::default(),
            routes: Routes::default(),
            clients: Clients::new(me, limits),
            holds: Holds::default(),
            views: Views::default(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// This daemon.
    pub const fn me(&self) -> Process {
        self.me
    }

    /// The state of this daemon.
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Counters, for people.
    pub const fn counters(&self) -> Counters {
        Counters {
            expired: self.holds.expired,
            ..self.counters
        }
    }

    /// Bytes of large messages of which not all parts have come: of each daemon one message at most.
    pub fn unfinished_bytes(&self) -> usize {
        self.incoming.bytes()
    }

    /// Takes what the engine delivers, in its order.
    pub fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Configuration(configuration) => self.on_configuration(configuration),
            Delivery::Message(message) => self.on_message(&message),
            Delivery::Excluded(_) => self.on_excluded(),
            Delivery::Missed { own, .. } => self.on_missed(own),
            Delivery::Passed { .. } | Delivery::Notice { .. } | Delivery::Primary(_) => {}
        }
    }

    fn on_configuration(&mut self, configuration: Configuration) {
        self.routes.clear();
        self.holds.begin_anew();
        let members = configuration.members.into_iter().collect();
        match configuration.kind {
            ConfigurationKind::Regular(ring) => self.on_regular(ring, members),
            ConfigurationKind::Transitional { old, new } if self.ring == Some(old) => {
                self.on_transitional(old, new, members);
            }
            ConfigurationKind::Transitional { .. } => self.counters.malformed += 1,
        }
    }

    fn on_transitional(&mut self, old: RingId, next: RingId, stay: BTreeSet<Process>) {
        match self.phase {
            Phase::Operational => self.split(old, next, &stay),
            Phase::Gathering => {
                self.counters.interrupted += 1;
                self.phase = Phase::Interrupted { next, stay };
            }
            _ => self.counters.malformed += 1,
        }
    }

    /// Only these daemons go on together: members that share a group with others are told.
    fn split(&mut self, old: RingId, next: RingId, stay: &BTreeSet<Process>) {
        self.phase = Phase::Transitional(next);
        self.views.begin_configuration();
        self.knowledge.keep((old, next), stay);
        for name in self.knowledge.changed() {
            self.signal(name);
        }
    }

    fn on_regular(&mut self, ring: RingId, members: BTreeSet<Process>) {
        let phase = core::mem::replace(&mut self.phase, Phase::Gathering);
        self.silent = matches!(phase, Phase::Operational | Phase::Gathering);
        match (phase, self.ring) {
            (Phase::Interrupted { next, stay }, Some(old)) => {
                self.keep_what_was_told();
                self.knowledge.keep((old, next), &stay);
            }
            (Phase::Operational, Some(old)) => {
                let kept_up = !self.exclusion.has_missed() || mutants::on(Mutant::G24);
                self.knowledge
                    .keep_own(self.me, (old, ring), &members, kept_up);
            }
            (Phase::Gathering, Some(old)) => {
                self.counters.interrupted += 1;
                self.knowledge
                    .keep_own(self.me, (old, ring), &members, false);
            }
            (Phase::Transitional(_), _) => {}
            (_, _) => self.knowledge.begin(ring, self.me),
        }
        self.exclusion.come_in();
        self.ring = Some(ring);
        self.members = members;
        self.views.begin_configuration();
        if !mutants::on(Mutant::G11) {
            self.counters.again += self.clients.send_again();
        }
        self.gather.tell(Vec::new());
        self.incoming.clear();
        if !mutants::on(Mutant::G10) {
            self.gather.begin_anew();
        }
        if self.knowledge.daemons() == self.members {
            self.complete(ring);
        } else {
            self.gather(ring);
        }
    }

    /// The exchange was cut off. If the knowledge of this daemon's set was told, then all daemons that were told the
    /// same are one set now.
    fn keep_what_was_told(&mut self) {
        if self.gather.has(self.me) || mutants::on(Mutant::G13) {
            let parts = self.gather.take_parts();
            self.knowledge.replace(parts);
        }
    }

    /// Begins to tell the knowledge of this daemon's set; one daemon speaks for all of them.
    fn gather(&mut self, ring: RingId) {
        self.phase = Phase::Gathering;
        self.counters.exchanges += 1;
        if self.knowledge.speaker() == Some(self.me) {
            let most = self.clients.limits.piece_bytes.clamp(1, PIECE_BYTES);
            let pieces = pieces(ring, &self.knowledge.encode(), most);
            self.gather.tell(pieces);
        }
    }

    /// All daemons of this ring know all that this one knows.
    fn complete(&mut self, ring: RingId) {
        self.routes.clear();
        let changed = self.knowledge.unite(ring, self.me);
        self.phase = Phase::Operational;
        self.include();
        for (group, sets) in changed {
            self.announce_network(group, sets.into_values().collect());
        }
    }

    fn on_message(&mut self, message: &Message) {
        let from = message.id.process;
        if self.on_known(from, &message.payload) {
            return;
        }
        let Some(Stamped { ring, told }) = parse(from, &message.payload) else {
            self.counters.malformed += 1;
            return;
        };
        let current = self.ring == Some(ring);
        match told {
            Told::Request(Request::Data(data, discard)) => {
                if self.has_its_place(from, current) {
                    self.on_unknown(from, &message.payload, data, discard);
                }
            }
            Told::Request(request) => self.on_request(from, current, request),
            Told::Part(part) => self.on_part(from, current, &part),
            Told::Holding(holding) => self.on_holding(from, current, holding),
            Told::Piece(piece) if current => self.on_piece(from, piece),
            Told::Piece(_) => {}
        }
    }

    fn on_request(&mut self, from: Process, current: bool, request: Request) {
        if self.has_its_place(from, current) {
            self.apply(request);
        }
    }

    /// A request that was sent for an earlier configuration counts for nobody: its sender sends it again once all know
    /// of the same groups.
    pub(super) fn has_its_place(&mut self, from: Process, current: bool) -> bool {
        let counts = self.counts(current);
        if counts && from == self.me {
            self.clients.returned();
        }
        counts
    }

    /// A hold for an earlier configuration does not count: its daemon says it again, if it still wants it.
    fn on_holding(&mut self, from: Process, current: bool, holding: Holding) {
        if !self.counts(current) && !mutants::on(Mutant::G20) {
            return;
        }
        if from == self.me {
            self.holds.returned();
        }
        self.holds.apply(from, holding);
    }

    /// Whether a request of a client is ordered in time.
    fn counts(&mut self, current: bool) -> bool {
        let ready = matches!(self.phase, Phase::Operational | Phase::Transitional(_));
        let counts = current && ready || mutants::on(Mutant::M34);
        self.counters.late += u64::from(!counts);
        counts
    }

    /// A large message has the place of its last part.
    fn on_part(&mut self, from: Process, current: bool, part: &LargePart) {
        if !self.counts(current) {
            return;
        }
        self.counters.parts += 1;
        if from == self.me {
            self.clients.part_returned(part.bytes.len());
        }
        let whole = match self.incoming.take(from, part) {
            Ok(Some(whole)) => parse(from, &whole),
            Ok(None) => return,
            Err(()) => None,
        };
        match whole.map(|stamped| stamped.told) {
            Some(Told::Request(request @ Request::Data(..))) => self.apply(request),
            _ => self.counters.malformed += 1,
        }
    }

    fn on_piece(&mut self, from: Process, piece: Piece) {
        let interrupted = match &self.phase {
            Phase::Gathering => None,
            Phase::Interrupted { next, stay } => Some((*next, stay.clone())),
            _ => {
                self.counters.malformed += 1;
                return;
            }
        };
        if !self.gather.on_piece(from, piece, &self.members) {
            self.counters.malformed += 1;
        }
        let Some(ring) = self.ring else { return };
        if !self.gather.is_complete(&self.members) {
            return;
        }
        let parts = self.gather.take_parts();
        self.gather.begin_anew();
        self.knowledge.replace(parts);
        self.complete(ring);
        if let Some((next, stay)) = interrupted {
            self.split(ring, next, &stay);
        }
    }
}

impl Groups {
    /// Its invariants.
    pub(super) fn check(&self) {
        assert!(
            self.phase == Phase::Idle || self.ring.is_some(),
            "a daemon that has begun is in a configuration"
        );
        let is_one = matches!(self.phase, Phase::Operational | Phase::Transitional(_));
        assert!(
            !is_one || self.knowledge.is_one(),
            "all daemons know of the same groups"
        );
        assert!(
            self.phase == Phase::Idle || self.members.contains(&self.me),
            "this daemon is among them"
        );
        if let Phase::Interrupted { stay, .. } = &self.phase {
            assert!(stay.contains(&self.me), "a daemon goes on with itself");
        }
        self.knowledge.check();
        self.clients.check();
    }
}
