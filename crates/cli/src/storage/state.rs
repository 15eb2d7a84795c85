//! The contents of an acceptor's log, as far as they have to be known to go on from it.
//!
//! The engine writes it, and reads all of it when a node starts. Here values and what follows from them are bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rota_core::contract::{Incarnation, NodeId, Process};
use rota_paxos::{AcceptorId, Config, Prior, VoteHead, state_key};
use rota_storage::acceptor::{Identity, Record, read_all};

/// Instances and rounds are no larger.
const MOST_NUMBER: u64 = 1 << 62;

/// A vote, or what is left of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cast {
    pub first: u64,
    /// The last instance that it is for.
    pub last: u64,
    pub round: u64,
    /// As it is in a log, with how many instances it was for at first.
    pub bytes: Vec<u8>,
}

impl Cast {
    /// As much of it as is for these instances.
    pub fn part(&self, first: u64, last: u64) -> Option<Self> {
        let (first, last) = (self.first.max(first), self.last.min(last));
        (first <= last).then(|| Self {
            first,
            last,
            ..self.clone()
        })
    }
}

/// A log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    pub path: PathBuf,
    pub identity: Identity,
    pub life: u64,
    /// Something that was answered may be missing.
    pub lost_some: bool,
    /// Under which name its acceptor votes.
    pub name: Option<AcceptorId>,
    pub config: Option<Config>,
    /// The configuration that its acceptor has agreed to as the next, which may have come about.
    pub accepted: Option<Config>,
    /// The newest configuration that is known to be complete.
    pub complete: u64,
    /// The highest round that is mentioned.
    pub round: u64,
    /// The instance at which it begins, and the state that has all before.
    pub kept: u64,
    pub base: Option<Vec<u8>>,
    /// The instance before which all is decided: the log has it from `kept` on.
    pub decided: u64,
    /// By their first instances. None overlaps another.
    pub votes: BTreeMap<u64, Cast>,
}

impl Log {
    /// Reads one that is not in use.
    pub fn read(path: &Path) -> Result<Self, String> {
        let wrong = |what: &str| format!("{}: {what}", path.display());
        let contents = read_all(path.to_owned()).map_err(|error| error.to_string())?;
        let mut log = Self {
            path: path.to_owned(),
            identity: contents.identity,
            life: contents.life,
            lost_some: contents.lost_some,
            name: None,
            config: None,
            accepted: None,
            complete: 0,
            round: 0,
            kept: 1,
            base: None,
            decided: 0,
            votes: BTreeMap::new(),
        };
        for vote in contents.votes {
            let vote = log.take_vote(vote);
            vote.ok_or_else(|| wrong("there is a vote that cannot be read"))?;
        }
        for record in contents.state {
            let key = record.first;
            let read = log.take_state(record);
            read.ok_or_else(|| wrong(&format!("what is kept under key {key} cannot be read")))?;
        }
        log.decided = log.holds();
        Ok(log)
    }

    fn take_vote(&mut self, record: Record) -> Option<()> {
        let round = VoteHead::read(&record.bytes)?.round;
        if round.max(record.last) > MOST_NUMBER {
            return None;
        }
        self.round = self.round.max(round);
        let cast = Cast {
            first: record.first,
            last: record.last,
            round,
            bytes: record.bytes,
        };
        self.votes.insert(cast.first, cast);
        Some(())
    }

    fn take_state(&mut self, record: Record) -> Option<()> {
        let mut source = Source(&record.bytes);
        match record.first {
            state_key::PROMISED => self.round = self.round.max(source.number()?),
            state_key::CONFIG => {
                let config = source.config()?;
                self.round = self.round.max(config.number);
                self.config = Some(config);
            }
            state_key::SLOT => {
                self.round = self.round.max(source.number()?);
                self.accepted = source.accepted()?;
            }
            state_key::BASE => {
                self.kept = source.number().filter(|next| *next > 0)?;
                self.base = Some(record.bytes);
            }
            state_key::STORE => {
                let (node, store) = (self.identity.node, source.u64()?);
                self.name = Some(AcceptorId { node, store });
            }
            state_key::DECIDED => self.decided = source.number()?,
            state_key::FLOOR => {}
            state_key::COMPLETE => self.complete = source.number()?,
            _ => return None,
        }
        Some(())
    }

    /// Up to where it has all that is said to be decided.
    fn holds(&self) -> u64 {
        let mut next = self.kept;
        while next < self.decided
            && let Some(vote) = self.at(next)
        {
            next = vote.last + 1;
        }
        next.min(self.decided).max(self.kept)
    }

    /// The vote for an instance.
    pub fn at(&self, instance: u64) -> Option<&Cast> {
        let (_, vote) = self.votes.range(..=instance).next_back()?;
        (vote.last >= instance).then_some(vote)
    }

    /// The first instance behind this one at which a vote begins.
    pub fn begins_after(&self, instance: u64) -> Option<u64> {
        let behind = instance.checked_add(1)?;
        self.votes.range(behind..).next().map(|(first, _)| *first)
    }

    /// The first instance behind all its votes.
    pub fn end(&self) -> u64 {
        let last = self.votes.values().next_back();
        last.map_or(self.kept, |vote| vote.last + 1).max(self.kept)
    }
}

/// The bytes that are left to read. Each method answers `None` if there are not enough, or they cannot be read.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// An instance or a round.
    fn number(&mut self) -> Option<u64> {
        self.u64().filter(|number| *number <= MOST_NUMBER)
    }

    fn flag(&mut self) -> Option<bool> {
        self.take().map(|[flag]| flag != 0)
    }

    fn process(&mut self) -> Option<Process> {
        let node = NodeId::new(self.u16()?)?;
        let incarnation = Incarnation(self.u64()?);
        Some(Process { node, incarnation })
    }

    fn acceptor(&mut self) -> Option<AcceptorId> {
        let node = NodeId::new(self.u16()?)?;
        let store = self.u64()?;
        Some(AcceptorId { node, store })
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u16()?;
        (0..count).map(|_| read(self)).collect()
    }

    fn config(&mut self) -> Option<Config> {
        Some(Config {
            founded: self.u64()?,
            number: self.number()?,
            coordinator: self.process()?,
            ring: self.list(Self::process)?,
            acceptors: self.list(Self::acceptor)?,
            prior: self.list(|source| {
                let number = source.u64()?;
                let acceptors = source.list(Self::acceptor)?;
                Some(Prior { number, acceptors })
            })?,
        })
    }

    /// The accepted configuration, behind the promise in the register.
    fn accepted(&mut self) -> Option<Option<Config>> {
        if self.flag()? {
            self.ballot()?;
        }
        if !self.flag()? {
            return Some(None);
        }
        self.ballot()?;
        self.config().map(Some)
    }

    fn ballot(&mut self) -> Option<(u64, Process)> {
        Some((self.u64()?, self.process()?))
    }
}

/// A configuration, as the engine reads it.
pub fn bytes_of(config: &Config) -> Vec<u8> {
    let mut out = Vec::new();
    let process = |out: &mut Vec<u8>, who: &Process| {
        out.extend(who.node.get().to_le_bytes());
        out.extend(who.incarnation.0.to_le_bytes());
    };
    let set = |out: &mut Vec<u8>, set: &[AcceptorId]| {
        out.extend((set.len() as u16).to_le_bytes());
        for who in set {
            out.extend(who.node.get().to_le_bytes());
            out.extend(who.store.to_le_bytes());
        }
    };
    out.extend(config.founded.to_le_bytes());
    out.extend(config.number.to_le_bytes());
    process(&mut out, &config.coordinator);
    out.extend((config.ring.len() as u16).to_le_bytes());
    config.ring.iter().for_each(|who| process(&mut out, who));
    set(&mut out, &config.acceptors);
    out.extend((config.prior.len() as u16).to_le_bytes());
    for prior in &config.prior {
        out.extend(prior.number.to_le_bytes());
        set(&mut out, &prior.acceptors);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read_as_it_was_written() {
        let node = |id| NodeId::new(id).expect("not 0");
        let acceptor = |id, store| AcceptorId {
            node: node(id),
            store,
        };
        let process = |id| Process {
            node: node(id),
            incarnation: Incarnation(70 + u64::from(id)),
        };
        let config = Config {
            founded: 9,
            number: 12,
            coordinator: process(2),
            ring: vec![process(1), process(2)],
            acceptors: vec![acceptor(1, 4), acceptor(2, 5)],
            prior: vec![Prior {
                number: 11,
                acceptors: vec![acceptor(1, 3)],
            }],
        };
        let bytes = bytes_of(&config);
        assert_eq!(Source(&bytes).config().as_ref(), Some(&config));
        for len in 0..bytes.len() {
            assert_eq!(Source(&bytes[..len]).config(), None);
        }
        // Promised (1, node 2), and accepted under (3, node 1).
        let ballot = |count: u64, id: u16| {
            let mut out = count.to_le_bytes().to_vec();
            out.extend(id.to_le_bytes());
            out.extend([0; 8]);
            out
        };
        let slot = [&[1][..], &ballot(1, 2), &[1], &ballot(3, 1), &bytes].concat();
        assert_eq!(Source(&slot).accepted(), Some(Some(config)));
        let empty = [&[1][..], &ballot(1, 2), &[0]].concat();
        assert_eq!(Source(&empty).accepted(), Some(None));
    }
}
