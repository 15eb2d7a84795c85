//! Changes of the subscriptions of partitions: who wishes them, and what has to hold when they take effect.

use rota_core::contract::Time;
use rota_multiring::accounts::{Command, Replicas};
use rota_multiring::{Rank, Round, Wish};

use super::host::{Host, Life};
use super::world::{MILLI, World, node_id};

impl World {
    /// Somebody wants its partition to have another ring, or one less: often where another replica recovers.
    pub fn wish_what_is_due(&mut self) {
        if !self.has_changes || self.now < self.next_wish {
            return;
        }
        self.next_wish = self.now + self.below(600) * MILLI;
        let recovering = self.hosts.iter().find(|host| host.fetches.is_some());
        let partition = recovering.map(|host| host.partition);
        let may_be = |host: &usize| {
            let this = &self.hosts[*host];
            let has_choice = self.partitions[this.partition].has_choice();
            has_choice && partition.is_none_or(|of| of == this.partition && this.fetches.is_none())
        };
        let hosts: Vec<usize> = (0..self.hosts.len()).filter(may_be).collect();
        if hosts.is_empty() {
            return;
        }
        let host = hosts[self.below(hosts.len() as u64) as usize];
        let may = self.partition_of(host).may.clone();
        let ring = may[self.below(may.len() as u64) as usize];
        let rank = self.rings[ring].of.constants.rank;
        let is_awake = self.is_awake(host);
        let Some(life) = self.hosts[host]
            .life
            .as_mut()
            .filter(|life| is_awake && !life.is_trimmed)
        else {
            return;
        };
        if life.learner.has(rank) {
            self.wish(host, Wish::Leave(rank));
        } else {
            self.hosts[host].wants = Some(ring);
            self.want_account(host, ring);
        }
    }

    /// A ring keeps what its partition needs before that subscribes.
    fn want_account(&mut self, host: usize, ring: usize) {
        let partition = self.hosts[host].partition;
        self.partitions[partition].accounts.insert(ring);
        if !self.has_accounts {
            return;
        }
        let replicas: Replicas = self.partitions[partition]
            .hosts
            .iter()
            .map(|host| node_id(*host))
            .collect();
        let kept = self.rings[ring].config.acceptor.kept_instances;
        self.order(host, ring, &Command::Hold(partition as u32, replicas, kept));
    }

    fn wish(&mut self, host: usize, wish: Wish) {
        if let Some(life) = &mut self.hosts[host].life {
            let taken = life.learner.wish(wish).is_ok();
            self.add(if taken { "wishes" } else { "wishes refused" });
        }
    }

    /// Where nobody wishes anything, holds that nobody came back for are let go.
    pub fn let_go(&mut self) {
        let waits = |host: &Host| {
            let life = host.life.as_ref().filter(|life| !life.is_trimmed);
            life.is_some_and(|life| life.learner.wishes() > 0 || life.learner.pending().is_some())
        };
        if !self.has_changes || self.hosts.iter().any(waits) {
            return;
        }
        for host in 0..self.hosts.len() {
            let life = self.hosts[host]
                .life
                .as_ref()
                .filter(|life| !life.is_trimmed);
            let held = life.into_iter().flat_map(|life| life.learner.standby());
            let held: Vec<Rank> = held.map(|(rank, _)| rank).collect();
            for rank in held {
                self.add("holds let go");
                self.wish(host, Wish::Leave(rank));
            }
        }
    }

    /// The next notice of a wish is ordered, if the ring takes it; and a point that had to wait for a change is wanted
    /// again. Whether there was any.
    pub fn change(&mut self, host: usize) -> bool {
        self.wish_what_has_an_account(host);
        let Some(life) = &mut self.hosts[host].life else {
            return false;
        };
        let is_settled = life.learner.takes_up_point();
        let next = life.learner.next_notice();
        if is_settled {
            self.want_point_now(host);
        }
        let Some((rank, notice)) = next else {
            return is_settled;
        };
        let now = self.now;
        let mut rings = self.rings.iter();
        let ring = rings.position(|ring| ring.of.constants.rank == rank);
        let ring = ring.expect("a ring");
        self.judge_order(host, ring);
        let command = Command::Notice(notice.encode());
        let engine = self.engine(host, ring).expect("it is on it");
        let inner = engine.get_mut().get_mut();
        let is_taken = inner.order_account(Time(now), (&command, now));
        if is_taken && let Some(life) = &mut self.hosts[host].life {
            life.learner.on_given((rank, notice));
            self.add("notices");
        }
        self.drain(host, ring);
        is_settled || is_taken
    }

    fn wish_what_has_an_account(&mut self, host: usize) {
        let Some(ring) = self.hosts[host].wants else {
            return;
        };
        let partition = self.hosts[host].partition as u32;
        let has_accounts = self.has_accounts;
        let engine = self.engine(host, ring);
        let has_it = engine.is_some_and(|engine| {
            let accounts = engine.get().get().accounts();
            !has_accounts || accounts.account(partition).is_some()
        });
        if has_it {
            self.hosts[host].wants = None;
            self.wish(host, Wish::Subscribe(self.rings[ring].of.constants.rank));
        }
    }

    /// A process is told that its partition has another ring from a round on, or one less.
    pub fn on_change(&mut self, host: usize, (rank, round): (Rank, Round), has: bool) {
        let ranks = self.ranks();
        let ring = ranks.iter().position(|of| *of == rank.0).expect("a ring");
        let partition = self.hosts[host].partition;
        match has {
            true => self.note_has(host, (rank.0, round)),
            false => self.note_left(host, (rank.0, round)),
        }
        if let Some(life) = &mut self.hosts[host].life {
            life.state = life.state.changed(&(rank, round, has));
            if let Some((last, _)) = life.told.last().filter(|(last, _)| last.round >= round) {
                let what = format!("change: of ring {ring} in round {round} behind {last:?}");
                self.judge.found(what);
            }
        }
        let changes = &self.partitions[partition].changes;
        let last = changes.last_key_value().map(|(round, _)| *round);
        match changes.get(&round) {
            Some(known) if *known == (ring, has) => self.add("changes told again"),
            None if last.is_none_or(|last| last < round) => {
                self.partitions[partition]
                    .changes
                    .insert(round, (ring, has));
                self.count_change(host);
            }
            known => {
                let what = format!(
                    "change: {:?} in round {round}, of others {known:?}",
                    (ring, has)
                );
                self.judge.found(what);
            }
        }
    }

    /// A change takes effect at the first of the replicas.
    fn count_change(&mut self, host: usize) {
        self.add("changes");
        let partition = self.partition_of(host);
        let others = partition.hosts.iter().filter(|other| **other != host);
        let others: Vec<&Host> = others.map(|other| &self.hosts[*other]).collect();
        let lives = || others.iter().filter_map(|other| other.life.as_ref());
        let comes_back = |life: &Life| {
            let point = life.learner.point();
            point.is_some_and(|point| point.round < life.catches_up)
        };
        let of = [
            (
                "changes while a replica is down",
                others.iter().any(|other| other.life.is_none()),
            ),
            (
                "changes while a state comes",
                others.iter().any(|other| other.fetches.is_some()),
            ),
            (
                "changes while a replica comes back",
                lives().any(comes_back),
            ),
        ];
        for (what, is_so) in of {
            if is_so {
                self.add(what);
            }
        }
    }

    /// The rings of all replicas of a partition are those that the changes have come to.
    pub fn judge_rings(&mut self) {
        let mut judged = 0;
        for host in 0..self.hosts.len() {
            let this = &self.hosts[host];
            let Some(life) = this.life.as_ref().filter(|life| !life.is_trimmed) else {
                continue;
            };
            let ranks = self.ranks();
            let index = |rank: u16| ranks.iter().position(|of| *of == rank);
            let own = life.learner.rings().filter_map(|of| index(of.rank.0));
            let own: std::collections::BTreeSet<usize> = own.collect();
            let partition = &self.partitions[this.partition];
            let expected = partition.rings_at_last();
            if !partition.changes.is_empty() {
                judged += 1;
            }
            if own != expected {
                let what = format!("rings: {:?} has {own:?}, and not {expected:?}", life.me);
                self.judge.found(what);
            }
        }
        self.counts.insert("rings judged", judged);
    }
}
