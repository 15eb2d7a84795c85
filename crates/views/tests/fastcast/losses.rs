//! Each datagram is lost once at each receiver, and so is each one that repairs that.

use super::net::{DATAGRAM_BYTES, Kind, Net, Weather};

/// One message of several packets from a member in an idle view of three, and which datagrams are lost.
fn message_with_losses(sender: usize, lost: &[u64]) -> Net {
    let mut net = Net::new(3, 64, 1, Weather::without(lost));
    net.submit(sender, 3 * DATAGRAM_BYTES / 2);
    net.run();
    let mut messages = [0; 3];
    messages[sender] = 1;
    net.check_complete(&messages);
    net.check_counters();
    net
}

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
