//! A node: its store, and the process that may be alive there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rota_core::contract::NodeId;
use rota_paxos::{AcceptorId, Config, Instance, Mark, Proposers, Record, Round, Slot};

use super::judge::Judge;
use super::life::Life;
use super::world::Letter;

/// What is known of everything before an instance: who begins there needs no more of it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub next: Instance,
    pub table: Proposers,
    pub counted: usize,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            next: 1,
            table: Proposers::default(),
            counted: 0,
        }
    }
}

/// What a disk holds.
#[derive(Clone)]
pub struct Store {
    pub id: AcceptorId,
    pub records: Vec<Record>,
    pub slots: BTreeMap<Round, Slot<Arc<Config>>>,
    pub configs: BTreeMap<Round, Arc<Config>>,
    pub base: Snapshot,
}

impl Store {
    pub fn new(node: NodeId, store: u64) -> Self {
        Self {
            id: AcceptorId { node, store },
            records: Vec::new(),
            slots: BTreeMap::new(),
            configs: BTreeMap::new(),
            base: Snapshot::default(),
        }
    }

    pub fn write(&mut self, write: Write, judge: &mut Judge) {
        match write {
            Write::Records(records, _) => {
                for record in &records {
                    if let Record::Voted(vote) = record {
                        judge.on_vote(self.id, vote);
                    }
                }
                self.records.extend(records);
            }
            Write::Slot(number, slot) => {
                self.slots.insert(number, slot);
            }
            Write::Snapshot(base) => self.base = base,
            Write::Config(config) => {
                self.configs.insert(config.number, config);
            }
        }
    }
}

/// What waits for the disk, in order.
pub enum Write {
    Records(Vec<Record>, Mark),
    Slot(Round, Slot<Arc<Config>>),
    Config(Arc<Config>),
    Snapshot(Snapshot),
}

pub enum Effect {
    Write(Write),
    /// Leaves when all before it is durable.
    Send(Letter),
}

pub struct Site {
    pub node: NodeId,
    pub store: Store,
    pub life: Option<Life>,
    pub lives: u64,
    pub effects: VecDeque<Effect>,
}
