//! What is written of a run, for the checker of traces.

use rota_check::multicast::{Delivered, Event, Line, Point as Written};
use rota_multiring::{Constants, Place, Point, Resume, ResumeRing};

pub const FOUNDED: u64 = 5;

/// A process: node and life.
pub type Who = (u16, u64);

/// The lines of a run, and what else was wrong with it.
#[derive(Default)]
pub struct Trace {
    pub lines: Vec<Line>,
    pub wrong: Vec<String>,
}

impl Trace {
    pub fn add(&mut self, (node, inc): Who, event: Event) {
        let t = self.lines.len() as u64;
        self.lines.push(Line {
            t,
            node,
            inc,
            event,
        });
    }

    pub fn genesis(&mut self, of: &Constants) {
        let ring = u32::from(of.rank.0);
        let event = Event::Genesis {
            ring,
            rank: ring,
            m: u64::from(of.per_round.get()),
            origin: of.origin,
            founded: FOUNDED,
        };
        self.add((1, 1), event);
    }

    pub fn has(&mut self, who: Who, part: &str, (ring, from): (u16, u64)) {
        let (part, ring) = (part.to_owned(), u32::from(ring));
        self.add(who, Event::Sub { part, ring, from });
    }

    pub fn has_left(&mut self, who: Who, part: &str, (ring, from): (u16, u64)) {
        let (part, ring) = (part.to_owned(), u32::from(ring));
        self.add(who, Event::Unsub { part, ring, from });
    }

    pub fn deliver(&mut self, who: Who, part: &str, place: Place) {
        let ring = place.rank.0;
        self.add(
            who,
            Event::Deliver(Delivered {
                msg: format!("{ring}.{}.{}", place.instance, place.index),
                part: part.to_owned(),
                ring: u32::from(ring),
                founded: FOUNDED,
                inst: place.instance,
                idx: place.index,
                round: place.round,
                first: place.instance,
                hash: "01".to_owned(),
            }),
        );
    }

    /// A life goes on behind a state with this digest, which follows from all that was delivered before it.
    pub fn install(&mut self, who: Who, part: &str, (resume, digest): (&Resume, u64)) {
        let (part, source) = (part.to_owned(), "local".to_owned());
        let (point, digest) = (written(resume), digest_of(resume, digest));
        self.add(
            who,
            Event::Install {
                part,
                point,
                digest,
                source,
            },
        );
    }

    /// The same of a state that is kept.
    pub fn keep(&mut self, who: Who, part: &str, (resume, digest): (&Resume, u64)) {
        let part = part.to_owned();
        let (point, digest) = (written(resume), digest_of(resume, digest));
        self.add(
            who,
            Event::Digest {
                part,
                point,
                digest,
            },
        );
    }
}

fn digest_of(resume: &Resume, digest: u64) -> String {
    format!("{digest:016x} {:?}", resume.spent)
}

fn written(resume: &Resume) -> Written {
    let Point { round, turn, used } = resume.point;
    let rings = resume.rings.iter();
    let number = |ring: &ResumeRing| u32::from(ring.of.rank.0);
    let next = rings.clone().map(|ring| (number(ring), ring.base.next));
    Written {
        round,
        turn: u32::from(turn.0),
        used: u64::from(used),
        next: next.collect(),
        rings: rings.clone().map(number).collect(),
        founded: rings.map(|ring| (number(ring), ring.founded)).collect(),
        open: false,
    }
}
