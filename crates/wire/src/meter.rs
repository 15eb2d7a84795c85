//! What is measured: delays, throughput, and the order in which each node delivered.

use hdrhistogram::Histogram;
use rota_core::contract::Message;

use crate::agenda::NEVER;

/// Deliveries between two marks of a node's order.
const MARK: u64 = 1024;
/// The longest delay that is told from longer ones: a minute, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;
/// Significant digits of a delay.
const DIGITS: u8 = 3;

/// Delays of messages.
#[derive(Clone, Debug)]
pub struct Histo {
    values: Histogram<u64>,
    sum: u64,
    count: u64,
}

impl Histo {
    pub fn new() -> Self {
        let values = Histogram::new_with_bounds(1, LONGEST, DIGITS);
        Self {
            values: values.expect("bounds that a histogram takes"),
            sum: 0,
            count: 0,
        }
    }

    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.values.saturating_record(nanos);
        self.sum += nanos;
        self.count += 1;
    }

    fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.values.add(&other.values);
        self.sum += other.sum;
        self.count += other.count;
    }

    pub fn mean(&self) -> f64 {
        mean(self.sum as f64, self.count)
    }

    /// The mean of the longest twentieth, in nanoseconds (report §IV-A4).
    pub fn mean_of_worst(&self) -> f64 {
        let least = self.count - self.count.div_ceil(20);
        let (mut seen, mut sum, mut count) = (0, 0.0, 0);
        for value in self.values.iter_recorded() {
            seen += value.count_since_last_iteration();
            if seen > least {
                let of_these = (seen - least).min(value.count_since_last_iteration());
                sum += value.value_iterated_to() as f64 * of_these as f64;
                count += of_these;
            }
        }
        mean(sum, count)
    }
}

fn mean(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The order in which a node delivered: a digest that each message changes, and marks of it.
#[derive(Clone, Debug, Default)]
pub struct Order {
    digest: u64,
    count: u64,
    marks: Vec<u64>,
    /// By sender, the counter of its last message.
    last: Vec<u64>,
    /// Messages that did not follow the one before of their sender.
    pub gaps: u64,
}

impl Order {
    pub fn new(nodes: usize) -> Self {
        Self {
            last: vec![0; nodes],
            ..Self::default()
        }
    }

    #[inline]
    pub fn add(&mut self, sender: usize, counter: u64) {
        self.add_at(sender, counter, 0);
    }

    /// A message with a place that all nodes have to give it.
    #[inline]
    pub fn add_at(&mut self, sender: usize, counter: u64, place: u64) {
        self.gaps += u64::from(counter != self.last[sender] + 1);
        self.last[sender] = counter;
        let message = (sender as u64) << 48 ^ counter ^ place;
        self.digest = (self.digest.rotate_left(5) ^ message).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.count += 1;
        if self.count.is_multiple_of(MARK) {
            self.marks.push(self.digest);
        }
    }

    /// A digest of the order.
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// Messages delivered.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether both are one order, as far as both go: by their marks, and whole if they are equally long.
    pub fn agrees(&self, other: &Self) -> bool {
        let marks = self.marks.iter().zip(&other.marks).all(|(a, b)| a == b);
        marks && (self.count != other.count || self.digest == other.digest)
    }
}

/// A node's measurements.
#[derive(Clone, Debug)]
pub struct Meter {
    pub order: Order,
    /// Bytes delivered in the measured time.
    bytes: u64,
    own_bytes: u64,
    messages: u64,
    /// Delays of its own messages, at itself.
    own: Histo,
    /// Configurations of all nodes after the first.
    pub reconfigurations: u64,
    /// Times at which it was told that it had missed something.
    pub missed: u64,
}

/// The measured time, and what passes all nodes in it.
#[derive(Debug)]
pub struct Measured {
    pub from: u64,
    pub until: u64,
    /// The way from a daemon to its client.
    client: u64,
    /// By sender, the delays of its messages at all receivers.
    of: Vec<Histo>,
}

impl Measured {
    pub fn new(nodes: usize, client: u64) -> Self {
        Self {
            from: NEVER,
            until: NEVER,
            client,
            of: vec![Histo::new(); nodes],
        }
    }
}

impl Meter {
    pub fn new(nodes: usize) -> Self {
        Self {
            order: Order::new(nodes),
            bytes: 0,
            own_bytes: 0,
            messages: 0,
            own: Histo::new(),
            reconfigurations: 0,
            missed: 0,
        }
    }

    /// Node `me` delivers a message now.
    #[inline]
    pub fn take(&mut self, me: usize, now: u64, message: &Message, measured: &mut Measured) {
        let sender = usize::from(message.id.process.node.get()) - 1;
        self.order.add(sender, message.id.counter);
        if now < measured.from || now >= measured.until {
            return;
        }
        let bytes = message.payload.len() as u64;
        self.bytes += bytes;
        self.messages += 1;
        let stamp = message.payload.first_chunk::<8>().copied();
        let due = u64::from_le_bytes(stamp.unwrap_or_default());
        let delay = now.saturating_sub(due) + measured.client;
        measured.of[sender].record(delay);
        if sender == me {
            self.own_bytes += bytes;
            self.own.record(delay);
        }
    }
}

/// Delays, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Delays {
    /// All messages at all receivers.
    pub mean: f64,
    /// Half of them are no longer.
    pub p50: f64,
    /// Nine tenths are no longer.
    pub p90: f64,
    /// 99 of 100 are no longer.
    pub p99: f64,
    /// The longest twentieth of each sender's messages, on the mean; of all senders, on the mean (report §IV-A4).
    pub worst: f64,
    /// Each sender's messages at itself.
    pub at_sender: f64,
}

impl Delays {
    /// The delays of messages at all receivers, and at their senders. `worst` in nanoseconds.
    pub(crate) fn new(all: &Histo, worst: f64, own: &Histo) -> Self {
        let at = |share: f64| all.values.value_at_quantile(share) as f64 / 1000.0;
        Self {
            mean: all.mean() / 1000.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            worst: worst / 1000.0,
            at_sender: own.mean() / 1000.0,
        }
    }
}

/// What went over the network in the measured time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Packets that were sent for the first time.
    pub sent: u64,
    /// Packets that were sent again.
    pub resent: u64,
    /// Packets that were dropped on purpose.
    pub lost: u64,
    /// Datagrams that a port of the switch had no room for.
    pub dropped: u64,
    /// Datagrams that a socket had no room for.
    pub overflown: u64,
    /// Tokens that a node took.
    pub visits: u64,
    /// Tokens that were sent again.
    pub tokens_resent: u64,
    /// The longest queue of a port, in bytes.
    pub longest_queue: u64,
}

/// What a run came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Payload delivered at a node, its own included, on the mean of all: Mbit/s.
    pub goodput_mbps: f64,
    /// The same without its own.
    pub received_mbps: f64,
    /// Messages delivered in the measured time, at all nodes.
    pub deliveries: u64,
    /// Delays.
    pub delays: Delays,
    /// Traffic.
    pub traffic: Traffic,
    /// All nodes delivered in one order, without gaps.
    pub one_order: bool,
    /// All nodes delivered all messages that were submitted.
    pub complete: bool,
    /// Configurations after the first with all nodes, and messages that a node missed, at all nodes: 0 if all was well.
    pub disturbed: u64,
    /// A digest of the order.
    pub digest: u64,
    /// Turns of machines, and frames at the switch: what the simulation took.
    pub events: u64,
    /// All messages delivered, also before and behind the measured time, at all nodes.
    pub all_deliveries: u64,
    /// Virtual nanoseconds.
    pub virtual_nanos: u64,
}

impl Run {
    /// Whether all nodes delivered all messages, in one order.
    pub const fn is_sound(&self) -> bool {
        self.one_order && self.complete
    }
}

/// What is known when a run is over.
pub struct Over<'a> {
    pub meters: Vec<&'a Meter>,
    pub measured: &'a Measured,
    pub traffic: Traffic,
    pub submitted: u64,
    pub events: u64,
    pub now: u64,
}

impl Over<'_> {
    pub fn run(&self) -> Run {
        let seconds = (self.measured.until - self.measured.from) as f64 / 1e9;
        let rate = |bytes: u64| bytes as f64 * 8.0 / 1e6 / seconds / self.meters.len() as f64;
        let sum = |of: fn(&Meter) -> u64| self.meters.iter().map(|meter| of(meter)).sum::<u64>();
        let (bytes, own) = (sum(|meter| meter.bytes), sum(|meter| meter.own_bytes));
        let first = &self.meters[0].order;
        let is_one = |meter: &&Meter| meter.order.agrees(first) && meter.order.gaps == 0;
        let is_whole = |meter: &&Meter| meter.order.count() == self.submitted;
        Run {
            goodput_mbps: rate(bytes),
            received_mbps: rate(bytes - own),
            deliveries: sum(|meter| meter.messages),
            delays: self.delays(),
            traffic: self.traffic,
            one_order: self.meters.iter().all(is_one),
            complete: self.meters.iter().all(is_whole),
            disturbed: sum(|meter| meter.reconfigurations + meter.missed),
            digest: first.digest,
            events: self.events,
            all_deliveries: sum(|meter| meter.order.count()),
            virtual_nanos: self.now,
        }
    }

    fn delays(&self) -> Delays {
        let (mut all, mut own) = (Histo::new(), Histo::new());
        self.measured.of.iter().for_each(|histo| all.add(histo));
        self.meters.iter().for_each(|meter| own.add(&meter.own));
        let senders = self.measured.of.iter().filter(|histo| histo.count > 0);
        let worst: Vec<f64> = senders.map(Histo::mean_of_worst).collect();
        Delays::new(&all, mean(worst.iter().sum(), worst.len() as u64), &own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_twentieth_of_a_few_is_the_worst_one() {
        let mut few = Histo::new();
        for nanos in [1_000, 9_000, 2_000] {
            few.record(nanos);
        }
        assert!(
            (few.mean_of_worst() - 9_000.0).abs() < 90.0,
            "{}",
            few.mean_of_worst()
        );
    }

    #[test]
    fn orders_that_differ_are_told_apart_and_a_shorter_one_is_not_another() {
        let order = |messages: &[(usize, u64)]| {
            let mut order = Order::new(2);
            for (sender, counter) in messages {
                order.add(*sender, *counter);
            }
            order
        };
        let one = order(&[(0, 1), (1, 1), (0, 2)]);
        assert!(one.agrees(&order(&[(0, 1), (1, 1), (0, 2)])));
        assert!(!one.agrees(&order(&[(1, 1), (0, 1), (0, 2)])));
        assert!(one.agrees(&order(&[(0, 1)])));
        assert_eq!(order(&[(0, 1), (0, 3)]).gaps, 1);
        let long = |swap: bool| {
            let mut order = Order::new(2);
            (1..=MARK).for_each(|counter| order.add(usize::from(swap && counter == 7), counter));
            order.add(1, 99);
            order
        };
        let mut longer = long(true);
        longer.add(1, 100);
        assert!(!long(false).agrees(&longer));
    }

    #[test]
    fn the_worst_twentieth_is_that_of_the_longest_delays() {
        let mut histo = Histo::new();
        (1..=100).for_each(|value| histo.record(value * 1000));
        assert!((histo.mean() - 50_500.0).abs() < 1.0);
        let worst = histo.mean_of_worst();
        assert!((worst - 98_000.0).abs() < 200.0, "{worst}");
    }
}
