//! What is written of a run, for the checker of traces, which knows nothing of merges, points and accounts.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use rota_check::multicast::{Delivered, Event, Line, Point as Written, check_multicast};
use rota_core::contract::MessageId;
use rota_multiring::{Feed, Instance, Place, Resume, Round};

use super::host::{Kept, State};
use super::world::World;

/// A message, by its ring.
type Name = (usize, MessageId);

/// The lines of a run, and what is needed for the last of them.
#[derive(Default)]
pub struct Trace {
    lines: Vec<Line>,
    /// By ring: its foundation.
    founded: BTreeMap<usize, u64>,
    /// What was accepted: the hash of its contents.
    sent: BTreeMap<Name, u64>,
    /// In which instance a ring has handed it to somebody.
    ordered: BTreeMap<Name, Instance>,
    /// By host: the furthest point at which it had a durable state.
    furthest: BTreeMap<usize, rota_multiring::Point>,
}

pub fn part(partition: u32) -> String {
    format!("p{partition}")
}

fn name((ring, id): Name) -> String {
    format!(
        "{ring}.{}.{}.{}",
        id.process.node.get(),
        id.process.incarnation.0,
        id.counter
    )
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn digest(state: &State, resume: &Resume) -> String {
    format!("{}.{:016x} {:?}", state.count, state.digest, resume.spent)
}

fn written(resume: &Resume) -> Written {
    let point = resume.point;
    let number = |ring: &rota_multiring::ResumeRing| u32::from(ring.of.rank.0);
    let rings = || resume.rings.iter();
    Written {
        round: point.round,
        turn: u32::from(point.turn.0),
        used: u64::from(point.used),
        next: rings().map(|ring| (number(ring), ring.base.next)).collect(),
        rings: rings().map(number).collect(),
        founded: rings().map(|ring| (number(ring), ring.founded)).collect(),
        open: rings().any(|ring| !ring.base.open.is_empty()),
    }
}

impl World {
    pub fn note(&mut self, host: usize, event: Event) {
        let (t, node, inc) = (self.now, host as u16 + 1, self.hosts[host].lives);
        self.trace.lines.push(Line {
            t,
            node,
            inc,
            event,
        });
    }

    fn part_of(&self, host: usize) -> String {
        part(self.partition(host))
    }

    /// Which replicas a partition has, of how many a ring waits for states.
    pub fn note_replicas(&mut self) {
        for host in 0..self.hosts.len() {
            let partition = self.partition(host);
            let replicas: Vec<u64> = self
                .replicas(partition)
                .map(|host| host as u64 + 1)
                .collect();
            let most = replicas.len() / 2 + 1;
            let event = Event::Replicas {
                part: part(partition),
                // Without an account rings forget whatever is old.
                q_t: if self.has_account(host) { most } else { 0 },
                q_r: most,
                replicas,
            };
            self.note(host, event);
        }
    }

    /// A life begins, behind its state if it has one.
    pub fn note_start(&mut self, host: usize) {
        self.note(host, Event::Start);
        let source = match self.hosts[host].is_fetched {
            true => "peer",
            false => "local",
        };
        if let Some(kept) = self.hosts[host].kept.clone() {
            let event = Event::Install {
                part: self.part_of(host),
                point: written(&kept.resume),
                digest: digest(&kept.state, &kept.resume),
                source: source.to_owned(),
            };
            self.note(host, event);
        }
        for ring in self.begins_with(host) {
            self.note_has(host, (self.rings[ring].of.constants.rank.0, 0));
        }
    }

    /// The life has a ring from a round on.
    pub fn note_has(&mut self, host: usize, (rank, from): (u16, u64)) {
        let part = self.part_of(host);
        let ring = u32::from(rank);
        self.note(host, Event::Sub { part, ring, from });
    }

    /// The life does not have a ring any more.
    pub fn note_left(&mut self, host: usize, (rank, from): (u16, u64)) {
        let part = self.part_of(host);
        let ring = u32::from(rank);
        self.note(host, Event::Unsub { part, ring, from });
    }

    pub fn note_deliver(
        &mut self,
        host: usize,
        (ring, place): (usize, Place),
        what: (MessageId, &[u8]),
    ) {
        let known = self.trace.founded.get(&ring).copied();
        let engine = self
            .engine(host, ring)
            .and_then(|engine| Feed::founded(engine.get().get()));
        let founded = engine.unwrap_or(0);
        if known.is_none() {
            let of = self.rings[ring].of.constants;
            let genesis = Event::Genesis {
                ring: u32::from(of.rank.0),
                rank: u32::from(of.rank.0),
                m: u64::from(of.per_round.get()),
                origin: of.origin,
                founded,
            };
            self.trace.founded.insert(ring, founded);
            self.note(host, genesis);
        }
        let event = Event::Deliver(Delivered {
            msg: name((ring, what.0)),
            part: self.part_of(host),
            ring: u32::from(place.rank.0),
            founded,
            inst: place.instance,
            idx: place.index,
            round: place.round,
            first: place.instance,
            hash: format!("{:016x}", hash(what.1)),
        });
        self.note(host, event);
    }

    /// A ring has accepted a message.
    pub fn note_sent(&mut self, name: Name, payload: &[u8]) {
        self.trace.sent.insert(name, hash(payload));
    }

    /// A ring has handed a message to a process, whether that delivers it or not.
    pub fn note_ordered(&mut self, name: Name, instance: Instance) {
        self.trace.ordered.insert(name, instance);
    }

    /// What an application has at a point.
    pub fn note_state(&mut self, host: usize, (resume, state): (&Resume, &State)) {
        let event = Event::Digest {
            part: self.part_of(host),
            point: written(resume),
            digest: digest(state, resume),
        };
        self.note(host, event);
    }

    /// A state is durable. What is lost of it later does not bring back what was forgotten meanwhile.
    pub fn note_durable(&mut self, host: usize, kept: &Kept) {
        let point = kept.resume.point;
        if self
            .trace
            .furthest
            .get(&host)
            .is_some_and(|furthest| *furthest >= point)
        {
            return;
        }
        self.trace.furthest.insert(host, point);
        let event = Event::Checkpoint {
            part: self.part_of(host),
            store: host as u64 + 1,
            point: written(&kept.resume),
            digest: digest(&kept.state, &kept.resume),
        };
        self.note(host, event);
    }

    /// An acceptor has forgotten what is before an instance. What was forgotten when an account was opened is nobody's.
    pub fn note_trim(&mut self, host: usize, (ring, kept): (usize, Instance)) {
        let is_behind = |other: usize| match self.opened.get(&(ring, self.partition(other))) {
            Some(first) => kept > *first,
            None => !self.partition_of(other).accounts.contains(&ring),
        };
        if self.has_accounts && (0..self.hosts.len()).all(is_behind) {
            let ring = u32::from(self.rings[ring].of.constants.rank.0);
            let below = kept;
            self.note(host, Event::Trim { ring, below });
        }
    }

    /// All is at rest: judges the whole run by its trace.
    pub fn judge_trace(&mut self) {
        self.note_rest();
        let report = check_multicast(&self.trace.lines);
        if let Some(violation) = report.violations.first() {
            let (property, detail) = (violation.property, &violation.detail);
            self.judge.found(format!("{property}: {detail}"));
        }
        for (property, name) in [("AM-A", "trace: AM-A"), ("AM-V", "trace: AM-V")] {
            let of = report.verdicts.iter();
            let mut of = of.filter(|verdict| verdict.property == property);
            let checked = of.next().map_or(0, |verdict| verdict.checked);
            *self.counts.entry(name).or_default() += checked;
        }
        let counters = report.counters;
        for (name, count) in [
            ("trace: deliveries", counters.deliveries),
            ("trace: trims", counters.trims),
            (
                "trace: installed",
                counters.installed_local + counters.installed_remote,
            ),
        ] {
            *self.counts.entry(name).or_default() += count;
        }
    }

    fn note_rest(&mut self) {
        for host in 0..self.hosts.len() {
            // Who waits for a state that nobody has delivers nothing.
            if self.is_helpless(&self.hosts[host]) {
                self.note(host, Event::Crash);
            } else {
                self.note_passed(host);
            }
        }
        let sent = std::mem::take(&mut self.trace.sent);
        for ((ring, id), hash) in sent {
            let (msg, hash) = (name((ring, id)), format!("{hash:016x}"));
            let to = self.receivers((ring, id));
            let inc = id.process.incarnation.0;
            let node = id.process.node.get();
            let event = Event::Send { msg, to, hash };
            self.trace.lines.push(Line {
                t: self.now,
                node,
                inc,
                event,
            });
        }
        self.note(0, Event::Quiesce);
    }

    /// A life has been given everything before where it stands.
    fn note_passed(&mut self, host: usize) {
        let Some(life) = &self.hosts[host].life else {
            return;
        };
        let Some(point) = life.learner.point() else {
            return;
        };
        let rings: Vec<(u32, Instance)> = life
            .learner
            .rings()
            .map(|of| (u32::from(of.rank.0), point.next_of(of)))
            .collect();
        for (ring, next) in rings {
            let part = self.part_of(host);
            self.note(host, Event::Passed { part, ring, next });
        }
    }

    /// The partitions that have a message's ring in the round in which it was ordered; of one that no ring has handed to
    /// anybody, those that have it in the end. None, where nobody has.
    fn receivers(&self, (ring, id): Name) -> Vec<String> {
        let of = self.rings[ring].of.constants;
        let round = self
            .trace
            .ordered
            .get(&(ring, id))
            .map(|at| of.round_of(*at));
        let partitions = self.partitions.iter().enumerate();
        let has =
            partitions.filter(|(_, partition)| partition.has(ring, round.unwrap_or(Round::MAX)));
        let mut to: Vec<String> = has.map(|(number, _)| part(number as u32)).collect();
        if to.is_empty() {
            to.push("nobody".to_owned());
        }
        to
    }
}
