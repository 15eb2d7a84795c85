//! The experiment of FastCast §4.2 with all parts of the shares: four senders of messages of 1 to 6 kB, whose loads
//! change at 10, 20, 30 and 40 s. No sender is told its requirement: it follows from the load.

use rota_core::contract::Time;
use rota_core::shares::{Bursts, Capacity, Demand, Note, Pacer, Shares, Waiting, max_min};

const NODES: usize = 4;
/// The links of the paper (§4.1).
const LINK: Capacity = Capacity::new(942_000_000);
const MBIT: u64 = 1_000_000;
const MILLIS: u64 = 1_000_000;
const STEP: u64 = 50_000;
const DATAGRAM: usize = 1_400;
/// What an application may have waiting, in bytes.
const ROOM: u64 = 1_000_000;

/// From when on each node sends how much, in Mbit/s: a third of a link is a quarter of what four links
/// take in; then less, less, more than there is, and both.
const LOADS: [(u64, [u64; NODES]); 5] = [
    (0, [307, 307, 307, 307]),
    (10, [100, 307, 307, 307]),
    (20, [100, 100, 307, 307]),
    (30, [100, 100, 700, 307]),
    (40, [500, 100, 200, 307]),
];

fn loads(now: u64) -> [u64; NODES] {
    let past = LOADS
        .iter()
        .rev()
        .find(|(from, _)| from * 1_000 * MILLIS <= now);
    past.expect("begins at 0").1
}

struct Host {
    shares: Shares,
    demand: Demand,
    pacer: Pacer,
    load: Waiting,
    /// Bits of messages that are due, times 10⁹.
    due: u128,
    next_message: u64,
    /// How many words it has delivered.
    delivered: usize,
    /// When it broadcast the request that is under way.
    asked_at: Option<u64>,
}

/// An acknowledgement: when it arrives, from whom to whom, what it says.
type Ack = (u64, usize, usize, u64);

struct World {
    now: u64,
    rng: u64,
    hosts: Vec<Host>,
    /// The one order: from whom, the word, and when each host delivers it.
    words: Vec<(usize, Vec<u8>, [u64; NODES])>,
    acks: Vec<Ack>,
    /// What waits at the switch for each link, in bits times 10⁹, and the most that ever did, in bytes.
    queues: [u128; NODES],
    longest: u128,
    /// How long increases took.
    took: Vec<u64>,
}

impl World {
    fn new() -> Self {
        let note = Note {
            requirement: 0,
            capacity: LINK.bits_per_second(),
        };
        let hosts = (0..NODES).map(|me| {
            let mut shares = Shares::new(LINK);
            shares.install(me, &[Some(note); NODES]);
            Host {
                shares,
                demand: Demand::new(Time(0), LINK.shared()),
                pacer: Pacer::new(Time(0), Bursts::of(LINK)),
                load: Waiting::default(),
                due: 0,
                next_message: 1_000,
                delivered: 0,
                asked_at: None,
            }
        });
        Self {
            now: 0,
            rng: 42,
            hosts: hosts.collect(),
            words: Vec::new(),
            acks: Vec::new(),
            queues: [0; NODES],
            longest: 0,
            took: Vec::new(),
        }
    }

    /// A number below `end` (splitmix64).
    fn below(&mut self, end: u64) -> u64 {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.rng ^ (self.rng >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn step(&mut self) {
        self.now += STEP;
        for at in 0..NODES {
            self.submit(at);
            self.send(at);
            self.ask(at);
            self.deliver(at);
            let news = self.hosts[at].shares.take_news();
            if news || self.now.is_multiple_of(MILLIS) {
                self.tell(at);
            }
        }
        self.hear();
        self.drain();
        let rates: u64 = self.hosts.iter().map(|host| host.shares.rate()).sum();
        for host in &self.hosts {
            assert!(rates - host.shares.rate() <= LINK.bits_per_second());
        }
    }

    /// Messages of random lengths arrive as the load says; what is not taken is not sent later.
    fn submit(&mut self, at: usize) {
        let length = 1_000 + self.below(5_001);
        let load = loads(self.now)[at] * MBIT;
        let host = &mut self.hosts[at];
        host.due += u128::from(load) * u128::from(STEP);
        host.load.full = false;
        while host.due >= u128::from(host.next_message) * 8_000_000_000 {
            host.due -= u128::from(host.next_message) * 8_000_000_000;
            host.load.full |= host.load.waiting + host.next_message > ROOM;
            if !host.load.full {
                host.load.waiting += host.next_message;
            }
            host.next_message = length;
        }
    }

    fn send(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        host.pacer.set_rate(Time(self.now), host.shares.rate());
        let mut sent = 0;
        while host.load.waiting > 0 && host.pacer.allowance(Time(self.now)) >= DATAGRAM {
            let bytes = host.load.waiting.min(DATAGRAM as u64);
            host.pacer.sent(Time(self.now), bytes as usize);
            host.load.waiting -= bytes;
            sent += bytes;
        }
        host.load.sent += sent;
        host.load.for_rate = host.load.waiting > 0;
        self.reach_the_switch(at, sent);
    }

    fn reach_the_switch(&mut self, from: usize, bytes: u64) {
        for to in (0..NODES).filter(|&to| to != from) {
            self.queues[to] += u128::from(bytes) * 8_000_000_000;
            self.longest = self.longest.max(self.queues[to] / 8_000_000_000);
        }
    }

    fn drain(&mut self) {
        let taken = u128::from(LINK.bits_per_second()) * u128::from(STEP);
        for queue in &mut self.queues {
            *queue = queue.saturating_sub(taken);
        }
    }

    /// What is required follows the load; a word takes up to 1.5 ms to each.
    fn ask(&mut self, at: usize) {
        let times = [0; NODES].map(|_| self.now + MILLIS / 2 + self.below(MILLIS));
        let host = &mut self.hosts[at];
        let required = host
            .demand
            .observe(Time(self.now), host.load, host.shares.rate());
        host.shares.want(required);
        if let Some(word) = host.shares.poll_word() {
            host.asked_at = (host.shares.ongoing_increase() > 0).then_some(self.now);
            host.pacer.owe(Time(self.now), 100);
            self.words.push((at, word.encode().to_vec(), times));
            self.reach_the_switch(at, 100);
        }
    }

    fn deliver(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        while let Some((sender, word, times)) = self.words.get(host.delivered)
            && times[at] <= self.now
        {
            host.delivered += 1;
            host.shares.on_word(*sender, word).expect("a word");
        }
    }

    /// One of ten control messages is lost.
    fn tell(&mut self, from: usize) {
        let host = &mut self.hosts[from];
        host.pacer.owe(Time(self.now), 100);
        let applied = host.shares.applied().to_vec();
        self.reach_the_switch(from, 100);
        for (to, number) in applied.into_iter().enumerate() {
            let arrives = self.now + MILLIS / 5 + self.below(MILLIS / 2);
            if self.below(10) > 0 {
                self.acks.push((arrives, from, to, number));
            }
        }
    }

    fn hear(&mut self) {
        let now = self.now;
        for (_, from, to, number) in self.acks.extract_if(.., |ack| ack.0 <= now) {
            let host = &mut self.hosts[to];
            host.shares.on_applied(from, number);
            if host.shares.ongoing_increase() == 0
                && let Some(asked) = host.asked_at.take()
            {
                self.took.push(now - asked);
            }
        }
    }

    /// The sum of what has been sent, in bytes.
    fn sent(&self) -> u64 {
        self.hosts.iter().map(|host| host.load.sent).sum()
    }
}

/// The sum of the max-min shares for the loads of a moment, in Mbit/s.
fn optimum(now: u64) -> u64 {
    let bits = loads(now).map(|mbits| mbits * MBIT);
    let shares = (0..NODES).map(|me| max_min(&bits, me, LINK.bits_per_second()));
    shares.sum::<u64>() / MBIT
}

/// Throughput within 10 % of the optimum, in each tenth of a second but those in which loads have just
/// changed, and in each second with them; no port of the switch with more than 512 kB to keep.
#[test]
fn throughput_follows_the_sum_of_the_shares() {
    let mut world = World::new();
    let (mut tenth, mut second) = (0, 0);
    for at in 1..=500 {
        let now = at * 100 * MILLIS;
        let begun = now - 100 * MILLIS;
        while world.now < now {
            world.step();
        }
        let mbits = |since| (world.sent() - since) * 8 / MBIT;
        let best = optimum(begun);
        let just_changed = begun % (10_000 * MILLIS) < 300 * MILLIS;
        let throughput = mbits(tenth) * 10;
        assert!(
            just_changed || throughput.abs_diff(best) * 10 <= best,
            "{throughput} Mbit/s, not {best}, before {at} tenths"
        );
        tenth = world.sent();
        if at % 10 == 0 {
            let throughput = mbits(second);
            println!("{:2} s: {throughput} Mbit/s of {best}", at / 10);
            assert!(
                throughput.abs_diff(best) * 10 <= best,
                "{throughput}, not {best}"
            );
            second = world.sent();
        }
    }
    let most = world.took.iter().max().expect("there were increases");
    println!(
        "{} words, increases took up to {most} ns",
        world.words.len()
    );
    assert!(*most <= 10 * MILLIS);
    println!("{} bytes at a port", world.longest);
    assert!(world.longest <= 512_000);
}
