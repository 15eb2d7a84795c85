//! FastCast over a network that loses, repeats, delays and reorders: order, uniformity, completeness,
//! bounds, and silence when all is done.

mod net;

use net::{Kind, Net, Weather};

/// One message of several packets from a member in an idle view of three, and which datagrams are lost.
fn message_with_losses(sender: usize, lost: &[u64]) -> Net {
    let mut net = Net::new(3, 64, 1, Weather::without(lost));
    net.submit(sender, 3 * net::DATAGRAM_BYTES / 2);
    net.run();
    let mut messages = [0; 3];
    messages[sender] = 1;
    net.check_complete(&messages);
    net
}

#[cfg(not(feature = "mutants"))]
#[test]
fn each_datagram_may_be_lost_at_each_receiver_and_so_may_what_repairs_it() {
    let mut lost_kinds = Vec::new();
    for sender in 0..3 {
        let fine = message_with_losses(sender, &[]);
        assert_eq!(fine.broken, None);
        for first in 0..fine.count {
            let once = message_with_losses(sender, &[first]);
            assert_eq!(once.broken, None, "sender {sender}, without {first}");
            lost_kinds.push(once.kinds[first as usize]);
            for second in first + 1..once.count {
                let twice = message_with_losses(sender, &[first, second]);
                assert_eq!(twice.broken, None, "{sender}, without {first}, {second}");
                lost_kinds.push(once.kinds[second as usize]);
            }
        }
    }
    let of = |kind| lost_kinds.iter().filter(|lost| **lost == kind).count();
    for kind in [
        Kind::Data,
        Kind::DataAgain,
        Kind::Leader,
        Kind::Ack,
        Kind::Request,
    ] {
        println!("{kind:?} lost {} times", of(kind));
        assert!(of(kind) > 0, "{kind:?} was never lost");
    }
}

fn random_run(seed: u64) -> Net {
    let mut net = Net::new(3 + (seed % 3) as usize, 32, seed, Weather::fine());
    let members = net.members.len();
    net.weather = Weather {
        loss: net.random(3) * 60,
        doubled: net.random(3) * 50,
        late: net.random(3) * 50,
        delay: (10_000, 10_001 + net.random(200_000)),
        lost: Vec::new(),
    };
    let mut messages = vec![0; members];
    for _ in 0..200 {
        let member = net.random(members as u64) as usize;
        let bytes = 1 + net.random(3 * net::DATAGRAM_BYTES as u64) as usize;
        net.submit(member, bytes);
        messages[member] += 1;
        for _ in 0..net.random(20) {
            net.step();
        }
        if net.random(20) == 0 {
            let member = net.random(members as u64) as usize;
            net.members[member].takes = !net.members[member].takes;
        }
    }
    for member in 0..members {
        net.members[member].takes = true;
        net.drain(member);
    }
    net.run();
    net.check_complete(&messages);
    net
}

#[cfg(not(feature = "mutants"))]
#[test]
fn everything_is_delivered_everywhere_in_one_order_whatever_the_weather() {
    for seed in 0..150 {
        let net = random_run(seed);
        assert_eq!(net.broken, None, "seed {seed}");
        for member in &net.members {
            let counters = member.path.counters();
            assert_eq!(counters.fast_packets_beyond_window, 0, "seed {seed}");
            assert_eq!(counters.fast_controls_invalid, 0, "seed {seed}");
            assert_eq!(counters.fast_places_contradicted, 0, "seed {seed}");
        }
    }
}
