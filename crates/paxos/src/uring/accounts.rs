//! Accounts: a table in each ring of the instances that it may forget. Changes of the table are ordered in the ring
//! (Benz et al. 2014, §5.2, where acceptors ask replicas instead).
//!
//! Each partition that subscribes to a ring has an account there. A replica orders a *mark* to say that its durable
//! checkpoints cover all instances before one; when a majority of the replicas has marks behind an instance, the
//! partition does not need it. A *hold* opens the account, a *pin* keeps the instances that a recovering replica needs.
//! All of it is ordered, so all acceptors have the same table, at whatever time each looks.
//!
//! A majority of replicas with a checkpoint and any majority that a recovering replica asks have a replica in common.
//! Each partition counts by itself: replicas of one are no witnesses for another.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;

use super::acceptor_list::AcceptorList;
use super::charters::{Chartered, Charters};
use crate::Instance;
use rota_core::contract::NodeId;
use rota_core::invariants::FEW;
use rota_core::mutants::{self, Mutant};

/// A partition's number.
pub type Partition = u32;

/// The most accounts that a ring has, and the most pins, and the most replicas of a partition.
const MOST: usize = 1024;

/// The nodes of the replicas of a partition.
pub type Replicas = BTreeSet<NodeId>;

/// A command on the table, ordered in the ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Keeps everything from here on for a partition that subscribes, and this number of instances before, as many as
    /// all acceptors keep for anybody. If the partition has an account, these nodes are replicas of it, too, and the
    /// account has the name of this hold from here on. A merge is told of it as of a notice ([`Self::told`]).
    Hold(Partition, Replicas, u64),
    /// The replicas of a partition are these, and no others any more.
    Replace(Partition, Replicas),
    /// The hold that was ordered in this instance is not needed any more: the partition does not subscribe by it, or it
    /// has left and has checkpoints behind that. It is refused where the partition has come back by a later hold.
    Release(Partition, Instance),
    /// A replica has a durable checkpoint, and needs nothing before this instance any more. A lower instance than in
    /// its last mark says that the checkpoint is lost.
    Mark(Partition, NodeId, Instance),
    /// A replica recovers from a checkpoint, and needs everything from this instance on, for this number of nanoseconds
    /// of the time that commands carry.
    Pin(NodeId, Instance, u64),
    /// The replica does not need its pin any more.
    Unpin(NodeId),
    /// An operator gives a partition up: it has to come back from a backup.
    Abandon(Partition),
    /// Changes nothing in the table: the ring orders it for whoever merges the ring with others, and knows nothing of
    /// it. At most [`MOST_NOTICE`] bytes.
    Notice(Bytes),
    /// A ring with this number is founded, others having come to this round, with this charter
    /// ([`Charters`]). At most [`MOST_CHARTER`](super::charters::MOST_CHARTER) bytes.
    Found(u16, u64, Bytes),
    /// The list of acceptors with this number is of these nodes ([`AcceptorList`]).
    Acceptors(u64, Replicas),
}

/// The most bytes of a notice.
pub const MOST_NOTICE: usize = 256;

/// The reason why a command changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The partition has no account here, or not by that hold.
    NoAccount,
    /// A partition has some replicas, and not as many as given.
    Unsound,
    /// The node is not one of the partition's replicas.
    NoReplica,
    /// The wanted instances may be forgotten already: everything before this one may be.
    Forgotten(Instance),
    /// A mark beyond the place where it is ordered: nobody has a checkpoint there.
    Ahead,
    /// There are as many accounts, pins, or charters as there may be.
    Full,
    /// The ring was founded with another charter, in this instance.
    Otherwise(Instance),
    /// The list of acceptors follows another one than the newest, which has this number.
    List(u64),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct RetentionClaim {
    /// The instance of the partition's last hold, which is its name: what releases an earlier one comes late.
    pub(super) hold: Instance,
    /// The partition needs everything from this instance on, until the marks of a majority of replicas are behind it.
    pub(super) from: Instance,
    pub(super) replicas: Replicas,
    pub(super) marks: BTreeMap<NodeId, Instance>,
}

impl RetentionClaim {
    /// The first instance that the partition needs.
    fn needs(&self) -> Instance {
        let mut marks: Vec<Instance> = self.marks.values().copied().collect();
        marks.sort_unstable_by(|one, other| other.cmp(one));
        // A majority of the replicas has this mark, or a later one.
        let mark = marks.get(self.replicas.len() / 2).copied();
        mark.map_or(self.from, |mark| mark.max(self.from))
    }
}

/// The accounts and pins of a ring, the same at all acceptors.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Table {
    pub(super) accounts: BTreeMap<Partition, RetentionClaim>,
    /// By node: the first instance that its pin keeps, and the time at which the pin ends.
    pub(super) pins: BTreeMap<NodeId, (Instance, u64)>,
    /// The latest time of a command.
    pub(super) time: u64,
    /// Some acceptor may have forgotten everything before this instance, but for pins: the partitions' need was there
    /// once.
    pub(super) granted: Instance,
    /// The rings that were founded while processes run.
    pub(super) charters: Charters,
    /// The nodes that are to vote.
    pub(super) acceptor_list: AcceptorList,
    /// The first instance that a partition needs, and the first that a partition or a pin needs.
    needed: Option<Instance>,
    bound: Option<Instance>,
}

impl Table {
    /// The table from its parts.
    pub(super) fn restore(
        accounts: BTreeMap<Partition, RetentionClaim>,
        pins: BTreeMap<NodeId, (Instance, u64)>,
        (time, granted): (u64, Instance),
        (charters, acceptor_list): (Charters, AcceptorList),
    ) -> Self {
        let mut table = Self {
            accounts,
            pins,
            time,
            granted,
            charters,
            acceptor_list,
            needed: None,
            bound: None,
        };
        table.look();
        table
    }

    /// The first instance that a partition or a pin needs; `None` if there is neither an account nor a pin.
    pub const fn bound(&self) -> Option<Instance> {
        self.bound
    }

    /// The same without pins: a ring that keeps too much lets pins go first.
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

    /// Everything before this instance may be forgotten by now, but for pins.
    pub const fn granted(&self) -> Instance {
        self.granted
    }

    /// The first instance that a partition needs, and its replicas.
    pub fn account(&self, partition: Partition) -> Option<(Instance, &Replicas)> {
        let account = self.accounts.get(&partition)?;
        Some((account.needs(), &account.replicas))
    }

    /// The name of a partition's account, by which it is released: the instance of its last hold.
    pub fn hold_of(&self, partition: Partition) -> Option<Instance> {
        Some(self.accounts.get(&partition)?.hold)
    }

    /// The partitions that have an account.
    pub fn partitions(&self) -> impl Iterator<Item = Partition> {
        self.accounts.keys().copied()
    }

    /// The rings that were founded while processes run.
    pub const fn charters(&self) -> &Charters {
        &self.charters
    }

    /// The nodes that are to vote.
    pub const fn acceptor_list(&self) -> &AcceptorList {
        &self.acceptor_list
    }

    /// The pins: the node, the first instance that it keeps, and the time at which it ends.
    pub fn pins(&self) -> impl Iterator<Item = (NodeId, Instance, u64)> {
        self.pins
            .iter()
            .map(|(node, (next, until))| (*node, *next, *until))
    }

    /// Applies a command, in the instance in which it was ordered, with the time at which it was proposed.
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
            Command::Notice(_) => Ok(()),
            Command::Found(ring, from, charter) => {
                let at = instance;
                self.charters.found(ring, Chartered { at, from, charter })
            }
            Command::Acceptors(number, nodes) => self.acceptor_list.take(number, nodes),
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
            if !mutants::on(Mutant::U123) {
                account.hold = hold;
            }
            return Ok(());
        }
        if self.accounts.len() >= MOST {
            return Err(Refused::Full);
        }
        // An acceptor that knew nothing of the hold has kept `kept` instances before this one, or had forgotten no more
        // than was granted.
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

    /// The time of a pin begins with its order: a clock that is ahead, here or elsewhere, ends no pin that comes later.
    fn pin(&mut self, node: NodeId, next: Instance, lasts: u64) -> Result<(), Refused> {
        // A ring without accounts forgets everything some time, and nobody knows when.
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

impl Table {
    /// Its invariants.
    pub fn check(&self) {
        let is_sound = |account: &RetentionClaim| {
            let mut marks = account.marks.keys();
            marks.all(|node| account.replicas.contains(node))
        };
        assert!(
            self.accounts.len() > FEW || self.accounts.values().all(is_sound),
            "only replicas have marks"
        );
        assert_eq!(
            self.needed.is_some(),
            !self.accounts.is_empty(),
            "an account needs something"
        );
        assert!(
            self.needed.is_none() || self.bound <= self.needed,
            "pins keep more than accounts"
        );
    }
}

/// Checks that a partition can have these replicas.
pub(super) fn check(replicas: &Replicas) -> Result<(), Refused> {
    let is_sound = (1..=MOST).contains(&replicas.len());
    is_sound.then_some(()).ok_or(Refused::Unsound)
}
