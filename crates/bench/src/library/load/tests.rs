use rota_core::contract::{Incarnation, Message, MessageId, NodeId, Process};
use rota_node::NodeConfig;

use super::*;
use crate::options::{Mode, ServiceName};

const SPAN: Span = Span {
    start: 1000,
    from: 2000,
    until: 9000,
};

/// Takes so many messages, then no more.
struct Room {
    room: usize,
    taken: Vec<Vec<u8>>,
}

impl Submitter for Room {
    fn submit(&mut self, _: Time, _: Service, payload: &[u8]) -> Result<u64, SubmitError> {
        if self.taken.len() == self.room {
            return Err(SubmitError::Full);
        }
        self.taken.push(payload.to_vec());
        Ok(self.taken.len() as u64)
    }
}

fn delivery(node: u16, payload: &[u8]) -> Delivery {
    let process = Process {
        node: NodeId::new(node).expect("not 0"),
        incarnation: Incarnation(0),
    };
    Delivery::Message(Message {
        id: MessageId {
            process,
            counter: 1,
        },
        service: Service::Agreed,
        seq: 0,
        index: 0,
        payload: payload.to_vec().into(),
    })
}

fn closed_loop(most: u32) -> (LoadApp, Room) {
    let task = Task {
        node: 1,
        config: NodeConfig::loopback(3, 20_000),
        mode: Mode::Library,
        service: ServiceName::Agreed,
        size: 16,
        plan: Plan::UnderWay(most),
        warm_up_ns: 0,
        duration_ns: 1,
        drain_ns: 0,
        trials: false,
        series_ns: None,
        waste_ns: 0,
        rings: None,
        running: None,
    };
    let mut app = LoadApp::new(&task, task.plan.clone());
    app.begin(SPAN);
    let room = Room {
        room: 100,
        taken: Vec::new(),
    };
    (app, room)
}

#[test]
fn a_closed_loop_keeps_its_messages_under_way_and_no_more() {
    let (mut app, mut room) = closed_loop(3);
    app.fill(Time(999), &mut room);
    assert_eq!(room.taken.len(), 0, "the start is still to come");
    app.fill(Time(1000), &mut room);
    app.fill(Time(1100), &mut room);
    assert_eq!(room.taken.len(), 3);
    let (own, other) = (room.taken[0].clone(), delivery(2, &[0; 16]));
    app.deliver(other);
    app.fill(Time(1200), &mut room);
    assert_eq!(room.taken.len(), 3, "one of somebody else's makes no room");
    app.deliver(delivery(1, &own));
    app.fill(Time(1300), &mut room);
    assert_eq!(room.taken.len(), 4);
    assert_eq!(room.taken[3][..8], 1300_u64.to_le_bytes());
    app.deliver(delivery(1, &own));
    app.fill(Time(SPAN.until), &mut room);
    assert_eq!(room.taken.len(), 4, "it is over");
}

/// The last delivery may come after the last chance to submit, and the loop would sleep on it.
#[test]
fn a_closed_loop_does_not_sleep_on_a_delivery_of_its_own() {
    let (mut app, mut room) = closed_loop(1);
    app.fill(Time(1000), &mut room);
    assert!(app.may_sleep());
    assert_eq!(app.next_wake(), None);
    app.deliver(delivery(2, &[0; 16]));
    assert!(app.may_sleep());
    let own = room.taken[0].clone();
    app.deliver(delivery(1, &own));
    assert!(!app.may_sleep());
    app.fill(Time(1100), &mut room);
    assert!(app.may_sleep());
}

#[test]
fn a_closed_loop_waits_where_a_ring_takes_no_more() {
    let (mut app, mut room) = closed_loop(5);
    room.room = 2;
    app.fill(Time(1000), &mut room);
    assert_eq!((room.taken.len(), app.submitted), (2, 2));
    room.room = 100;
    app.fill(Time(1100), &mut room);
    assert_eq!(room.taken.len(), 5);
}
