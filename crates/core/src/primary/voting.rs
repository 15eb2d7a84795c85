//! One node's part in dynamic linear voting, step by step.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use super::decide::{decide, has_forgotten};
use super::message::Own;
use super::session::{Knowledge, Session};
use crate::contract::{LogId, LogRecord, NodeId, Process, RingId, StartState};
use crate::mutants::{self, Mutant};

/// The log whose record 0 holds what this node knows of primaries.
pub const PRIMARY_LOG: LogId = LogId(2);

/// See the module page of [`super`].
#[derive(Debug, Default)]
pub(super) struct Voting {
    me: Option<NodeId>,
    known: Knowledge,
    /// The version of `known`, which grows with each change; the durable version; the version that is being written.
    version: u64,
    durable: u64,
    writing: Option<u64>,
    round: Option<Round>,
    /// Messages that have not been submitted yet.
    unsent: VecDeque<Vec<u8>>,
    report: Option<RingId>,
    pub counters: Counters,
}

/// The counters of the layer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub attempts: u64,
    pub refused: u64,
    pub formed: u64,
    pub forgotten: u64,
}

/// The newest regular configuration.
#[derive(Debug)]
struct Round {
    this: Session,
    members: Vec<Process>,
    /// The lists of nodes that count in the first primary, as the members are configured.
    electorates: Vec<Vec<NodeId>>,
    /// No transitional configuration has followed yet.
    regular: bool,
    told: BTreeMap<Process, Knowledge>,
    attempted: BTreeSet<Process>,
    /// The disk has failed, or does not answer: the report comes when it can, and deliveries do not wait for it.
    late: bool,
    step: Step,
}

/// The progress of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The knowledge of this node has to be durable before it is told.
    Telling,
    /// Waiting until all have told.
    Told,
    /// The attempt has to be durable, as this version, before it is announced.
    Attempting(u64),
    /// Waiting until all have announced theirs.
    Attempted,
    /// The configuration is primary. Its knowledge of that has to be durable, as this version, before it is reported.
    Formed(u64),
    /// Nothing more happens.
    Over,
}

impl Voting {
    /// Begins with the knowledge that an earlier life has left, or else with `first`. A record that cannot be read
    /// counts as forgotten knowledge.
    pub fn new(start: &StartState, first: &[NodeId]) -> Self {
        let mut records = start.records.iter();
        let record = records.find(|(log, _, _)| *log == PRIMARY_LOG);
        let known = match record {
            Some((_, _, bytes)) => Knowledge::from_record(bytes).unwrap_or_default(),
            None => Knowledge::first(first),
        };
        Self {
            me: Some(start.me.node),
            known,
            ..Self::default()
        }
    }

    /// A regular configuration is delivered.
    pub fn on_regular(&mut self, ring: RingId, members: &[Process], electorates: &[Vec<NodeId>]) {
        let nodes = members.iter().map(|member| member.node).collect();
        self.round = Some(Round {
            this: Session::new(ring, nodes),
            members: members.to_vec(),
            electorates: electorates.to_vec(),
            regular: true,
            told: BTreeMap::new(),
            attempted: BTreeSet::new(),
            late: false,
            step: Step::Telling,
        });
        // Nobody listens any more to the messages for earlier configurations.
        self.unsent.clear();
        self.report = None;
        self.advance();
    }

    /// The regular configuration has ended.
    pub fn on_transitional(&mut self) {
        if let Some(round) = &mut self.round {
            round.regular = false;
        }
        self.report = None;
    }

    /// A message of the layer is delivered.
    pub fn on_own(&mut self, from: Process, message: Own) {
        let Some(round) = &mut self.round else { return };
        if !round.members.contains(&from) {
            return;
        }
        match message {
            Own::Vote(ring, known) if ring == round.this.ring && round.regular => {
                round.told.insert(from, known);
            }
            // An attempt of each member means the same in the transitional configuration.
            Own::Attempt(ring) if ring == round.this.ring => {
                round.attempted.insert(from);
            }
            _ => {}
        }
        self.advance();
    }

    /// Takes every step that can be taken.
    fn advance(&mut self) {
        while let Some(step) = self.next_step() {
            if let Some(round) = &mut self.round {
                round.step = step;
            }
        }
    }

    fn next_step(&mut self) -> Option<Step> {
        let (version, durable) = (self.version, self.durable);
        let round = self.round.as_ref()?;
        match round.step {
            Step::Telling if durable == version => {
                let vote = Own::Vote(round.this.ring, self.known.clone());
                self.unsent.push_back(vote.encode());
                Some(Step::Told)
            }
            Step::Told if round.regular && round.told.len() == round.members.len() => {
                Some(self.decide())
            }
            Step::Attempting(version) if durable >= version => {
                if !round.regular {
                    return Some(Step::Over);
                }
                let attempt = Own::Attempt(round.this.ring);
                self.unsent.push_back(attempt.encode());
                Some(Step::Attempted)
            }
            Step::Attempted if round.attempted.len() == round.members.len() => Some(self.form()),
            Step::Formed(version) if durable >= version => {
                if round.regular {
                    self.report = Some(round.this.ring);
                }
                Some(Step::Over)
            }
            _ => None,
        }
    }

    /// All have told what they know.
    fn decide(&mut self) -> Step {
        let Some(round) = &self.round else {
            return Step::Over;
        };
        let told = round.told.iter();
        let told: Vec<_> = told.map(|(member, known)| (member.node, known)).collect();
        let verdict = decide(&round.this, &told, &round.electorates);
        let this = round.this.clone();
        let me = self.me;
        let has_forgotten = me.is_some_and(|me| has_forgotten(me, &self.known, &told));
        self.counters.forgotten += u64::from(has_forgotten);
        let mut known = match has_forgotten {
            true => Knowledge::default(),
            false => self.known.clone(),
        };
        // A node that has forgotten may have made attempts that it does not know of. A later primary settles only
        // attempts that are older than those it remembers.
        let remembers = |last: &Session| {
            known.last.is_some()
                || known
                    .attempts
                    .iter()
                    .any(|attempt| attempt.ring <= last.ring)
        };
        let last = verdict.last.as_ref();
        let carries = last.is_some_and(|last| known.carries(last, &verdict.open));
        // The first primary is a setting, and each node keeps its own.
        let of_a_ring = verdict.last.filter(|last| last.ring.ring_seq > 0);
        if let Some(last) = of_a_ring.filter(remembers) {
            known.last = Some(last);
        }
        known
            .attempts
            .retain(|attempt| verdict.open.contains(attempt));
        if verdict.eligible {
            self.counters.attempts += 1;
            if carries {
                known.carried.insert(this.ring);
            }
            known.attempts.push(this);
        } else {
            self.counters.refused += 1;
        }
        known.forget_others();
        let forgetful = mutants::on(Mutant::P01);
        if known != self.known && !forgetful {
            self.version += 1;
        }
        self.known = known;
        if verdict.eligible {
            Step::Attempting(self.version)
        } else {
            Step::Over
        }
    }

    /// All have attempted: the configuration is primary, even if no member gets to report it.
    fn form(&mut self) -> Step {
        if let Some(round) = &self.round {
            self.known.last = Some(round.this.clone());
            self.known.attempts.clear();
            self.known.forget_others();
            self.version += 1;
            self.counters.formed += 1;
        }
        Step::Formed(self.version)
    }

    /// The application has the state of the primary with this ring, and keeps it over a crash.
    pub fn caught_up(&mut self, ring: RingId) {
        let last = self.known.last.as_ref();
        if last.is_some_and(|last| last.ring == ring) && self.known.carried.insert(ring) {
            self.version += 1;
        }
    }

    /// Whether this node has the state of the last primary it knows.
    pub fn is_caught_up(&self) -> bool {
        let last = self.known.last.as_ref();
        last.is_some_and(|last| self.known.carries(last, &[]))
    }

    /// Whether something is not durable, nor on its way to be.
    pub const fn has_to_write(&self) -> bool {
        self.writing.is_none() && self.durable < self.version
    }

    /// The records to write now.
    pub fn poll_records(&mut self) -> Option<Vec<LogRecord>> {
        if !self.has_to_write() {
            return None;
        }
        self.writing = Some(self.version);
        Some(vec![LogRecord::Put {
            log: PRIMARY_LOG,
            position: 0,
            bytes: self.known.to_record().into(),
        }])
    }

    pub fn on_persisted(&mut self) {
        if let Some(version) = self.writing.take() {
            self.durable = version;
        }
        self.advance();
    }

    /// The record is written again. Deliveries that wait for it need not wait any longer.
    pub fn on_persist_failed(&mut self) {
        self.writing = None;
        self.hold_no_longer();
    }

    /// Deliveries do not wait for the report: it comes when it can.
    pub const fn hold_no_longer(&mut self) {
        if let Some(round) = &mut self.round {
            round.late = true;
        }
    }

    /// The message to submit next.
    pub fn unsent(&self) -> Option<&[u8]> {
        self.unsent.front().map(Vec::as_slice)
    }

    /// It was submitted.
    pub fn sent(&mut self) {
        self.unsent.pop_front();
    }

    /// The ring whose configuration is primary from here on.
    pub const fn take_report(&mut self) -> Option<RingId> {
        self.report.take()
    }

    /// Whether nothing may be delivered before the report: all report at the same place of the order,
    /// except those whose disks have failed or do not answer.
    pub fn is_holding(&self) -> bool {
        let round = self.round.as_ref();
        round.is_some_and(|round| {
            round.regular && !round.late && matches!(round.step, Step::Formed(_))
        })
    }
}

impl Voting {
    /// Its invariants.
    pub fn check(&self) {
        self.known.check();
        assert!(self.durable <= self.version, "what is durable was known");
        assert!(
            self.writing
                .is_none_or(|of| of > self.durable && of <= self.version),
            "what is written is known and not durable"
        );
        let round = self.round.as_ref();
        assert!(
            self.report.is_none_or(
                |ring| round.is_some_and(|round| round.regular && round.this.ring == ring)
            ),
            "the configuration that is reported is the current one"
        );
        if let Some(round) = round {
            round.check(self.version);
        }
    }
}

impl Round {
    fn check(&self, version: u64) {
        let is_member = |process: &Process| self.members.contains(process);
        assert!(
            self.told.keys().all(is_member) && self.attempted.iter().all(is_member),
            "only members vote"
        );
        assert_eq!(
            self.this.members.len(),
            self.members.len(),
            "a node is in a configuration once"
        );
        if let Step::Attempting(of) | Step::Formed(of) = self.step {
            assert!(of <= version, "what a step waits for is known");
        }
        if matches!(
            self.step,
            Step::Attempting(_) | Step::Attempted | Step::Formed(_)
        ) {
            assert_eq!(
                self.told.len(),
                self.members.len(),
                "all have told before one attempts"
            );
        }
        if matches!(self.step, Step::Formed(_)) {
            assert_eq!(
                self.attempted.len(),
                self.members.len(),
                "all have attempted before one forms"
            );
        }
    }
}
