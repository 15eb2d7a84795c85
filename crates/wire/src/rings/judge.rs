//! One order at all hosts, whatever they subscribe to.
//!
//! The messages of a ring have to come in one order, and at one place, at all hosts that deliver it; and places have to
//! ascend at each host. So every host delivers a part of one order: that of the places.

use rota_core::contract::Message;
use rota_multiring::Place;

use super::host::Host;
use super::setup::RingsSetup;
use crate::meter::Order;

/// The order in which a host delivered.
#[derive(Clone, Debug)]
pub struct Orders {
    /// By ring; none of a ring that it does not deliver.
    rings: Vec<Option<Order>>,
    last: Option<Place>,
    /// Places that were not behind the one before.
    backward: u64,
}

impl Orders {
    pub fn new(setup: &RingsSetup, host: usize) -> Self {
        let mut rings = vec![None; setup.rings.len()];
        for ring in setup.subscriptions(host) {
            rings[ring] = Some(Order::new(setup.hosts));
        }
        Self {
            rings,
            last: None,
            backward: 0,
        }
    }

    /// A message of a ring is delivered, at a place.
    pub fn add(&mut self, ring: usize, place: Place, message: &Message) {
        self.backward += u64::from(self.last.is_some_and(|last| last >= place));
        self.last = Some(place);
        let sender = usize::from(message.id.process.node.get()) - 1;
        match &mut self.rings[ring] {
            Some(order) => order.add_at(sender, message.id.counter, number(place)),
            None => self.backward += 1,
        }
    }
}

/// A number that another place hardly has.
fn number(place: Place) -> u64 {
    let of = |number: u64, times: u64| (number.wrapping_add(1)).wrapping_mul(times);
    let round = of(place.round, 0x9e37_79b9_7f4a_7c15).rotate_left(31);
    let instance = of(place.instance, 0xbf58_476d_1ce4_e5b9).rotate_left(17);
    let rest = of(
        u64::from(place.index) << 16 | u64::from(place.rank.0),
        0x94d0_49bb_1331_11eb,
    );
    round ^ instance ^ rest
}

/// What came of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Judged {
    /// All hosts delivered parts of one order, without gaps.
    pub one_order: bool,
    /// Every host delivered all messages of its rings.
    pub complete: bool,
    /// A digest of the order.
    pub digest: u64,
}

/// Judges the orders of all hosts. `submitted`: messages, by ring.
pub fn judge(hosts: &[Host], submitted: &[u64]) -> Judged {
    let (mut one_order, mut complete, mut digest) = (true, true, 0_u64);
    for (ring, submitted) in submitted.iter().enumerate() {
        let orders = hosts
            .iter()
            .filter_map(|host| host.orders.rings[ring].as_ref());
        let orders: Vec<&Order> = orders.collect();
        let Some(first) = orders.first() else {
            continue;
        };
        let is_one = |order: &&Order| order.agrees(first) && order.gaps == 0;
        one_order &= orders.iter().all(is_one);
        complete &= orders.iter().all(|order| order.count() == *submitted);
        digest = digest.rotate_left(7) ^ first.digest();
    }
    one_order &= hosts.iter().all(|host| host.orders.backward == 0);
    Judged {
        one_order,
        complete,
        digest,
    }
}

#[cfg(test)]
mod tests {
    use rota_core::contract::{Incarnation, MessageId, NodeId, Process, Service};
    use rota_multiring::Rank;

    use super::*;
    use crate::rings::world::tests::setup;

    fn place(round: u64, rank: u16) -> Place {
        Place {
            round,
            rank: Rank(rank),
            instance: round + 1,
            index: 0,
        }
    }

    fn message(counter: u64) -> Message {
        let process = Process {
            node: NodeId::new(1).expect("not 0"),
            incarnation: Incarnation(1),
        };
        Message {
            id: MessageId { process, counter },
            service: Service::Safe,
            seq: 1,
            index: 0,
            payload: Vec::new().into(),
        }
    }

    /// Two hosts that delivered these messages of two rings: ring, round, counter.
    fn judged(each: [&[(usize, u64, u64)]; 2], submitted: [u64; 2]) -> (bool, bool) {
        let setup = setup(2, 2);
        let hosts = each.iter().enumerate().map(|(at, delivered)| {
            let mut host = Host::new(&setup, at);
            for (ring, round, counter) in *delivered {
                let place = place(*round, *ring as u16 + 1);
                host.orders.add(*ring, place, &message(*counter));
            }
            host
        });
        let hosts: Vec<Host> = hosts.collect();
        let judged = judge(&hosts, &submitted);
        (judged.one_order, judged.complete)
    }

    #[test]
    fn hosts_that_deliver_one_order_are_told_from_others() {
        let whole: &[_] = &[(0, 1, 1), (1, 1, 1), (0, 2, 2)];
        assert_eq!(judged([whole, whole], [2, 1]), (true, true));
        assert_eq!(judged([whole, &whole[..2]], [2, 1]), (true, false));
        // Another order of two rings goes back in places; another place is another order.
        let turned: &[_] = &[(1, 1, 1), (0, 1, 1), (0, 2, 2)];
        assert_eq!(judged([whole, turned], [2, 1]), (false, true));
        let elsewhere: &[_] = &[(0, 1, 1), (1, 1, 1), (0, 3, 2)];
        assert_eq!(judged([whole, elsewhere], [2, 1]), (false, true));
        let gap: &[_] = &[(0, 1, 1), (1, 1, 1), (0, 2, 3)];
        assert_eq!(judged([gap, gap], [2, 1]), (false, true));
        let twice: &[_] = &[(0, 1, 1), (1, 1, 1), (0, 1, 2)];
        assert_eq!(judged([twice, twice], [2, 1]), (false, true));
    }
}
