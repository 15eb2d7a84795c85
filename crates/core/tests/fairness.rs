//! Who gets to send when all want to, and more than the global window admits.

use std::collections::VecDeque;

use bytes::Bytes;
use rota_core::contract::{
    Channel, Checked, Class, Engine, Incarnation, Input, NodeId, Output, Process, Service,
    StartState, Target, Time,
};
use rota_core::membership::RingEngine;
use rota_core::ring::RingConfig;

/// Nodes that always have something to send, on a network without loss.
struct Ring {
    engines: Vec<Checked<RingEngine>>,
    queues: Vec<VecDeque<(Class, Bytes)>>,
    now: Time,
}

impl Ring {
    fn new(nodes: u16, personal: u32, global: u32) -> Self {
        let members: Vec<_> = (1..=nodes).filter_map(NodeId::new).collect();
        let mut config = RingConfig::new(1, members.clone());
        config.personal_window = personal;
        config.accelerated_window = personal;
        config.global_window = global;
        let engine = |&node: &NodeId| {
            let me = Process {
                node,
                incarnation: Incarnation(1),
            };
            let mut engine = Checked::new(RingEngine::new(config.clone()).expect("a valid ring"));
            engine.handle(
                Time(1),
                Input::Start(StartState {
                    me,
                    seed: 0,
                    records: Vec::new(),
                }),
            );
            engine
        };
        let engines = members.iter().map(engine).collect();
        let queues = members.iter().map(|_| VecDeque::new()).collect();
        Self {
            engines,
            queues,
            now: Time(1),
        }
    }

    fn round(&mut self) {
        self.now = self.now.after(100_000);
        for at in 0..self.engines.len() {
            let engine = &mut self.engines[at];
            while engine.get().backlog() < 100 {
                engine
                    .submit(self.now, Service::Agreed, &[0; 1300])
                    .expect("there is room");
            }
            if engine.next_timer().is_some_and(|(due, _)| due <= self.now) {
                engine.handle(self.now, Input::Timer);
            }
            self.carry_out(at);
            while let Some((class, bytes)) = self.queues[at].pop_front() {
                let (channel, segment) = (Channel(0), bytes.len());
                let input = Input::Datagrams {
                    class,
                    channel,
                    bytes,
                    segment,
                };
                self.engines[at].handle(self.now, input);
                self.carry_out(at);
            }
            while self.engines[at].poll_delivery().is_some() {}
        }
    }

    fn carry_out(&mut self, at: usize) {
        while let Some(output) = self.engines[at].poll_output() {
            let Output::Send {
                class, to, burst, ..
            } = output
            else {
                continue;
            };
            for receiver in 0..self.engines.len() {
                let node = NodeId::new(receiver as u16 + 1).expect("not 0");
                if receiver != at && (to == Target::Others || to == Target::Node(node)) {
                    let copies = burst
                        .datagrams()
                        .map(|d| (class, Bytes::copy_from_slice(d)));
                    self.queues[receiver].extend(copies);
                }
            }
        }
    }

    fn sent(&self) -> Vec<u64> {
        self.engines
            .iter()
            .map(|engine| engine.get().counters().packets_sent)
            .collect()
    }
}

#[test]
fn who_fits_the_global_window_gets_the_personal_window_each_rotation() {
    let mut ring = Ring::new(4, 10, 40);
    (0..1000).for_each(|_| ring.round());
    let sent = ring.sent();
    let (least, most) = (
        sent.iter().min().expect("four"),
        sent.iter().max().expect("four"),
    );
    assert!(*least > 1000 && most - least <= 20, "{sent:?}");
}

#[test]
fn nobody_starves_when_the_global_window_is_smaller_than_all_want() {
    let mut ring = Ring::new(4, 10, 20);
    (0..1000).for_each(|_| ring.round());
    let sent = ring.sent();
    assert!(
        sent.iter().all(|&packets| packets > 100),
        "somebody starves: {sent:?}"
    );
}
