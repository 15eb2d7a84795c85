//! Faults: killed and stopped processes, lost states, broken links.

use super::disk::Mode;
use super::world::{MILLI, World};

impl World {
    pub fn trouble(&mut self) {
        let pause = [40, 300, 1500][self.below(3) as usize];
        self.fault = self.now + self.below(pause) * MILLI;
        let host = self.below(self.hosts.len() as u64) as usize;
        match self.below(16) {
            0..=4 => self.kill(host),
            5 => {
                self.add("kills of all");
                (0..self.hosts.len()).for_each(|host| self.kill(host));
            }
            6 if self.mode == Mode::Sync && self.below(2) == 0 => {
                self.add("losses of power of one");
                self.lose_power(host);
            }
            6 if self.mode == Mode::Sync => {
                self.add("losses of power");
                (0..self.hosts.len()).for_each(|host| self.lose_power(host));
            }
            7 | 8 => {
                // What the application has kept is gone; the rings' logs are not.
                self.add("states lost");
                self.kill(host);
                self.hosts[host].kept = None;
                self.hosts[host].has_lost = true;
            }
            9 => self.stop(host),
            10 | 11 => self.be_busy(host),
            12..=14 => {
                let ring = self.below(self.rings.len() as u64) as usize;
                self.cut(ring);
            }
            _ => self.mend(),
        }
    }

    pub fn kill(&mut self, host: usize) {
        if self.hosts[host].life.is_none() {
            return;
        }
        self.add("kills");
        self.count(host);
        self.hosts[host].life = None;
        let most = [200, 3000][self.below(2) as usize];
        let wait = self.below(most);
        let this = &mut self.hosts[host];
        this.again = self.now + wait * MILLI;
        this.writes = None;
        this.fetches = None;
        this.is_pinned = false;
        this.answers.clear();
        for disk in this.disks.values_mut() {
            let count = self.random.below(4) as usize;
            disk.end(count);
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
            self.disconnect(ring, (one, other));
            self.rings[ring].links.between(one, other).cut = true;
        }
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
            if fetched.at <= self.now {
                self.begin_with_fetched(host);
            }
            return;
        }
        let rings = &this.subscribes;
        let others = self.hosts.iter().filter(|other| other.subscribes == *rings);
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
        self.add("recovered");
        self.kill(host);
        let this = &mut self.hosts[host];
        this.is_pinned = fetched.is_pinned;
        this.kept = Some(fetched.kept);
        this.again = self.now + 10 * MILLI;
    }

    /// Nobody has a state that would help this process.
    pub fn is_helpless(&self, host: &super::host::Host) -> bool {
        host.life.as_ref().is_some_and(|life| life.is_trimmed)
    }
}
