//! Members on links of limited capacity: none takes in more than it can, and nothing is left idle.

use super::net::{DATAGRAM_BYTES, HOP, Net, Weather, process};
use bytes::Bytes;
use rota_core::contract::{Incarnation, RingId, Time};
use rota_core::shares::{Bursts, Capacity, Shares};
use rota_views::{DataPath, View};
use std::collections::BTreeMap;

const LINK: Capacity = Capacity::new(100_000_000);
const MILLIS: u64 = 1_000_000;

fn net(members: usize, seed: u64, loss: u64) -> Net {
    let weather = Weather {
        loss,
        delay: (HOP, 20 * HOP),
        ..Weather::fine()
    };
    Net::with_capacity(members, 256, seed, weather, Some(LINK))
}

fn fill(net: &mut Net, member: usize, packets: usize) {
    for _ in 0..packets {
        net.submit(member, DATAGRAM_BYTES - 60);
    }
}

/// Steps until then; nowhere is a link asked to take in more than it can, but for one burst of each
/// and what is made up for.
fn run_until(net: &mut Net, end: u64) {
    let (begun, before) = (net.now, net.loads.clone());
    let senders = net.members.len() as u64 - 1;
    let bursts = Bursts::of(LINK);
    let slack = senders * bursts.bytes as u64 + 100_000_000 / 8 * bursts.late / 1_000_000_000;
    while net.now < end && net.step() {
        let earned = 100_000_000 / 8 * (net.now - begun) / 1_000_000_000;
        for (member, load) in net.loads.iter().enumerate() {
            let load = load - before[member];
            assert!(load <= earned + slack, "{load} in {}", net.now - begun);
        }
    }
    assert_eq!(net.broken, None);
}

fn shares(net: &Net, member: usize) -> &Shares {
    net.members[member].path.shares().expect("a capacity")
}

fn rates(net: &Net) -> Vec<u64> {
    (0..net.members.len())
        .map(|member| shares(net, member).rate())
        .collect()
}

fn counters(net: &Net, member: usize) -> BTreeMap<&'static str, u64> {
    let mut counters = BTreeMap::new();
    net.members[member].path.count(&mut counters);
    counters
}

/// All want the same in the end, and nobody waits for anything.
fn check_settled(net: &Net) {
    let all = shares(net, 0).requirements();
    for member in 0..net.members.len() {
        let shares = shares(net, member);
        assert_eq!(shares.requirements(), all);
        assert_eq!(shares.ongoing_increase(), 0);
    }
}

#[test]
fn all_send_as_fast_as_links_take_it_in() {
    for members in 2..=5 {
        let mut net = net(members, 1, 0);
        net.weather = Weather::fine();
        let packets = 4_000;
        let begun = net.now;
        (0..members).for_each(|member| fill(&mut net, member, packets));
        let bits = (packets * (members - 1) * DATAGRAM_BYTES * 8) as u64;
        let least = bits * 1_000_000_000 / LINK.bits_per_second();
        run_until(&mut net, begun + least / 2);
        // Amid it the whole link is in use.
        for (member, rate) in rates(&net).into_iter().enumerate() {
            let part = LINK.bits_per_second() / (members as u64 - 1);
            assert!(rate > part * 98 / 100, "{member} of {members} at {rate}");
        }
        while net.members.iter().any(|member| !member.backlog.is_empty()) {
            let next = net.now + MILLIS;
            run_until(&mut net, next);
        }
        let took = net.now - begun;
        println!("{members}: {took} ns, at least {least}");
        assert!(
            took <= least * 11 / 10,
            "{members} took {took}, not {least}"
        );
        let end = net.now + 2_000 * MILLIS;
        run_until(&mut net, end);
        net.check_complete(&vec![packets; members]);
        net.check_counters();
        check_settled(&net);
        assert_eq!(net.broken, None);
    }
}

/// Steps until a member may send so much; answers after how long, which may be `most` nanoseconds.
fn run_until_rate(net: &mut Net, member: usize, rate: u64, most: u64) -> u64 {
    let begun = net.now;
    while rates(net)[member] < rate {
        let next = net.now + MILLIS / 10;
        run_until(net, next);
        assert!(net.now - begun <= most, "{:?}", rates(net));
    }
    net.now - begun
}

/// One of three members sends alone, then another with it: after how long it has half of a link, in nanoseconds.
fn time_to_give_half(seed: u64, loss: u64, most: u64) -> u64 {
    println!("seed {seed}, {loss} of 1000 lost");
    let mut net = net(3, seed, loss);
    fill(&mut net, 2, 4_000);
    run_until_rate(&mut net, 2, 98_000_000, most.max(50 * MILLIS));
    let end = net.now + 20 * MILLIS;
    run_until(&mut net, end);
    fill(&mut net, 1, 1_000);
    let took = run_until_rate(&mut net, 1, 49_000_000, most);
    let sum = rates(&net)[1] + rates(&net)[2];
    assert!(sum <= LINK.bits_per_second(), "{sum}");
    net.run();
    net.check_complete(&[0, 1_000, 4_000]);
    net.check_counters();
    check_settled(&net);
    assert_eq!(net.broken, None);
    let counters = counters(&net, 1);
    let count = |name: &str| counters[name];
    // Nothing is found out of links that are known.
    assert_eq!(count("fast_link_kbps"), LINK.bits_per_second() / 1_000);
    assert_eq!(count("fast_packets_lost") + count("fast_link_words"), 0);
    assert!(count("fast_increases_micros") > count("fast_increases") * HOP / 1_000);
    assert!(count("fast_increases") > 0 && (loss > 0 || count("fast_increases_slow") == 0));
    took
}

#[test]
fn one_alone_has_nearly_all_and_gives_half_to_another_within_10_ms() {
    for seed in 0..40 {
        time_to_give_half(seed, 0, 10 * MILLIS);
    }
}

/// A word or an acknowledgement that is lost is said again after a time-out, after each time in vain one of twice the length,
/// up to 200 ms.
#[test]
fn where_packets_get_lost_three_of_four_do_so_and_all_within_the_longest_time_out() {
    for loss in [10, 30] {
        let took = (0..60).map(|seed| time_to_give_half(seed, loss, 200 * MILLIS));
        let mut took: Vec<u64> = took.collect();
        took.sort_unstable();
        println!("{took:?}");
        assert!(took[44] <= 10 * MILLIS, "{took:?}");
    }
}

#[test]
fn who_has_no_share_sends_a_message_now_and_then_at_once() {
    let mut net = net(4, 1, 0);
    net.weather = Weather::fine();
    for message in 1..=20 {
        let began = net.now;
        net.submit(1, 6 * DATAGRAM_BYTES);
        let lacks = |member: &super::net::Member| member.delivered.len() < 7 * message;
        while net.members.iter().any(lacks) {
            net.step();
        }
        assert_eq!(net.now, began + 3 * HOP, "message {message}");
        net.run();
        net.now += 80 * MILLIS;
    }
    net.check_complete(&[0, 20, 0, 0]);
    assert_eq!(rates(&net), rates_of_idle(4));
    assert_eq!(net.broken, None);
}

/// Nobody has asked for anything.
fn rates_of_idle(members: usize) -> Vec<u64> {
    vec![LINK.reserved(members); members]
}

/// Two of three go on in a new view with what they required, also if a request was under way.
#[test]
fn a_new_view_begins_with_what_was_in_force() {
    for steps in (0..4_000).step_by(97) {
        let mut net = net(3, steps as u64, 10);
        (0..3).for_each(|member| fill(&mut net, member, 3_000));
        for _ in 0..steps {
            net.step();
        }
        let members = vec![process(0), process(2)];
        let ring = RingId {
            ring_seq: 9,
            rep: process(0).node,
            incarnation: Incarnation(1),
        };
        let now = Time(net.now);
        net.members.iter_mut().for_each(|member| {
            member.path.freeze(now);
        });
        assert_eq!(rates(&net), [0; 3]);
        let note = |member: usize| Bytes::from(net.members[member].path.note());
        let notes = [note(0), note(2)];
        net.members[1].alive = false;
        for (me, member) in [(0, 0), (1, 2)] {
            let members = members.clone();
            let path = &mut net.members[member].path;
            path.install(now, &View { ring, members, me }, &notes);
        }
        let required = shares(&net, 0).requirements().to_vec();
        assert_eq!(shares(&net, 2).requirements(), required);
        assert!(rates(&net)[0] <= LINK.bits_per_second() && rates(&net)[1] == 0);
    }
}

/// While links lose packets all go by less, the same for all; when they do not any more, by all there is. Nothing is
/// missing or out of order for it.
#[test]
fn lossy_links_are_given_less_until_they_lose_nothing() {
    for seed in 0..4 {
        let lossy = Weather {
            loss: 30,
            ..Weather::fine()
        };
        let mut net = Net::yielding(3, seed, lossy, LINK);
        (0..3).for_each(|member| fill(&mut net, member, 8_000));
        let end = net.now + 400 * MILLIS;
        run_until(&mut net, end);
        let capacities = |net: &Net| -> Vec<u64> {
            let of = |member| shares(net, member).capacity().bits_per_second();
            (0..3).map(of).collect()
        };
        let during = capacities(&net);
        let all = LINK.bits_per_second();
        for (member, of) in during.iter().enumerate() {
            let count = counters(&net, member);
            assert!(count["fast_packets_lost"] > 0 && count["fast_link_lowered"] > 0);
            assert!(count["fast_link_words"] > 0, "{count:?}");
            assert_eq!(count["fast_slowest_link_kbps"], of / 1_000);
            assert!(count["fast_link_kbps"] * 1_000 < all && count["fast_rate_kbps"] > 0);
        }
        assert!(during.iter().all(|&of| of < all * 3 / 4), "{during:?}");
        net.weather = Weather::fine();
        while net.members.iter().any(|member| !member.backlog.is_empty()) {
            let next = net.now + 10 * MILLIS;
            run_until(&mut net, next);
        }
        // Little comes now; it takes its time.
        let end = net.now + 60_000 * MILLIS;
        run_until(&mut net, end);
        println!("{during:?}, then {:?}", capacities(&net));
        assert!(capacities(&net).iter().all(|&of| of > all * 9 / 10));
        let after = counters(&net, 0);
        assert_eq!(after["fast_slowest_link_kbps"], capacities(&net)[0] / 1_000);
        net.check_complete(&[8_000; 3]);
        net.check_counters();
        check_settled(&net);
    }
}

/// Who does not know what links take in says so; without shares there is nothing to say.
#[test]
fn of_links_that_nobody_has_measured_nothing_is_said() {
    let net = Net::yielding(3, 1, Weather::fine(), Capacity::UNKNOWN);
    let counters = counters(&net, 0);
    assert_eq!(counters["fast_link_kbps"], 0);
    assert_eq!(counters["fast_slowest_link_kbps"], 0);
    assert!(counters["fast_rate_kbps"] > 1_000_000);
    let mut without = BTreeMap::new();
    let net = Net::with_capacity(3, 256, 1, Weather::fine(), None);
    net.members[0].path.count(&mut without);
    assert!(!without.contains_key("fast_link_kbps"));
    assert_eq!(without["fast_packets_lost"], 0);
}
