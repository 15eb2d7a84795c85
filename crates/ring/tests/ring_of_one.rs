//! A ring of one member: no token, and still the same promises.

use rota_core::contract::{
    Checked, Delivery, Engine, Incarnation, Input, NodeId, Output, Process, Service, StartState,
    SubmitError, Time,
};
use rota_ring::RingConfig;
use rota_ring::RingEngine;

const NOW: Time = Time(1);

fn lone_ring(window: u32) -> Checked<RingEngine> {
    let node = NodeId::new(1).expect("not 0");
    let mut config = RingConfig::new(1, vec![node]);
    config.windows.personal = window;
    config.windows.accelerated = 0;
    config.windows.outstanding = window;
    config.message_bytes = 1000;
    config.backlog_bytes = 150_000;
    let mut engine = Checked::new(RingEngine::new(config).expect("a valid ring"));
    let me = Process {
        node,
        incarnation: Incarnation(1),
    };
    engine.handle(
        NOW,
        Input::Start(StartState {
            me,
            seed: 1,
            records: Vec::new(),
            lost_some: false,
        }),
    );
    drain(&mut engine);
    configuration(&mut engine);
    engine
}

/// Carries out what it wants: its disk is fast, and it has nobody to send to.
fn drain(engine: &mut Checked<RingEngine>) {
    while let Some(output) = engine.poll_output() {
        match output {
            Output::Persist { id, .. } => engine.handle(NOW, Input::Persisted { id }),
            other => panic!("a ring of one does not ask for {other:?}"),
        }
    }
}

/// The ring of one is the first delivery, and nothing comes before the application has seen it.
fn configuration(engine: &mut Checked<RingEngine>) {
    match engine.poll_delivery() {
        Some(Delivery::Configuration(configuration)) => {
            assert_eq!(configuration.members.len(), 1);
        }
        other => panic!("{other:?} before the first configuration"),
    }
}

/// Submits until the backlog is full or `most` are taken; answers with how many.
fn submit(engine: &mut Checked<RingEngine>, service: Service, most: u64) -> u64 {
    for taken in 0..most {
        let result = engine.submit(NOW, service, &[taken as u8; 900]);
        drain(engine);
        match result {
            Ok(counter) => assert_eq!(counter, taken + 1),
            Err(error) => {
                assert_eq!(error, SubmitError::Full);
                return taken;
            }
        }
    }
    most
}

/// Takes all that is delivered. What was taken makes room, which the engine asks to be woken for.
fn counters(engine: &mut Checked<RingEngine>) -> Vec<u64> {
    let mut found = Vec::new();
    loop {
        while let Some(delivery) = engine.poll_delivery() {
            if let Delivery::Message(message) = delivery {
                found.push(message.id.counter);
            }
        }
        if engine.next_timer().is_none_or(|(due, _)| due > NOW) {
            return found;
        }
        engine.handle(NOW, Input::Timer);
        drain(engine);
    }
}

#[test]
fn every_service_is_delivered_at_once() {
    for service in [
        Service::Reliable,
        Service::Fifo,
        Service::Agreed,
        Service::Safe,
    ] {
        let mut engine = lone_ring(10);
        assert_eq!(submit(&mut engine, service, 5), 5);
        assert_eq!(counters(&mut engine), [1, 2, 3, 4, 5], "{service:?}");
    }
}

#[test]
fn it_sends_nothing_to_nobody() {
    let mut engine = lone_ring(10);
    engine
        .submit(NOW, Service::Safe, b"x")
        .expect("there is room");
    assert_eq!(engine.poll_output(), None);
    assert_eq!(engine.status().state, "operational: 1");
}

fn fill_then_take_all(service: Service) {
    let mut engine = lone_ring(10);
    let taken = submit(&mut engine, service, 1000);
    assert!((100..1000).contains(&taken), "bounded: {taken}");
    let delivered = counters(&mut engine);
    assert_eq!(delivered, (1..=taken).collect::<Vec<_>>(), "{service:?}");
}

#[test]
fn a_full_backlog_of_ordered_messages_is_delivered_whole() {
    for service in [Service::Causal, Service::Agreed, Service::Safe] {
        fill_then_take_all(service);
    }
}

#[test]
fn a_full_backlog_of_messages_that_may_pass_others_is_delivered_whole() {
    for service in [Service::Reliable, Service::Fifo] {
        fill_then_take_all(service);
    }
}

#[test]
fn taking_deliveries_makes_room_for_submissions() {
    for service in [
        Service::Reliable,
        Service::Fifo,
        Service::Agreed,
        Service::Safe,
    ] {
        let mut engine = lone_ring(10);
        submit(&mut engine, service, 1000);
        let _ = counters(&mut engine);
        assert!(
            engine.submit(NOW, service, &[0; 900]).is_ok(),
            "{service:?} stays full for ever"
        );
    }
}
