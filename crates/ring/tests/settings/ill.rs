//! Rings with an ill member, or with one too many: the others go on.

use rota_core::contract::{Engine, Service};
use rota_ring::wire::Packet;

use crate::net::{Fate, Kind, MILLI, Net, SECOND, config};

/// The ring breaks, as all tokens are lost for so long.
fn break_ring(net: &mut Net) {
    net.rule(|flying| match flying.kind {
        crate::net::Kind::Token | crate::net::Kind::Hurry => crate::net::Fate::Lose,
        _ => crate::net::Fate::Pass,
    });
    let loss = net.timers().token_loss;
    net.run_for(2 * loss);
    net.no_rule();
}

/// Whether `at` is on a ring of just these.
fn is_on(net: &Net, at: usize, members: &[usize]) -> bool {
    net.phase(at) == "operational" && net.members(at) == members
}

/// An application takes nothing while the ring changes again and again: the others have a ring all the same, and it comes back
/// when its application does.
pub fn an_application_that_hangs_keeps_nobody_from_a_ring() {
    for hung in 0..3 {
        let mut net = Net::formed(3);
        net.hosts[hung].stalled = true;
        for _ in 0..40 {
            break_ring(&mut net);
            let others: Vec<usize> = (0..3).filter(|at| *at != hung).collect();
            let within = net.converges_within();
            let come = net.runs_until(within, |net| {
                let whole = others.iter().all(|&at| is_on(net, at, &[0, 1, 2]));
                whole || others.iter().all(|&at| is_on(net, at, &others))
            });
            assert!(come, "{hung} hangs: {}", net.states());
            net.submit(others[0], Service::Agreed, b"goes on");
        }
        let members = net.members((hung + 1) % 3);
        assert!(!members.contains(&hung), "{hung} hangs: {members:?}");
        net.rest();
    }
}

/// An application takes nothing any more, and nothing else is wrong: the others wait for it, and then no longer. One that takes a
/// little now and then is waited for.
pub fn an_application_that_hangs_is_not_waited_for() {
    for hung in 0..3 {
        let mut net = Net::formed(3);
        let others: Vec<usize> = (0..3).filter(|at| *at != hung).collect();
        let loss = net.timers().token_loss;
        net.hosts[hung].stalled = true;
        let all = |net: &mut Net, token_losses: u64| {
            for _ in 0..token_losses {
                for at in &others {
                    while net.engine(*at).backlog() < 500 {
                        net.submit(*at, Service::Agreed, &[3; 1200]);
                    }
                }
                net.run_for(loss);
            }
        };
        all(&mut net, 12);
        assert!(is_on(&net, others[0], &[0, 1, 2]), "{}", net.states());
        all(&mut net, 12);
        assert!(is_on(&net, others[0], &others), "{}", net.states());
        let before = net.hosts[others[0]].app.got.len();
        all(&mut net, 2);
        assert!(net.hosts[others[0]].app.got.len() > before + 100);
        assert_eq!(net.counters(hung).self_hung, 1, "it does not say so");
        net.hosts[hung].stalled = false;
        net.rest();
    }
}

/// As many as a ring may have are on one: one more leaves it as it is, whatever its number.
pub fn one_too_many_leaves_the_ring_as_it_is() {
    let mut net = Net::with(config(128));
    net.come_together();
    let before = net.ring(0);
    let more = net.add();
    net.run_for(3 * net.timers().consensus);
    for at in 0..128 {
        assert!(
            net.ring(at) == before && net.phase(at) == "operational",
            "{at}"
        );
    }
    assert!(is_on(&net, more, &[more]), "{}", net.states());
    net.check(false);
}

/// More than a ring may have gather at once: the first of them form one.
pub fn of_too_many_the_first_form_a_ring() {
    let mut net = Net::with(config(128));
    let more = net.add();
    let first: Vec<usize> = (0..128).collect();
    net.run_until("a ring of 128", |net| is_on(net, 0, &first));
    net.run_for(2 * net.timers().consensus);
    assert!(first.iter().all(|&at| is_on(&net, at, &first)));
    assert!(!net.members(more).contains(&0));
    net.check(false);
}

/// In how many of the looks, in percent, the others are together on one ring, from ten seconds on, where what `ill` sends of data reaches
/// nobody, and all send.
fn together_beside_a_mute_member(ill: usize, nodes: usize, every: u64) -> (u64, Net) {
    let mut net = Net::formed(nodes);
    net.rule(move |flying| match flying.kind {
        Kind::Data if flying.from == ill => Fate::Lose,
        _ => Fate::Pass,
    });
    let (mut looks, mut together, mut sent) = (0, 0, 0);
    let begun = net.now;
    while net.now < begun.after(120 * SECOND) {
        for at in 0..nodes {
            if net.engine(at).backlog() < 50 {
                net.submit(at, Service::Agreed, &[at as u8; 200]);
                sent += 1;
            }
        }
        net.run_for(every);
        if net.now > begun.after(10 * SECOND) {
            let others: Vec<usize> = (0..nodes).filter(|at| *at != ill).collect();
            let first = net.ring(others[0]);
            let whole = |at: &usize| net.phase(*at) == "operational" && net.ring(*at) == first;
            together += u64::from(others.iter().all(whole));
            looks += 1;
        }
    }
    assert!(sent > 100);
    (100 * together / looks, net)
}

/// Whether all but one are together on one ring.
fn others_are_together(net: &Net, ill: usize) -> bool {
    let mut others = (0..net.hosts.len()).filter(|at| *at != ill);
    let ring = net.ring(usize::from(ill == 0));
    others.all(|at| net.phase(at) == "operational" && net.ring(at) == ring)
}

/// In how many of the looks, in percent, the others are together, from ten seconds on, where one stands still for so many of every
/// so many milliseconds. What it reads and does first then varies.
fn together_beside_one_that_stands_still(
    ill: usize,
    nodes: usize,
    (still, every): (u64, u64),
) -> u64 {
    const LOOK: u64 = 50;
    let mut net = Net::formed(nodes);
    let (mut looks, mut together, mut is_named) = (0, 0, false);
    let name = format!("node {} is left alone", ill + 1);
    for look in 0..100_000 / LOOK {
        let (at, period) = (look * LOOK % every, look * LOOK / every);
        if at == 0 {
            net.pause(ill);
        } else if at == still {
            net.resume(ill, period.is_multiple_of(2));
        }
        net.run_for(LOOK * MILLI);
        if look * LOOK > 10_000 {
            together += u64::from(others_are_together(&net, ill));
            looks += 1;
            let notes = net.engine(usize::from(ill == 0)).status().notes;
            is_named |= notes.iter().any(|note| note.starts_with(&name));
        }
    }
    assert!(is_named, "nobody is told who stands still");
    net.resume(ill, false);
    // Nobody is left alone for longer.
    net.run_for(65 * net.timers().token_loss);
    net.rest();
    100 * together / looks
}

/// A member that stands still again and again, for longer than a token may be lost, is left alone: the others have a ring, and it
/// has one with them again when it is over it.
pub fn who_stands_still_again_and_again_keeps_nobody_from_a_ring() {
    for nodes in [3, 8] {
        for ill in [0, nodes / 2, nodes - 1] {
            for pause in [(800, 1500), (2500, 6000), (600, 10_000)] {
                let percent = together_beside_one_that_stands_still(ill, nodes, pause);
                assert!(percent >= 95, "{ill} of {nodes}, {pause:?}: {percent} %");
            }
        }
    }
}

/// The same where it is back before it has been given up: nobody waits for it for as long as for others.
pub fn who_is_always_late_is_not_waited_for() {
    for ill in 0..3 {
        let percent = together_beside_one_that_stands_still(ill, 3, (500, 3000));
        assert!(percent >= 95, "{ill}: {percent} %");
    }
}

/// A process that crashes as soon as it is started takes the others' ring apart a few times, and then ever less often; when it is well it is
/// one of them again.
pub fn who_dies_again_and_again_is_taken_in_less_and_less_often() {
    for nodes in [3, 8] {
        for ill in [0, nodes - 1] {
            let mut net = Net::formed(nodes);
            let other = (ill + 1) % nodes;
            let lives = |net: &mut Net, count: u64| {
                let before = net.counters(other).configurations;
                for _ in 0..count {
                    net.kill(ill);
                    net.run_for(300 * MILLI);
                    net.restart(ill);
                    net.run_for(700 * MILLI);
                }
                net.counters(other).configurations - before
            };
            // Otherwise each life costs two rings.
            let first = lives(&mut net, 10);
            let then = lives(&mut net, 20);
            assert!(
                first >= 4,
                "{ill} of {nodes}: {first} in the first ten seconds"
            );
            assert!(then <= 8, "{ill} of {nodes}: {then} in the next twenty");
            net.come_together();
            net.rest();
        }
    }
}

/// One stood still until the others had given it up, and reads then what they said while they did: that keeps them together.
pub fn who_comes_back_late_takes_nobody_apart() {
    for ill in 0..3 {
        for timers_first in [true, false] {
            for millis in [650, 700, 750, 1000, 3000] {
                let mut net = Net::formed(3);
                net.pause(ill);
                net.run_for(millis * MILLI);
                let was = others_are_together(&net, ill);
                net.resume(ill, timers_first);
                let within = net.timers().token_loss / 4;
                let back = net.runs_until(within, |net| is_on(net, ill, &[0, 1, 2]));
                assert!(back || !was, "{ill}, {millis} ms: {}", net.states());
                net.rest();
            }
        }
    }
}

/// A member whose data reaches nobody, though its tokens do, leaves, and lets the others go on.
pub fn a_mute_member_leaves_the_others_in_peace() {
    for (nodes, every) in [(3, 20 * MILLI), (3, 2 * MILLI), (8, 20 * MILLI)] {
        for ill in [0, nodes / 2, nodes - 1] {
            let (percent, net) = together_beside_a_mute_member(ill, nodes, every);
            assert!(
                percent >= 95,
                "{ill} of {nodes}, each {} ms: {percent} %: {}",
                every / MILLI,
                net.states()
            );
            assert!(net.counters(ill).self_mute > 0, "it does not say so");
            // It tries again by itself.
            let mut net = net;
            net.heal();
            net.run_for(140 * net.timers().token_loss);
            net.rest();
        }
    }
}

/// Data of one member does not reach another one: a third, which has it, sends it, and the ring lasts.
pub fn who_is_not_heard_by_one_is_heard_through_others() {
    for (from, to) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        let mut net = Net::formed(3);
        let before = net.ring(0);
        net.rule(move |flying| match flying.kind {
            Kind::Data if (flying.from, flying.to) == (from, to) => Fate::Lose,
            _ => Fate::Pass,
        });
        for _ in 0..200 {
            net.submit(from, Service::Safe, &[1; 300]);
            net.run_for(50 * MILLI);
        }
        for at in 0..3 {
            assert_eq!(net.ring(at), before, "{from} to {to}: {}", net.states());
            let got = net.hosts[at].app.got.len();
            assert!(got >= 195, "{from} to {to}: {at} has {got}");
        }
        net.rest();
    }
}

/// The same where much is sent: all that it lacks comes through others at once, and not one packet in seven rotations.
pub fn who_is_not_heard_by_one_keeps_the_ring_busy() {
    for (from, to) in [(0, 1), (1, 0), (2, 1)] {
        let mut net = Net::formed(3);
        net.rule(move |flying| match flying.kind {
            Kind::Data if (flying.from, flying.to) == (from, to) => Fate::Lose,
            _ => Fate::Pass,
        });
        // It takes a while to be found out.
        for _ in 0..20 {
            net.submit(from, Service::Agreed, &[1; 300]);
            net.run_for(5 * MILLI);
        }
        net.run_for(50 * MILLI);
        let had = net.hosts[to].app.got.len();
        let before = (
            net.counters(from).token_rotations,
            net.counters(from).retransmissions,
        );
        let sent = 2000;
        for _ in 0..sent {
            for _ in 0..20 {
                net.submit(from, Service::Agreed, &[1; 1300]);
            }
            net.run_for(MILLI);
            if net.hosts[to].app.got.len() >= had + sent {
                break;
            }
        }
        let rotations = net.counters(from).token_rotations - before.0;
        let again = net.counters(from).retransmissions - before.1;
        let got = net.hosts[to].app.got.len() - had;
        println!("{from} to {to}: {got} in {rotations} rotations, {again} sent again in vain");
        assert!(got >= sent, "{from} to {to}: {got}");
        assert!(
            again <= 2 * sent as u64,
            "{from} to {to}: {again} sent again in vain"
        );
    }
}

/// A packet that is sent again keeps its stamp, which is newer than all others once the token has made so many hops: it is no sign that the
/// last token has arrived, and that is sent again.
pub fn an_old_packet_is_no_sign_of_the_token() {
    let mut net = Net::formed(3);
    net.keeps_log = true;
    net.submit(0, Service::Agreed, b"old");
    net.run_for(5 * MILLI);
    let old = net.log.iter().find_map(|flying| match &*flying.packet {
        Packet::Data(data) => Some(data.clone()),
        _ => None,
    });
    let mut old = old.expect("it was sent");
    old.round = old.round.wrapping_add(0x7000);
    let ring = net.ring(1);
    net.submit(1, Service::Agreed, b"busy");
    assert!(net.run_to(|flying| flying.kind == Kind::Token && flying.to == 2));
    net.lose_next();
    net.inject(0, 1, &Packet::Data(old), 0);
    net.run_for(2 * net.timers().token_loss);
    assert_eq!(net.ring(1), ring, "the token was given up");
    net.rest();
}

/// Who leaves while a ring is being formed is not held to have kept it from forming when it comes back.
pub fn who_leaves_of_its_own_will_is_not_left_alone() {
    let mut net = Net::formed(3);
    for _ in 0..4 {
        net.rule(|flying| match flying.kind {
            Kind::Token | Kind::Hurry | Kind::Commit => Fate::Lose,
            _ => Fate::Pass,
        });
        net.run_until("it has broken", |net| {
            (0..3).all(|at| net.phase(at) == "gathering")
        });
        net.run_for(100 * MILLI);
        let now = net.now;
        net.hosts[2].engine.leave(now);
        net.farewell(2);
        net.run_for(10 * MILLI);
        net.no_rule();
        net.run_until("the others have a ring", |net| {
            (0..2).all(|at| is_on(net, at, &[0, 1]))
        });
        net.restart(2);
        net.come_together();
    }
    for at in 0..2 {
        let counted = net.counters(at);
        assert_eq!(
            (counted.back_offs, counted.members_unsteady),
            (0, 0),
            "node {at}"
        );
    }
    net.rest();
}
