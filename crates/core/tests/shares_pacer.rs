//! The token bucket: bursts of a limited size, a limited time apart, and in the long run exactly the rate.

mod property;

use proptest::collection::vec;
use proptest::prelude::*;
use rota_core::contract::Time;
use rota_core::shares::{Bursts, Capacity, Pacer};

const GBIT: u64 = 1_000_000_000;
const MICROS: u64 = 1_000;
const MILLIS: u64 = 1_000_000;

fn pacer(rate: u64) -> Pacer {
    let mut pacer = Pacer::new(Time(0), Bursts::of(Capacity::new(GBIT)));
    pacer.set_rate(Time(0), rate);
    pacer
}

/// Sends all it may, in pieces of `datagram` bytes.
fn send_all(pacer: &mut Pacer, now: Time, datagram: usize) -> usize {
    let mut sent = 0;
    while pacer.allowance(now) >= datagram {
        pacer.sent(now, datagram);
        sent += datagram;
    }
    sent
}

#[test]
fn defaults_go_with_the_link() {
    let of = |bits| Bursts::of(Capacity::new(bits));
    assert_eq!(
        (of(GBIT).bytes, of(GBIT).gap, of(GBIT).late),
        (32_000, 100 * MICROS, 2 * MILLIS)
    );
    assert_eq!(of(10 * GBIT).bytes, 320_000);
    assert_eq!(of(1).bytes, 16_384);
}

#[test]
fn bursts_are_apart_and_no_larger_than_their_limit_or_what_was_earned_since() {
    let polls = vec(1..300 * MICROS, 1..300);
    property::check(
        300,
        (polls, 1..3 * GBIT, 500..9_000usize),
        |(polls, rate, datagram)| {
            let mut pacer = pacer(rate);
            let (mut now, mut bursts) = (Time(0), Vec::new());
            for wait in polls {
                now = now.after(wait);
                let sent = send_all(&mut pacer, now, datagram);
                if sent > 0 {
                    bursts.push((now, sent as u128));
                }
            }
            prop_assert!(bursts.iter().take(1).all(|&(_, bytes)| bytes <= 32_000));
            for pair in bursts.windows(2) {
                let gap = pair[1].0.since(pair[0].0);
                prop_assert!(gap >= Bursts::GAP);
                // Who is late sends what it has earned since.
                let earned = u128::from(rate) * u128::from(gap) / 8_000_000_000;
                prop_assert!(pair[1].1 <= earned.max(32_000), "{} in {gap}", pair[1].1);
            }
            // Between any two bursts: no more than the rate gives, what is made up for, and one burst.
            let most = 32_000 + u128::from(rate) * 2 / 8_000 + 1;
            for (at, &(from, _)) in bursts.iter().enumerate() {
                let mut sum = 0;
                for &(to, bytes) in &bursts[at..] {
                    sum += bytes;
                    let earned = u128::from(rate) * u128::from(to.since(from)) / 8_000_000_000;
                    prop_assert!(sum <= earned + most, "{sum} bytes in {}", to.since(from));
                }
            }
            Ok(())
        },
    );
}

#[test]
fn what_is_announced_may_leave_then_and_not_before() {
    let steps = vec((1..400 * MICROS, 0..40_000usize, 0..3u8), 1..100);
    property::check(
        500,
        (steps, 1..2 * GBIT, 1..40_000usize),
        |(steps, rate, wanted)| {
            let mut pacer = pacer(rate);
            let mut now = Time(0);
            for (wait, bytes, kind) in steps {
                now = now.after(wait);
                let allowed = pacer.allowance(now);
                match kind {
                    0 => pacer.sent(now, bytes.min(allowed)),
                    1 => pacer.owe(now, bytes / 40),
                    _ => pacer.set_rate(now, rate / 2 + bytes as u64),
                }
                let Some(then) = pacer.next_time(wanted) else {
                    prop_assert_eq!(pacer.rate(), 0);
                    continue;
                };
                let wanted = wanted.min(32_000);
                let allowance = |at| pacer.clone().allowance(at);
                prop_assert!(allowance(then) >= wanted, "{} of {wanted}", allowance(then));
                if then > now {
                    prop_assert!(allowance(Time(then.0 - 1)) < wanted);
                }
            }
            Ok(())
        },
    );
}

/// Three hours at a rate that divides nothing: to the byte what the rate gives.
#[test]
fn nothing_drifts_in_hours() {
    const RATE: u64 = 99_999_989;
    let mut pacer = pacer(RATE);
    let (mut now, mut sent) = (Time(0), 0u128);
    let end = Time(3 * 3600 * GBIT);
    while now < end {
        sent += send_all(&mut pacer, now, 7_919) as u128;
        now = pacer.next_time(32_000).expect("there is a rate");
    }
    let earned = u128::from(RATE) * u128::from(now.0) / 8_000_000_000;
    // It began with a whole burst, and has credit for one now.
    assert!(sent.abs_diff(earned) <= 32_000, "{sent} of {earned}");
}

#[test]
fn a_new_rate_counts_at_once() {
    let mut pacer = pacer(GBIT);
    let now = Time(10 * MILLIS);
    assert_eq!(pacer.allowance(now), 32_000);
    // 2 ms at 1 Gbit/s have come together besides; at 8 Mbit/s those are 2000 bytes.
    pacer.set_rate(now, 8_000_000);
    pacer.sent(now, 32_000);
    pacer.owe(now, 2_000);
    assert_eq!(pacer.next_time(1_000), Some(now.after(MILLIS)));
    pacer.set_rate(now, 80_000_000);
    assert_eq!(pacer.next_time(1_000), Some(now.after(100 * MICROS)));
    assert_eq!(pacer.next_time(2_000), Some(now.after(200 * MICROS)));
    pacer.set_rate(now, 0);
    assert_eq!(pacer.next_time(1), None);
    assert_eq!(pacer.allowance(now.after(GBIT)), 0);
}

/// The processor is away for `late`, then there for as long: how many bytes leave in a millisecond.
fn with_a_late_timer(late: u64) -> usize {
    let mut pacer = pacer(GBIT);
    let (mut now, mut sent) = (Time(0), 0);
    while now < Time(GBIT) {
        sent += send_all(&mut pacer, now, 1_000);
        now = pacer.next_time(1_000).expect("there is a rate");
        if now.0 / late % 2 == 1 {
            now = Time((now.0 / late + 1) * late);
        }
    }
    sent / 1_000
}

#[test]
fn late_timers_are_made_up_for_but_not_those_that_are_much_too_late() {
    for late in [300 * MICROS, MILLIS, 2 * MILLIS] {
        let sent = with_a_late_timer(late);
        assert!((124_700..=125_100).contains(&sent), "{sent} with {late}");
    }
    // There for half of the time, and 2 ms and a burst in 20 ms made up for.
    let sent = with_a_late_timer(10 * MILLIS);
    let expected = 125_000 * (10_000 + 2_000 + 256) / 20_000;
    assert!(sent.abs_diff(expected) < 1_000, "{sent}, not {expected}");
}

#[test]
fn control_messages_do_not_wait_and_bursts_wait_for_them() {
    let mut pacer = pacer(8_000_000);
    let now = Time(0);
    pacer.sent(now, 32_000);
    pacer.owe(now, 500);
    assert_eq!(pacer.allowance(now), 0);
    assert_eq!(pacer.next_time(1_000), Some(now.after(1_500 * MICROS)));
    // Alone they are no burst, from which the next would have to keep its distance.
    // What may be made up for, 2 ms, takes up the first 2000 bytes of them.
    let now = now.after(100 * MILLIS);
    pacer.owe(now, 2_100);
    assert_eq!(pacer.allowance(now), 31_900);
}

#[test]
fn who_has_packets_sent_again_takes_half_of_the_rate_at_most() {
    let mut pacer = pacer(80_000_000);
    let (mut now, mut sent) = (Time(0), 0);
    // 10,000 bytes in each millisecond are earned, and as many asked for again.
    for _ in 0..1_000 {
        now = now.after(MILLIS);
        pacer.repaired(now, 10_000);
        sent += send_all(&mut pacer, now, 1_000);
    }
    let half = 5_000 * 1_000;
    assert!((half..half + 64_000).contains(&sent), "{sent}");
    // What is owed then is paid for in as long again as it was allowed to gather, at most.
    for _ in 0..210 {
        now = now.after(MILLIS);
        send_all(&mut pacer, now, 1_000);
    }
    let sent: usize = (0..100)
        .map(|_| {
            now = now.after(MILLIS);
            send_all(&mut pacer, now, 1_000)
        })
        .sum();
    assert!(sent.abs_diff(1_000_000) <= 10_000, "{sent}");
}

#[test]
fn what_an_idle_member_repairs_keeps_its_next_packet_back_for_no_time() {
    let mut pacer = pacer(2_000_000);
    let now = Time(MILLIS);
    pacer.repaired(now, 358_000);
    assert!(pacer.allowance(now) >= 1_400);
    // And what is announced beside a debt may leave then.
    pacer.sent(now, 32_000);
    let next = pacer.next_time(1_400).expect("there is a rate");
    assert!(pacer.allowance(next) >= 1_400);
    pacer.forget_repairs();
    let sooner = pacer.next_time(2_800).expect("there is a rate");
    assert!(sooner.since(now) < 2 * next.since(now));
}

#[test]
fn nothing_overflows() {
    let bursts = Bursts {
        bytes: usize::MAX,
        gap: u64::MAX,
        late: u64::MAX,
    };
    let mut pacer = Pacer::new(Time(0), bursts);
    for rate in [u64::MAX, 1, u64::MAX] {
        pacer.set_rate(Time(1), rate);
        for _ in 0..20 {
            pacer.owe(Time(1), usize::MAX);
            pacer.repaired(Time(1), usize::MAX);
            pacer.sent(Time(1), usize::MAX);
        }
        assert!(pacer.next_time(usize::MAX).is_some());
        assert_eq!(pacer.allowance(Time(2)), 0);
    }
    let mut pacer = Pacer::new(Time(0), bursts);
    pacer.set_rate(Time(0), u64::MAX);
    assert!(pacer.allowance(Time(u64::MAX)) > 0);
    // A clock that goes back is one that stands still.
    assert_eq!(pacer.allowance(Time(0)), pacer.allowance(Time(u64::MAX)));
}

#[test]
fn who_gets_a_processor_only_now_and_then_keeps_its_rate() {
    let mut pacer = pacer(900_000_000);
    let (mut now, mut sent) = (Time(0), 0);
    send_all(&mut pacer, now, 1_000);
    for _ in 0..500 {
        now = now.after(2 * MILLIS);
        sent += send_all(&mut pacer, now, 1_000);
    }
    let earned = 900_000_000 / 8;
    assert!(
        sent > earned / 100 * 99 && sent <= earned + 300_000,
        "{sent}"
    );
}
