//! The links of this process that are up, their room, and the messages that wait for them.

mod told;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

use super::catch_up::Answer;
use super::word::{Hello, ResumeFrom, Word};
use crate::{AcceptorId, Instance, Promise};
use rota_core::contract::{Channel, NodeId, Output, Pieces, Process, Session};
use rota_core::mutants::{self, Mutant};

/// The most messages that may wait for one link; nobody needs to hear more than that.
const WORDS: usize = 64;
/// Answers, snapshots and promises leave while no more than one part in this many of a link's queue is under way: other
/// messages, and the sign that this process lives, are not to wait behind megabytes of them on a slow link. Drivers
/// tell of half as much room.
const CLEAR: usize = 8;
/// A promise with no more than this left to tell, in bytes, leaves as soon as there is room: a round may wait for it.
const SMALL: usize = 4 << 10;
/// The most questions of one process that wait for their answers, as it asks no more at once. It has given up earlier
/// ones.
const ASKED: usize = 16;
/// The room of a batch that leaves out of turn, in bytes: enough for votes, and not for values.
const OUT_OF_TURN: usize = 1024;

/// A link that is up.
#[derive(Debug)]
pub struct Peer {
    /// The process at its other end.
    pub process: Process,
    pub session: Session,
    /// The foundation of this process.
    founded: u64,
    /// The foundation of the process at its other end, by its last message.
    pub theirs: u64,
    /// The bytes that the link still takes.
    room: usize,
    /// The bytes that it takes when nothing is under way, as far as was seen.
    most_room: usize,
    words: VecDeque<Bytes>,
    /// The number of messages that there was no place for.
    dropped: u64,
    asked: Asked,
    /// The bytes of a snapshot that were told, and the rest.
    base: Option<(u64, Bytes)>,
    /// A promise whose votes were not all sent, and the number that were.
    promise: Option<(Promise, usize)>,
    /// A part of an answer, a snapshot or a promise is next, before further batches of the ring.
    part_is_next: bool,
    /// The last part was an answer: a promise or a snapshot comes first now.
    answered: bool,
    /// Its last message about itself.
    pub here: Option<Hello>,
    /// Its resume message for a configuration that was not known here yet.
    pub early: Option<ResumeFrom>,
}

/// The instances that a process has asked for, in order. Answers are made when they leave: an old question may be given
/// up, or its instances forgotten.
#[derive(Debug, Default)]
struct Asked {
    of: VecDeque<Range<Instance>>,
    /// The first of them waits for the disk.
    reads: bool,
    /// The process observes, and knows everything before this instance: it waits for more.
    watches: Option<Instance>,
}

/// At most one link to each node.
#[derive(Debug)]
pub struct Peers {
    /// The size at which a message with votes ends, in bytes. One vote may be larger.
    word_bytes: usize,
    /// The foundation of this process; 0 if it has none yet.
    founded: u64,
    up: BTreeMap<NodeId, Peer>,
    /// The least instance before which an observer knows everything, of those that wait for more.
    watched: Option<Instance>,
    /// The number of messages that there was no place for, over links that are gone.
    dropped: u64,
}

impl Peers {
    /// None is up.
    pub const fn new(word_bytes: usize) -> Self {
        Self {
            word_bytes,
            founded: 0,
            up: BTreeMap::new(),
            watched: None,
            dropped: 0,
        }
    }

    /// The number of messages that were dropped because too many waited for their link.
    pub fn dropped(&self) -> u64 {
        self.dropped + self.up.values().map(|peer| peer.dropped).sum::<u64>()
    }

    /// From here on this process belongs to this foundation, and says so with each message. Hellos of processes of
    /// another foundation do not count.
    pub fn found(&mut self, founded: u64) {
        self.founded = founded;
        for peer in self.up.values_mut() {
            peer.founded = founded;
            if peer.theirs > 0 && peer.theirs != founded {
                peer.here = None;
            }
        }
    }

    pub fn on_up(&mut self, process: Process, session: Session) {
        let peer = Peer {
            process,
            session,
            founded: self.founded,
            theirs: 0,
            room: 0,
            most_room: 0,
            words: VecDeque::new(),
            dropped: 0,
            asked: Asked::default(),
            base: None,
            promise: None,
            part_is_next: false,
            answered: false,
            here: None,
            early: None,
        };
        self.up.insert(process.node, peer);
    }

    /// The process whose link this was, if it was its last session.
    pub fn on_down(&mut self, node: NodeId, session: Session) -> Option<Process> {
        self.session(node, session)?;
        let peer = self.up.remove(&node)?;
        self.dropped += peer.dropped;
        Some(peer.process)
    }

    pub fn on_writable(&mut self, node: NodeId, session: Session, room: usize) {
        if let Some(peer) = self.session(node, session) {
            peer.room = room;
            peer.most_room = peer.most_room.max(room);
        }
    }

    /// The link to a node, if this is its session.
    pub fn session(&mut self, node: NodeId, session: Session) -> Option<&mut Peer> {
        self.up
            .get_mut(&node)
            .filter(|peer| peer.session == session)
    }

    /// The link to a process: not to another life of the same node.
    pub fn process(&mut self, process: Process) -> Option<&mut Peer> {
        self.up
            .get_mut(&process.node)
            .filter(|peer| peer.process == process)
    }

    /// The link to a node.
    pub fn at(&self, node: NodeId) -> Option<&Peer> {
        self.up.get(&node)
    }

    /// Whether there is a link to this process.
    pub fn has(&self, process: Process) -> bool {
        let peer = self.at(process.node);
        peer.is_some_and(|peer| peer.process == process)
    }

    /// The acceptor as which a process would vote, if there is a link to it and it has said so.
    pub fn acceptor_of(&self, process: Process) -> Option<AcceptorId> {
        let peer = self.at(process.node);
        let peer = peer.filter(|peer| peer.process == process)?;
        peer.here?.acceptor
    }

    /// All that are up.
    pub fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.up.values()
    }

    /// Says a word to a node, if there is a link.
    pub fn say(&mut self, node: NodeId, word: &Word) {
        if let Some(peer) = self.up.get_mut(&node) {
            peer.say(word);
        }
    }

    /// Says a word to all.
    pub fn say_to_all(&mut self, word: &Word) {
        let bytes = Bytes::from(word.encode(self.founded));
        self.up
            .values_mut()
            .for_each(|peer| peer.put(bytes.clone()));
    }

    /// Tells a promise, in as many words as it takes.
    pub fn promise(&mut self, node: NodeId, promise: Promise) {
        if let Some(peer) = self.up.get_mut(&node) {
            peer.promise = Some((promise, 0));
        }
    }

    /// Forgets promises, which were of rounds that are over.
    pub fn forget_promises(&mut self) {
        self.up.values_mut().for_each(|peer| peer.promise = None);
    }

    /// A process asks for the decided values of these instances.
    pub fn asks(&mut self, node: NodeId, about: Range<Instance>) {
        if let Some(peer) = self.up.get_mut(&node) {
            peer.asks(about);
        }
    }

    /// An observer knows everything before an instance, and waits for more.
    pub fn watches(&mut self, node: NodeId, from: Instance) {
        if let Some(peer) = self.up.get_mut(&node) {
            peer.asked.watches = Some(from);
            self.watched = self.watched.into_iter().chain([from]).min();
        }
    }

    /// Everything before `next` is known here. Returns the observers that wait for that, each with the first instance
    /// that it does not know; they do not wait any more.
    pub fn take_watching(&mut self, next: Instance) -> Vec<(NodeId, Instance)> {
        if self.watched.is_none_or(|from| from >= next) {
            return Vec::new();
        }
        let mut waited = Vec::new();
        for (node, peer) in &mut self.up {
            let from = peer.asked.watches.take_if(|from| *from < next);
            waited.extend(from.map(|from| (*node, from)));
        }
        self.watched = self.up.values().filter_map(|peer| peer.asked.watches).min();
        waited
    }

    /// The next word for which there is room.
    pub fn next_word(&mut self) -> Option<Output> {
        self.up.values_mut().find_map(Peer::next_word)
    }

    /// The next part of an answer, a promise or a snapshot, if there is room for it beside other messages. Everything
    /// before `kept` is forgotten here.
    pub fn next_part(
        &mut self,
        kept: Instance,
        mut answer: impl FnMut(NodeId, Range<Instance>) -> Answer,
    ) -> Option<Output> {
        let enough = self.word_bytes;
        self.up.iter_mut().find_map(|(node, peer)| {
            // Snapshots are large: one is made only if it is told.
            let mut answer = |about: Range<Instance>, has_base: bool| {
                (!has_base || about.start >= kept).then(|| answer(*node, about))
            };
            peer.next_part(enough, &mut answer)
        })
    }

    /// Votes for which a node's first question waited were read back.
    pub fn has_read(&mut self, node: NodeId) {
        if let Some(peer) = self.up.get_mut(&node) {
            peer.asked.reads = false;
        }
    }
}

impl Peer {
    /// Says a word.
    pub fn say(&mut self, word: &Word) {
        self.put(Bytes::from(word.encode(self.founded)));
    }

    fn put(&mut self, bytes: Bytes) {
        if self.words.len() < WORDS {
            self.words.push_back(bytes);
        } else {
            self.dropped += 1;
        }
    }

    /// Whether words wait for room.
    pub fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// The bytes of a batch of the ring that the link takes now, beside what waits: a part of an answer, a promise or a
    /// snapshot gets its turn. `force`: this process has to be heard, be it out of turn.
    pub fn room(&self, force: bool) -> usize {
        let is_turn = self.is_clear() && !self.part_is_next;
        let waits = self.has_parts() && !is_turn && !mutants::on(Mutant::U109);
        match (self.words.is_empty(), waits, force) {
            (true, false, _) => self.room,
            (true, true, true) if mutants::on(Mutant::U113) => self.room,
            (true, true, true) => self.room.min(OUT_OF_TURN),
            _ => 0,
        }
    }

    /// Sends a message, for which there has to be room.
    pub fn send(&mut self, bytes: Pieces) -> Output {
        debug_assert!(bytes.len() <= self.room);
        self.room = self.room.saturating_sub(bytes.len());
        Output::LinkSend {
            peer: self.process.node,
            session: self.session,
            channel: Channel::default(),
            bytes,
        }
    }

    /// The same for a batch of the ring.
    pub fn send_along(&mut self, bytes: Pieces) -> Output {
        self.part_is_next = self.has_parts();
        self.send(bytes)
    }

    fn next_word(&mut self) -> Option<Output> {
        let word = self.words.pop_front_if(|word| word.len() <= self.room)?;
        Some(self.send(word.into()))
    }

    /// Whether little is under way.
    const fn is_clear(&self) -> bool {
        self.most_room - self.room <= self.most_room / CLEAR
    }
}

impl Peers {
    /// Its invariants.
    pub fn check(&self) {
        for (node, peer) in &self.up {
            assert_eq!(*node, peer.process.node, "a link is at its node");
            assert!(peer.room <= peer.most_room, "no more room than was seen");
            assert!(peer.words.len() <= WORDS + 1, "few words wait");
            let few = peer.asked.of.len() <= ASKED || mutants::on(Mutant::U108);
            assert!(few, "few questions wait");
            assert_eq!(peer.founded, self.founded, "all words name one foundation");
        }
    }
}
