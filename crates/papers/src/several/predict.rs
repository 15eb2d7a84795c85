//! How throughput, delay and work grow with rings, hosts, regions and distance.

use rota_wire::{DiskPlan, Load, OneRing, RingsRun, RingsSetup, Span};

use super::{Leveling, MILLIS, Regions, assert_sound};
use crate::cluster::links;
use crate::lab::Lab;
use crate::workers;

/// Bytes of a message.
const MESSAGE: usize = 1350;
/// The small load at which delays are taken: of all rings together, in bits a second.
const SMALL: u64 = 100_000_000;
const RINGS: [u16; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Hosts with [`RINGS_OF_HOSTS`] rings.
const HOSTS: [usize; 4] = [3, 5, 9, 15];
const RINGS_OF_HOSTS: u16 = 4;
const REGIONS: usize = 5;

/// Rings on some hosts, or regions, and what comes of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Prediction {
    /// What it is.
    pub what: String,
    /// Hosts of each ring, or of all regions.
    pub hosts: usize,
    /// Payload of all rings with as much as they take, Mbit/s.
    pub mbps: f64,
    /// Half of the messages of the first ring are no later at a small load, microseconds.
    pub p50: f64,
    /// Processor time of all hosts for a message, at the full load, microseconds.
    pub work_us: f64,
    /// The share of the time for which the busiest processor works, at the full load.
    pub busiest: f64,
}

/// What is predicted.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// Rings on the same hosts, all of which send to all of them.
    Rings(u16, usize),
    /// The same, and only the first ring has anything to order.
    OneBusy(u16),
    /// Regions that are all as far from each other.
    Regions(usize, Leveling),
}

impl Wanted {
    fn all() -> Vec<Self> {
        let rings = RINGS.into_iter().map(|rings| Self::Rings(rings, 3));
        let busy = RINGS[1..].iter().map(|rings| Self::OneBusy(*rings));
        let hosts = HOSTS[1..].iter();
        let hosts = hosts.map(|hosts| Self::Rings(RINGS_OF_HOSTS, *hosts));
        let levelings = [Leveling::Horizon, Leveling::Pull];
        let regions = levelings.into_iter().flat_map(|leveling| {
            let counts = 1..=REGIONS;
            counts.map(move |count| Self::Regions(count, leveling))
        });
        rings.chain(busy).chain(hosts).chain(regions).collect()
    }

    fn predict(self, lab: &Lab) -> Prediction {
        let (what, hosts) = match self {
            Self::Rings(1, hosts) => ("one ring".to_owned(), hosts),
            Self::Rings(rings, hosts) => (format!("{rings} rings, all of them busy"), hosts),
            Self::OneBusy(rings) => (format!("{rings} rings, one of them busy"), 3),
            Self::Regions(count, leveling) => (
                format!(
                    "a ring in each region, and one of all: {count}, {}",
                    leveling.name()
                ),
                3 * count,
            ),
        };
        let (full, small) = (self.run(lab, false), self.run(lab, true));
        Prediction {
            what,
            hosts,
            mbps: full.ordered_mbps,
            p50: small.rings[0].delays.p50,
            work_us: full.work_us,
            busiest: full.busiest,
        }
    }

    fn run(self, lab: &Lab, is_small: bool) -> RingsRun {
        let run = match self {
            Self::Rings(rings, hosts) => on_hosts(lab, (rings, rings), hosts, is_small),
            Self::OneBusy(rings) => on_hosts(lab, (rings, 1), 3, is_small),
            Self::Regions(count, leveling) => {
                let regions = match is_small {
                    true => Regions::new(count, leveling),
                    false => Regions::full(count, leveling),
                };
                let is_even = true;
                lab.regions(&Regions { is_even, ..regions }, 1)
            }
        };
        assert_sound(run, &(self, is_small))
    }
}

/// Rings on the same hosts, of which some have something to order.
fn on_hosts(lab: &Lab, (rings, busy): (u16, u16), hosts: usize, is_small: bool) -> RingsRun {
    let calibration = &lab.calibration;
    let costs = calibration.costs(0.0, 0.0);
    let load = match is_small {
        true => Load::Rate(SMALL / u64::from(busy)),
        false => Load::Full,
    };
    let ring = |rank: u16| {
        let mut ring = OneRing::new(rank, (0..hosts).collect(), load, MESSAGE);
        ring.acceptors.truncate(5);
        if rank > busy {
            ring.senders.clear();
        }
        ring
    };
    let span = Span {
        warm_up: 100 * MILLIS,
        measured: if is_small { 400 } else { 150 } * MILLIS,
    };
    lab.run_rings(&RingsSetup {
        hosts,
        wire: calibration.wire(&calibration.ten_gig),
        links: links(&costs),
        costs,
        disk: DiskPlan::MEMORY,
        rings: (1..=rings).map(ring).collect(),
        span,
        seed: 1,
    })
}

/// All predictions, in the order of the table.
pub fn predictions(lab: &Lab, jobs: usize) -> Vec<Prediction> {
    workers::each(jobs, &Wanted::all(), |wanted| wanted.predict(lab))
}
