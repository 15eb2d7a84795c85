//! The clients and their groups that a seed draws.

use rota_core::groups::Limits;

use crate::rng::Rng;

/// Clients of each daemon, and what they do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupsPlan {
    /// Clients of each daemon, at most.
    pub clients: usize,
    /// Different groups.
    pub groups: usize,
    /// Groups that a client joins at once, at most.
    pub joins: u64,
    /// The share of requests that are no messages, in percent.
    pub churn: u64,
    /// Events that wait for a client, at most: with more it is disconnected.
    pub queue: u32,
    /// Events that a daemon leaves lying for a while, at most.
    pub behind: u64,
    /// The longest time for which others wait for a client that is asleep, in milliseconds.
    pub throttle_ms: u32,
    /// When the world has healed, all clients ask for something once more.
    pub last_words: bool,
    /// The limits of each daemon for its clients.
    pub limits: Limits,
}

impl GroupsPlan {
    /// The clients and groups of a seed over its engines: most seeds have none.
    pub(super) fn drawn(seed: u64) -> Option<Self> {
        Rng::split(seed, 8).percent(25).then(|| Self::of(seed))
    }

    /// The clients of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::split(seed, 9);
        let crowded = rng.percent(5);
        let (clients, groups, joins) = if crowded {
            (6, 100, 50)
        } else {
            (rng.range(1, 4), rng.range(1, 6), rng.range(1, 3))
        };
        let plan = Self {
            clients: clients as usize,
            groups: groups as usize,
            joins,
            churn: rng.pick(&[2, 10, 40]),
            queue: rng.spread(1, 200) as u32,
            behind: rng.pick(&[0, 0, 3, 40]),
            last_words: rng.percent(50),
            limits: Limits {
                window: rng.pick(&[1, 5, 50, 1024]),
                backlog_bytes: rng.spread(1 << 10, 256 << 10) as usize,
                // The states that daemons tell each other may take many messages.
                piece_bytes: rng.pick(&[40, 300, 16 << 10]),
                ..Limits::default()
            },
            throttle_ms: 0,
        };
        Self {
            throttle_ms: rng.pick(&[5, 200, 60_000]),
            ..plan
        }
    }

    /// Whether there are so many groups that their names have to be long.
    pub const fn crowded(&self) -> bool {
        self.groups > 10
    }
}
