//! Bandwidth shares on: requirements follow the load, words and their acknowledgements get lost.

use super::net::{DATAGRAM_BYTES, Net, Weather};
use rota_core::fastcast::shares::Capacity;

/// 100 Mbit/s.
const CAPACITY: u64 = 100_000_000;

/// Members that always have something to send; answers with bits per second that each delivered.
fn saturated(members: usize, senders: usize, weather: Weather) -> (Net, u64) {
    let capacity = Some(Capacity::new(CAPACITY));
    let mut net = Net::with_capacity(members, 256, 3, weather, capacity);
    let messages = 6_000;
    for _ in 0..messages {
        for sender in 0..senders {
            net.submit(sender, DATAGRAM_BYTES - 60);
        }
    }
    let began = net.now;
    net.run_until_delivered(senders * messages);
    let took = net.now - began;
    let mut wanted = vec![0; members];
    wanted[..senders].fill(messages);
    net.check_complete(&wanted);
    let bits = (senders * messages * (DATAGRAM_BYTES - 60) * 8) as u64;
    (net, bits * 1_000_000_000 / took)
}

#[test]
fn all_that_send_share_the_links_and_use_them_up() {
    // Links take in what all others send: N senders get N / (N - 1) of one.
    for members in 2..5 {
        let (net, rate) = saturated(members, members, Weather::fine());
        assert_eq!(net.broken, None);
        let most = CAPACITY * members as u64 / (members as u64 - 1);
        println!("{members} members: {rate} of {most}");
        assert!(rate < most && rate > most / 10 * 7, "{members}: {rate}");
    }
}

#[test]
fn who_sends_alone_gets_a_whole_link() {
    let (net, rate) = saturated(3, 1, Weather::fine());
    assert_eq!(net.broken, None);
    assert!(rate < CAPACITY && rate > CAPACITY / 10 * 7, "{rate}");
}

#[test]
fn lost_words_and_acknowledgements_keep_nobody_from_its_share() {
    let weather = Weather {
        loss: 30,
        ..Weather::fine()
    };
    let (net, rate) = saturated(3, 3, weather);
    assert_eq!(net.broken, None);
    assert!(rate > CAPACITY / 2, "{rate}");
}
