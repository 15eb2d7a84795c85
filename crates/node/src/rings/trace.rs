//! The trace of a process of several rings, as JSON Lines, for `rota check`.
//!
//! A trace must not lie when the process is killed: the line about an accepted message reaches the kernel before the
//! message reaches the wire. Lines about deliveries may be missing at the end of a life that was killed, as if there
//! had been none.

use rota_core::contract::{Message, MessageId, Process, Time};
use rota_multiring::{Constants, Partition, Place, Point, Rank, Resume, ResumeRing};
use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::io;
use std::path::Path;

use crate::trace::{TraceFile, hash, put_line};

/// The source of the state that an application begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateSource {
    /// An earlier state of its own.
    Own,
    /// The state of another process.
    Peer,
}

/// A process's trace.
#[derive(Debug)]
pub(super) struct RingsTrace {
    file: TraceFile,
    me: Process,
    /// The name of the partition. Processes that deliver the same rings, and are of none, count as replicas of one.
    part: String,
    lines: String,
    /// The foundation of each ring, as soon as that is known.
    founded: BTreeMap<Rank, u64>,
    /// Delivered, and not written: the foundation of the ring was not known.
    untold: Vec<(Time, Place, MessageId, u64)>,
}

impl RingsTrace {
    /// Goes on in a file, of a process that delivers these rings.
    pub(super) fn create(
        path: &Path,
        me: Process,
        (partition, rings): (Option<Partition>, &[Constants]),
    ) -> io::Result<Self> {
        let ids: Vec<String> = rings.iter().map(|of| of.rank.to_string()).collect();
        let mut trace = Self {
            file: TraceFile::open(path)?,
            me,
            part: partition.map_or_else(|| ids.join("+"), |number| format!("p{number}")),
            lines: String::new(),
            founded: BTreeMap::new(),
            untold: Vec::new(),
        };
        let now = rota_net::monotonic();
        trace.line(now, "start", format_args!(""));
        let part = trace.part.clone();
        for ring in ids {
            let fields = format_args!(r#","part":"{part}","ring":{ring},"from":0"#);
            trace.line(now, "sub", fields);
        }
        trace.flush();
        Ok(trace)
    }

    /// The partition has a ring from a point on, which is the beginning of a round.
    pub(super) fn on_subscribed(&mut self, rank: Rank, point: Point) {
        self.on_change("sub", rank, point);
    }

    /// The partition has left a ring at a point.
    pub(super) fn on_left(&mut self, rank: Rank, point: Point) {
        self.on_change("unsub", rank, point);
    }

    fn on_change(&mut self, event: &str, rank: Rank, point: Point) {
        let (part, round) = (self.part.clone(), point.round);
        let fields = format_args!(r#","part":"{part}","ring":{rank},"from":{round}"#);
        self.line(rota_net::monotonic(), event, fields);
    }

    /// The application begins with a state that was kept at a point.
    pub(super) fn on_install(&mut self, resume: &Resume, source: StateSource) {
        let Resume { point, rings, .. } = resume;
        let of_rings = |say: &dyn Fn(&ResumeRing) -> String| {
            let all: Vec<String> = rings.iter().map(say).collect();
            all.join(",")
        };
        let next = of_rings(&|ring| format!(r#""{}":{}"#, ring.of.rank, ring.base.next));
        let founded = of_rings(&|ring| format!(r#""{}":{}"#, ring.of.rank, ring.founded));
        let ids = of_rings(&|ring| ring.of.rank.to_string());
        let is_open = rings.iter().any(|ring| !ring.base.open.is_empty());
        let Point { round, turn, used } = point;
        let point = format!(
            r#"{{"round":{round},"turn":{turn},"used":{used},"next":{{{next}}},"S":[{ids}],"founded":{{{founded}}},"open":{is_open}}}"#
        );
        let source = match source {
            StateSource::Own => "local",
            StateSource::Peer => "peer",
        };
        // Processes that are at one point have the same bases.
        let (digest, part) = (hash(&resume.encode()), self.part.clone());
        let fields = format_args!(
            r#","part":"{part}","point":{point},"digest":"{digest:016x}","source":"{source}""#
        );
        self.line(rota_net::monotonic(), "install", fields);
    }

    /// Lines that could not be written.
    pub(super) fn lost(&self) -> u64 {
        self.file.lost()
    }

    /// The foundation that a ring belongs to.
    pub(super) fn on_founded(&mut self, of: &Constants, founded: u64) {
        if self.founded.insert(of.rank, founded) == Some(founded) {
            return;
        }
        let Constants {
            rank,
            per_round,
            origin,
        } = of;
        let fields = format_args!(
            r#","ring":{rank},"rank":{rank},"m":{per_round},"origin":{origin},"founded":{founded}"#
        );
        self.line(rota_net::monotonic(), "genesis", fields);
    }

    /// A message was accepted by a ring, in which this process has another life's number.
    pub(super) fn on_submit(&mut self, now: Time, process: Process, counter: u64, payload: &[u8]) {
        let id = MessageId { process, counter };
        let hash = hash(payload);
        self.line(
            now,
            "send",
            format_args!(r#","msg":"{id}","to":[],"hash":"{hash:016x}""#),
        );
    }

    /// A message is handed to the application.
    pub(super) fn on_deliver(&mut self, place: Place, message: &Message) {
        let hash = hash(&message.payload);
        self.untold
            .push((rota_net::monotonic(), place, message.id, hash));
    }

    /// The point that this process has come to.
    pub(super) fn on_point(&mut self, point: Point, of: &Constants) {
        let (rank, next, part) = (of.rank, point.next_of(of), self.part.clone());
        self.line(
            rota_net::monotonic(),
            "passed",
            format_args!(r#","part":"{part}","ring":{rank},"next":{next}"#),
        );
    }

    /// The process leaves of its own will.
    pub(super) fn on_leave(&mut self) {
        self.line(rota_net::monotonic(), "leave", format_args!(""));
        self.flush();
    }

    /// Hands all that is known to the kernel.
    pub(super) fn flush(&mut self) {
        let is_known = |(_, place, ..): &&(Time, Place, MessageId, u64)| {
            self.founded.contains_key(&place.rank)
        };
        let known = self.untold.iter().take_while(is_known).count();
        let told: Vec<_> = self.untold.drain(..known).collect();
        let part = self.part.clone();
        for (at, place, id, hash) in told {
            let founded = self.founded.get(&place.rank).copied().unwrap_or(0);
            let Place {
                round,
                rank,
                instance,
                index,
            } = place;
            self.line(
                at,
                "deliver",
                format_args!(
                    r#","msg":"{id}","part":"{part}","ring":{rank},"founded":{founded},"inst":{instance},"idx":{index},"round":{round},"first":{instance},"hash":"{hash:016x}""#
                ),
            );
        }
        self.file.write(self.lines.as_bytes());
        self.lines.clear();
    }

    fn line(&mut self, now: Time, event: &str, fields: Arguments<'_>) {
        put_line(&mut self.lines, (now, self.me), event, fields);
    }
}
