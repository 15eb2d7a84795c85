//! A ring waits for the others of its process up to a bound.

use bytes::Bytes;
use rota_core::contract::{
    Delivery, Incarnation, Message, MessageId, NodeId, Process, Service, Time,
};
use rota_multiring::{Constants, Rank, RingsDelivery, RingsLearner};

use super::app::RingsApp;
use super::hub::MergedDelivery;
use crate::driver::Submitter;

/// The messages that were delivered, and whether more are taken.
#[derive(Debug)]
struct Counts {
    messages: usize,
    has_room: bool,
}

impl RingsApp for Counts {
    fn deliver(&mut self, delivery: RingsDelivery) {
        self.messages += usize::from(matches!(delivery, RingsDelivery::Message(..)));
    }

    fn has_room(&self) -> bool {
        self.has_room
    }

    fn fill(&mut self, _: Time, _: Rank, _: &mut dyn Submitter) {}
}

const ONE: Rank = Rank(1);
const TWO: Rank = Rank(2);

fn message(seq: u64) -> Delivery {
    Delivery::Message(Message {
        id: MessageId {
            process: Process {
                node: NodeId::new(1).expect("not 0"),
                incarnation: Incarnation(1),
            },
            counter: seq,
        },
        service: Service::Agreed,
        seq,
        index: 0,
        payload: Bytes::from(vec![7; 1 << 20]),
    })
}

/// The second ring says nothing: the first one's messages wait from the second round on.
#[test]
fn a_ring_of_which_8_mib_wait_hands_out_no_more() {
    let app = Counts {
        messages: 0,
        has_room: true,
    };
    let rings = [ONE, TWO].map(Constants::new);
    let mut merged = MergedDelivery::new(RingsLearner::new(rings, None), app, None);
    let mut taken = 0;
    while merged.has_room(ONE) {
        taken += 1;
        merged.deliver(ONE, message(taken));
        assert!(taken < 20, "it is bounded");
    }
    assert_eq!(merged.app.messages, 1, "its first round needs nobody");
    // One of them was delivered; of the others, with what each takes beside its payload, 8 are as many as fit.
    assert_eq!(taken, 1 + 8);
    assert!(merged.has_room(TWO), "the other one is waited for");
    merged.deliver(TWO, Delivery::Passed { next: taken });
    assert!(merged.has_room(ONE) && merged.app.messages > 6);
    merged.app.has_room = false;
    assert!(!merged.has_room(ONE) && !merged.has_room(TWO));
}
