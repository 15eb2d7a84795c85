//! Bytes of configurations, votes and their parts, on links and in the log. Reading is total.

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::{Buf, Bytes};

use super::word::Arbitration;
use crate::{AcceptorId, Ballot, Config, Prior, Slot, Value, ValueId, Vote, Word};
use rota_core::bytes::put_process;
use rota_core::contract::{Incarnation, NodeId, Pieces, PiecesWriter, Process};

/// The most of anything that a configuration lists.
const MOST: usize = 1024;

/// The largest instance, round and counter: larger ones are not believed, and the sum of two does not overflow.
pub const MOST_NUMBER: u64 = 1 << 62;

const PACKET: u8 = 1;
const MEMBERS: u8 = 2;
const SKIP: u8 = 3;

/// The bytes left to read. Each method returns `None` if they are too few, or not valid.
pub struct Source(pub Bytes);

impl Source {
    pub fn u8(&mut self) -> Option<u8> {
        self.0.try_get_u8().ok()
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.0.try_get_u16_le().ok()
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.0.try_get_u32_le().ok()
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.0.try_get_u64_le().ok()
    }

    /// An instance, a round, or a counter.
    pub fn number(&mut self) -> Option<u64> {
        self.u64().filter(|number| *number <= MOST_NUMBER)
    }

    pub fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub fn bytes(&mut self, len: usize) -> Option<Bytes> {
        (len <= self.0.len()).then(|| self.0.split_to(len))
    }

    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn process(&mut self) -> Option<Process> {
        let node = NodeId::new(self.u16()?)?;
        let incarnation = Incarnation(self.u64()?);
        (incarnation.0 <= Incarnation::MAX).then_some(Process { node, incarnation })
    }

    pub fn acceptor(&mut self) -> Option<AcceptorId> {
        let node = NodeId::new(self.u16()?)?;
        let store = self.u64()?;
        Some(AcceptorId { node, store })
    }

    pub fn value_id(&mut self) -> Option<ValueId> {
        let process = self.process()?;
        let counter = self.number()?;
        (counter > 0).then_some(ValueId { process, counter })
    }

    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::from(self.u16()?);
        if count > MOST {
            return None;
        }
        (0..count).map(|_| read(self)).collect()
    }

    pub fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.flag()? {
            true => read(self).map(Some),
            false => Some(None),
        }
    }

    pub fn config(&mut self) -> Option<Arc<Config>> {
        let config = Config {
            founded: self.u64()?,
            number: self.number()?,
            coordinator: self.process()?,
            ring: self.list(Self::process)?,
            acceptors: self.list(Self::acceptor)?,
            prior: self.list(|source| {
                let number = source.number()?;
                let acceptors = source.list(Self::acceptor)?;
                Some(Prior { number, acceptors })
            })?,
        };
        is_sound(&config).then(|| Arc::new(config))
    }

    pub fn vote(&mut self) -> Option<Vote> {
        let (first, round, span) = (self.number()?, self.number()?, self.number()?);
        let value = match self.u8()? {
            PACKET => {
                let id = self.value_id()?;
                let len = usize::try_from(self.u32()?).ok()?;
                let frame = self.bytes(len)?;
                Value::Packet { id, frame }
            }
            MEMBERS => Value::Members(self.number()?, self.members()?.into()),
            SKIP => Value::Skip(span),
            _ => return None,
        };
        let fits = first > 0 && span > 0 && value.span() == span;
        (fits && first + span <= MOST_NUMBER).then_some(Vote {
            first,
            round,
            value,
        })
    }

    /// A list of members: at least one, and one life of each node.
    pub fn members(&mut self) -> Option<Vec<Process>> {
        let members = self.list(Self::process)?;
        (!members.is_empty() && is_once(&members)).then_some(members)
    }

    fn ballot(&mut self) -> Option<Ballot> {
        let (count, by) = (self.number()?, self.process()?);
        Some(Ballot { count, by })
    }

    fn accepted(&mut self) -> Option<(Ballot, Arc<Config>)> {
        Some((self.ballot()?, self.config()?))
    }

    pub fn arbitration(&mut self) -> Option<Arbitration> {
        Some(match self.u8()? {
            1 => Word::Prepare(self.ballot()?),
            2 => Word::Promise(self.ballot()?, self.maybe(Self::accepted)?),
            3 => Word::Accept(self.ballot()?, self.config()?),
            4 => Word::Accepted(self.ballot()?),
            5 => Word::Refused(self.ballot()?, self.ballot()?),
            _ => return None,
        })
    }

    pub fn slot(&mut self) -> Option<Slot<Arc<Config>>> {
        let promised = self.maybe(Self::ballot)?;
        let accepted = self.maybe(Self::accepted)?;
        Some(Slot { promised, accepted })
    }
}

/// Whether no node is there twice.
fn is_once(processes: &[Process]) -> bool {
    let mut nodes: Vec<NodeId> = processes.iter().map(|who| who.node).collect();
    nodes.sort_unstable();
    nodes.windows(2).all(|pair| pair[0] != pair[1])
}

/// Whether a configuration is valid: a peer may say anything.
fn is_sound(config: &Config) -> bool {
    let distinct = |set: &Vec<AcceptorId>| {
        let mut nodes: Vec<NodeId> = set.iter().map(|who| who.node).collect();
        nodes.sort_unstable();
        nodes.windows(2).all(|pair| pair[0] != pair[1])
    };
    let votes = !config.acceptors.is_empty() && config.acceptors.len() <= usize::from(u8::MAX);
    let sets =
        distinct(&config.acceptors) && config.prior.iter().all(|set| distinct(&set.acceptors));
    config.founded > 0
        && config.number > 0
        && votes
        && sets
        && is_once(&config.ring)
        && config.ring.contains(&config.coordinator)
}

pub fn put_acceptor(out: &mut Vec<u8>, who: AcceptorId) {
    out.extend(who.node.get().to_le_bytes());
    out.extend(who.store.to_le_bytes());
}

pub fn put_value_id(out: &mut Vec<u8>, id: ValueId) {
    put_process(out, id.process);
    out.extend(id.counter.to_le_bytes());
}

pub fn put_list<T>(out: &mut Vec<u8>, list: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    let list = &list[..list.len().min(MOST)];
    out.extend((list.len() as u16).to_le_bytes());
    list.iter().for_each(|item| put(out, item));
}

pub fn put_maybe<T>(out: &mut Vec<u8>, item: Option<&T>, put: impl FnOnce(&mut Vec<u8>, &T)) {
    out.push(u8::from(item.is_some()));
    if let Some(item) = item {
        put(out, item);
    }
}

pub fn put_config(out: &mut Vec<u8>, config: &Config) {
    let put_set = |out: &mut Vec<u8>, set: &Vec<AcceptorId>| {
        put_list(out, set, |out, who| put_acceptor(out, *who));
    };
    out.extend(config.founded.to_le_bytes());
    out.extend(config.number.to_le_bytes());
    put_process(out, config.coordinator);
    put_list(out, &config.ring, |out, who| put_process(out, *who));
    put_set(out, &config.acceptors);
    put_list(out, &config.prior, |out, set| {
        out.extend(set.number.to_le_bytes());
        put_set(out, &set.acceptors);
    });
}

/// The most bytes of a vote beside its value, unless it is for members.
pub const VOTE_BYTES: usize = 8 * 3 + 1 + 18 + 4;

pub fn put_vote(out: &mut Vec<u8>, vote: &Vote) {
    out.extend(vote.first.to_le_bytes());
    put_cast(out, vote);
}

/// A vote without its instance.
fn put_cast(out: &mut Vec<u8>, vote: &Vote) {
    put_cast_head(out, vote);
    if let Some(frame) = vote.value.frame() {
        out.extend_from_slice(frame);
    }
}

/// The same, for the log: a large value is not copied.
pub fn cast(vote: &Vote) -> Pieces {
    let mut head = Vec::with_capacity(VOTE_BYTES);
    put_cast_head(&mut head, vote);
    let mut cast = PiecesWriter::new(head);
    if let Some(frame) = vote.value.frame() {
        cast.push(frame);
    }
    cast.finish()
}

/// All but the value of a packet.
fn put_cast_head(out: &mut Vec<u8>, vote: &Vote) {
    out.extend(vote.round.to_le_bytes());
    out.extend(vote.value.span().to_le_bytes());
    match &vote.value {
        Value::Packet { id, frame } => {
            out.push(PACKET);
            put_value_id(out, *id);
            out.extend((frame.len() as u32).to_le_bytes());
        }
        Value::Members(number, members) => {
            out.push(MEMBERS);
            out.extend(number.to_le_bytes());
            put_members(out, members);
        }
        Value::Skip(_) => out.push(SKIP),
    }
}

/// The members as a vote or a record carries them.
pub fn put_members(out: &mut Vec<u8>, members: &[Process]) {
    put_list(out, members, |out, who| put_process(out, *who));
}

fn put_ballot(out: &mut Vec<u8>, ballot: &Ballot) {
    out.extend(ballot.count.to_le_bytes());
    put_process(out, ballot.by);
}

fn put_accepted(out: &mut Vec<u8>, (ballot, config): &(Ballot, Arc<Config>)) {
    put_ballot(out, ballot);
    put_config(out, config);
}

pub fn put_arbitration(out: &mut Vec<u8>, word: &Arbitration) {
    match word {
        Word::Prepare(ballot) => {
            out.push(1);
            put_ballot(out, ballot);
        }
        Word::Promise(ballot, accepted) => {
            out.push(2);
            put_ballot(out, ballot);
            put_maybe(out, accepted.as_ref(), put_accepted);
        }
        Word::Accept(ballot, config) => {
            out.push(3);
            put_ballot(out, ballot);
            put_config(out, config);
        }
        Word::Accepted(ballot) => {
            out.push(4);
            put_ballot(out, ballot);
        }
        Word::Refused(ballot, promised) => {
            out.push(5);
            put_ballot(out, ballot);
            put_ballot(out, promised);
        }
    }
}

pub fn put_slot(out: &mut Vec<u8>, slot: &Slot<Arc<Config>>) {
    put_maybe(out, slot.promised.as_ref(), put_ballot);
    put_maybe(out, slot.accepted.as_ref(), put_accepted);
}

/// The first of these votes, at least one, that together take at most `bytes`.
pub fn fitting(votes: impl Iterator<Item = Vote>, bytes: usize) -> impl Iterator<Item = Vote> {
    let mut size = 0;
    votes.take_while(move |vote| {
        let is_first = size == 0;
        size += vote_bytes(vote);
        is_first || size <= bytes
    })
}

/// The bytes of a vote.
pub fn vote_bytes(vote: &Vote) -> usize {
    VOTE_BYTES
        + match &vote.value {
            Value::Packet { frame, .. } => frame.len(),
            Value::Members(_, members) => 8 + 2 + 10 * members.len(),
            Value::Skip(_) => 0,
        }
}
