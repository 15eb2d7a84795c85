//! What is measured of several rings.

use rota_core::contract::Message;
use rota_multiring::level::LevelCounters;

use super::host::Host;
use super::judge::Judged;
use crate::agenda::NEVER;
use crate::meter::{Delays, Histo};

/// Measurements of a ring.
#[derive(Clone, Debug)]
pub struct RingMeter {
    /// Delays of its messages at all subscribers.
    all: Histo,
    /// Delays at their senders.
    own: Histo,
    bytes: u64,
    messages: u64,
}

/// The measured time, and what is delivered in it.
#[derive(Debug)]
pub struct RingsMeter {
    pub from: u64,
    pub until: u64,
    /// The way from a process to its client.
    client: u64,
    rings: Vec<RingMeter>,
}

impl RingsMeter {
    pub fn new(rings: usize, client: u64) -> Self {
        let ring = RingMeter {
            all: Histo::new(),
            own: Histo::new(),
            bytes: 0,
            messages: 0,
        };
        Self {
            from: NEVER,
            until: NEVER,
            client,
            rings: vec![ring; rings],
        }
    }

    /// A message of a ring is delivered now; `is_own`: at its sender.
    pub fn take(&mut self, now: u64, ring: usize, message: &Message, is_own: bool) {
        if now < self.from || now >= self.until {
            return;
        }
        let meter = &mut self.rings[ring];
        meter.bytes += message.payload.len() as u64;
        meter.messages += 1;
        let stamp = message.payload.first_chunk::<8>().copied();
        let due = u64::from_le_bytes(stamp.unwrap_or_default());
        let delay = now.saturating_sub(due) + self.client;
        meter.all.record(delay);
        if is_own {
            meter.own.record(delay);
        }
    }
}

/// What is counted at hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// By host, the time for which its processor has worked.
    hosts: Vec<u64>,
    /// By ring, skips and skipped instances.
    skips: Vec<(u64, u64)>,
}

impl Work {
    pub fn of(hosts: &[Host], rings: usize) -> Self {
        let mut skips = vec![(0, 0); rings];
        for lane in hosts.iter().flat_map(|host| &host.lanes) {
            let LevelCounters {
                skips: many,
                skipped,
                ..
            } = lane.engine.get().counters();
            let (all, instances) = &mut skips[lane.ring];
            *all += many;
            *instances += skipped;
        }
        Self {
            hosts: hosts.iter().map(|host| host.worked).collect(),
            skips,
        }
    }

    /// What came since then.
    pub fn since(mut self, before: &Self) -> Self {
        let hosts = self.hosts.iter_mut().zip(&before.hosts);
        hosts.for_each(|(now, then)| *now -= then);
        let skips = self.skips.iter_mut().zip(&before.skips);
        skips.for_each(|(now, then)| *now = (now.0 - then.0, now.1 - then.1));
        self
    }
}

/// What one of several rings came to.
#[derive(Clone, PartialEq, Debug)]
pub struct RingRun {
    /// Payload delivered at a subscriber, on the mean of all: Mbit/s.
    pub goodput_mbps: f64,
    /// Messages delivered in the measured time, at all subscribers.
    pub deliveries: u64,
    /// Delays from the submission to the delivery by the merge.
    pub delays: Delays,
    /// Skips that its coordinator proposed in the measured time.
    pub skips: u64,
    /// The instances of these.
    pub skipped: u64,
}

/// What a run of several rings came to.
#[derive(Clone, PartialEq, Debug)]
pub struct RingsRun {
    /// The rings, as in the setup.
    pub rings: Vec<RingRun>,
    /// Payload of all rings that is ordered: Mbit/s, each message once.
    pub ordered_mbps: f64,
    /// The processor time of all hosts for each message that is ordered, in microseconds.
    pub work_us: f64,
    /// The share of the time for which the busiest processor worked.
    pub busiest: f64,
    /// All hosts delivered parts of one order, without gaps.
    pub one_order: bool,
    /// Every host delivered all messages of the rings that it subscribes to.
    pub complete: bool,
    /// Configurations of a ring after the first with all of its hosts, and anything that stops a merge: 0 if all was
    /// well.
    pub disturbed: u64,
    /// A digest of the order.
    pub digest: u64,
    /// Turns of machines, and frames at the switch: what the simulation took.
    pub events: u64,
    /// All messages delivered, also before and behind the measured time, at all hosts.
    pub all_deliveries: u64,
    /// Virtual nanoseconds.
    pub virtual_nanos: u64,
}

impl RingsRun {
    /// Whether every host delivered all messages of the rings that it subscribes to, in one order.
    pub const fn is_sound(&self) -> bool {
        self.one_order && self.complete
    }
}

/// What is known when a run is over.
#[derive(Debug)]
pub struct Over<'a> {
    pub meter: &'a RingsMeter,
    /// By ring.
    pub subscribers: Vec<usize>,
    pub work: &'a Work,
    pub judged: Judged,
    pub disturbed: u64,
    pub events: u64,
    pub all_deliveries: u64,
    pub now: u64,
}

impl Over<'_> {
    pub fn run(&self) -> RingsRun {
        let rings: Vec<RingRun> = (0..self.subscribers.len())
            .map(|at| self.ring(at))
            .collect();
        let each = self.meter.rings.iter().zip(&self.subscribers);
        let ordered = each.map(|(meter, many)| meter.messages as f64 / (*many).max(1) as f64);
        let ordered: f64 = ordered.sum();
        let worked: u64 = self.work.hosts.iter().sum();
        let busiest = self.work.hosts.iter().copied().max().unwrap_or(0);
        let nanos = (self.meter.until - self.meter.from) as f64;
        RingsRun {
            ordered_mbps: rings.iter().map(|ring| ring.goodput_mbps).sum(),
            work_us: worked as f64 / 1000.0 / ordered.max(1.0),
            // A turn that begins in the measured time may end behind it.
            busiest: (busiest as f64 / nanos).min(1.0),
            rings,
            one_order: self.judged.one_order,
            complete: self.judged.complete,
            disturbed: self.disturbed,
            digest: self.judged.digest,
            events: self.events,
            all_deliveries: self.all_deliveries,
            virtual_nanos: self.now,
        }
    }

    fn ring(&self, at: usize) -> RingRun {
        let (meter, many) = (&self.meter.rings[at], self.subscribers[at]);
        let seconds = (self.meter.until - self.meter.from) as f64 / 1e9;
        let (skips, skipped) = self.work.skips[at];
        RingRun {
            goodput_mbps: meter.bytes as f64 * 8.0 / 1e6 / seconds / many.max(1) as f64,
            deliveries: meter.messages,
            delays: Delays::new(&meter.all, meter.all.mean_of_worst(), &meter.own),
            skips,
            skipped,
        }
    }
}
