//! Requests that the disk has not answered, in their order.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::super::pace::Pace;
use super::Effect;
use crate::{Instance, Mark};
use rota_core::contract::{PersistId, Time};
use rota_core::mutants::{self, Mutant};

/// A process asks for missing instances while no more than one part in this many of the allowed bytes is under way:
/// there has to be room for proposals.
const PART_OF_LACKING: usize = 4;

/// The consequences of a durable request.
#[derive(Debug, Default)]
pub struct Done {
    /// All records of the acceptor before this mark are durable.
    pub mark: Option<Mark>,
    /// Everything learnt before this instance is.
    pub learnt: Instance,
    pub effects: Vec<Effect>,
}

impl Done {
    fn add(&mut self, later: Self) {
        self.mark = later.mark.or(self.mark);
        self.learnt = self.learnt.max(later.learnt);
        self.effects.extend(later.effects);
    }
}

#[derive(Debug)]
struct Request {
    id: PersistId,
    asked: Time,
    bytes: usize,
    done: Done,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct UnderWay {
    last: u64,
    requests: VecDeque<Request>,
    /// Their bytes.
    bytes: usize,
    pace: Pace,
}

impl UnderWay {
    /// None; at most `most` bytes may be under way at a quick disk.
    pub fn new(most: usize) -> Self {
        Self {
            pace: Pace::new(most),
            ..Self::default()
        }
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether `bytes` more may be under way.
    pub const fn takes(&self, bytes: usize) -> bool {
        self.bytes + bytes < self.pace.most()
    }

    /// The bytes that may be under way beside those that are.
    pub const fn room(&self) -> usize {
        self.pace.most().saturating_sub(self.bytes)
    }

    /// Whether so much is that nothing should be asked of others.
    pub const fn is_busy(&self) -> bool {
        self.bytes >= self.pace.most() / PART_OF_LACKING
    }

    /// The disk is asked to make records of these bytes durable.
    pub fn ask(&mut self, now: Time, bytes: usize, done: Done) -> PersistId {
        self.last += 1;
        let id = PersistId(self.last);
        self.bytes += bytes + usize::from(mutants::on(Mutant::I08));
        self.pace.on_request(now);
        self.requests.push_back(Request {
            id,
            asked: now,
            bytes,
            done,
        });
        id
    }

    /// These follow with the last request. Hands them back if there is none.
    pub fn follow(&mut self, done: Done) -> Option<Done> {
        match self.requests.back_mut() {
            Some(last) => {
                last.done.add(done);
                None
            }
            None => Some(done),
        }
    }

    /// A request, and all before it, are durable: `each` takes what follows. `patience`: the time that a disk may take.
    pub fn on_persisted(
        &mut self,
        id: PersistId,
        (now, patience): (Time, u64),
        mut each: impl FnMut(Done),
    ) {
        let (mut asked, before) = (None, self.bytes);
        while let Some(first) = self.requests.pop_front_if(|request| request.id <= id) {
            self.bytes -= first.bytes;
            asked = asked.or(Some(first.asked));
            each(first.done);
        }
        if let Some(asked) = asked {
            let answered = (before - self.bytes, now.since(asked));
            let is_all = self.requests.is_empty();
            self.pace.on_answer(now, answered, is_all, patience);
        }
    }

    /// A request has failed, or took too long: none counts.
    pub fn on_failed(&mut self) {
        self.requests.clear();
        self.bytes = 0;
        self.pace.on_failed();
    }

    /// The time at which a disk that may take `patience` has hung, with `grace` more if this process did not run.
    pub fn hangs_at(&self, patience: u64, grace: u64) -> Option<Time> {
        self.pace.hangs_at(patience, grace)
    }

    /// That time has come. Returns whether that was the last.
    pub fn is_late(&mut self, now: Time) -> bool {
        self.pace.is_late(now)
    }

    /// Its invariants.
    pub fn check(&self) {
        let bytes: usize = self.requests.iter().map(|request| request.bytes).sum();
        assert_eq!(self.bytes, bytes, "what is under way is counted");
        self.pace.check();
        let ids = self.requests.iter().map(|request| request.id);
        assert!(
            ids.is_sorted_by(|one, next| one < next),
            "requests are answered in order"
        );
        let last = self.requests.back();
        assert!(last.is_none_or(|last| last.id.0 <= self.last), "ids grow");
    }
}
