//! Bytes of snapshots: over links with all values, and on the disk with none. Reading is total.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use super::accounts::Table;
use super::accounts_bytes::put_accounts;
use super::codec::{Source, put_list, put_maybe};
use super::snapshot::{Open, Snapshot, SnapshotRecord};
use crate::{Instance, Proposers};
use rota_core::bytes::put_process;
use rota_core::contract::{Incarnation, Process};
use rota_core::mutants::{self, Mutant};

impl Snapshot {
    /// As bytes, with the values of messages that go on behind it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_base(&mut out, self);
        out
    }

    /// Reads the bytes of [`Self::encode`], of this process or another; `None` for anything else.
    pub fn decode(bytes: Bytes) -> Option<Self> {
        Source(bytes).base()
    }
}

impl Source {
    /// A snapshot without the messages that go on behind it.
    fn base_head(&mut self) -> Option<Snapshot> {
        let (next, named) = (self.number()?, self.number()?);
        let lives = self.list(|source| {
            let process = source.process()?;
            let (last, member) = (source.number()?, source.flag()?);
            let over = source.list(|source| {
                let life = source.u64().filter(|life| *life <= Incarnation::MAX);
                life.map(Incarnation)
            })?;
            Some((process, last, member, over))
        })?;
        let view = self.maybe(|source| {
            let first = source.number().filter(|first| (1..next).contains(first))?;
            Some((first, source.members()?.into()))
        })?;
        (next > 0).then_some(Snapshot {
            next,
            table: Proposers::restore(named, lives),
            view,
            open: BTreeMap::new(),
            accounts: Table::default(),
        })
    }

    /// The messages that go on behind `next`: the process of each, and the result of `read` for each of its values, by
    /// instance.
    fn open<T>(
        &mut self,
        next: Instance,
        read: impl Fn(&mut Self, Instance) -> Option<T>,
    ) -> Option<Vec<(Process, Vec<T>)>> {
        self.list(|source| {
            let process = source.process()?;
            let (count, mut after) = (source.u32()?, 0);
            let value = |_| {
                let at = source
                    .number()
                    .filter(|at| (after + 1..next).contains(at))?;
                after = at;
                read(source, at)
            };
            let values: Option<Vec<T>> = (0..count).map(value).collect();
            Some((process, values?))
        })
    }

    /// The accounts at the end of a snapshot, if the ring has any.
    fn accounts_or_none(&mut self) -> Option<Table> {
        match self.is_over() {
            true => Some(Table::default()),
            false => self.accounts(),
        }
    }

    /// A snapshot as it is told, with all values.
    pub fn base(&mut self) -> Option<Snapshot> {
        let base = self.base_head()?;
        let open = self.open(base.next, |source, at| {
            let len = usize::try_from(source.u32()?).ok()?;
            let value = source.bytes(len).filter(super::value::is_sound)?;
            Some((at, value))
        })?;
        let open = open
            .into_iter()
            .map(|(process, values)| (process, Open { values }));
        let open = open.collect();
        let accounts = self.accounts_or_none()?;
        self.is_over().then_some(Snapshot {
            open,
            accounts,
            ..base
        })
    }

    /// A snapshot as it is on the disk.
    pub fn base_record(&mut self) -> Option<SnapshotRecord> {
        let mut base = self.base_head()?;
        let open = self.open(base.next, |_, at| Some(at))?;
        base.accounts = self.accounts_or_none()?;
        Some(SnapshotRecord { base, open })
    }
}

fn put_base_head(out: &mut Vec<u8>, base: &Snapshot) {
    out.extend(base.next.to_le_bytes());
    out.extend(base.table.named().to_le_bytes());
    let lives: Vec<_> = base.table.lives().collect();
    put_list(out, &lives, |out, (process, last, member, over)| {
        put_process(out, *process);
        out.extend(last.to_le_bytes());
        out.push(u8::from(*member));
        put_list(out, over, |out, life| out.extend(life.0.to_le_bytes()));
    });
    put_maybe(out, base.view.as_ref(), |out, (first, members)| {
        out.extend(first.to_le_bytes());
        put_list(out, members, |out, who| put_process(out, *who));
    });
}

fn put_open(out: &mut Vec<u8>, base: &Snapshot, put: impl Fn(&mut Vec<u8>, &Bytes)) {
    let open: Vec<_> = base.open.iter().collect();
    put_list(out, &open, |out, (process, open)| {
        put_process(out, **process);
        out.extend((open.values.len() as u32).to_le_bytes());
        for (at, value) in &open.values {
            out.extend(at.to_le_bytes());
            put(out, value);
        }
    });
    if base.accounts != Table::default() && !mutants::on(Mutant::U120) {
        put_accounts(out, &base.accounts);
    }
}

/// A snapshot as it is told, with all values.
pub fn put_base(out: &mut Vec<u8>, base: &Snapshot) {
    put_base_head(out, base);
    put_open(out, base, |out, value| {
        out.extend((value.len() as u32).to_le_bytes());
        out.extend_from_slice(value);
    });
}

/// A snapshot as it is on the disk.
pub fn put_base_record(out: &mut Vec<u8>, base: &Snapshot) {
    put_base_head(out, base);
    put_open(out, base, |_, _| {});
}
