//! The turn of a process: it takes the deliveries of its rings, as the driver of several rings does.

use std::hash::{DefaultHasher, Hash, Hasher};

use rota_core::contract::{Delivery, Engine, Time};
use rota_multiring::RingsDelivery;

use super::host::{Kept, State};
use super::world::{MILLI, World};

impl World {
    /// Until nothing more follows from anything.
    pub fn turn(&mut self, host: usize) {
        for _ in 0..1000 {
            if !self.is_awake(host) {
                return;
            }
            let mut some = self.take_deliveries(host);
            some |= self.announce(host);
            self.want_point(host);
            some |= self.look_at_states(host);
            some |= self.take_merged(host);
            some |= self.change(host);
            some |= self.tell_needs(host);
            if let Some(life) = &self.hosts[host].life {
                life.learner.check();
            }
            if !some {
                return;
            }
        }
        let state = self.states();
        self.judge.found(format!("turn: it never ends, {state}"));
    }

    fn rings_of(&self, host: usize) -> Vec<usize> {
        let life = self.hosts[host].life.as_ref();
        life.map_or(Vec::new(), |life| life.engines.keys().copied().collect())
    }

    fn take_deliveries(&mut self, host: usize) -> bool {
        let mut some = false;
        for ring in self.rings_of(host) {
            let rank = self.rings[ring].of.constants.rank;
            self.drain(host, ring);
            loop {
                let Some(life) = &mut self.hosts[host].life else {
                    return some;
                };
                let is_full = life.busy > self.now || life.learner.waiting_bytes(rank) > 4000;
                if is_full && !life.is_trimmed {
                    break;
                }
                let engine = life.engines.get_mut(&ring);
                let Some(delivery) = engine.and_then(|engine| engine.poll_delivery()) else {
                    break;
                };
                let is_trimmed = life.is_trimmed;
                self.note_handed((host, ring), &delivery);
                let Some(life) = self.hosts[host].life.as_mut().filter(|_| !is_trimmed) else {
                    // The rings go on.
                    continue;
                };
                let missed = match &delivery {
                    Delivery::Missed { seq, count, .. } => Some(seq.saturating_add(*count)),
                    _ => None,
                };
                let told = life.learner.on_delivery(rank, delivery);
                if let Some(RingsDelivery::Trimmed(..)) = &told {
                    life.lacks = missed.map(|next| (ring, next));
                }
                told.into_iter().for_each(|told| self.tell(host, told));
                some = true;
            }
        }
        some
    }

    /// A ring has handed something to a process, whether that delivers it or not.
    fn note_handed(&mut self, (host, ring): (usize, usize), delivery: &Delivery) {
        self.count_observed((host, ring), delivery);
        let at = match delivery {
            Delivery::Message(message) => {
                self.note_ordered((ring, message.id), message.seq);
                message.seq
            }
            Delivery::Notice { seq, .. } => *seq,
            _ => return,
        };
        let handed = &mut self.rings[ring].handed;
        *handed = at.max(*handed);
    }

    fn announce(&mut self, host: usize) -> bool {
        let mut some = false;
        for from in self.rings_of(host) {
            let rank = self.rings[from].of.constants.rank;
            let engine = self.engine(host, from);
            let Some(announced) = engine.and_then(|engine| engine.get_mut().take_announced())
            else {
                continue;
            };
            for to in self.rings_of(host) {
                let now = Time(self.now);
                let Some(life) = &mut self.hosts[host].life else {
                    continue;
                };
                let other = self.rings[to].of.constants.rank;
                if let Some(announced) = life.learner.announces(rank, announced, other)
                    && let Some(engine) = life.engines.get_mut(&to)
                {
                    engine.get_mut().announce(now, rank, announced);
                    self.drain(host, to);
                    some = true;
                }
            }
        }
        some
    }

    /// The application wants to keep a state, now and then.
    fn want_point(&mut self, host: usize) {
        let pause = 200 + self.below(1500);
        let Some(life) = &mut self.hosts[host].life else {
            return;
        };
        if life.keeps > self.now || life.is_trimmed {
            return;
        }
        life.keeps = self.now + pause * MILLI;
        self.want_point_now(host);
    }

    pub fn want_point_now(&mut self, host: usize) {
        let Some(life) = &mut self.hosts[host].life else {
            return;
        };
        let learner = &mut life.learner;
        let engines = life.engines.values_mut().map(|engine| engine.get_mut());
        let engines = engines.filter(|engine| learner.has(engine.of().constants.rank));
        let mut engines: Vec<_> = engines.collect();
        learner.want_point(&mut engines);
    }

    fn look_at_states(&mut self, host: usize) -> bool {
        let Some(life) = &mut self.hosts[host].life else {
            return false;
        };
        let engines = life.engines.values_mut();
        let told = engines.filter_map(|engine| life.learner.look_at(engine.get_mut()));
        let told: Vec<RingsDelivery> = told.collect();
        let some = !told.is_empty();
        told.into_iter().for_each(|told| self.tell(host, told));
        some
    }

    fn tell_needs(&mut self, host: usize) -> bool {
        let Some(life) = &mut self.hosts[host].life else {
            return false;
        };
        let needs = life.learner.take_needs();
        let some = !needs.is_empty();
        for need in needs {
            let mut rings = self.rings.iter();
            let ring = rings.position(|ring| ring.of.constants.rank == need.rank);
            let now = Time(self.now);
            if let Some(ring) = ring
                && let Some(engine) = self.engine(host, ring)
            {
                engine.get_mut().need(now, need.round);
                self.drain(host, ring);
                self.add("needs");
            }
        }
        some
    }

    fn take_merged(&mut self, host: usize) -> bool {
        let mut count = 0;
        while let Some(life) = &mut self.hosts[host].life
            && life.busy <= self.now
        {
            if count >= life.takes {
                // The rest has to wait until there is room.
                life.busy = self.now + MILLI;
                break;
            }
            let Some(told) = life.learner.poll() else {
                break;
            };
            count += 1;
            self.tell(host, told);
        }
        count > 0
    }

    /// The application is told something.
    fn tell(&mut self, host: usize, told: RingsDelivery) {
        let ranks = self.ranks();
        match told {
            RingsDelivery::Message(place, message) => {
                let ring = ranks.iter().position(|rank| *rank == place.rank.0);
                let ring = ring.expect("a ring");
                let Some(life) = &mut self.hosts[host].life else {
                    return;
                };
                let what = (message.id, &*message.payload);
                self.judge.on_message(life, (place, ring), what);
                life.told.push((place, message.id));
                life.state = life.state.and(&(place, message.id));
                self.note_deliver(host, (ring, place), what);
            }
            RingsDelivery::Point(resume) => {
                let takes = self.below(30);
                let partition = self.hosts[host].partition;
                let Some(life) = &self.hosts[host].life else {
                    return;
                };
                let of = (partition, &self.partitions[partition]);
                self.judge.on_state(of, &ranks, resume.point, life.state);
                let kept = Kept {
                    resume: *resume,
                    state: life.state,
                };
                self.count_point(&kept.resume);
                self.add_if_observes(host, "points of observers");
                self.note_state(host, (&kept.resume, &kept.state));
                self.hosts[host].writes = Some((self.now + takes * MILLI, kept));
            }
            RingsDelivery::Trimmed(rank, _) => {
                self.add("trimmed");
                let is_it = |ring: &usize| ranks[*ring] == rank.0;
                if self.hosts[host].pinned.iter().any(is_it) {
                    self.judge
                        .found(format!("pinned: what host {host} needs is forgotten"));
                }
                if let Some(life) = &mut self.hosts[host].life {
                    life.is_trimmed = true;
                }
            }
            RingsDelivery::Configuration(..) => {}
            RingsDelivery::Subscribed(rank, point) => {
                self.on_change(host, (rank, point.round), true);
            }
            RingsDelivery::Left(rank, point) => self.on_change(host, (rank, point.round), false),
            RingsDelivery::LastRing(_) => self.add("last rings"),
            RingsDelivery::NotHeld(_) => self.add("holds that serve nobody"),
            other => self.judge.found(format!("delivery: {other:?}")),
        }
    }
}

impl State {
    fn and(self, what: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        (self.digest, what).hash(&mut hasher);
        Self {
            count: self.count + 1,
            digest: hasher.finish(),
        }
    }

    /// Behind something that is no message.
    pub fn changed(self, what: &impl Hash) -> Self {
        let count = self.count;
        Self {
            count,
            ..self.and(what)
        }
    }
}
