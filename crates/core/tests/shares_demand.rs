//! Requirements that follow a load by themselves: scripted loads through the queue of one sender.

use rota_core::contract::Time;
use rota_core::shares::{Demand, Waiting};

const MBIT: u64 = 1_000_000;
const ALL: u64 = 1_000 * MBIT;
/// What a sender without a share has.
const RESERVED: u64 = 3 * MBIT;
const MICROS: u64 = 1_000;
const MILLIS: u64 = 1_000_000;

/// A sender that gets what it requires 3 ms after it required it, up to `share`.
struct Sender {
    demand: Demand,
    now: u64,
    load: Waiting,
    /// What is in force, and what will be, and when.
    rate: u64,
    coming: Option<(u64, u64)>,
    asked: u64,
    share: u64,
    /// How much the application keeps waiting at most, in bytes.
    room: u64,
    /// When which requirement was said.
    changes: Vec<(u64, u64)>,
    credit: u64,
    /// Since when something waits for the rate, in the time that is looked at.
    waits_since: Option<u64>,
}

impl Sender {
    fn new(share: u64) -> Self {
        Self {
            demand: Demand::new(Time(0), ALL),
            now: 0,
            load: Waiting::default(),
            rate: RESERVED,
            coming: None,
            asked: 0,
            share,
            room: u64::MAX,
            changes: Vec::new(),
            credit: 0,
            waits_since: None,
        }
    }

    /// 100 µs in which so many bytes arrive.
    fn tick(&mut self, bytes: u64) {
        self.now += 100 * MICROS;
        let arrives = bytes.min(self.room - self.load.waiting);
        self.load.full = arrives < bytes;
        self.load.waiting += arrives;
        if let Some((at, rate)) = self.coming
            && at <= self.now
        {
            self.rate = rate;
            self.coming = None;
        }
        // A bucket that keeps up to 32 kB.
        self.credit = (self.credit + self.rate / 80_000).min(32_000);
        let leaves = self.load.waiting.min(self.credit);
        self.credit -= leaves;
        self.load.waiting -= leaves;
        self.load.sent += leaves;
        self.load.for_rate = self.load.waiting > 0;
        if self.load.for_rate {
            self.waits_since.get_or_insert(self.now);
        }
        let asked = self.demand.observe(Time(self.now), self.load, self.rate);
        if asked != self.asked {
            self.asked = asked;
            self.changes.push((self.now, asked));
            self.coming = Some((self.now + 3 * MILLIS, asked.min(self.share) + RESERVED));
        }
    }

    /// A steady load in messages of 3 kB.
    fn steady(&mut self, mbits: u64, millis: u64) {
        let mut owed = 0;
        for _ in 0..10 * millis {
            owed += mbits * MBIT / 80_000;
            let messages = owed / 3_000;
            owed %= 3_000;
            self.tick(messages * 3_000);
        }
    }

    /// `bytes` at once every `millis`, `times` times.
    fn bursts(&mut self, bytes: u64, millis: u64, times: u64) {
        for _ in 0..times {
            self.tick(bytes);
            (1..10 * millis).for_each(|_| self.tick(0));
        }
    }

    /// The same on average; how many messages come when is up to chance (splitmix64).
    fn noisy(&mut self, mbits: u64, millis: u64) {
        let mut state = 7u64;
        for _ in 0..10 * millis {
            let mut messages = 0;
            // 20 chances in a tick, each as likely as makes the average.
            for _ in 0..20 {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                messages += u64::from((z ^ (z >> 31)) % 1_000_000 < mbits * MBIT / 80 / 3 / 20);
            }
            self.tick(messages * 3_000);
        }
    }

    fn mbits(&self) -> u64 {
        self.asked / MBIT
    }
}

#[test]
fn who_sends_nothing_or_little_requires_nothing() {
    let mut sender = Sender::new(ALL);
    sender.steady(0, 1_000);
    sender.bursts(10_000, 80, 100);
    assert_eq!(sender.changes, []);
    assert_eq!(sender.demand.next_time(), None, "nothing to look at");
}

/// From the moment something has to wait until there is a rate that carries the load, with 3 ms for the
/// request: less than 10 ms. A large change makes something wait at once, a small one after a while.
#[test]
fn more_is_in_force_within_10_ms() {
    for (before, after) in [
        (0, 50),
        (0, 250),
        (0, 900),
        (100, 150),
        (100, 250),
        (300, 900),
    ] {
        let mut sender = Sender::new(ALL);
        sender.steady(before, 2_000);
        sender.waits_since = None;
        let begun = sender.now;
        sender.steady(after, 40);
        let enough = |change: &&(u64, u64)| change.0 > begun && change.1 + RESERVED >= after * MBIT;
        let asked = sender.changes.iter().find(enough).expect("is asked for");
        let in_force = asked.0 + 3 * MILLIS;
        let waits_since = sender.waits_since.expect("something waited");
        println!("{before} to {after} Mbit/s: {} ns", in_force - waits_since);
        assert!(in_force - waits_since <= 10 * MILLIS, "{before} to {after}");
        let large = after >= 2 * before && after >= 200;
        assert!(
            !large || in_force - begun <= 10 * MILLIS,
            "{before} to {after}"
        );
    }
}

#[test]
fn what_is_required_fits_a_steady_load() {
    for mbits in [20, 100, 250, 500, 800] {
        let mut sender = Sender::new(ALL);
        sender.steady(mbits, 1_000);
        let settled = sender.changes.len();
        sender.steady(mbits, 10_000);
        assert_eq!(
            sender.changes.len(),
            settled,
            "{mbits}: {:?}",
            sender.changes
        );
        let most = mbits * 17 / 16 * 8 / 7 + 2 * ALL / MBIT / 128;
        assert!(
            (mbits..=most).contains(&(sender.mbits() + 3)),
            "{mbits}: {}",
            sender.mbits()
        );
    }
}

/// Chance makes something wait now and then, and is no reason to change much or often.
#[test]
fn chance_is_not_followed_up_and_down() {
    for mbits in [50, 250, 600] {
        let mut sender = Sender::new(ALL);
        sender.noisy(mbits, 40_000);
        let later = sender
            .changes
            .iter()
            .filter(|change| change.0 > 20_000 * MILLIS);
        let asked: Vec<u64> = later.map(|change| change.1 / MBIT).collect();
        println!("{mbits} Mbit/s: {}, then {asked:?}", sender.changes.len());
        assert!(asked.len() <= 40, "{mbits}: {asked:?} in 20 s");
        let most = mbits * 3 / 2 + 10;
        assert!(
            asked.iter().all(|asked| (mbits..=2 * most).contains(asked)),
            "{mbits}: {asked:?}"
        );
        assert!(
            (mbits..=most).contains(&sender.mbits()),
            "{mbits}: {}",
            sender.mbits()
        );
    }
}

#[test]
fn less_is_required_after_a_while_and_nothing_in_the_end() {
    let mut sender = Sender::new(ALL);
    sender.steady(600, 1_000);
    let before = sender.mbits();
    sender.steady(200, 80);
    assert_eq!(sender.mbits(), before, "not at once");
    sender.steady(200, 200);
    assert!((200..300).contains(&sender.mbits()), "{:?}", sender.changes);
    sender.steady(0, 300);
    assert_eq!(sender.mbits(), 0, "{:?}", sender.changes);
    assert_eq!(sender.demand.next_time(), None);
}

#[test]
fn who_always_has_something_requires_all_and_keeps_that() {
    for room in [20_000, 100_000, 1_000_000, u64::MAX] {
        // Others take most of the link.
        let mut sender = Sender::new(250 * MBIT);
        sender.room = room;
        sender.steady(2_000, 50);
        assert_eq!(sender.asked, ALL, "{room}");
        let settled = sender.changes.len();
        sender.steady(2_000, 5_000);
        assert_eq!(
            sender.changes.len(),
            settled,
            "{room}: {:?}",
            sender.changes
        );
    }
}

/// Whatever the rhythm: a word now and then at the most.
#[test]
fn a_load_that_comes_and_goes_is_not_followed_up_and_down() {
    for (bytes, period) in [
        (64_000, 20),
        (64_000, 80),
        (500_000, 150),
        (500_000, 300),
        (2_000_000, 450),
        (2_000_000, 1_000),
        (5_000_000, 3_000),
    ] {
        let mut sender = Sender::new(ALL);
        sender.bursts(bytes, period, 20_000 / period);
        let begun = sender.changes.len();
        assert!(begun <= 60, "{bytes} every {period} ms: {begun}");
        sender.bursts(bytes, period, 20_000 / period);
        let later = sender.changes.len() - begun;
        assert!(later <= 45, "{bytes} every {period} ms: {later} in 20 s");
    }
}

/// On a busy processor a load comes in lumps, each of which waits for a while.
#[test]
fn lumps_of_a_small_load_do_not_keep_a_requirement_of_long_ago() {
    let mut sender = Sender::new(ALL);
    sender.steady(900, 500);
    assert!(sender.mbits() > 900, "{}", sender.mbits());
    // It gets no more than it would have to itself if it asked for less.
    sender.share = 160 * MBIT;
    sender.rate = 160 * MBIT + RESERVED;
    sender.bursts(60_000, 10, 200);
    assert!((48..=80).contains(&sender.mbits()), "{}", sender.mbits());
}

/// The same when lumps are as long as a busy processor makes them, each as large as the time before it: what is required
/// fits the load, and stays.
#[test]
fn what_is_required_fits_a_load_in_lumps() {
    for mbits in [20, 100, 300] {
        let mut sender = Sender::new(ALL);
        for millis in [4, 8, 1, 6, 3, 9, 2, 5].repeat(500) {
            (1..10 * millis).for_each(|_| sender.tick(0));
            sender.tick(mbits * MBIT / 8_000 * millis);
        }
        let later = sender
            .changes
            .iter()
            .filter(|change| change.0 > 5_000 * MILLIS);
        let asked: Vec<u64> = later.map(|change| change.1 / MBIT).collect();
        println!("{mbits} Mbit/s: {}, {asked:?}", sender.mbits());
        let most = mbits * 3 / 2 + 10;
        assert!(
            (mbits..=most).contains(&(sender.mbits() + 3)),
            "{mbits}: {}",
            sender.mbits()
        );
        assert!(asked.len() <= 20, "{mbits}: {asked:?} in 14 s");
    }
}

/// Who gets less than it requires asks for no more, and does so when it gets all of it.
#[test]
fn what_can_not_be_had_is_not_asked_for() {
    let mut sender = Sender::new(160 * MBIT);
    sender.steady(300, 50);
    let settled = sender.changes.len();
    sender.steady(300, 2_000);
    assert_eq!(sender.changes.len(), settled, "{:?}", sender.changes);
    sender.share = ALL;
    sender.rate = sender.asked;
    sender.steady(300, 20);
    assert!(sender.mbits() >= 300, "{:?}", sender.changes);
}

/// A window that is full, or a slow receiver, is no reason to ask for more.
#[test]
fn what_waits_for_something_else_requires_nothing() {
    let mut demand = Demand::new(Time(0), ALL);
    let load = Waiting {
        waiting: 1_000_000,
        for_rate: false,
        full: true,
        sent: 0,
    };
    for milli in 0..1_000 {
        assert_eq!(demand.observe(Time(milli * MILLIS), load, RESERVED), 0);
    }
}

/// Timers come when it says, and not again and again at one time.
#[test]
fn it_says_when_to_look_again() {
    let mut demand = Demand::new(Time(0), ALL);
    let load = Waiting {
        waiting: 200_000,
        for_rate: true,
        full: false,
        sent: 0,
    };
    assert_eq!(demand.observe(Time(5), load, RESERVED), 0);
    let mut now = Time(5);
    let mut asked = 0;
    for _ in 0..1_000 {
        let next = demand.next_time().expect("something waits");
        assert!(next > now, "{next:?} after {now:?}");
        now = next;
        asked = demand.observe(now, load, RESERVED);
        if asked > 0 {
            break;
        }
    }
    assert!(asked > 0 && now == Time(5 + MILLIS), "{asked} at {now:?}");
    // When it has left, nothing is required any more in the end, by these timers alone.
    let gone = Waiting {
        sent: 200_000,
        waiting: 0,
        for_rate: false,
        full: false,
    };
    while let Some(next) = demand.next_time() {
        assert!(
            next > now && next < Time(MILLIS * 1_000),
            "{next:?} after {now:?}"
        );
        now = next;
        asked = demand.observe(now, gone, asked);
    }
    assert_eq!(asked, 0);
}

#[test]
fn nothing_overflows() {
    let mut demand = Demand::new(Time(u64::MAX - 1), u64::MAX);
    let load = Waiting {
        waiting: u64::MAX / 2,
        sent: u64::MAX / 2,
        for_rate: true,
        full: true,
    };
    assert_eq!(demand.observe(Time(u64::MAX), load, 0), u64::MAX);
    assert_eq!(
        demand.observe(Time(0), Waiting::default(), u64::MAX),
        u64::MAX
    );
    let mut nothing = Demand::new(Time(0), 0);
    assert_eq!(nothing.observe(Time(u64::MAX), load, 1), 0);
}
