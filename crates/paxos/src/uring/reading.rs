//! Votes that are read back from the log: for others that ask, for the application, for promises, and for the snapshot
//! of what is forgotten.
//!
//! Each reader has one piece at a time, and the disk has few to read: who asks for much waits for itself. A piece that
//! cannot be read has no vote in it; others are asked for its values.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::Range;

use super::context::Context;
use crate::{Instance, Promise, VOTES_LOG, Vote};
use rota_core::contract::{NodeId, Output, Time};
use rota_core::mutants::{self, Mutant};

/// The most pieces that the disk is asked for at once.
const MOST: usize = 8;

/// Who reads votes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reader {
    /// The snapshot of what is forgotten next.
    Snapshot,
    /// The application of this process.
    Application,
    /// A promise to the coordinator at a node.
    Promise(NodeId),
    /// A process that asks for decided values.
    Peer(NodeId),
}

/// A piece that a reader waits for, or has.
#[derive(Debug)]
enum Piece {
    /// It has to be asked for.
    Wanted(Range<Instance>),
    /// The disk was asked for it.
    UnderWay(Range<Instance>),
    /// Votes in order.
    Read(VecDeque<Vote>),
    /// It cannot be read.
    Failed,
}

/// The answer to a reader.
#[derive(Debug)]
pub enum Piecemeal<'a> {
    /// Nothing is there yet.
    Later,
    /// The log does not have it, or cannot be read.
    Never,
    /// The next votes, from the first wanted instance on: at least one.
    Votes(&'a VecDeque<Vote>),
}

/// A promise that lacks votes.
#[derive(Debug)]
struct Owed {
    promise: Promise,
    /// The instances that it lacks.
    lacks: Range<Instance>,
    read: Vec<Vote>,
}

/// Values for the application that the log should have, and that others are asked for.
#[derive(Clone, Copy, Default, Debug)]
struct Elsewhere {
    /// The time at which another node, or the disk once more, was asked.
    asked: Option<Time>,
    turn: usize,
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Reading {
    /// The log is away.
    is_closed: bool,
    pieces: BTreeMap<Reader, Piece>,
    /// Pieces without an answer, also those that nobody waits for any more.
    under_way: VecDeque<Range<Instance>>,
    owed: BTreeMap<NodeId, Owed>,
    elsewhere: Elsewhere,
}

impl Reading {
    /// The next votes of these instances for a reader; only the log has them.
    pub fn get(&mut self, reader: Reader, wanted: Range<Instance>) -> Piecemeal<'_> {
        let mut piece = self.pieces.remove(&reader);
        if let Some(Piece::Read(votes)) = &mut piece {
            let is_old = |vote: &mut Vote| vote.end() <= wanted.start;
            while votes.pop_front_if(is_old).is_some() {}
            let next = votes.front().filter(|vote| vote.first <= wanted.start);
            if next.is_none() {
                piece = None;
            }
        }
        let piece = match piece {
            Some(Piece::Wanted(_)) | None if self.is_closed => Piece::Failed,
            Some(Piece::Wanted(_)) | None => Piece::Wanted(wanted),
            Some(piece) => piece,
        };
        // For the application somebody else is asked: it is remembered that it waits.
        if matches!(piece, Piece::Failed) && reader != Reader::Application {
            return Piecemeal::Never;
        }
        match self.pieces.entry(reader).insert_entry(piece).into_mut() {
            Piece::Read(votes) => Piecemeal::Votes(votes),
            Piece::Failed => Piecemeal::Never,
            Piece::Wanted(_) | Piece::UnderWay(_) => Piecemeal::Later,
        }
    }

    /// The next vote for the application, of these instances; only the log has them.
    pub fn first(&mut self, wanted: Range<Instance>) -> Option<Vote> {
        match self.get(Reader::Application, wanted) {
            Piecemeal::Votes(votes) => votes.front().cloned(),
            Piecemeal::Later | Piecemeal::Never => None,
        }
    }

    /// The next piece to ask the disk for.
    pub fn next(&mut self) -> Option<Output> {
        if self.under_way.len() >= MOST {
            return None;
        }
        let wants = |piece: &&mut Piece| matches!(piece, Piece::Wanted(_));
        let piece = self.pieces.values_mut().find(wants)?;
        let Piece::Wanted(wanted) = piece else {
            return None;
        };
        let wanted = wanted.clone();
        *piece = Piece::UnderWay(wanted.clone());
        self.under_way.push_back(wanted.clone());
        Some(Output::Fetch {
            log: VOTES_LOG,
            from: wanted.start,
            to: wanted.end,
        })
    }

    /// The disk has answered. Returns who gets the votes; nobody, if it is not wanted any more. None: it cannot be
    /// read. `is_over`: the first of it is forgotten meanwhile, and it is asked for again, or not at all.
    pub fn on_fetched(
        &mut self,
        asked: &Range<Instance>,
        votes: Vec<Vote>,
        is_over: bool,
    ) -> Option<Reader> {
        let at = self.under_way.iter().position(|range| range == asked)?;
        self.under_way.remove(at);
        let waits = |piece: &Piece| matches!(piece, Piece::UnderWay(range) if range == asked);
        let reader = self
            .pieces
            .iter()
            .find_map(|(reader, piece)| waits(piece).then_some(*reader))?;
        match (is_over, votes.is_empty()) {
            (true, _) => self.pieces.remove(&reader),
            (false, true) => self.pieces.insert(reader, Piece::Failed),
            (false, false) => self.pieces.insert(reader, Piece::Read(votes.into())),
        };
        Some(reader)
    }

    /// The log is away, or open again. Returns the readers that need not wait any more.
    pub fn close(&mut self, is_closed: bool) -> Vec<Reader> {
        self.is_closed = is_closed;
        if !is_closed {
            return Vec::new();
        }
        // An acceptor whose log is away promises nothing, and forgets nothing that it has to read first.
        self.forget_promises();
        self.forget(Reader::Snapshot);
        let mut over = Vec::new();
        for (reader, piece) in &mut self.pieces {
            if matches!(piece, Piece::Wanted(_) | Piece::UnderWay(_)) {
                *piece = Piece::Failed;
                over.push(*reader);
            }
        }
        over
    }

    /// The bytes in memory of what was read back, about.
    pub fn bytes(&self) -> usize {
        let pieces = self.pieces.values().flat_map(|piece| match piece {
            Piece::Read(votes) => Some(votes),
            Piece::Wanted(_) | Piece::UnderWay(_) | Piece::Failed => None,
        });
        let owed = self.owed.values().flat_map(|owed| &owed.read);
        let all = pieces.flatten().chain(owed);
        all.map(|vote| vote.value.bytes()).sum()
    }

    /// A reader wants nothing any more.
    pub fn forget(&mut self, reader: Reader) {
        self.pieces.remove(&reader);
    }
}

/// Promises.
impl Reading {
    /// A promise lacks the votes of these instances.
    pub fn owe(&mut self, node: NodeId, promise: Promise, lacks: Range<Instance>) {
        self.forget(Reader::Promise(node));
        let read = Vec::new();
        let owed = Owed {
            promise,
            lacks,
            read,
        };
        self.owed.insert(node, owed);
    }

    /// The promise to a node is not to be told as it is.
    pub fn take_owed(&mut self, node: NodeId) -> Option<Promise> {
        self.forget(Reader::Promise(node));
        self.owed.remove(&node).map(|owed| owed.promise)
    }

    /// All rounds before are over.
    pub fn forget_promises(&mut self) {
        for node in core::mem::take(&mut self.owed).into_keys() {
            self.forget(Reader::Promise(node));
        }
    }

    /// Goes on with a promise. Returns it when it has all votes. If some cannot be read it is not told: without them a
    /// coordinator could propose other values. Another acceptor promises, or this one in a later round.
    pub fn go_on(&mut self, node: NodeId) -> Option<Promise> {
        let mut owed = self.owed.remove(&node)?;
        let reader = Reader::Promise(node);
        while !owed.lacks.is_empty() {
            match self.get(reader, owed.lacks.clone()) {
                Piecemeal::Later => {
                    self.owed.insert(node, owed);
                    return None;
                }
                Piecemeal::Never => return None,
                Piecemeal::Votes(votes) => {
                    owed.read.extend(votes.iter().cloned());
                    owed.lacks.start = owed.read.last().map_or(owed.lacks.end, Vote::end);
                }
            }
        }
        self.forget(reader);
        let Owed {
            mut promise, read, ..
        } = owed;
        promise.votes.splice(..0, read);
        Some(promise)
    }
}

/// Values for the application that the log does not have though it should.
impl Reading {
    /// Whether the application waits for values that its log cannot tell.
    pub fn is_stuck(&self) -> bool {
        let piece = self.pieces.get(&Reader::Application);
        matches!(piece, Some(Piece::Failed)) && !mutants::on(Mutant::U132)
    }

    /// The time at which somebody is asked, or once more.
    pub fn next_time(&self, cx: &Context) -> Option<Time> {
        let at = |asked: Time| asked.after(cx.settings.patience.silence);
        self.is_stuck()
            .then(|| self.elsewhere.asked.map_or(cx.now, at))
    }

    /// The node to ask, if it is time: one after the other, and the own disk in its turn.
    pub fn ask(&mut self, cx: &Context, nodes: &[NodeId]) -> Option<NodeId> {
        if self.next_time(cx)? > cx.now {
            return None;
        }
        let turn = self.elsewhere.turn % (nodes.len() + 1);
        self.elsewhere.turn += 1;
        self.elsewhere.asked = Some(cx.now);
        let node = nodes.get(turn).copied();
        if node.is_none() && !self.is_closed {
            self.forget(Reader::Application);
        }
        node
    }

    /// Another process has told the next decided values for an application that is stuck, if there are any.
    pub fn on_told(&mut self, votes: Vec<Vote>) {
        if !votes.is_empty() {
            self.elsewhere.asked = None;
            let told = Piece::Read(votes.into());
            self.pieces.insert(Reader::Application, told);
        }
    }
}

impl Reading {
    /// Its invariants.
    pub fn check(&self) {
        assert!(self.under_way.len() <= MOST, "a disk has few to read");
        let waits = |piece: &&Piece| matches!(piece, Piece::UnderWay(_));
        let waits = self.pieces.values().filter(waits).count();
        assert!(waits <= self.under_way.len(), "who waits has asked");
        assert!(
            !self.is_closed || waits == 0,
            "nobody waits for a log that is away"
        );
    }
}
