//! The laws that `Checked` asserts of a driver's turns and of deliveries, from both sides. `contract_toy.rs` has the
//! others.

#![cfg(debug_assertions)]

use std::collections::VecDeque;

use bytes::Bytes;
use rota_core::contract::{
    Channel, Checked, Class, Configuration, ConfigurationKind, Delivery, Engine, Incarnation,
    Input, Message, MessageId, NodeId, Output, Process, RingId, Service, StartState, Status,
    SubmitError, Time, TimerReason,
};

fn me() -> Process {
    Process {
        node: NodeId::new(1).expect("not 0"),
        incarnation: Incarnation(1),
    }
}

/// An engine that has this timer and these deliveries, whatever it is told.
#[derive(Default)]
struct Fixed {
    timer: Option<Time>,
    outputs: usize,
    deliveries: VecDeque<Delivery>,
}

impl Engine for Fixed {
    fn handle(&mut self, _: Time, _: Input) {}

    fn submit(&mut self, _: Time, _: Service, _: &[u8]) -> Result<u64, SubmitError> {
        Ok(1)
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs = self.outputs.checked_sub(1)?;
        Some(Output::Originated {
            counter: 1,
            seq: 1,
            index: 0,
        })
    }

    fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    fn reading(&self) -> Class {
        Class::Data
    }

    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        Some((self.timer?, TimerReason::Other("fixed")))
    }

    fn status(&self) -> Status {
        Status::default()
    }
}

fn started(engine: Fixed) -> Checked<Fixed> {
    let mut checked = Checked::new(engine);
    checked.handle(
        Time(1),
        Input::Start(StartState {
            me: me(),
            seed: 1,
            records: Vec::new(),
            lost_some: false,
        }),
    );
    while checked.poll_output().is_some() {}
    checked
}

fn burst() -> Input {
    let bytes = Bytes::from_static(b"12345678");
    Input::Datagrams {
        class: Class::Data,
        channel: Channel(0),
        segment: bytes.len(),
        bytes,
    }
}

/// Rule 4.
mod reading {
    use super::*;

    #[test]
    fn each_burst_has_its_question() {
        let mut engine = started(Fixed::default());
        for _ in 0..3 {
            engine.handle(Time(2), burst());
            engine.reading();
        }
    }

    #[test]
    #[should_panic(expected = "nobody has asked what to read")]
    fn a_second_burst_by_an_old_answer() {
        let mut engine = started(Fixed::default());
        engine.reading();
        engine.handle(Time(2), burst());
        engine.handle(Time(2), burst());
    }
}

/// Rule 5.
mod timers {
    use super::*;

    fn timed(at: u64) -> Checked<Fixed> {
        started(Fixed {
            timer: Some(Time(at)),
            ..Fixed::default()
        })
    }

    #[test]
    fn a_timer_that_is_due_is_handed_in() {
        for now in [5, 6] {
            timed(5).handle(Time(now), Input::Timer);
        }
    }

    #[test]
    #[should_panic(expected = "no timer is due")]
    fn a_timer_before_its_time() {
        timed(5).handle(Time(4), Input::Timer);
    }

    #[test]
    #[should_panic(expected = "no timer is due")]
    fn a_timer_that_nobody_wants() {
        started(Fixed::default()).handle(Time(4), Input::Timer);
    }

    #[test]
    fn the_next_one_is_asked_for_behind_the_outputs_or_while_one_is_stuck() {
        let mut engine = timed(5);
        assert!(engine.next_timer().is_some());
        engine.get_mut().outputs = 2;
        engine.handle(Time(2), burst());
        assert!(engine.poll_output().is_some());
        assert!(engine.next_timer().is_some(), "its output is on its way");
    }

    #[test]
    #[should_panic(expected = "before the outputs were drained")]
    fn the_next_one_is_not_asked_for_before() {
        let mut engine = timed(5);
        engine.handle(Time(2), burst());
        engine.next_timer();
    }
}

/// Rule 6, and the order of deliveries.
mod deliveries {
    use super::*;

    fn message(service: Service, seq: u64, index: u16) -> Delivery {
        Delivery::Message(Message {
            id: MessageId {
                process: me(),
                counter: 1,
            },
            service,
            seq,
            index,
            payload: Bytes::new(),
        })
    }

    fn configuration() -> Delivery {
        Delivery::Configuration(Configuration {
            kind: ConfigurationKind::Regular(RingId {
                ring_seq: 1,
                rep: me().node,
                incarnation: me().incarnation,
            }),
            members: vec![me()],
        })
    }

    const fn missed(seq: u64, count: u64) -> Delivery {
        Delivery::Missed { seq, count, own: 0 }
    }

    fn take(deliveries: impl IntoIterator<Item = Delivery>) {
        let mut engine = started(Fixed {
            deliveries: deliveries.into_iter().collect(),
            ..Fixed::default()
        });
        while engine.poll_delivery().is_some() {}
    }

    #[test]
    #[should_panic(expected = "for an application that takes none")]
    fn an_application_that_hangs_is_given_nothing() {
        let mut engine = started(Fixed::default());
        engine.application_hangs(Time(2), true);
        engine.poll_delivery();
    }

    #[test]
    fn one_that_takes_again_is_given_more() {
        let mut engine = started(Fixed::default());
        engine.application_hangs(Time(2), true);
        engine.application_hangs(Time(3), false);
        assert_eq!(engine.poll_delivery(), None);
    }

    #[test]
    fn they_ascend_within_a_configuration() {
        use Service::{Agreed, Fifo, Reliable, Safe};
        take([
            message(Agreed, 1, 0),
            message(Agreed, 1, 1),
            message(Safe, 2, 0),
            // These two have no place in the one order.
            message(Reliable, 1, 5),
            message(Fifo, 1, 5),
            missed(3, 4),
            message(Agreed, 7, 0),
            Delivery::Passed { next: 8 },
            Delivery::Passed { next: 8 },
            configuration(),
            message(Agreed, 1, 0),
        ]);
    }

    #[test]
    #[should_panic(expected = "comes behind")]
    fn a_position_comes_once() {
        take([message(Service::Agreed, 1, 0), message(Service::Safe, 1, 0)]);
    }

    #[test]
    #[should_panic(expected = "comes behind")]
    fn what_was_missed_does_not_come() {
        take([missed(3, 4), message(Service::Agreed, 6, 9)]);
    }

    #[test]
    fn a_stretch_of_no_positions_takes_none() {
        take([missed(3, 0), message(Service::Agreed, 3, 0)]);
    }

    #[test]
    #[should_panic(expected = "was passed")]
    fn what_was_passed_stays_passed() {
        take([Delivery::Passed { next: 8 }, Delivery::Passed { next: 7 }]);
    }

    #[test]
    #[should_panic(expected = "before Start")]
    fn nothing_comes_before_the_start() {
        Checked::new(Fixed::default()).poll_delivery();
    }
}
