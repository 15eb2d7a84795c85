//! The effects of the network on bursts.

use super::*;

fn burst() -> Bytes {
    // Three datagrams, the last one shorter.
    Bytes::from((0..250_u16).map(|byte| byte as u8).collect::<Vec<u8>>())
}

fn arrivals(net: &Net, seed: u64) -> Vec<Arrival> {
    let mut network = Network::new(net.clone(), 2, seed);
    let mut queue = Queue::default();
    let bytes = burst();
    let sending = Sending {
        from: 0,
        class: Class::Data,
        bytes: &bytes,
        segment: 100,
        at: 7,
    };
    network.carry(&mut queue, &sending, 1);
    let mut found = Vec::new();
    while let Some((_, What::Arrive(slot))) = queue.pop() {
        found.extend(network.take(slot));
    }
    found
}

#[test]
fn a_burst_arrives_as_one_buffer_or_in_datagrams() {
    let mut net = Net::perfect();
    let whole = arrivals(&net, 1);
    assert_eq!((whole.len(), whole[0].segment), (1, 100));
    net.whole = 0;
    let split = arrivals(&net, 1);
    let sizes: Vec<_> = split.iter().map(|a| (a.segment, a.bytes.len())).collect();
    assert_eq!(sizes, [(100, 100), (100, 100), (50, 50)]);
}

#[test]
fn what_is_left_of_a_burst_after_losses_is_what_was_sent() {
    let mut net = Net::perfect();
    net.lanes[0].loss = 300_000;
    let mut holes = 0;
    for seed in 0..100 {
        let left = arrivals(&net, seed);
        holes += usize::from(left.len() == 2);
        let bytes = burst();
        for arrival in &left {
            let start = usize::from(arrival.bytes[0]);
            assert_eq!(arrival.bytes, bytes[start..start + arrival.bytes.len()]);
            assert!(start.is_multiple_of(100) && arrival.segment <= 100);
        }
    }
    assert!(holes > 0, "the middle one was never lost alone");
}

#[test]
fn a_damaged_datagram_does_not_open() {
    let mut rng = Rng::new(3);
    let opened = (0..10_000)
        .filter(|_| still_opens(&mut rng, &burst()))
        .count();
    // A bit turned twice is as before: once in some two thousand draws.
    assert!(opened < 20, "{opened} opened");
}
