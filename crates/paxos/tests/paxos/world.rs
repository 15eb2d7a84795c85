//! Nodes, and a network that does what chance says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rota_core::contract::{Incarnation, NodeId, Process};
use rota_paxos::{AcceptorId, Config, Value};

use super::judge::Judge;
use super::life::{Life, Say};
use super::site::{Effect, Site, Store, Write};

pub type Letter = (NodeId, NodeId, Say);

pub struct World {
    rng: u64,
    pub sites: Vec<Site>,
    network: Vec<Letter>,
    /// How many letters the network has room for.
    room: usize,
    pub judge: Judge,
    first: Arc<Config>,
    /// What anybody has wanted to follow.
    wanted: Vec<Config>,
    /// What is drawn for the whole run, in percent.
    loss: u64,
    twice: u64,
    deaths: u64,
    stands: u64,
    /// How quick disks are.
    syncs: u64,
    cuts: bool,
    /// Nothing reaches this node, or leaves it.
    cut: Option<NodeId>,
    stores: u64,
    sloppy: bool,
    wipes: bool,
    trims: bool,
    pub counts: BTreeMap<&'static str, u64>,
}

fn node(at: usize) -> NodeId {
    NodeId::new(at as u16 + 1).expect("not 0")
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut rng = seed
            .wrapping_mul(0x2545_f491_4f6c_dd1d)
            .wrapping_add(0x9e37_79b9);
        let mut draw = |below: u64| next(&mut rng) % below;
        let (nodes, spare) = (3 + draw(3) as usize, draw(2) as usize);
        let first: Vec<Process> = (0..nodes).map(|at| process(at, 1)).collect();
        let voters = nodes - spare.min(nodes - 3);
        let acceptors = (0..voters).map(|at| AcceptorId {
            node: node(at),
            store: 1 + at as u64,
        });
        let first = Arc::new(Config {
            founded: 1,
            number: 1,
            coordinator: first[0],
            ring: first,
            acceptors: acceptors.collect(),
            prior: Vec::new(),
        });
        let mut world = Self {
            loss: [0, 5, 30][draw(3) as usize],
            twice: [0, 5, 30][draw(3) as usize],
            deaths: [0, 10, 50, 100][draw(4) as usize],
            stands: [2, 8, 25][draw(3) as usize],
            syncs: [100, 100, 15][draw(3) as usize],
            cuts: draw(2) == 0,
            cut: None,
            sloppy: draw(4) == 0,
            wipes: draw(2) == 0,
            trims: draw(2) == 0,
            rng,
            sites: Vec::new(),
            network: Vec::new(),
            wanted: Vec::new(),
            room: 150,
            judge: Judge::default(),
            first,
            stores: nodes as u64,
            counts: BTreeMap::new(),
        };
        world.judge.on_config(&world.first.clone());
        for at in 0..nodes {
            world.sites.push(Site {
                node: node(at),
                store: Store::new(node(at), 1 + at as u64),
                life: None,
                lives: 0,
                effects: VecDeque::new(),
            });
            world.start(at);
        }
        // Nobody has asked for the promises of the first round yet.
        if let Some(life) = &mut world.sites[0].life {
            life.coordinator = Some(rota_paxos::Coordinator::new(world.first.clone(), 1));
        }
        world
    }

    fn draw(&mut self, below: u64) -> u64 {
        next(&mut self.rng) % below
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.draw(100) < percent
    }

    fn cover(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn start(&mut self, at: usize) {
        let site = &mut self.sites[at];
        site.lives += 1;
        let me = process(at, site.lives);
        site.effects.clear();
        site.life = Some(Life::new(
            me,
            &site.store,
            &self.judge.base,
            &self.first,
            self.sloppy,
        ));
    }

    fn living(&self) -> BTreeMap<NodeId, Process> {
        let lives = self.sites.iter().filter_map(|site| site.life.as_ref());
        lives.map(|life| (life.me.node, life.me)).collect()
    }

    /// One thing happens.
    pub fn step(&mut self) {
        let at = self.draw(self.sites.len() as u64) as usize;
        match self.draw(1000) {
            0..50 => self.tick(at),
            50..200 if self.percent(self.syncs) => self.sync(at),
            200..215 => {
                if let Some(life) = &mut self.sites[at].life {
                    life.submit();
                }
            }
            215..255 if self.percent(self.stands) => {
                let life = self.sites[at].life.as_ref();
                if life.is_some_and(|life| life.candidate.is_none()) {
                    self.stand(at);
                }
            }
            255..260 => self.skip(at),
            260..270 if self.percent(self.deaths) => self.kill(at),
            270..285 if self.sites[at].life.is_none() => self.start(at),
            285..287 if self.wipes => self.wipe(at),
            287..290 if self.trims => self.trim(at),
            290..295 if self.cuts => self.cut = Some(node(at)).filter(|_| self.percent(50)),
            _ => self.deliver(),
        }
    }

    fn deliver(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let at = self.draw(self.network.len() as u64) as usize;
        let letter = if self.percent(self.twice) {
            self.network[at].clone()
        } else {
            self.network.swap_remove(at)
        };
        let is_cut = self.cut.is_some() && [Some(letter.0), Some(letter.1)].contains(&self.cut);
        if !is_cut && !self.percent(self.loss) {
            self.hand(letter);
        }
    }

    fn hand(&mut self, (from, to, say): Letter) {
        let at = usize::from(to.get()) - 1;
        let Some(life) = &mut self.sites[at].life else {
            return;
        };
        life.hear(from, say, &mut self.judge);
        self.collect(at);
    }

    /// What a process has said goes on its way; the network has room for so much.
    fn collect(&mut self, at: usize) {
        let site = &mut self.sites[at];
        let Some(life) = &mut site.life else {
            return;
        };
        let from = site.node;
        self.network
            .extend(life.out.drain(..).map(|(to, say)| (from, to, say)));
        site.effects.extend(life.effects.drain(..));
        while self.network.len() > self.room {
            let lost = self.draw(self.network.len() as u64) as usize;
            self.network.swap_remove(lost);
        }
    }

    fn trim(&mut self, at: usize) {
        let Some(life) = &mut self.sites[at].life else {
            return;
        };
        let base = life.trim();
        if base.next > self.judge.base.next {
            self.judge.base = base;
        }
        self.cover("trims");
    }

    /// A coordinator proposes that some instances carry nothing.
    fn skip(&mut self, at: usize) {
        let count = 1 + self.draw(4);
        let life = self.sites[at].life.as_mut();
        if let Some(coordinator) = life.and_then(|life| life.coordinator.as_mut()) {
            coordinator.propose(Value::Skip(count));
        }
    }

    fn tick(&mut self, at: usize) {
        let (again, asked) = (self.percent(20), self.draw(5) as usize);
        let nodes = self
            .sites
            .iter()
            .map(|site| (site.node, process(0, 0)))
            .collect();
        let Some(life) = &mut self.sites[at].life else {
            return;
        };
        if again && life.learner.missing().is_some() {
            // Nobody answers, perhaps: the application has newer ones than what is missing.
            life.begin_at(self.judge.base.clone());
        }
        life.tick(&nodes, again, asked);
        life.settle(&mut self.judge);
        self.collect(at);
    }

    /// All that was to be written is durable.
    fn sync(&mut self, at: usize) {
        let effects = std::mem::take(&mut self.sites[at].effects);
        for effect in effects {
            match effect {
                Effect::Send(letter) => self.network.push(letter),
                Effect::Write(write) => {
                    let site = &mut self.sites[at];
                    let mark = match &write {
                        Write::Records(_, mark) => Some(*mark),
                        _ => None,
                    };
                    site.store.write(write, &mut self.judge);
                    if let (Some(life), Some(mark)) = (&mut site.life, mark) {
                        life.acceptor.on_durable(mark);
                    }
                }
            }
        }
        if let Some(life) = &mut self.sites[at].life {
            life.settle(&mut self.judge);
        }
        self.collect(at);
    }

    /// It dies; of what was to be written the first part may be durable.
    fn kill(&mut self, at: usize) {
        if self.sites[at].life.is_none() {
            return;
        }
        self.cover("kills");
        self.count_refused(at);
        let written = self.draw(self.sites[at].effects.len() as u64 + 1);
        let site = &mut self.sites[at];
        for effect in site.effects.drain(..).take(written as usize) {
            if let Effect::Write(write) = effect {
                site.store.write(write, &mut self.judge);
            }
        }
        site.effects.clear();
        site.life = None;
    }

    fn count_refused(&mut self, at: usize) {
        let refused = self.sites[at].life.as_ref().map_or(0, |life| life.refused);
        *self.counts.entry("refused").or_default() += refused;
    }

    /// A node loses its store, if a majority of all sets of acceptors that count, or soon may, keeps theirs.
    fn wipe(&mut self, at: usize) {
        let lost = self.sites[at].store.id;
        let Some(newest) = self.judge.configs.values().next_back() else {
            return;
        };
        let kept: Vec<AcceptorId> = self.sites.iter().map(|site| site.store.id).collect();
        let may_come = self
            .wanted
            .iter()
            .filter(|config| config.number > newest.number);
        let there = |who: &AcceptorId| *who != lost && kept.contains(who);
        if !newest.may_begin(0, there) || !{ may_come }.all(|config| config.may_begin(0, there)) {
            return;
        }
        self.kill(at);
        self.cover("wipes");
        self.stores += 1;
        self.sites[at].store = Store::new(self.sites[at].node, self.stores);
    }

    /// A process wants to coordinate, with whoever is alive. A store that was lost is replaced by the one that is there
    /// now; now and then the number of acceptors changes by one.
    fn stand(&mut self, at: usize) {
        let living = self.living();
        let stores: Vec<AcceptorId> = self.sites.iter().map(|site| site.store.id).collect();
        let (grow, which) = (self.percent(10), self.draw(stores.len() as u64) as usize);
        let Some(life) = &mut self.sites[at].life else {
            return;
        };
        let config = life.config.clone();
        let mut acceptors = config.acceptors.clone();
        let lost = acceptors.iter_mut().find(|who| !stores.contains(who));
        if let Some(lost) = lost {
            let there = stores.iter().find(|who| who.node == lost.node);
            *lost = *there.expect("its node");
        } else if grow {
            match acceptors.iter().position(|who| *who == stores[which]) {
                Some(at) if acceptors.len() > 3 => {
                    acceptors.remove(at);
                }
                None => acceptors.push(stores[which]),
                Some(_) => {}
            }
        }
        let ring = living.values().copied().collect();
        let wanted = config.next(life.complete, life.me, ring, acceptors);
        self.wanted.push(wanted.clone());
        life.stand(wanted);
        self.cover("candidates");
    }

    /// Everybody comes back, nothing is lost any more, and one after the other may try: all has to be delivered
    /// everywhere.
    pub fn settle(&mut self) {
        self.cut = None;
        (self.loss, self.twice, self.room) = (0, 0, usize::MAX);
        for at in 0..self.sites.len() {
            if self.sites[at].life.is_none() {
                self.start(at);
            }
        }
        for round in 0..400 {
            if self.judge.wrong.is_some() || round > 0 && self.is_quiet() {
                return (0..self.sites.len()).for_each(|at| self.count_refused(at));
            }
            if round % 10 == 0 && round < 100 {
                self.stand(round / 10 % self.sites.len());
            }
            for at in 0..self.sites.len() {
                self.tick(at);
                self.sync(at);
                while !self.network.is_empty() {
                    let letter = self.network.remove(0);
                    self.hand(letter);
                }
                self.sync(at);
            }
        }
        let lives = self.sites.iter().filter_map(|site| site.life.as_ref());
        let waiting: Vec<_> = lives
            .map(|life| {
                (
                    life.me,
                    life.proposer.waiting().0,
                    life.counted,
                    life.learner.next(),
                )
            })
            .collect();
        self.judge
            .wrong
            .get_or_insert(format!("silence: {waiting:?}"));
    }

    fn is_quiet(&self) -> bool {
        let order = self.judge.order.len();
        let mut lives = self.sites.iter().filter_map(|site| site.life.as_ref());
        let newest = self.judge.configs.values().next_back();
        let is_in = |life: &Life| newest.is_some_and(|newest| newest.ring.contains(&life.me));
        lives.all(|life| is_in(life) && life.counted == order && life.proposer.waiting().0 == 0)
    }
}

fn process(at: usize, life: u64) -> Process {
    Process {
        node: node(at),
        incarnation: Incarnation(life),
    }
}

fn next(rng: &mut u64) -> u64 {
    *rng = rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *rng;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// One run of chance.
pub fn run(seed: u64) -> World {
    let mut world = World::new(seed);
    for _ in 0..6000 {
        world.step();
        if world.judge.wrong.is_some() {
            return world;
        }
    }
    world.settle();
    world
}
