//! The datagrams of a message when nothing else goes on, and the gathering of small ones when much does.

use rota_views::fastcast::FastPlaces;

use super::net::{DATAGRAM_BYTES, HOP, Kind, Net, Weather};

fn count(net: &Net, kind: Kind) -> usize {
    net.kinds.iter().filter(|sent| **sent == kind).count()
}

#[test]
fn a_message_of_many_packets_is_everywhere_after_three_hops_and_one_acknowledgement_of_each() {
    for members in 2..6 {
        for sender in 0..members {
            let mut net = Net::new(members, 64, 1, Weather::fine());
            let began = net.now;
            net.submit(sender, 6 * DATAGRAM_BYTES);
            net.run();
            let packets = net.members[0].delivered.len();
            assert_eq!((net.broken.clone(), packets), (None, 7));
            let hops = if sender == 0 { 2 } else { 3 };
            assert_eq!(net.now, began + hops * HOP, "{sender} of {members}");
            let others = members - 1;
            assert_eq!(count(&net, Kind::Data), 7 * others);
            assert_eq!(count(&net, Kind::DataAgain), 0);
            // The leader's own packets have their places with them.
            let told = if sender == 0 { 0 } else { others };
            assert_eq!(count(&net, Kind::Leader), told);
            assert_eq!(count(&net, Kind::Ack), others * others);
        }
    }
}

#[test]
fn places_that_find_no_room_beside_the_last_packet_are_told_alone() {
    let mut alone = 0;
    for size in DATAGRAM_BYTES - 80..DATAGRAM_BYTES - 40 {
        let mut net = Net::new(3, 64, 1, Weather::fine());
        let began = net.now;
        net.submit(0, size);
        net.run();
        net.check_complete(&[1, 0, 0]);
        assert_eq!((net.broken.clone(), net.now), (None, began + 2 * HOP));
        assert!([0, 2].contains(&count(&net, Kind::Leader)), "{size} bytes");
        alone += count(&net, Kind::Leader) / 2;
    }
    // As many sizes as places take bytes: smaller ones leave room, larger ones leave a second packet.
    assert_eq!(alone, FastPlaces::BYTES);
}

#[test]
fn small_messages_gather_while_others_are_under_way() {
    let mut net = Net::new(3, 64, 1, Weather::fine());
    for _ in 0..100 {
        net.submit(1, 20);
    }
    net.run();
    net.check_complete(&[0, 100, 0]);
    assert_eq!(net.broken, None);
    // The first left at once, and the others together when it was delivered.
    let packets = net.members[0].delivered.len();
    assert_eq!(packets, 1 + (99 * 23 + 99usize.div_ceil(20)).div_ceil(460));
}

#[test]
fn under_load_acknowledgements_speak_for_many_packets() {
    let mut net = Net::new(4, 256, 1, Weather::fine());
    for _ in 0..2_000 {
        for member in 0..4 {
            net.submit(member, DATAGRAM_BYTES - 60);
        }
    }
    net.run();
    net.check_complete(&[2_000; 4]);
    net.check_counters();
    assert_eq!(net.broken, None);
    let (data, again) = (count(&net, Kind::Data), count(&net, Kind::DataAgain));
    let told = count(&net, Kind::Leader) + count(&net, Kind::Ack);
    println!("{data} packets, {again} again, {told} control datagrams");
    assert_eq!(again, 0);
    assert!(told * 10 < data, "{told} control datagrams for {data}");
}

#[test]
fn an_application_that_takes_nothing_stops_the_senders_and_they_go_on_when_it_does() {
    let mut net = Net::new(3, 32, 1, Weather::fine());
    net.members[2].takes = false;
    for _ in 0..500 {
        net.submit(0, DATAGRAM_BYTES - 60);
        net.submit(1, DATAGRAM_BYTES - 60);
    }
    for _ in 0..20_000 {
        net.step();
    }
    let delivered = |net: &Net, member: usize| net.members[member].delivered.len();
    // The windows of two senders, of which each sends no less than a quarter at once.
    let at_most = delivered(&net, 0);
    assert!((2 * 24..=2 * 32).contains(&at_most), "{at_most}");
    assert_eq!(delivered(&net, 2), 0);
    net.members[2].takes = true;
    net.drain(2);
    net.run();
    net.check_complete(&[500, 500, 0]);
    net.check_counters();
    assert_eq!(net.broken, None);
}

#[test]
fn alone_in_a_view_a_member_delivers_what_it_sends_and_sends_nothing() {
    for window in [1, 32, 256] {
        let mut net = Net::new(1, window, 1, Weather::fine());
        // More than a burst of packets, and more than a window.
        net.submit(0, 150 * DATAGRAM_BYTES);
        net.submit(0, 400 * DATAGRAM_BYTES);
        for _ in 0..200 {
            net.submit(0, 2 * DATAGRAM_BYTES);
        }
        net.run();
        net.check_complete(&[202]);
        assert_eq!((net.broken, net.count), (None, 0), "window {window}");
    }
}

#[test]
fn what_comes_before_its_view_is_installed_is_kept() {
    let mut net = Net::new(3, 64, 1, Weather::fine());
    net.restart(1);
    let began = net.now;
    net.submit(0, 3 * DATAGRAM_BYTES);
    while net.now < began + 2 * HOP && net.step() {}
    net.install(1);
    net.run();
    net.check_complete(&[1, 0, 0]);
    assert_eq!(
        (net.broken.clone(), count(&net, Kind::DataAgain)),
        (None, 0)
    );
    assert!(net.now < began + 10 * HOP, "nobody had to wait");
}
