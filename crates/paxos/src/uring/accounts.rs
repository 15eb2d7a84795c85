//! What a ring may forget: a table in each ring, whose changes are ordered in it (Benz et al. 2014, §5.2, where acceptors ask replicas instead).
//!
//! Each partition that subscribes to a ring has an account there. Replicas have it ordered how far their durable checkpoints go (a *mark*); when
//! a majority of them has marks behind an instance, the partition does not need it. A *hold* opens the account, a *pin* keeps what a replica
//! needs that is recovering. Since all of it is ordered, all acceptors know the same, at whatever time each looks.
//!
//! A majority of replicas that have a checkpoint and any majority that is asked by one that recovers have one in common. For each partition by
//! itself: replicas of one are no witnesses for another.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::Instance;
use rota_core::contract::NodeId;
use rota_core::mutants::{self, Mutant};

/// A partition's number.
pub type Partition = u32;

/// The most accounts that a ring has, and the most pins, and the most replicas of a partition.
const MOST: usize = 1024;

/// The nodes of the replicas of a partition.
pub type Replicas = BTreeSet<NodeId>;

/// What is ordered about what a ring may forget.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Keep what is from here on for a partition that subscribes, and so many instances before, as many as all acceptors keep for
    /// anybody. Where it has an account these are replicas of it, too.
    Hold(Partition, Replicas, u64),
    /// The replicas of a partition are these, and no others any more.
    Replace(Partition, Replicas),
    /// A hold that was ordered in this instance is needed no more: the partition does not subscribe by it, or it has left and has checkpoints
    /// behind that.
    Release(Partition, Instance),
    /// A replica has a durable checkpoint, and needs nothing before this any more. Less than it had said: that checkpoint is lost.
    Mark(Partition, NodeId, Instance),
    /// Somebody recovers from a checkpoint, and needs everything from here on, for so many nanoseconds of the time that commands carry.
    Pin(NodeId, Instance, u64),
    /// It does not need it any more.
    Unpin(NodeId),
    /// An operator gives a partition up: it has to come back from a backup.
    Abandon(Partition),
}

/// Why a command changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The partition has no account here, or not by that hold.
    NoAccount,
    /// A partition has some replicas, and not as many as that.
    Unsound,
    /// Not one of the partition's replicas.
    NoReplica,
    /// That may be forgotten already: everything before this may be.
    Forgotten(Instance),
    /// A mark beyond the place where it is ordered: nobody has a checkpoint there.
    Ahead,
    /// There are as many accounts, or pins, as there may be.
    Full,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct RetentionClaim {
    /// In which instance it was opened: its name.
    pub(super) hold: Instance,
    /// It needs what is from here on, until enough replicas are behind that.
    pub(super) from: Instance,
    pub(super) replicas: Replicas,
    pub(super) marks: BTreeMap<NodeId, Instance>,
}

impl RetentionClaim {
    /// What is before this the partition does not need.
    fn needs(&self) -> Instance {
        let mut marks: Vec<Instance> = self.marks.values().copied().collect();
        marks.sort_unstable_by(|one, other| other.cmp(one));
        // Of a majority.
        let mark = marks.get(self.replicas.len() / 2).copied();
        mark.map_or(self.from, |mark| mark.max(self.from))
    }
}

/// What all acceptors of a ring know of who needs what.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Table {
    pub(super) accounts: BTreeMap<Partition, RetentionClaim>,
    /// From where on, and until when.
    pub(super) pins: BTreeMap<NodeId, (Instance, u64)>,
    /// The latest time of a command.
    pub(super) time: u64,
    /// What is before this some acceptor may have forgotten: the bound was there once.
    pub(super) granted: Instance,
    /// What is before this no partition needs, and what is before this nobody needs.
    needed: Option<Instance>,
    bound: Option<Instance>,
}

impl Table {
    /// As it was.
    pub(super) fn restore(
        accounts: BTreeMap<Partition, RetentionClaim>,
        pins: BTreeMap<NodeId, (Instance, u64)>,
        (time, granted): (u64, Instance),
    ) -> Self {
        let mut table = Self {
            accounts,
            pins,
            time,
            granted,
            needed: None,
            bound: None,
        };
        table.look();
        table
    }

    /// What is before this nobody needs; `None` where nobody subscribes, and nobody recovers.
    pub const fn bound(&self) -> Option<Instance> {
        self.bound
    }

    /// The same without pins: where too much is kept they are let go first.
    pub const fn needed(&self) -> Option<Instance> {
        self.needed
    }

    fn look(&mut self) {
        let needs = self.accounts.values().map(RetentionClaim::needs);
        let needs = match mutants::on(Mutant::U115) {
            true => needs.max(),
            false => needs.min(),
        };
        let pins = self.pins.values().map(|(next, _)| *next);
        let pins = pins.filter(|_| !mutants::on(Mutant::U117));
        self.needed = needs;
        self.bound = needs.into_iter().chain(pins).min();
    }

    /// What is before this may be forgotten by now, but for pins.
    pub const fn granted(&self) -> Instance {
        self.granted
    }

    /// What a partition needs, and who its replicas are.
    pub fn account(&self, partition: Partition) -> Option<(Instance, &Replicas)> {
        let account = self.accounts.get(&partition)?;
        Some((account.needs(), &account.replicas))
    }

    /// All that have an account.
    pub fn partitions(&self) -> impl Iterator<Item = Partition> {
        self.accounts.keys().copied()
    }

    /// Whoever pins something, from where on, and until when.
    pub fn pins(&self) -> impl Iterator<Item = (NodeId, Instance, u64)> {
        self.pins
            .iter()
            .map(|(node, (next, until))| (*node, *next, *until))
    }

    /// A command, in the instance in which it was ordered, with the time at which it was proposed.
    ///
    /// # Errors
    /// [`Refused`]: then only time has gone on.
    pub fn apply(&mut self, at: (Instance, u64), command: Command) -> Result<(), Refused> {
        let (instance, time) = at;
        self.time = self.time.max(time);
        self.pins.retain(|_, (_, until)| *until > self.time);
        let result = self.change(instance, command);
        self.look();
        if let Some(needed) = self.needed {
            self.granted = self.granted.max(needed);
        }
        result
    }

    fn change(&mut self, instance: Instance, command: Command) -> Result<(), Refused> {
        match command {
            Command::Hold(partition, replicas, kept) => {
                self.hold((instance, kept), partition, replicas)
            }
            Command::Replace(partition, replicas) => self.replace(partition, replicas),
            Command::Release(partition, hold) => self.release(partition, hold),
            Command::Mark(_, _, next) if next > instance => Err(Refused::Ahead),
            Command::Mark(partition, node, next) => self.mark(partition, node, next),
            Command::Pin(node, next, lasts) => self.pin(node, next, lasts),
            Command::Unpin(node) => {
                self.pins.remove(&node);
                Ok(())
            }
            Command::Abandon(partition) => {
                let gone = self.accounts.remove(&partition);
                gone.map(|_| ()).ok_or(Refused::NoAccount)
            }
        }
    }

    fn hold(
        &mut self,
        (hold, kept): (Instance, u64),
        partition: Partition,
        replicas: Replicas,
    ) -> Result<(), Refused> {
        let of = self.accounts.get(&partition);
        let known = of.map(|account| &account.replicas).into_iter().flatten();
        let replicas: Replicas = known.copied().chain(replicas).collect();
        check(&replicas)?;
        if let Some(account) = self.accounts.get_mut(&partition) {
            account.replicas = replicas;
            return Ok(());
        }
        if self.accounts.len() >= MOST {
            return Err(Refused::Full);
        }
        // Whoever knew nothing of it has kept so much before this instance, or had forgotten what was granted.
        let from = hold.saturating_sub(kept).max(self.granted).max(1);
        let account = RetentionClaim {
            hold,
            from,
            replicas,
            marks: BTreeMap::new(),
        };
        self.accounts.insert(partition, account);
        Ok(())
    }

    fn release(&mut self, partition: Partition, hold: Instance) -> Result<(), Refused> {
        let account = self.accounts.get(&partition);
        // A release of an earlier hold comes late: the partition has come back by another one.
        let is_it = |account: &RetentionClaim| account.hold == hold || mutants::on(Mutant::U118);
        account
            .filter(|account| is_it(account))
            .ok_or(Refused::NoAccount)?;
        self.accounts.remove(&partition);
        Ok(())
    }

    fn mark(&mut self, partition: Partition, node: NodeId, next: Instance) -> Result<(), Refused> {
        let account = self
            .accounts
            .get_mut(&partition)
            .ok_or(Refused::NoAccount)?;
        if !account.replicas.contains(&node) {
            return Err(Refused::NoReplica);
        }
        let before = account.marks.insert(node, next).unwrap_or(next);
        if mutants::on(Mutant::U116) {
            account.marks.insert(node, next.max(before));
        }
        Ok(())
    }

    /// Its time begins with its order: a clock that is ahead, here or elsewhere, ends no pin that comes later.
    fn pin(&mut self, node: NodeId, next: Instance, lasts: u64) -> Result<(), Refused> {
        // Where nobody has an account all is forgotten some time, and nobody knows when.
        if self.accounts.is_empty() {
            return Err(Refused::NoAccount);
        }
        let has_it = |pinned: &(Instance, u64)| pinned.0 <= next;
        if next < self.granted && !self.pins.get(&node).is_some_and(has_it) {
            return Err(Refused::Forgotten(self.granted));
        }
        if self.pins.len() >= MOST && !self.pins.contains_key(&node) {
            return Err(Refused::Full);
        }
        let until = self.time.saturating_add(lasts);
        self.pins.insert(node, (next, until));
        Ok(())
    }

    fn replace(&mut self, partition: Partition, replicas: Replicas) -> Result<(), Refused> {
        check(&replicas)?;
        let account = self.accounts.get_mut(&partition);
        let account = account.ok_or(Refused::NoAccount)?;
        account.marks.retain(|node, _| replicas.contains(node));
        account.replicas = replicas;
        Ok(())
    }
}

/// Whether a partition can have these replicas.
pub(super) fn check(replicas: &Replicas) -> Result<(), Refused> {
    let is_sound = (1..=MOST).contains(&replicas.len());
    is_sound.then_some(()).ok_or(Refused::Unsound)
}
