//! Draws a plan from a seed. Many seeds leave many faults out: a failure that never happens together with some other
//! fault is found that way, too.

use rota_core::contract::{NodeId, Service};
use rota_core::timing::{Timers, Timing};
use rota_core::wire::MAX_MEMBERS;
use rota_ring::{PriorityMethod, Protocol, RingConfig};

use super::{
    Abilities, Apart, Appetite, Clock, Cost, GroupsPlan, HostPlan, LanePlan, LossyLink, MICROS,
    MILLIS, Net, Plan, PrimaryLayer, Profile, SECONDS, Source,
};
use crate::rng::{Ppm, Rng};

/// Messages of one run, at most.
const MESSAGES: u64 = 24_000;

impl Plan {
    /// The plan of a seed.
    pub fn random(seed: u64, protocol: Protocol, profile: Profile, abilities: Abilities) -> Self {
        let mut rng = Rng::split(seed, 1);
        let ring = ring(&mut rng, protocol, profile);
        let allowed = profile.allowed(abilities);
        let timers = ring.timers;
        let nodes = ring.members.len();
        let horizon = rng.range(4, 24) * timers.token_loss;
        let mut plan = Self {
            seed,
            hosts: hosts(&mut rng, nodes, &ring, horizon),
            cost: cost(&mut rng),
            net: Net::perfect(),
            primary: PrimaryLayer::drawn(seed, nodes),
            apart: Apart::default(),
            groups: GroupsPlan::drawn(seed),
            views: None,
            links: None,
            uring: None,
            disks: None,
            disk_latency: disk_latency(&mut rng),
            faults: Vec::new(),
            horizon,
            ring,
        };
        plan.net.fifo = rng.percent(50);
        plan.net.whole = rng.pick(&[0, 500_000, 1_000_000]);
        plan.net.unicast = rng.percent(20);
        for lane in &mut plan.net.lanes {
            lane.delay = rng.spread(5 * MICROS, 200 * MICROS);
            lane.jitter = rng.pick(&[0, 1, 10, 100]) * MICROS;
        }
        if allowed.network && rng.percent(80) {
            spoil(&mut rng, &mut plan.net, nodes, timers.token_loss);
        }
        if allowed.network && rng.percent(10) {
            // Much of the data is late, by about as long as it takes to form a ring.
            let data = &mut plan.net.lanes[0];
            data.spike = 300_000;
            data.spike_for = rng.spread(200 * MICROS, 20 * MILLIS);
            plan.net.fifo = false;
        }
        let mut rng = Rng::split(seed, 2);
        plan.draw_faults(&mut rng, allowed);
        plan
    }
}

impl Plan {
    /// Nodes on a network where nothing goes wrong, whose applications take all and submit nothing
    /// yet: to be changed by a test.
    pub fn plain(nodes: usize, protocol: Protocol) -> Self {
        let members = (1..=nodes as u16).filter_map(NodeId::new).collect();
        let mut ring = RingConfig::new(1, members);
        ring.trace = true;
        if protocol == Protocol::Original {
            ring = ring.original();
        }
        let host = HostPlan {
            start: 0,
            clock: Clock {
                offset: 0,
                drift: 0,
                coarse: 1,
            },
            source: Source {
                every: MILLIS,
                batch: 1,
                budget: 0,
                small_bytes: 100,
                large_bytes: 0,
                large: 0,
                services: vec![Service::Agreed],
            },
            appetite: Appetite {
                take: 256,
                pause: 0,
            },
            own: None,
        };
        Self {
            seed: 1,
            ring,
            hosts: vec![host; nodes],
            cost: Cost {
                receive: 2000,
                receive_datagram: 300,
                send: 2000,
                send_datagram: 300,
                turn: 200,
                stuck: 0,
                stuck_for: 0,
            },
            net: Net::perfect(),
            primary: None,
            apart: Apart::default(),
            groups: None,
            views: None,
            links: None,
            uring: None,
            disks: None,
            disk_latency: (100 * MICROS, 200 * MICROS),
            faults: Vec::new(),
            horizon: SECONDS,
        }
    }
}

impl PrimaryLayer {
    /// The layer that a seed has over its ring: most seeds have none.
    fn drawn(seed: u64, nodes: usize) -> Option<Self> {
        match Rng::split(seed, 6).below(8) {
            0 => Some(Self::Static),
            1 | 2 => Some(Self::dynamic(seed, nodes)),
            _ => None,
        }
    }

    /// Dynamic linear voting, mostly begun by all nodes.
    pub(crate) fn dynamic(seed: u64, nodes: usize) -> Self {
        let mut rng = Rng::split(seed, 7);
        let founders = if rng.percent(75) {
            nodes
        } else {
            1 + rng.index(nodes)
        };
        Self::Dynamic { founders }
    }
}

impl Net {
    /// Nothing goes wrong.
    pub const fn perfect() -> Self {
        let lane = LanePlan {
            loss: 0,
            duplicate: 0,
            damage: 0,
            delay: 20 * MICROS,
            jitter: 0,
            spike: 0,
            spike_for: 0,
        };
        Self {
            lanes: [lane; 3],
            lossy: Vec::new(),
            fifo: true,
            whole: 1_000_000,
            socket_bytes: 8 << 20,
            replay: 0,
            garbage: 0,
            unicast: false,
        }
    }
}

fn ring(rng: &mut Rng, protocol: Protocol, profile: Profile) -> RingConfig {
    let nodes = match rng.below(20) {
        0..=16 if profile == Profile::Crowd => rng.range(17, 40),
        _ if profile == Profile::Crowd => rng.range(41, MAX_MEMBERS as u64),
        0 => 1,
        1..=17 => rng.range(2, 9),
        _ => rng.range(10, 16),
    } as u16;
    let step = rng.pick(&[1, 3]);
    let members = (1..=nodes)
        .filter_map(|node| NodeId::new(step * node))
        .collect();
    let mut config = RingConfig::new(rng.next() as u32, members);
    config.windows.personal = 1 + rng.pick(&[0, 3, 20, 50]) + rng.below(8) as u32;
    config.windows.accelerated = rng.below(u64::from(config.windows.personal) + 1) as u32;
    config.windows.global = 1 + rng.pick(&[0, 10, 300]) + rng.below(20) as u32;
    config.windows.outstanding = config.windows.personal + rng.pick(&[0, 5, 100, 1600]);
    config.priority_method = rng.pick(&[PriorityMethod::First, PriorityMethod::Second]);
    config.datagram_bytes = rng.pick(&[512, 1472, 9000]);
    config.message_bytes = 1 << 20;
    config.backlog_bytes = rng.pick(&[1 << 20, 4 << 20]);
    let timing = rng.pick(&[
        Timing::LanFast,
        Timing::LanFast,
        Timing::Default,
        Timing::Relaxed,
    ]);
    config.timers = Timers::derive(timing, usize::from(nodes));
    config.trace = true;
    match protocol {
        Protocol::Accelerated => config,
        Protocol::Original => config.original(),
    }
}

fn hosts(rng: &mut Rng, nodes: usize, ring: &RingConfig, horizon: u64) -> Vec<HostPlan> {
    let start_within = rng.pick(&[1, 10 * MILLIS, SECONDS]).min(horizon / 4);
    let services = match rng.below(5) {
        0 => vec![rng.pick(&Service::ALL)],
        1 => vec![Service::Agreed, Service::Safe],
        2 => vec![Service::Reliable, Service::Fifo],
        3 => vec![Service::Safe],
        _ => Service::ALL.to_vec(),
    };
    let drifting = rng.percent(30);
    let coarse = rng.pick(&[1, 1, 1, MILLIS, 4 * MILLIS]);
    let slow_readers = rng.percent(20);
    let shape = rng.below(5);
    let hog = rng.index(nodes);
    let fragments = rng.percent(30);
    let host = |at: usize, rng: &mut Rng| HostPlan {
        start: rng.below(start_within),
        clock: Clock {
            offset: rng.below(1000 * SECONDS),
            drift: if drifting {
                rng.range(0, 200) as i64 - 100
            } else {
                0
            },
            // A timer must not be later than what it guards.
            coarse: coarse.min(ring.timers.token_loss / 20),
        },
        source: {
            let mut source = source(
                rng,
                if shape == 4 && at != hog { 0 } else { shape },
                horizon,
            );
            source.budget = source.budget.min((MESSAGES / nodes as u64) as u32);
            source.services.clone_from(&services);
            source.large = if fragments { 50_000 } else { 0 };
            source
        },
        appetite: if slow_readers && rng.percent(50) {
            Appetite {
                take: rng.range(1, 10) as u32,
                pause: rng.spread(10 * MICROS, 5 * MILLIS),
            }
        } else {
            Appetite {
                take: rng.pick(&[1, 16, 256]),
                pause: 0,
            }
        },
        own: None,
    };
    (0..nodes).map(|at| host(at, rng)).collect()
}

/// Shapes: 0 hardly anything, 1 steady, 2 bursty, 3 saturating, 4 one hog among the quiet.
fn source(rng: &mut Rng, shape: u64, horizon: u64) -> Source {
    let (every, batch, budget) = match shape {
        0 => (horizon / 10, 1, rng.below(10)),
        1 => {
            let budget = rng.spread(20, 6000);
            (horizon / budget, 1, budget)
        }
        2 => {
            let budget = rng.spread(20, 6000);
            let batch = rng.range(2, 100);
            (horizon * batch / budget.max(batch), batch, budget)
        }
        _ => (rng.range(50, 500) * MICROS, rng.range(4, 40), 16_000),
    };
    Source {
        every: every.max(1),
        batch: batch as u32,
        budget: budget as u32,
        small_bytes: rng.pick(&[0, 20, 100, 1300]),
        large_bytes: rng.pick(&[3000, 20_000, 100_000]),
        large: 0,
        services: Vec::new(),
    }
}

fn cost(rng: &mut Rng) -> Cost {
    let slow = rng.pick(&[1, 1, 5]);
    Cost {
        receive: slow * rng.range(500, 5000),
        receive_datagram: slow * rng.range(100, 2000),
        send: slow * rng.range(500, 5000),
        // From a fast network to one gigabit a second.
        send_datagram: rng.range(100, 12_000),
        turn: slow * rng.range(100, 1000),
        stuck: rng.pick(&[0, 0, 1000, 50_000]),
        stuck_for: rng.spread(10 * MICROS, 2 * MILLIS),
    }
}

fn disk_latency(rng: &mut Rng) -> (u64, u64) {
    let least = rng.spread(10 * MICROS, 5 * MILLIS);
    (least, least * rng.range(1, 10))
}

/// Each kind of trouble is in some networks and not in others.
fn spoil(rng: &mut Rng, net: &mut Net, nodes: usize, token_loss: u64) {
    let some = |rng: &mut Rng, chance: u64, low: u64, high: u64| -> Ppm {
        if rng.percent(chance) {
            rng.spread(low, high) as Ppm
        } else {
            0
        }
    };
    for (index, lane) in net.lanes.iter_mut().enumerate() {
        lane.loss = match rng.below(10) {
            0..=2 => 0,
            3..=7 => rng.spread(100, 10_000) as Ppm,
            // A ring cannot live when the token hardly ever arrives.
            _ if index == 0 => rng.spread(10_000, 300_000) as Ppm,
            _ => rng.spread(10_000, 100_000) as Ppm,
        };
        lane.duplicate = some(rng, 30, 100, 200_000);
        lane.damage = some(rng, 30, 100, 20_000);
        lane.spike = some(rng, 30, 10, 2_000);
        lane.spike_for = rng.spread(MILLIS, 3 * token_loss);
        // Data later than the token by several rounds, or the other way round.
        if rng.percent(20) {
            lane.delay *= rng.range(2, 5);
        }
    }
    if nodes > 1 && rng.percent(20) {
        for _ in 0..rng.range(1, 3) {
            let from = rng.index(nodes);
            let to = (from + 1 + rng.index(nodes - 1)) % nodes;
            let loss = [0; 3].map(|_: u8| rng.spread(1000, 300_000) as Ppm);
            net.lossy.push(LossyLink { from, to, loss });
        }
    }
    net.replay = some(rng, 30, 10, 5_000);
    net.garbage = some(rng, 30, 10, 5_000);
    if rng.percent(20) {
        net.socket_bytes = rng.spread(16 << 10, 512 << 10) as usize;
    }
}
