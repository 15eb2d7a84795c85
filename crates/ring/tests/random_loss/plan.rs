//! The plan that a seed decides: the ring, the faults and the traffic.

use rota_core::contract::{NodeId, Service};
use rota_core::timing::{Timers, Timing};
use rota_ring::{PriorityMethod, Protocol, RingConfig};

/// splitmix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which must not be 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub const fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Chances in a thousand, for each datagram and receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub data_loss: u64,
    pub data_swap: u64,
    pub token_loss: u64,
    pub duplicate: u64,
    pub delay: u64,
}

/// One random world.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub config: RingConfig,
    pub faults: Faults,
    /// Messages each node submits.
    pub messages: u64,
    pub services: Vec<Service>,
    /// Of a thousand looks at a node's application, how many find it taking deliveries.
    pub appetite: u64,
    /// Of a thousand turns of a node with outputs, in how many it sends.
    pub sending: u64,
}

impl Plan {
    pub fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x706c_616e);
        let services = match rng.below(4) {
            0 => vec![rng.pick(&Service::ALL)],
            1 => vec![Service::Agreed, Service::Safe],
            2 => vec![Service::Reliable, Service::Fifo],
            _ => Service::ALL.to_vec(),
        };
        Self {
            seed,
            config: config(&mut rng),
            faults: faults(&mut rng),
            messages: rng.below(60),
            services,
            appetite: rng.pick(&[1000, 500, 100, 10]),
            sending: rng.pick(&[1000, 700, 200]),
        }
    }

    /// The same ring and traffic on a network that loses nothing.
    pub fn without_faults(mut self, protocol: Protocol) -> Self {
        self.faults = Faults::default();
        self.config.protocol = protocol;
        if protocol == Protocol::Original {
            self.config.windows.accelerated = 0;
        }
        self
    }
}

fn config(rng: &mut Rng) -> RingConfig {
    let nodes = 2 + rng.below(7) as u16;
    let members = (1..=nodes)
        .map(|node| NodeId::new(3 * node).expect("not 0"))
        .collect();
    let mut config = RingConfig::new(7, members);
    config.windows.personal = 1 + rng.pick(&[0, 3, 20, 50]) + rng.below(8) as u32;
    config.windows.accelerated = rng.below(u64::from(config.windows.personal) + 1) as u32;
    config.windows.global = 1 + rng.pick(&[0, 10, 300]) + rng.below(20) as u32;
    config.windows.outstanding = config.windows.personal + rng.pick(&[0, 5, 100, 1000]);
    config.priority_method = rng.pick(&[PriorityMethod::First, PriorityMethod::Second]);
    config.datagram_bytes = rng.pick(&[512, 1472, 9000]);
    config.message_bytes = 1 << 20;
    config.backlog_bytes = rng.pick(&[1 << 20, 2 << 20]);
    let timing = rng.pick(&[Timing::LanFast, Timing::Default, Timing::Relaxed]);
    config.timers = Timers::derive(timing, usize::from(nodes));
    config.trace = rng.per_mille(500);
    if rng.per_mille(400) {
        config.original()
    } else {
        config
    }
}

fn faults(rng: &mut Rng) -> Faults {
    if rng.per_mille(200) {
        return Faults::default();
    }
    Faults {
        data_loss: rng.below(401),
        data_swap: rng.pick(&[0, 0, 50]),
        token_loss: rng.pick(&[0, 10, 100]),
        duplicate: rng.pick(&[0, 20, 200]),
        delay: rng.pick(&[0, 20, 200]),
    }
}
