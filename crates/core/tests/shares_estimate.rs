//! An estimate of a link's capacity from losses: senders that keep to the estimate, and a link with a queue that other
//! traffic may use, too.

use rota_core::contract::Time;
use rota_core::shares::{Capacity, Estimate};

const MILLIS: u64 = 1_000_000;
const MBIT: u64 = 1_000_000;
const PACKET: u64 = 1_400;
/// What a port of a switch keeps, in bytes.
const QUEUE: u64 = 256_000;
/// Until what was believed is in force, and until a lost packet is here after all, in milliseconds.
const LATER: usize = 5;

struct World {
    estimate: Estimate,
    now: u64,
    /// What the link takes in, what others send, and what senders want, in bits per second.
    link: u64,
    others: u64,
    wanted: u64,
    queue: u64,
    /// What was believed in the last milliseconds, and what got lost, newest last.
    believed: Vec<u64>,
    lost: Vec<u64>,
    sent: u64,
    lost_in_all: u64,
    changes: usize,
}

impl World {
    fn new(most: Capacity, link: u64) -> Self {
        Self {
            estimate: Estimate::new(Time(0), most),
            now: 0,
            link,
            others: 0,
            wanted: u64::MAX,
            queue: 0,
            believed: vec![most.bits_per_second(); LATER],
            lost: vec![0; LATER],
            sent: 0,
            lost_in_all: 0,
            changes: 0,
        }
    }

    fn milli(&mut self) {
        self.now += MILLIS;
        let rate = self.believed.remove(0).min(self.wanted).min(10_000 * MBIT);
        let ours = rate / 8_000 / PACKET;
        let all = ours * PACKET + self.others / 8_000;
        let room = QUEUE.saturating_sub(self.queue) + self.link / 8_000;
        // What does not fit is of either in proportion.
        let dropped = all.saturating_sub(room);
        let lost = (dropped * ours).div_ceil(all.max(1)).min(ours);
        self.queue = (self.queue + all - dropped).saturating_sub(self.link / 8_000);
        self.lost.push(lost);
        let found = self.lost.remove(0);
        // Lost packets are sent again in place of others.
        for at in 0..ours - lost {
            let missing = (at < found).then_some((0, self.sent + at));
            self.estimate
                .on_packet(Time(self.now), PACKET as usize, missing);
        }
        self.changes += usize::from(self.estimate.observe(Time(self.now)));
        self.believed
            .push(self.estimate.capacity().bits_per_second());
        self.sent += ours;
        self.lost_in_all += lost;
    }

    /// Goes on for so long; answers how much came, in bits per second, and which part got lost.
    fn run(&mut self, millis: u64) -> (u64, f64) {
        (self.sent, self.lost_in_all) = (0, 0);
        (0..millis).for_each(|_| self.milli());
        let came = (self.sent - self.lost_in_all) * PACKET * 8_000 / millis;
        (came, self.lost_in_all as f64 / self.sent.max(1) as f64)
    }

    fn believes(&self) -> u64 {
        self.estimate.capacity().bits_per_second()
    }
}

#[test]
fn a_link_that_loses_nothing_is_believed_to_take_in_what_was_said() {
    let mut world = World::new(Capacity::new(940 * MBIT), 945 * MBIT);
    let (came, lost) = world.run(5_000);
    assert!(came > 925 * MBIT && lost == 0.0, "{came}, {lost}");
    assert_eq!((world.believes(), world.changes), (940 * MBIT, 0));
}

/// From knowing nothing: the link is used by nine tenths and more, and little gets lost. Who knows nothing sends as fast as
/// its window lets it.
#[test]
fn what_a_link_takes_in_is_found_out() {
    for link in [50, 100, 945, 2_500, 9_400] {
        let mut world = World::new(Capacity::UNKNOWN, link * MBIT);
        world.wanted = 3 * link * MBIT;
        let (_, first) = world.run(1_000);
        let (came, lost) = world.run(20_000);
        println!(
            "{link}: {} Mbit/s, {lost:.4} lost, {first:.3} in the first second",
            came / MBIT
        );
        assert!(came >= link * MBIT * 9 / 10, "{link}: {came}");
        assert!(lost < 0.015 && first < 0.3, "{link}: {lost}, {first}");
    }
}

/// Something else takes a part of the link for a while: so much is left to it within a second, and taken back
/// within some.
#[test]
fn what_others_send_is_left_to_them() {
    for others in [100, 300, 700] {
        let mut world = World::new(Capacity::new(940 * MBIT), 945 * MBIT);
        world.run(1_000);
        world.others = others * MBIT;
        world.run(1_000);
        let (came, lost) = world.run(5_000);
        let left = (945 - others) * MBIT;
        println!(
            "{others}: {} Mbit/s of {}, {lost:.4} lost",
            came / MBIT,
            left / MBIT
        );
        assert!(
            came <= left && came >= left * 17 / 20,
            "{others}: {came} of {left}"
        );
        assert!(lost < 0.02, "{others}: {lost}");
        world.others = 0;
        world.run(5_000);
        let (came, lost) = world.run(1_000);
        assert!(
            came > 925 * MBIT && lost < 0.001,
            "{others}: {came} again, {lost}"
        );
    }
}

/// What was found out is kept while little comes, for some seconds, and not for ever.
#[test]
fn silence_says_nothing() {
    let mut world = World::new(Capacity::UNKNOWN, 945 * MBIT);
    world.run(5_000);
    let found = world.believes();
    world.wanted = 10 * MBIT;
    world.run(2_000);
    assert!(
        world.believes() < found * 5 / 4,
        "{} after {found}",
        world.believes()
    );
    world.run(120_000);
    assert!(
        world.believes() > 4 * found,
        "{} after {found}",
        world.believes()
    );
}

/// A few lost packets are chance, and late ones are no loss.
#[test]
fn chance_is_no_sign() {
    let mut estimate = Estimate::new(Time(0), Capacity::new(1_000 * MBIT));
    for at in 0..100_000u64 {
        let now = Time(at * 20_000);
        // One in a thousand is lost; one in fifty is only late.
        let late = at % 50 == 1;
        let missing = at % 1_000 == 7 || late;
        estimate.on_packet(now, 1_400, missing.then_some((1, at)));
        // What is sent again for others says nothing.
        estimate.on_again((2, at));
        if late {
            estimate.on_again((1, at));
            estimate.on_again((1, at));
        }
        assert!(!estimate.observe(now), "at {at}");
    }
    assert_eq!(estimate.capacity(), Capacity::new(1_000 * MBIT));
}

/// A piece that a change of views cut off says nothing.
#[test]
fn a_new_view_begins_anew() {
    let mut estimate = Estimate::new(Time(0), Capacity::new(1_000 * MBIT));
    for at in 0..1_000 {
        estimate.on_packet(Time(at * 20_000), 1_400, (at % 50 == 0).then_some((0, at)));
    }
    let installed = 420 * MILLIS;
    estimate.restart(Time(installed));
    assert!(!estimate.observe(Time(installed)));
    for at in 0..3_000 {
        let now = Time(installed + at * 20_000);
        estimate.on_packet(now, 1_400, None);
        assert!(!estimate.observe(now));
    }
    assert_eq!(estimate.capacity(), Capacity::new(1_000 * MBIT));
}

/// What others lost and this member did not, and gets again with them, hides nothing that it lost itself.
#[test]
fn repairs_for_others_hide_no_loss() {
    let mut estimate = Estimate::new(Time(0), Capacity::new(1_000 * MBIT));
    for at in 0..3_000 {
        let now = Time(at * 20_000);
        estimate.on_packet(now, 1_400, (at % 20 == 0).then_some((0, at)));
        if at % 20 == 5 {
            estimate.on_again((0, at));
        }
        estimate.observe(now);
    }
    assert!(estimate.capacity() < Capacity::new(600 * MBIT));
}

/// It is to be looked at while something comes or is to come back, and never at one time again.
#[test]
fn it_says_when_to_look() {
    let mut estimate = Estimate::new(Time(0), Capacity::new(100 * MBIT));
    assert_eq!(estimate.next_time(), None);
    for at in 0..100 {
        estimate.on_packet(Time(at), 1_400, Some((0, at)));
    }
    let mut now = Time(0);
    let mut looks = 0;
    while let Some(next) = estimate.next_time() {
        assert!(next > now, "{next:?} after {now:?}");
        now = next;
        estimate.observe(now);
        looks += 1;
        assert!(looks < 10_000);
    }
    assert!(
        looks > 10 && estimate.capacity() == Capacity::new(100 * MBIT),
        "{looks}"
    );
}

#[test]
fn nothing_overflows() {
    let mut estimate = Estimate::new(Time(u64::MAX - 1), Capacity::new(u64::MAX));
    for at in [u64::MAX, 0, 1, u64::MAX] {
        for number in 0..10 {
            estimate.on_packet(Time(at), usize::MAX / 1_000, Some((0, number)));
        }
        estimate.on_again((0, 3));
        estimate.observe(Time(at));
    }
    assert!(estimate.capacity() <= Capacity::new(u64::MAX));
}
