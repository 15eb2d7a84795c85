//! Records that are put to be written: at once, or behind the votes of which they speak.

use alloc::sync::Arc;

use super::super::codec::{put_config, put_slot};
use super::super::snapshot::Snapshot;
use super::super::snapshot_bytes::put_base_record;
use super::super::written::{bytes_of, encode, number, state, voted};
use super::Disk;
use crate as paxos;
use crate::state_key::{BASE, COMPLETE, CONFIG, DECIDED, SLOT, STORE};
use crate::{Config, Instance, Round, Slot, Vote};
use rota_core::mutants::{self, Mutant};

impl Disk {
    pub fn put_store(&mut self, store: u64) {
        self.unwritten.put_behind([number(STORE, store)]);
    }

    pub fn put_config(&mut self, config: &Config) {
        let config = state(CONFIG, |out| put_config(out, config));
        self.unwritten.put([config]);
    }

    pub fn put_slot(&mut self, number: Round, slot: &Slot<Arc<Config>>) {
        let slot = state(SLOT, |out| {
            out.extend(number.to_le_bytes());
            put_slot(out, slot);
        });
        self.unwritten.put([slot]);
    }

    /// The snapshot at which the next start begins, with the values that are needed there and that no vote has.
    pub fn put_base(&mut self, base: &Snapshot, values: impl IntoIterator<Item = Vote>) {
        let values = values.into_iter().map(|vote| voted(&vote));
        let base = state(BASE, |out| put_base_record(out, base));
        self.unwritten.put_behind(values.chain([base]));
    }

    /// The votes before this instance that are kept here are for decided values, and are told as such.
    pub fn put_decided(&mut self, decided: Instance) {
        self.unwritten.put_behind([number(DECIDED, decided)]);
    }

    /// This configuration is complete, for ever: a majority has everything that it needs on its disks, whatever this
    /// disk has.
    pub fn put_complete(&mut self, complete: Round) {
        let record = [number(COMPLETE, complete)];
        match mutants::on(Mutant::U91) {
            true => self.unwritten.put_behind(record),
            false => self.unwritten.put(record),
        }
    }

    /// A record of an acceptor that depends on nothing that waits.
    pub fn put_first(&mut self, record: paxos::Record) {
        self.unwritten.put(encode(record));
    }

    /// A record of an acceptor that the log lacks, though it was durable once. Returns its bytes.
    pub fn put_again(&mut self, record: paxos::Record) -> usize {
        let record = encode(record);
        let bytes = record.as_ref().map_or(0, bytes_of);
        self.unwritten.put_last(record);
        bytes
    }
}
