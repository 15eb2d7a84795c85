//! What a ring may forget: a table in each ring, whose changes are ordered in it.
//!
//! Each partition that subscribes to a ring has an account there. Replicas have it ordered how far their durable checkpoints go (a *mark*); when
//! enough of them (`q_t`) have marks behind an instance, the partition does not need it. A *hold* keeps what a partition needs that is about to subscribe, a
//! *pin* what a replica needs that is recovering. Since all of it is ordered, all acceptors know the same, at whatever time each looks.
//!
//! `q_t` replicas that have a checkpoint and `q_r` that are asked by one that recovers have one in common: `q_t + q_r` is more than the
//! partition has. Both for each partition by itself: replicas of one are no witnesses for another.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::mutants::{self, Mutant};
use crate::order::Instance;

/// A partition's number.
pub type Partition = u32;
/// A replica's store: drawn with its directory, so that an emptied one is another.
pub type Store = u64;

/// The replicas of a partition, and how many of them count.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Replicas {
    /// Their stores.
    pub stores: BTreeSet<Store>,
    /// So many have to have a checkpoint before something is forgotten.
    pub q_t: usize,
    /// So many are asked by one that recovers.
    pub q_r: usize,
}

impl Replicas {
    /// With majorities for both.
    pub fn new(stores: impl IntoIterator<Item = Store>) -> Self {
        let stores: BTreeSet<Store> = stores.into_iter().collect();
        let majority = stores.len() / 2 + 1;
        Self {
            stores,
            q_t: majority,
            q_r: majority,
        }
    }

    /// Whether each `q_t` and each `q_r` have one in common, and both can be found.
    pub fn is_sound(&self) -> bool {
        let count = self.stores.len();
        let is_there = |quorum: usize| (1..=count).contains(&quorum);
        is_there(self.q_t) && is_there(self.q_r) && self.q_t + self.q_r > count
    }
}

/// What is ordered about what a ring may forget.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Keep what is behind this instance for a partition that is about to subscribe.
    Hold(Partition, Replicas),
    /// A hold that was ordered in this instance is needed no more: the partition does not subscribe by it, or it has left and has checkpoints
    /// behind that.
    Release(Partition, Instance),
    /// A replica has a durable checkpoint, and needs nothing before this any more.
    Mark(Partition, Store, Instance),
    /// Somebody recovers from a checkpoint, and needs everything from here on, for so many nanoseconds of the time that commands carry.
    Pin(Store, Instance, u64),
    /// It does not need it any more.
    Unpin(Store),
    /// The replicas of a partition are others now.
    Replace(Partition, Replicas),
    /// An operator gives a partition up: it has to come back from a backup.
    Abandon(Partition),
}

/// Why a command changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The partition has no account here, or not by that hold.
    NoAccount,
    /// It has one already.
    HasAccount,
    /// Such quorums have no replica in common.
    Unsound,
    /// Not one of the partition's replicas.
    NoReplica,
    /// That may be forgotten already: everything before this may be.
    Forgotten(Instance),
    /// A mark beyond the place where it is ordered: nobody has a checkpoint there.
    Ahead,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Account {
    /// Where its hold was ordered: it needs what is behind that, until enough replicas are.
    hold: Instance,
    replicas: Replicas,
    marks: BTreeMap<Store, Instance>,
}

impl Account {
    /// What is before this the partition does not need.
    fn needs(&self) -> Instance {
        let of_replicas = self.marks.iter();
        let of_replicas = of_replicas.filter(|(store, _)| self.replicas.stores.contains(store));
        let mut marks: Vec<Instance> = of_replicas.map(|(_, next)| *next).collect();
        marks.sort_unstable_by(|one, other| other.cmp(one));
        let mark = marks.get(self.replicas.q_t - 1).copied();
        mark.map_or(self.hold, |mark| mark.max(self.hold))
    }
}

/// What all acceptors of a ring know of who needs what.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Table {
    accounts: BTreeMap<Partition, Account>,
    pins: BTreeMap<Store, (Instance, u64)>,
    /// The latest time of a command.
    time: u64,
    /// What is before this some acceptor may have forgotten: the bound was there once.
    granted: Instance,
}

impl Table {
    /// Of a ring that these partitions subscribe to from its beginning.
    ///
    /// # Errors
    /// [`Refused::Unsound`].
    pub fn new(
        partitions: impl IntoIterator<Item = (Partition, Replicas)>,
    ) -> Result<Self, Refused> {
        let account = |(partition, replicas)| {
            let marks = BTreeMap::new();
            let account = Account {
                hold: 1,
                replicas,
                marks,
            };
            (partition, account)
        };
        let accounts: BTreeMap<Partition, Account> = partitions.into_iter().map(account).collect();
        let mut all = accounts.values();
        if !all.all(|account| account.replicas.is_sound()) {
            return Err(Refused::Unsound);
        }
        Ok(Self {
            accounts,
            granted: 1,
            ..Self::default()
        })
    }

    /// What is before this nobody needs; `None` where nobody subscribes, and nobody recovers.
    pub fn bound(&self) -> Option<Instance> {
        let needs = self.accounts.values().map(Account::needs);
        let needs = match mutants::on(Mutant::A08) {
            true => needs.max(),
            false => needs.min(),
        };
        let pins = self.pins.values().map(|(next, _)| *next);
        let pins = pins.filter(|_| !mutants::on(Mutant::A10));
        needs.into_iter().chain(pins).min()
    }

    /// What is before this may be forgotten by now.
    pub const fn granted(&self) -> Instance {
        self.granted
    }

    /// What a partition needs, and who its replicas are.
    pub fn account(&self, partition: Partition) -> Option<(Instance, &Replicas)> {
        let account = self.accounts.get(&partition)?;
        Some((account.needs(), &account.replicas))
    }

    /// Whoever pins something, from where on, and until when.
    pub fn pins(&self) -> impl Iterator<Item = (Store, Instance, u64)> {
        self.pins
            .iter()
            .map(|(store, (next, until))| (*store, *next, *until))
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
        if let Some(bound) = self.bound() {
            self.granted = self.granted.max(bound);
        }
        result
    }

    fn change(&mut self, instance: Instance, command: Command) -> Result<(), Refused> {
        match command {
            Command::Hold(partition, replicas) => self.hold(instance, partition, replicas),
            Command::Release(partition, hold) => self.release(partition, hold),
            Command::Mark(_, _, next) if next > instance => Err(Refused::Ahead),
            Command::Mark(partition, store, next) => self.mark(partition, store, next),
            Command::Pin(store, next, lasts) => self.pin(store, next, lasts),
            Command::Unpin(store) => {
                self.pins.remove(&store);
                Ok(())
            }
            Command::Replace(partition, replicas) => self.replace(partition, replicas),
            Command::Abandon(partition) => {
                let gone = self.accounts.remove(&partition);
                gone.map(|_| ()).ok_or(Refused::NoAccount)
            }
        }
    }

    fn hold(
        &mut self,
        hold: Instance,
        partition: Partition,
        replicas: Replicas,
    ) -> Result<(), Refused> {
        if self.accounts.contains_key(&partition) {
            return Err(Refused::HasAccount);
        }
        if !replicas.is_sound() {
            return Err(Refused::Unsound);
        }
        let marks = BTreeMap::new();
        let account = Account {
            hold,
            replicas,
            marks,
        };
        self.accounts.insert(partition, account);
        Ok(())
    }

    fn release(&mut self, partition: Partition, hold: Instance) -> Result<(), Refused> {
        let account = self.accounts.get(&partition);
        // A release of an earlier hold comes late: the partition has come back by another one.
        let is_it = |account: &Account| account.hold == hold || mutants::on(Mutant::A15);
        account
            .filter(|account| is_it(account))
            .ok_or(Refused::NoAccount)?;
        self.accounts.remove(&partition);
        Ok(())
    }

    fn mark(&mut self, partition: Partition, store: Store, next: Instance) -> Result<(), Refused> {
        let account = self
            .accounts
            .get_mut(&partition)
            .ok_or(Refused::NoAccount)?;
        if !account.replicas.stores.contains(&store) && !mutants::on(Mutant::A09) {
            return Err(Refused::NoReplica);
        }
        if mutants::on(Mutant::A09) {
            account.replicas.stores.insert(store);
        }
        let mark = account.marks.entry(store).or_insert(next);
        *mark = next.max(*mark);
        Ok(())
    }

    /// Its time begins with its order: a clock that is ahead, here or elsewhere, ends no pin that comes later.
    fn pin(&mut self, store: Store, next: Instance, lasts: u64) -> Result<(), Refused> {
        if next < self.granted {
            return Err(Refused::Forgotten(self.granted));
        }
        let until = self.time.saturating_add(lasts);
        self.pins.insert(store, (next, until));
        Ok(())
    }

    fn replace(&mut self, partition: Partition, replicas: Replicas) -> Result<(), Refused> {
        if !replicas.is_sound() {
            return Err(Refused::Unsound);
        }
        let account = self
            .accounts
            .get_mut(&partition)
            .ok_or(Refused::NoAccount)?;
        account
            .marks
            .retain(|store, _| replicas.stores.contains(store));
        account.replicas = replicas;
        Ok(())
    }
}
