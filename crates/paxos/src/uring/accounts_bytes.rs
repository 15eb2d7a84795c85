//! Bytes of accounts: ordered commands, and the table in a snapshot. Reading is total.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use super::acceptor_list::{self, AcceptorList};
use super::accounts::{Command, MOST_NOTICE, Partition, Replicas, RetentionClaim, Table, check};
use super::charters::{self, Chartered, Charters, put_charter};
use super::codec::{Source, put_list};
use rota_core::contract::NodeId;
use rota_core::mutants::{self, Mutant};

const HOLD: u8 = 1;
const RELEASE: u8 = 2;
const MARK: u8 = 3;
const PIN: u8 = 4;
const UNPIN: u8 = 5;
const ABANDON: u8 = 6;
const REPLACE: u8 = 7;
const NOTICE: u8 = 8;
const FOUND: u8 = 9;
const ACCEPTORS: u8 = 10;

impl Command {
    /// As bytes, with the time at which it is proposed (nanoseconds).
    pub fn encode(&self, time: u64) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(time.to_le_bytes());
        match self {
            Self::Hold(partition, replicas, kept) => {
                put_head(&mut out, HOLD, *partition);
                put_replicas(&mut out, replicas);
                out.extend(kept.to_le_bytes());
            }
            Self::Replace(partition, replicas) => {
                put_head(&mut out, REPLACE, *partition);
                put_replicas(&mut out, replicas);
            }
            Self::Release(partition, hold) => {
                put_head(&mut out, RELEASE, *partition);
                out.extend(hold.to_le_bytes());
            }
            Self::Mark(partition, node, next) => {
                put_head(&mut out, MARK, *partition);
                out.extend(node.get().to_le_bytes());
                out.extend(next.to_le_bytes());
            }
            Self::Pin(node, next, lasts) => {
                out.push(PIN);
                out.extend(node.get().to_le_bytes());
                out.extend(next.to_le_bytes());
                out.extend(lasts.to_le_bytes());
            }
            Self::Unpin(node) => {
                out.push(UNPIN);
                out.extend(node.get().to_le_bytes());
            }
            Self::Abandon(partition) => put_head(&mut out, ABANDON, *partition),
            Self::Notice(bytes) => {
                out.push(NOTICE);
                out.extend((bytes.len() as u16).to_le_bytes());
                out.extend_from_slice(bytes);
            }
            Self::Found(ring, from, charter) => {
                out.push(FOUND);
                put_charter(&mut out, (*ring, *from), charter);
            }
            Self::Acceptors(number, nodes) => {
                out.push(ACCEPTORS);
                out.extend(number.to_le_bytes());
                put_replicas(&mut out, nodes);
            }
        }
        out
    }

    /// The notice that a merge is told of at this place: of a hold its kind and the partition.
    pub fn told(self) -> Option<Bytes> {
        match self {
            Self::Notice(bytes) => Some(bytes),
            Self::Hold(partition, ..) => {
                let mut out = Vec::new();
                put_head(&mut out, HOLD, partition);
                Some(out.into())
            }
            _ => None,
        }
    }

    /// Reads the bytes of [`Self::encode`]: the command, and the time; `None` for anything else.
    pub fn decode(bytes: Bytes) -> Option<(Self, u64)> {
        let mut source = Source(bytes);
        let time = source.u64()?;
        let command = match source.u8()? {
            HOLD => Self::Hold(source.u32()?, source.replicas()?, source.number()?),
            RELEASE => Self::Release(source.u32()?, source.number()?),
            MARK => Self::Mark(source.u32()?, source.node()?, source.number()?),
            PIN => Self::Pin(source.node()?, source.number()?, source.u64()?),
            UNPIN => Self::Unpin(source.node()?),
            REPLACE => Self::Replace(source.u32()?, source.replicas()?),
            ABANDON => Self::Abandon(source.u32()?),
            NOTICE => Self::Notice(source.notice()?),
            FOUND => {
                let (ring, from, charter) = source.charter()?;
                Self::Found(ring, from, charter)
            }
            ACCEPTORS => {
                let (number, nodes) = (source.number()?, source.replicas()?);
                acceptor_list::is_sound(&nodes).then_some(Self::Acceptors(number, nodes))?
            }
            _ => return None,
        };
        source.is_over().then_some((command, time))
    }
}

/// A map from its list in the order of the keys, each once; `None` for any other list, so that a table has one form.
fn map<K: Ord, V>(list: Vec<(K, V)>) -> Option<BTreeMap<K, V>> {
    let is_map = list.is_sorted_by(|one, next| one.0 < next.0);
    is_map.then(|| BTreeMap::from_iter(list))
}

fn put_head(out: &mut Vec<u8>, kind: u8, partition: Partition) {
    out.push(kind);
    out.extend(partition.to_le_bytes());
}

fn put_replicas(out: &mut Vec<u8>, replicas: &Replicas) {
    let nodes: Vec<NodeId> = replicas.iter().copied().collect();
    put_list(out, &nodes, |out, node| {
        out.extend(node.get().to_le_bytes())
    });
}

impl Source {
    fn node(&mut self) -> Option<NodeId> {
        NodeId::new(self.u16()?)
    }

    fn notice(&mut self) -> Option<Bytes> {
        let length = usize::from(self.u16()?);
        let is_there = length <= MOST_NOTICE.min(self.0.len());
        is_there.then(|| self.0.split_to(length))
    }

    fn replicas(&mut self) -> Option<Replicas> {
        let nodes = self.list(Self::node)?;
        let is_set = nodes.is_sorted_by(|one, next| one < next);
        is_set.then(|| nodes.into_iter().collect())
    }

    /// What [`put_charter`] writes.
    fn charter(&mut self) -> Option<(u16, u64, Bytes)> {
        let (ring, from, len) = (self.u16()?, self.number()?, self.u16()?);
        let charter = self.bytes(usize::from(len))?;
        charters::is_sound(ring, &charter).then_some((ring, from, charter))
    }

    /// The charters at the end of a table, and the list of acceptors behind them, if there are any.
    fn charters_and_list(&mut self) -> Option<(Charters, AcceptorList)> {
        if self.is_over() {
            return Some((Charters::default(), AcceptorList::default()));
        }
        let charters = self.list(|source| {
            let at = source.number().filter(|at| *at > 0)?;
            let (ring, from, charter) = source.charter()?;
            Some((ring, Chartered { at, from, charter }))
        })?;
        if self.is_over() {
            return Some((Charters::restore(charters)?, AcceptorList::default()));
        }
        let charters = match charters.is_empty() {
            true => Charters::default(),
            false => Charters::restore(charters)?,
        };
        let acceptor_list = AcceptorList::restore(self.number()?, self.replicas()?)?;
        Some((charters, acceptor_list))
    }

    /// The table of a snapshot.
    pub fn accounts(&mut self) -> Option<Table> {
        let (time, granted) = (self.u64()?, self.number()?);
        let accounts = self.list(|source| {
            let partition = source.u32()?;
            let (hold, from) = (source.number()?, source.number()?);
            let replicas = source.replicas()?;
            let marks = source.list(|source| {
                let node = source.node()?;
                let is_one = replicas.contains(&node);
                is_one.then_some((node, source.number()?))
            })?;
            let marks = map(marks)?;
            let account = RetentionClaim {
                hold,
                from,
                replicas,
                marks,
            };
            check(&account.replicas).ok().map(|()| (partition, account))
        })?;
        let pins = self.list(|source| {
            let node = source.node()?;
            Some((node, (source.number()?, source.u64()?)))
        })?;
        let (accounts, pins) = (map(accounts)?, map(pins)?);
        let charters = self.charters_and_list()?;
        Some(Table::restore(accounts, pins, (time, granted), charters))
    }
}

/// The table of a snapshot.
pub fn put_accounts(out: &mut Vec<u8>, table: &Table) {
    out.extend(table.time.to_le_bytes());
    out.extend(table.granted.to_le_bytes());
    let accounts: Vec<(&Partition, &RetentionClaim)> = table.accounts.iter().collect();
    put_list(out, &accounts, |out, (partition, account)| {
        out.extend(partition.to_le_bytes());
        out.extend(account.hold.to_le_bytes());
        out.extend(account.from.to_le_bytes());
        put_replicas(out, &account.replicas);
        let marks: Vec<_> = account.marks.iter().collect();
        put_list(out, &marks, |out, (node, next)| {
            out.extend(node.get().to_le_bytes());
            out.extend(next.to_le_bytes());
        });
    });
    let pins: Vec<_> = table.pins.iter().collect();
    put_list(out, &pins, |out, (node, (next, until))| {
        out.extend(node.get().to_le_bytes());
        out.extend(next.to_le_bytes());
        out.extend(until.to_le_bytes());
    });
    let acceptor_list = &table.acceptor_list;
    let has_list = !acceptor_list.is_none() && !mutants::on(Mutant::U154);
    table.charters.put(out, has_list);
    if has_list {
        out.extend(acceptor_list.number().to_le_bytes());
        put_replicas(out, acceptor_list.nodes());
    }
}
