//! Our figures of several rings: rings and disks (Multi-Ring §8.4.1), rings and regions (§8.4.2).

pub mod charts;
pub mod predict;

use rota_core::timing::Timing;
use rota_multiring::level::Mode;
use rota_wire::{DiskPlan, Load, OneRing, RingsRun, RingsSetup, Span};

use crate::calibration::{Calibration, RegionNumbers};
use crate::claims::Claim;
use crate::cluster::links;
use crate::lab::{Answer, Lab};
use crate::recipe::Recipe;

/// Nanoseconds in a millisecond.
const MILLIS: u64 = 1_000_000;
/// Hosts of a ring, or of a region.
const HOSTS: usize = 3;
/// Bytes of a message: clients put requests of 1 kB together (Multi-Ring §8.4).
const PACKET: usize = 32 << 10;
/// The rank of a ring that all hosts are on: behind all others in a round.
const COMMON: u16 = 1000;
/// The most rings of figure 6, and the most regions of figure 7.
pub const MOST_RINGS: usize = 5;
/// See [`MOST_RINGS`].
pub const MOST_REGIONS: usize = 4;
/// The load of each region where delays are measured, in bits a second.
const LOCAL_RATE: u64 = 50_000_000;

/// The way in which the rings of a run keep up with each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Leveling {
    /// There is no ring of all regions.
    Alone,
    /// All rings skip when they are needed.
    Pull,
    /// All rings skip at a rate, as in the paper (§8.2: 20 ms, 2000 instances a second).
    Paper,
    /// The ring of all regions skips ahead, and the others when they are needed.
    Horizon,
}

impl Leveling {
    /// All of them.
    pub const EACH: [Self; 4] = [Self::Alone, Self::Horizon, Self::Pull, Self::Paper];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alone => "no global ring",
            Self::Pull => "pull",
            Self::Paper => "paper",
            Self::Horizon => "horizon",
        }
    }

    const fn local(self) -> Mode {
        match self {
            Self::Paper => PAPER_WAN,
            _ => Mode::Pull,
        }
    }

    const fn global(self) -> Mode {
        match self {
            Self::Paper => PAPER_WAN,
            Self::Horizon => Mode::Horizon,
            Self::Pull | Self::Alone => Mode::Pull,
        }
    }
}

/// The paper's leveling across data centers (§8.2).
const PAPER_WAN: Mode = Mode::Paper {
    delta: 20 * MILLIS,
    lambda: 2000,
};

/// Regions with a ring of three hosts each, and a ring of all hosts, to which little or nothing is sent (§8.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Regions {
    /// How many regions there are: us-west-2, us-west-1, us-east-1, eu-west-1, in this order.
    pub count: usize,
    /// All regions are as far from each other, as `even_ms` of the calibration says.
    pub is_even: bool,
    /// How the rings keep up with each other.
    pub leveling: Leveling,
    /// The load of each region's ring.
    pub local: Load,
    /// Messages a second to the ring of all regions, from one host of each region.
    pub global: u64,
}

impl Regions {
    /// Regions with a small load, and with nothing for the ring of all of them.
    pub const fn new(count: usize, leveling: Leveling) -> Self {
        Self {
            count,
            is_even: false,
            leveling,
            local: Load::Rate(LOCAL_RATE),
            global: 0,
        }
    }

    /// The same with as much for the regions' rings as they take.
    pub const fn full(count: usize, leveling: Leveling) -> Self {
        Self {
            local: Load::Full,
            ..Self::new(count, leveling)
        }
    }

    /// The simulation.
    pub fn setup(&self, calibration: &Calibration, seed: u64) -> RingsSetup {
        let hosts = HOSTS * self.count;
        let (costs, mut wire) = (
            calibration.costs(0.0, 0.0),
            calibration.wire(&calibration.one_gig),
        );
        wire.far = far(&calibration.regions, self);
        let local = |region: usize| {
            let hosts = (0..HOSTS).map(|host| HOSTS * region + host);
            OneRing {
                mode: self.leveling.local(),
                ..OneRing::new(region as u16 + 1, hosts.collect(), self.local, PACKET)
            }
        };
        let mut rings: Vec<OneRing> = (0..self.count).map(local).collect();
        if self.leveling != Leveling::Alone {
            rings.push(self.global_ring());
        }
        RingsSetup {
            hosts,
            wire,
            links: links(&costs),
            costs,
            disk: DiskPlan::MEMORY,
            rings,
            span: self.span(),
            seed,
        }
    }

    const fn span(&self) -> Span {
        let (warm_up, measured) = match self.local {
            // What waits for a decision across regions comes in bursts: several of them.
            Load::Full => (2000, 3000),
            _ => (2000, 4000),
        };
        Span {
            warm_up: warm_up * MILLIS,
            measured: measured * MILLIS,
        }
    }

    /// The ring of all regions: one host of each votes, and more of the first where that is fewer than three.
    fn global_ring(&self) -> OneRing {
        let first = (0..self.count).map(|region| HOSTS * region);
        let mut acceptors: Vec<usize> = first.chain([1, 2]).take(self.count.max(HOSTS)).collect();
        acceptors.sort_unstable();
        let rate = self.global * 8 * PACKET as u64;
        OneRing {
            senders: match rate {
                0 => Vec::new(),
                _ => (0..self.count).map(|region| HOSTS * region).collect(),
            },
            acceptors,
            mode: self.leveling.global(),
            timing: Timing::Relaxed,
            ..OneRing::new(
                COMMON,
                (0..HOSTS * self.count).collect(),
                Load::Rate(rate),
                PACKET,
            )
        }
    }
}

/// The time that is added to a way between two hosts.
fn far(numbers: &RegionNumbers, regions: &Regions) -> Vec<Vec<u64>> {
    let between = |a: usize, b: usize| match (a.min(b), a.max(b)) {
        (a, b) if a == b => 0.0,
        _ if regions.is_even => numbers.even_ms,
        (0, 1) => numbers.w1_w2_ms,
        (0, 2) => numbers.e1_w2_ms,
        (0, _) => numbers.eu_w2_ms,
        (1, 2) => numbers.e1_w1_ms,
        (1, _) => numbers.eu_w1_ms,
        _ => numbers.e1_eu_ms,
    };
    let hosts = 0..HOSTS * regions.count;
    let one_way = |a: usize, b: usize| (between(a / HOSTS, b / HOSTS) * 1e6 / 2.0) as u64;
    let of = |a: usize| hosts.clone().map(|b| one_way(a, b)).collect();
    hosts.clone().map(of).collect()
}

/// Rings with a disk each on three machines, two of which vote and send, and a common ring; the third delivers all of
/// them (§8.4.1).
pub fn rings_setup(lab: &Lab, rings: usize, seed: u64) -> RingsSetup {
    let (calibration, disks) = (&lab.calibration, lab.calibration.disks);
    let costs = calibration.costs(0.0, 0.0);
    let ring = |rank: u16, load: Load| OneRing {
        acceptors: vec![0, 1],
        senders: vec![0, 1],
        subscribers: vec![2],
        ..OneRing::new(rank, vec![0, 1, 2], load, PACKET)
    };
    let mut all: Vec<OneRing> = (1..=rings as u16)
        .map(|rank| ring(rank, Load::Full))
        .collect();
    all.push(OneRing {
        senders: Vec::new(),
        ..ring(COMMON, Load::Full)
    });
    RingsSetup {
        hosts: HOSTS,
        wire: calibration.wire(&calibration.ten_gig),
        links: links(&costs),
        costs,
        disk: DiskPlan {
            write: (disks.write_us * 1000.0) as u64,
            byte: (1e6 / disks.mbytes) as u64,
            groups: true,
            votes: true,
        },
        rings: all,
        span: Span {
            warm_up: 300 * MILLIS,
            measured: 500 * MILLIS,
        },
        seed,
    }
}

impl Lab {
    /// A run of regions.
    pub fn regions(&self, regions: &Regions, seed: u64) -> RingsRun {
        self.run_rings(&regions.setup(&self.calibration, seed))
    }
}

/// Our answer for a claim.
pub fn answer(lab: &Lab, claim: &Claim, seed: u64) -> Result<Answer, String> {
    let (slack, recipe) = (claim.judging.tolerance, &claim.judging.recipe);
    if recipe.what() == "several-rings" {
        let of = |rings| {
            let run = lab.run_rings(&rings_setup(lab, rings, seed));
            is_sound(&run).map(|()| run.ordered_mbps)
        };
        return Ok(linear(&figures(MOST_RINGS, of)?, slack));
    }
    let is_full = match recipe.what() {
        "several-regions" => true,
        "several-delay" => false,
        what => return Err(format!("no recipe is called `{what}`")),
    };
    let leveling = leveling(recipe)?;
    let run = |regions: Regions| {
        let run = lab.regions(&regions, seed);
        is_sound(&run).map(|()| run)
    };
    if is_full {
        let of = |count| Ok(run(Regions::full(count, leveling))?.ordered_mbps);
        return Ok(linear(&figures(MOST_REGIONS, of)?, slack));
    }
    let of = |count| Ok(run(Regions::new(count, leveling))?.rings[0].delays.p50 / 1000.0);
    Ok(constant(&figures(MOST_REGIONS, of)?, slack))
}

/// The leveling that a recipe names.
fn leveling(recipe: &Recipe) -> Result<Leveling, String> {
    let what = recipe.what();
    let name = recipe.get("leveling");
    let name = name.ok_or_else(|| format!("a recipe `{what}` names its `leveling`"))?;
    let found = Leveling::EACH.into_iter().find(|one| one.name() == name);
    found.ok_or_else(|| {
        let names = Leveling::EACH.map(Leveling::name).join("`, `");
        format!("no leveling is called `{name}`: there are `{names}`")
    })
}

/// What is no order of all, or stops, has no figures.
fn is_sound(run: &RingsRun) -> Result<(), String> {
    match run.is_sound() && run.disturbed == 0 {
        true => Ok(()),
        false => Err("some host did not deliver everything in one order".to_owned()),
    }
}

/// Only figures of such runs are shown.
///
/// # Panics
/// It was not sound: that is a fault of an engine, or of the simulation.
fn assert_sound(run: RingsRun, of: &dyn std::fmt::Debug) -> RingsRun {
    assert_eq!(is_sound(&run), Ok(()), "{of:?}");
    run
}

fn figures(most: usize, of: impl Fn(usize) -> Result<f64, String>) -> Result<Vec<f64>, String> {
    (1..=most).map(of).collect()
}

/// Whether figures grow with their number, but for a share of it.
fn linear(figures: &[f64], slack: f64) -> Answer {
    let first = figures.first().copied().unwrap_or(0.0);
    let of = |(at, figure): (usize, &f64)| figure / (first * (at + 1) as f64);
    let shares = figures.iter().enumerate().map(of);
    let is_linear = shares.clone().all(|share| (share - 1.0).abs() <= slack);
    let shares: Vec<String> = shares
        .map(|share| format!("{:.0} %", share * 100.0))
        .collect();
    let figures: Vec<String> = figures
        .iter()
        .map(|figure| format!("{figure:.0}"))
        .collect();
    let what = format!(
        "{} Mbit/s: {} of linear",
        figures.join(", "),
        shares.join(", ")
    );
    Answer::Seen(is_linear, what)
}

/// Whether figures are alike, but for a share.
fn constant(figures: &[f64], slack: f64) -> Answer {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(0.0, f64::max);
    let figures: Vec<String> = figures
        .iter()
        .map(|figure| format!("{figure:.2}"))
        .collect();
    Answer::Seen(
        most <= (1.0 + slack) * least,
        format!("{} ms", figures.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recipe without a leveling, or of another name, was told that no leveling has an empty name.
    #[test]
    fn what_is_wrong_with_a_recipe_is_said() {
        let of = |text: &str| leveling(&Recipe::parse(text).expect("a recipe"));
        assert_eq!(of("get=several-delay leveling=pull"), Ok(Leveling::Pull));
        let said = |text: &str, why: &str| {
            let error = of(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        };
        said("get=several-delay", "`several-delay` names its `leveling`");
        said(
            "get=several-delay leveling=push",
            "no leveling is called `push`: there are `no global ring`, `horizon`",
        );
    }
}
