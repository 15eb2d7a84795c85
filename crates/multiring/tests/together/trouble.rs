//! Faults: killed and stopped processes, lost states, broken links.

use rota_check::multicast::Event;
use rota_paxos::uring::URing;

use super::disk::Mode;
use super::host::Host;
use super::world::{MILLI, World};

impl World {
    pub fn trouble(&mut self) {
        let pause = [40, 300, 1500][self.below(3) as usize];
        self.fault = self.now + self.below(pause) * MILLI;
        let host = self.below(self.hosts.len() as u64) as usize;
        match self.below(21) {
            0..=4 if self.may_kill(host) => self.kill(host),
            5 if (0..self.hosts.len()).all(|host| self.remembers(host)) => {
                self.add("kills of all");
                (0..self.hosts.len()).for_each(|host| self.kill(host));
            }
            6 if self.mode == Mode::Sync => {
                self.add("losses of power");
                (0..self.hosts.len()).for_each(|host| self.lose_power(host));
            }
            15 | 16 if self.may_lose_power(host) => {
                self.add(match self.mode {
                    Mode::Sync => "losses of power of one",
                    _ => "losses of power of one that forgets",
                });
                self.lose_power(host);
            }
            17 => {
                let partition = self.below(self.partitions.len() as u64) as usize;
                let hosts = self.partitions[partition].hosts.clone();
                for host in hosts {
                    if self.may_kill(host) {
                        self.kill(host);
                    }
                }
            }
            18 => {
                let ring = self.below(self.rings.len() as u64) as usize;
                self.isolate(ring);
            }
            19 => {
                // Who gets a state has to begin again.
                let mut hosts = 0..self.hosts.len();
                let host = hosts.find(|host| self.hosts[*host].fetches.is_some());
                if let Some(host) = host.filter(|host| self.may_kill(*host)) {
                    self.kill(host);
                }
            }
            7 | 8 if self.may_kill(host) => {
                // What the application has kept is gone; the rings' logs are not.
                self.add("states lost");
                self.kill(host);
                self.hosts[host].kept = None;
                self.hosts[host].is_fetched = false;
                self.hosts[host].has_lost = true;
            }
            9 => self.stop(host),
            10 | 11 => self.be_busy(host),
            12..=14 => {
                let ring = self.below(self.rings.len() as u64) as usize;
                self.cut(ring);
            }
            20 => self.mend(),
            _ => {}
        }
    }

    /// Whether a host may forget what its disks had not synced. Where that is something it has answered, only one acceptor
    /// of a ring at a time may: when the one before has been replaced.
    fn may_lose_power(&self, host: usize) -> bool {
        let mut rings = 0..self.rings.len();
        self.mode == Mode::Sync || rings.all(|ring| !self.votes(host, ring) || self.is_well(ring))
    }

    /// Whether the end of a host's process is that of no store: one that has lost some is another acceptor in each life,
    /// until its name is synced.
    fn remembers(&self, host: usize) -> bool {
        let mut disks = self.hosts[host].disks.iter();
        disks.all(|(ring, disk)| !disk.lost_some || !self.votes(host, *ring))
    }

    /// Whether a process may end.
    pub fn may_kill(&self, host: usize) -> bool {
        self.remembers(host) || self.may_lose_power(host)
    }

    fn votes(&self, host: usize, ring: usize) -> bool {
        let acceptors = &self.rings[ring].config.acceptors;
        acceptors.contains(&super::world::node_id(host))
    }

    /// Whether all processes of a ring live, in one configuration that has begun, and of which everybody knows that it is
    /// complete.
    fn is_well(&self, ring: usize) -> bool {
        let hosts = self.rings[ring].hosts.iter();
        // Nobody waits for an observer.
        let hosts = hosts.filter(|host| !self.observes(**host, ring));
        let hosts: Vec<&Host> = hosts.map(|host| &self.hosts[*host]).collect();
        let engines = hosts.iter().map(|host| {
            let life = host.life.as_ref().filter(|life| life.stopped <= self.now);
            life.map(|life| life.engines[&ring].get().get())
        });
        let Some(engines) = engines.collect::<Option<Vec<_>>>() else {
            return false;
        };
        let newest = engines.iter().map(|engine| engine.number()).max();
        let is_in = |engine: &&URing| {
            Some(engine.number()) == newest && engine.is_operational() && engine.is_complete()
        };
        newest > Some(1) && engines.iter().all(is_in)
    }

    pub fn kill(&mut self, host: usize) {
        if self.hosts[host].life.is_none() {
            return;
        }
        self.add("kills");
        self.add_if_observes(host, "observers killed");
        self.count(host);
        self.note(host, Event::Crash);
        self.hosts[host].life = None;
        let most = [200, 3000][self.below(2) as usize];
        let wait = self.below(most);
        let this = &mut self.hosts[host];
        this.again = self.now + wait * MILLI;
        this.writes = None;
        let is_cut_off = this.fetches.take().is_some();
        this.pinned.clear();
        this.wants = None;
        this.answers.clear();
        for disk in this.disks.values_mut() {
            let count = self.random.below(4) as usize;
            disk.end(count);
        }
        if is_cut_off {
            self.add("transfers cut off");
        }
        self.break_links(host);
    }

    fn lose_power(&mut self, host: usize) {
        self.kill(host);
        let mode = self.mode;
        for disk in self.hosts[host].disks.values_mut() {
            let count = self.random.below(disk.unsynced() as u64 + 1) as usize;
            disk.lose(count, mode);
        }
    }

    fn break_links(&mut self, host: usize) {
        for ring in 0..self.rings.len() {
            let mut hosts = self.rings[ring].hosts.iter();
            let Some(place) = hosts.position(|other| *other == host) else {
                continue;
            };
            for other in 0..self.rings[ring].hosts.len() {
                if other != place {
                    self.disconnect(ring, (place, other));
                }
            }
        }
    }

    fn disconnect(&mut self, ring: usize, (one, other): (usize, usize)) {
        let retry = self.now + self.below(200) * MILLI;
        let Some(session) = self.rings[ring].links.between(one, other).break_up(retry) else {
            return;
        };
        let session = rota_core::contract::Session(session);
        for (at, peer) in [(one, other), (other, one)] {
            let [at, peer] = [at, peer].map(|place| self.rings[ring].hosts[place]);
            let peer = super::world::node_id(peer);
            let down = rota_core::contract::Input::LinkDown { peer, session };
            self.handle(at, ring, down);
        }
    }

    /// A link of one ring stays down until somebody mends it.
    fn cut(&mut self, ring: usize) {
        let count = self.rings[ring].hosts.len() as u64;
        let [one, other] = [(); 2].map(|()| self.below(count) as usize);
        if one != other {
            self.add("cuts");
            let hosts = [one, other].map(|place| self.rings[ring].hosts[place]);
            if hosts.iter().any(|host| self.observes(*host, ring)) {
                self.add("observers cut off");
            }
            self.disconnect(ring, (one, other));
            self.rings[ring].links.between(one, other).cut = true;
        }
    }

    /// A ring has no majority for a while: two of its three acceptors hear from nobody there.
    fn isolate(&mut self, ring: usize) {
        self.add("rings without a majority");
        let count = self.rings[ring].hosts.len();
        let but = self.below(3) as usize;
        for one in (0..3).filter(|place| *place != but) {
            for other in (0..count).filter(|place| *place != one) {
                self.disconnect(ring, (one, other));
                self.rings[ring].links.between(one, other).cut = true;
            }
        }
        if !self.rings[ring].config.observers.is_empty() {
            self.add("observers of rings without a majority");
        }
        self.rings[ring].returns = self.now + (200 + self.below(2500)) * MILLI;
    }

    /// Rings come back.
    pub fn bring_back(&mut self) {
        let now = self.now;
        let mut rings = self
            .rings
            .iter_mut()
            .filter(|ring| (1..=now).contains(&ring.returns));
        let mut count = 0;
        rings.by_ref().for_each(|ring| {
            ring.returns = 0;
            ring.links
                .links
                .values_mut()
                .for_each(|link| link.cut = false);
            count += 1;
        });
        (0..count).for_each(|_| self.add("rings with a majority again"));
    }

    pub fn mend(&mut self) {
        for ring in &mut self.rings {
            ring.links
                .links
                .values_mut()
                .for_each(|link| link.cut = false);
        }
    }

    fn stop(&mut self, host: usize) {
        let until = self.now + self.below(3000) * MILLI;
        if let Some(life) = &mut self.hosts[host].life {
            life.stopped = until;
            self.add("stops");
        }
    }

    fn be_busy(&mut self, host: usize) {
        let until = self.now + self.below(1000) * MILLI;
        if let Some(life) = &mut self.hosts[host].life {
            life.busy = until;
            self.add("busy applications");
        }
    }

    /// A ring has forgotten what this process needs: its rings go on, and its application begins anew with the furthest state of those who have the
    /// same rings, as soon as there is one that it has not tried.
    pub fn recover(&mut self, host: usize) {
        self.look_at_pins(host);
        let this = &self.hosts[host];
        if !this.life.as_ref().is_some_and(|life| life.is_trimmed) {
            return;
        }
        if let Some(fetched) = &this.fetches {
            if fetched.at <= self.now && self.may_kill(host) {
                self.begin_with_fetched(host);
            }
            return;
        }
        let partition = this.partition;
        let others = self
            .hosts
            .iter()
            .filter(|other| other.partition == partition);
        let states = others.filter_map(|other| other.kept.as_ref());
        let furthest = states.max_by_key(|kept| kept.resume.point).cloned();
        let own = this.kept.as_ref().map(|kept| kept.resume.point);
        if let Some(furthest) = furthest.filter(|kept| Some(kept.resume.point) > own) {
            self.fetch(host, furthest);
        }
    }

    fn begin_with_fetched(&mut self, host: usize) {
        let Some(fetched) = self.hosts[host].fetches.take() else {
            return;
        };
        self.kill(host);
        let this = &mut self.hosts[host];
        if fetched.is_pinned {
            this.pinned = fetched.pins.into_keys().collect();
        }
        this.kept = Some(fetched.kept.clone());
        this.is_fetched = true;
        this.again = self.now + 10 * MILLI;
        self.note_durable(host, &fetched.kept);
    }

    /// Nobody has a state that would help this process.
    pub fn is_helpless(&self, host: &Host) -> bool {
        host.life.as_ref().is_some_and(|life| life.is_trimmed)
    }
}
