//! Bytes of the messages between processes, over links. Reading is total.
//!
//! `docs/protocols/uring.md` has the layout.

use alloc::vec::Vec;
use bytes::Bytes;

use super::codec::{
    MOST_NUMBER, Source, put_acceptor, put_arbitration, put_config, put_list, put_vote,
};
use super::word::{Head, Hello, Proposal, Record, ResumeFrom, Word};
use crate::{Promise, ValueId};
use rota_core::contract::Process;
use rota_core::wire::read_varint;

/// The version of all of it.
pub const VERSION: u8 = 2;

/// The bytes of the head of a batch.
pub const HEAD_BYTES: usize = 2 + 8 + 1 + 8 + 4 + 3 * 8;

/// The largest value, in bytes.
pub const MAX_FRAME_BYTES: usize = 256 << 10;

const HELLO: u8 = 1;
const KNOWN: u8 = 2;
const ASK: u8 = 3;
const ANSWER: u8 = 4;
const PREPARE: u8 = 5;
const PROMISE: u8 = 6;
const RESUME_FROM: u8 = 7;
const FETCH: u8 = 8;
const CHOSEN: u8 = 9;
const FORGOTTEN: u8 = 10;
const LEAVING: u8 = 11;
pub const BATCH: u8 = 12;
const WANT: u8 = 13;
const ONE: u8 = 14;
const NEED: u8 = 15;
const WATCH: u8 = 16;
const DECIDED: u8 = 17;
const OFFER: u8 = 18;

pub const VALUE: u8 = 1;
pub const NAMED: u8 = 2;
pub const PACKET: u8 = 3;
pub const WHOLE: u8 = 4;
pub const MEMBERS: u8 = 5;
pub const SKIP: u8 = 6;
pub const VOTED: u8 = 7;
pub const LEARNT: u8 = 8;
pub const LOST: u8 = 9;
pub const LOG_FAILED: u8 = 10;

/// In place of an index in the ring: a process that is not in it, spelled out.
pub const STRANGER: u8 = u8::MAX;

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// From anybody to anybody.
    Word(Word),
    /// Along the ring: its head and its records.
    Batch(Head, Bytes),
}

/// Reads a message: the foundation of its sender (0: none yet), and its contents. `None` if it is not valid.
pub fn decode(bytes: Bytes) -> Option<(u64, Said)> {
    let mut source = Source(bytes);
    if source.u8()? != VERSION {
        return None;
    }
    let (kind, founded) = (source.u8()?, source.u64()?);
    if kind == BATCH {
        let head = head(&mut source, founded)?;
        return Some((founded, Said::Batch(head, source.0)));
    }
    let word = word(kind, &mut source)?;
    source.is_over().then_some((founded, Said::Word(word)))
}

fn word(kind: u8, source: &mut Source) -> Option<Word> {
    Some(match kind {
        HELLO => Word::Hello(Hello {
            number: source.number()?,
            acceptor: match source.flag()? {
                true => Some(source.acceptor()?),
                false => None,
            },
            complete: source.number()?,
            joins: source.flag()?,
        }),
        KNOWN => Word::Known(source.config()?),
        ASK => Word::Ask(source.number()?, source.arbitration()?),
        ANSWER => Word::Answer(source.number()?, source.acceptor()?, source.arbitration()?),
        PREPARE => Word::Prepare(source.number()?, source.number()?),
        PROMISE => promise(source)?,
        RESUME_FROM => {
            let follow = ResumeFrom {
                round: source.number()?,
                epoch: source.u32()?,
                next: source.number()?,
            };
            Word::ResumeFrom(follow, source.list(Source::number)?)
        }
        FETCH => Word::Fetch(source.number()?, source.number()?),
        CHOSEN => Word::Chosen(votes(source)?),
        FORGOTTEN => {
            let (more, at) = (source.flag()?, source.number()?);
            Word::Forgotten(at, core::mem::take(&mut source.0), more)
        }
        LEAVING => Word::Leaving,
        WANT => Word::Want(source.list(Source::number)?),
        ONE => value(source)?,
        NEED => Word::Need(source.number()?),
        WATCH => Word::Watch(source.number()?),
        DECIDED => Word::Decided(source.number()?),
        OFFER => Word::Offer(source.acceptor()?, source.number()?),
        _ => return None,
    })
}

fn value(source: &mut Source) -> Option<Word> {
    let counter = source.number().filter(|counter| *counter > 0)?;
    let frame = core::mem::take(&mut source.0);
    let is_one = frame.len() <= MAX_FRAME_BYTES && super::value::is_sound(&frame);
    is_one.then(|| Word::Value(counter, Bytes::copy_from_slice(&frame)))
}

fn promise(source: &mut Source) -> Option<Word> {
    let more = source.flag()?;
    let promise = Promise {
        round: source.number()?,
        acceptor: source.acceptor()?,
        from: source.number()?,
        held: source.number()?,
        kept: source.number()?,
        votes: votes(source)?,
    };
    Some(Word::Promise(promise, more))
}

fn votes(source: &mut Source) -> Option<Vec<crate::Vote>> {
    let mut votes = Vec::new();
    while !source.is_over() {
        votes.push(source.vote()?);
    }
    Some(votes)
}

fn head(source: &mut Source, founded: u64) -> Option<Head> {
    let head = Head {
        founded,
        complete: source.flag()?,
        round: source.number()?,
        epoch: source.u32()?,
        start: source.number()?,
        kept: source.number()?,
        from: source.number()?,
    };
    // A round starts behind what was forgotten.
    (head.start == 0 || head.kept <= head.start).then_some(head)
}

/// A message of this kind.
fn begin(kind: u8, founded: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend([VERSION, kind]);
    out.extend(founded.to_le_bytes());
    out
}

/// The head of a batch.
pub fn put_head(head: &Head) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend([VERSION, BATCH]);
    out.extend(head.founded.to_le_bytes());
    out.push(u8::from(head.complete));
    out.extend(head.round.to_le_bytes());
    out.extend(head.epoch.to_le_bytes());
    for number in [head.start, head.kept, head.from] {
        out.extend(number.to_le_bytes());
    }
    out
}

impl Word {
    /// As it travels, said by a process of this foundation; 0: of none yet.
    pub fn encode(&self, founded: u64) -> Vec<u8> {
        let mut out = begin(self.kind(), founded);
        match self {
            Self::Hello(here) => put_here(&mut out, here),
            Self::Known(config) => put_config(&mut out, config),
            Self::Ask(number, word) => {
                out.extend(number.to_le_bytes());
                put_arbitration(&mut out, word);
            }
            Self::Answer(number, who, word) => {
                out.extend(number.to_le_bytes());
                put_acceptor(&mut out, *who);
                put_arbitration(&mut out, word);
            }
            Self::Prepare(one, other) | Self::Fetch(one, other) => {
                out.extend(one.to_le_bytes());
                out.extend(other.to_le_bytes());
            }
            Self::Promise(promise, more) => put_promise(&mut out, promise, *more),
            Self::ResumeFrom(follow, lacks) => {
                out.extend(follow.round.to_le_bytes());
                out.extend(follow.epoch.to_le_bytes());
                out.extend(follow.next.to_le_bytes());
                put_numbers(&mut out, lacks);
            }
            Self::Chosen(votes) => votes.iter().for_each(|vote| put_vote(&mut out, vote)),
            Self::Forgotten(at, part, more) => {
                out.push(u8::from(*more));
                out.extend(at.to_le_bytes());
                out.extend_from_slice(part);
            }
            Self::Leaving => {}
            Self::Need(next) | Self::Watch(next) | Self::Decided(next) => {
                out.extend(next.to_le_bytes());
            }
            Self::Offer(who, next) => {
                put_acceptor(&mut out, *who);
                out.extend(next.to_le_bytes());
            }
            Self::Want(counters) => put_numbers(&mut out, counters),
            Self::Value(counter, frame) => {
                out.extend(counter.to_le_bytes());
                out.extend_from_slice(frame);
            }
        }
        out
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => HELLO,
            Self::Known(_) => KNOWN,
            Self::Ask(..) => ASK,
            Self::Answer(..) => ANSWER,
            Self::Prepare(..) => PREPARE,
            Self::Promise(..) => PROMISE,
            Self::ResumeFrom(..) => RESUME_FROM,
            Self::Fetch(..) => FETCH,
            Self::Chosen(_) => CHOSEN,
            Self::Forgotten(..) => FORGOTTEN,
            Self::Leaving => LEAVING,
            Self::Want(_) => WANT,
            Self::Value(..) => ONE,
            Self::Need(_) => NEED,
            Self::Watch(_) => WATCH,
            Self::Decided(_) => DECIDED,
            Self::Offer(..) => OFFER,
        }
    }
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    put_list(out, numbers, |out, number| out.extend(number.to_le_bytes()));
}

fn put_here(out: &mut Vec<u8>, here: &Hello) {
    out.extend(here.number.to_le_bytes());
    out.push(u8::from(here.acceptor.is_some()));
    if let Some(acceptor) = here.acceptor {
        put_acceptor(out, acceptor);
    }
    out.extend(here.complete.to_le_bytes());
    out.push(u8::from(here.joins));
}

fn put_promise(out: &mut Vec<u8>, promise: &Promise, more: bool) {
    out.push(u8::from(more));
    out.extend(promise.round.to_le_bytes());
    put_acceptor(out, promise.acceptor);
    for number in [promise.from, promise.held, promise.kept] {
        out.extend(number.to_le_bytes());
    }
    promise.votes.iter().for_each(|vote| put_vote(out, vote));
}

/// The records of a batch in a ring of these processes, in order, up to the first that is not valid: that is an error.
#[derive(Debug)]
pub struct Records<'a> {
    rest: Bytes,
    ring: &'a [Process],
    /// Values of at least this many bytes are not copied out of the batch.
    large: usize,
}

/// Values of at least a third of a message that has a buffer of its own stay in it, instead of being copied; so they
/// keep at most three times their size. Other buffers are shared with other messages, and are to be read into again.
fn large(body: &Bytes) -> usize {
    match body.is_unique() {
        true => body.len().div_ceil(3),
        false => usize::MAX,
    }
}

impl<'a> Records<'a> {
    /// Of the body of a batch.
    pub fn new(body: Bytes, ring: &'a [Process]) -> Self {
        Self {
            large: large(&body),
            rest: body,
            ring,
        }
    }

    fn varint(&mut self) -> Option<u64> {
        let (number, size) = read_varint(&self.rest).ok()?;
        let _ = self.rest.split_to(size);
        (number <= MOST_NUMBER).then_some(number)
    }

    fn byte(&mut self) -> Option<u8> {
        self.with(Source::u8)
    }

    fn with<T>(&mut self, read: impl FnOnce(&mut Source) -> Option<T>) -> Option<T> {
        let mut source = Source(core::mem::take(&mut self.rest));
        let read = read(&mut source);
        self.rest = source.0;
        read
    }

    fn value_id(&mut self) -> Option<ValueId> {
        let process = match self.byte()? {
            STRANGER => self.with(Source::process)?,
            index => *self.ring.get(usize::from(index))?,
        };
        let counter = self.varint().filter(|counter| *counter > 0)?;
        Some(ValueId { process, counter })
    }

    /// A value's bytes: its service and a frame.
    fn frame(&mut self) -> Option<Bytes> {
        let len = usize::try_from(self.varint()?).ok()?;
        if len > MAX_FRAME_BYTES {
            return None;
        }
        let frame = self.with(|source| source.bytes(len))?;
        if !super::value::is_sound(&frame) {
            return None;
        }
        // The value is kept for long, and would keep the whole buffer it came in.
        Some(match frame.len() >= self.large {
            true => frame,
            false => Bytes::copy_from_slice(&frame),
        })
    }

    fn read(&mut self) -> Option<Record> {
        Some(match self.byte()? {
            VALUE => Record::Value(self.value_id()?, self.frame()?),
            NAMED => Record::Proposal(Proposal::Named(self.value_id()?)),
            tag @ (PACKET | WHOLE) => Record::Proposal(Proposal::Packet {
                id: self.value_id()?,
                frame: self.frame()?,
                whole: tag == WHOLE,
            }),
            MEMBERS => {
                let number = self.varint()?;
                let members = self.with(Source::members)?;
                Record::Proposal(Proposal::Members(number, members.into()))
            }
            SKIP => {
                let count = self.varint().filter(|count| *count > 0)?;
                Record::Proposal(Proposal::Skip(count))
            }
            VOTED => Record::Voted(self.byte()?, self.varint()?),
            LEARNT => Record::Learnt(self.byte()?, self.varint()?),
            LOST => Record::Lost(self.byte()?, self.varint()?),
            LOG_FAILED => Record::LogFailed(self.byte()?),
            _ => return None,
        })
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, ()>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = self.read();
        if record.is_none() {
            self.rest.clear();
        }
        Some(record.ok_or(()))
    }
}
