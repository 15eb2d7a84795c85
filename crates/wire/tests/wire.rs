//! Whole runs: what any of them must be, and what arithmetic says of some.

use rota_core::contract::Service;
use rota_model::{Load as ModelLoad, Protocol as ModelProtocol, Ring};
use rota_ring::{PriorityMethod, Protocol};
use rota_wire::{
    Costs, DiskPlan, EnginePlan, Generated, Interface, LinkPlan, Load, LossPlan, RingPlan, Run,
    Setup, Span, WirePlan, run, run_taped,
};

const MILLIS: u64 = 1_000_000;

fn costs(send: u64, receive: u64) -> Costs {
    Costs {
        interface: Interface::Single,
        send,
        receive,
        call: send.min(receive) / 2,
        send_byte: 0,
        receive_byte: 0,
        token: 2_000,
        submit: 0,
        deliver: 0,
        deliver_byte: 0,
        wake: 0,
        client: 0,
    }
}

fn ring(protocol: Protocol, personal_window: u32, accelerated_window: u32) -> EnginePlan {
    EnginePlan::Ring(RingPlan {
        protocol,
        personal_window,
        accelerated_window,
        method: PriorityMethod::First,
        datagram_bytes: 1472,
    })
}

fn setup(engine: EnginePlan, load: Load) -> Setup {
    Setup {
        nodes: 8,
        wire: WirePlan {
            rate: 1_000_000_000,
            path: 60_000,
            switch: 5_000,
            cut_through: false,
            port_bytes: 1 << 20,
            pool_bytes: None,
            card_bytes: 1 << 20,
            mtu: 1500,
            socket_bytes: 4 << 20,
            far: Vec::new(),
        },
        costs: costs(2_000, 2_000),
        engine,
        load,
        senders: 8,
        message_bytes: 1350,
        service: Service::Agreed,
        loss: None,
        links: LinkPlan::default(),
        disk: DiskPlan::MEMORY,
        span: Span {
            warm_up: 30 * MILLIS,
            measured: 100 * MILLIS,
        },
        seed: 1,
    }
}

/// Runs it, and checks what holds of all runs.
fn sound(setup: &Setup) -> Run {
    let run = run(setup);
    assert!(run.one_order, "{run:?}");
    assert!(run.complete, "{run:?}");
    assert_eq!(run.disturbed, 0, "{run:?}");
    assert!(run.deliveries > 0, "{run:?}");
    run
}

#[track_caller]
fn near(ours: f64, expected: f64, share: f64) {
    let off = ours / expected - 1.0;
    assert!(off.abs() <= share, "{ours} where {expected} was expected");
}

#[test]
fn a_rate_that_the_ring_bears_is_delivered() {
    for protocol in [Protocol::Original, Protocol::Accelerated] {
        for load in [Load::Rate(300_000_000), Load::Poisson(300_000_000)] {
            let run = sound(&setup(ring(protocol, 30, 20), load));
            near(run.goodput_mbps, 300.0, 0.03);
            near(run.received_mbps, 300.0 * 7.0 / 8.0, 0.03);
            assert_eq!(run.traffic.resent + run.traffic.dropped, 0, "{run:?}");
        }
    }
}

#[test]
fn one_setup_is_one_run_and_another_seed_another() {
    let mut setup = setup(ring(Protocol::Accelerated, 20, 20), Load::Rate(400_000_000));
    let first = sound(&setup);
    assert_eq!(first, sound(&setup));
    setup.seed = 2;
    assert_ne!(first.digest, sound(&setup).digest);
}

#[test]
fn no_ring_delivers_more_than_its_ports_carry_and_the_accelerated_one_delivers_more() {
    let most = |protocol, accelerated| {
        let engine = ring(protocol, 30, accelerated);
        sound(&setup(engine, Load::Visit(Generated::AtReceipt))).goodput_mbps
    };
    let (original, half, all) = (
        most(Protocol::Original, 0),
        most(Protocol::Accelerated, 15),
        most(Protocol::Accelerated, 30),
    );
    // 1350 bytes of payload in 1466 on the wire at most, and one of eight messages does not pass a port.
    let bound = 1000.0 * 1350.0 / 1456.0 * 8.0 / 7.0;
    assert!(
        original < half && half < all && all < bound,
        "{original} {half} {all} of {bound}"
    );
    assert!(all > 0.85 * bound, "{all} of {bound}");
}

/// Where a processor costs next to nothing and little is sent, the thesis's model is exact: P is the way of the token.
#[test]
fn delays_at_a_light_load_are_those_of_the_model() {
    let mut light = setup(ring(Protocol::Original, 30, 0), Load::Poisson(4_000_000));
    light.costs = costs(100, 100);
    light.costs.token = 200;
    light.wire.path = 100_000;
    light.span.measured = 2_000 * MILLIS;
    let run = sound(&light);
    let rotation_us = 2_000_000.0 * 8.0 / run.traffic.visits as f64;
    let model = Ring {
        nodes: 8,
        personal_window: 30,
        accelerated_window: 0,
        message_bytes: 1350,
        burst_us: 0.0,
        hop_us: rotation_us / 8.0,
    };
    let of = |service, load| match service {
        Service::Safe => rota_model::safe(&model, ModelProtocol::Original, load).average,
        _ => rota_model::agreed(&model, ModelProtocol::Original, load).average,
    };
    near(run.delays.mean, of(Service::Agreed, ModelLoad::Light), 0.05);
    light.service = Service::Safe;
    near(
        sound(&light).delays.mean,
        of(Service::Safe, ModelLoad::Light),
        0.05,
    );
}

#[test]
fn messages_made_after_the_release_are_a_rotation_older() {
    let delay = |generated| {
        let engine = ring(Protocol::Original, 20, 0);
        sound(&setup(engine, Load::Visit(generated)))
    };
    let (receipt, release) = (delay(Generated::AtReceipt), delay(Generated::AfterRelease));
    let rotation = 100_000.0 * 8.0 / receipt.traffic.visits as f64;
    let older = release.delays.mean - receipt.delays.mean;
    // The token is away for a rotation but for the time of the visit.
    assert!(
        older > 0.8 * rotation && older < rotation,
        "{older} of {rotation}"
    );
}

#[test]
fn what_is_lost_is_sent_again() {
    for (distance, protocol) in [(None, Protocol::Original), (Some(2), Protocol::Accelerated)] {
        let mut lossy = setup(ring(protocol, 30, 15), Load::Rate(140_000_000));
        lossy.loss = Some(LossPlan {
            ppm: 100_000,
            distance,
        });
        lossy.span.measured = 300 * MILLIS;
        let run = sound(&lossy);
        assert!(
            run.traffic.lost > 100 && run.traffic.resent > 100,
            "{run:?}"
        );
        near(run.goodput_mbps, 140.0, 0.05);
    }
}

#[test]
fn a_port_without_room_loses_packets_and_the_ring_goes_on() {
    let mut tight = setup(
        ring(Protocol::Accelerated, 60, 60),
        Load::Visit(Generated::AtReceipt),
    );
    tight.wire.port_bytes = 100_000;
    let run = sound(&tight);
    assert!(run.traffic.dropped > 0 && run.traffic.resent > 0, "{run:?}");
    assert!(run.traffic.longest_queue <= 100_000, "{run:?}");
}

#[test]
fn large_messages_go_in_packets_or_in_fragments() {
    let mut cut = setup(ring(Protocol::Accelerated, 20, 20), Load::Full);
    cut.message_bytes = 100_000;
    let cut_mbps = sound(&cut).goodput_mbps;
    let mut fragments = cut.clone();
    fragments.message_bytes = 8850;
    if let EnginePlan::Ring(plan) = &mut fragments.engine {
        plan.datagram_bytes = 9000;
    }
    for mbps in [cut_mbps, sound(&fragments).goodput_mbps] {
        assert!(mbps > 900.0 && mbps < 8.0 / 7.0 * 1000.0, "{mbps}");
    }
}

#[test]
fn bursts_cost_less_processor_than_datagrams_one_by_one() {
    let mbps = |interface| {
        let load = Load::Visit(Generated::AtReceipt);
        let mut setup = setup(ring(Protocol::Accelerated, 40, 40), load);
        setup.wire.rate = 10_000_000_000;
        setup.wire.path = 20_000;
        setup.costs.interface = interface;
        sound(&setup).goodput_mbps
    };
    let (single, bursts) = (mbps(Interface::Single), mbps(Interface::Bursts));
    assert!(bursts > 1.1 * single, "{bursts} and {single}");
}

#[test]
fn the_other_engines_order_too() {
    let fast = EnginePlan::FastCast {
        datagram_bytes: 1472,
        shares: true,
    };
    let paxos = |multicast| EnginePlan::Paxos {
        acceptors: 3,
        multicast,
    };
    for engine in [fast, EnginePlan::Lcr, paxos(None), paxos(Some(1472))] {
        let mut setup = setup(engine, Load::Rate(200_000_000));
        (setup.message_bytes, setup.service) = (10_000, Service::Safe);
        setup.links.call = 2_000;
        let run = sound(&setup);
        near(run.goodput_mbps, 200.0, 0.05);
        assert!(run.delays.at_sender > 0.0, "{run:?}");
    }
}

#[test]
fn a_closed_loop_goes_on_and_distance_slows_it() {
    let rate = |far: u64| {
        let mut setup = setup(EnginePlan::Lcr, Load::UnderWay(1));
        (setup.nodes, setup.senders, setup.service) = (3, 1, Service::Safe);
        setup.wire.far = vec![vec![far; 3]; 3];
        sound(&setup)
    };
    let (near, far) = (rate(0), rate(500_000));
    assert!(far.delays.mean > near.delays.mean + 1_000.0, "{far:?}");
    assert!(far.deliveries < near.deliveries);
}

/// What a sender is told of the room of a link is on its way while it sends: the engine was told of room that it had
/// used by then, and sent more than the link takes.
#[test]
fn links_with_little_room_are_not_overrun() {
    let paxos = EnginePlan::Paxos {
        acceptors: 3,
        multicast: None,
    };
    for engine in [EnginePlan::Lcr, paxos] {
        for queue_bytes in [100_000, 150_000, 250_000] {
            let mut setup = setup(engine.clone(), Load::Full);
            (setup.nodes, setup.senders, setup.service) = (3, 3, Service::Safe);
            setup.links.queue_bytes = queue_bytes;
            setup.wire.rate = 10_000_000_000;
            sound(&setup);
        }
    }
}

#[test]
fn votes_on_disk_take_their_time() {
    let delay = |votes, write| {
        let paxos = EnginePlan::Paxos {
            acceptors: 3,
            multicast: None,
        };
        let mut setup = setup(paxos, Load::UnderWay(1));
        (setup.nodes, setup.senders, setup.service) = (3, 1, Service::Safe);
        setup.disk = DiskPlan {
            write,
            byte: 0,
            groups: true,
            votes,
        };
        sound(&setup).delays.mean
    };
    let (memory, disk) = (delay(false, 100_000), delay(true, 1_000_000));
    assert!(disk > memory + 900.0, "{disk} and {memory}");
}

#[test]
fn a_tape_has_every_packet_and_token_in_order_of_the_switch() {
    let mut small = setup(
        ring(Protocol::Accelerated, 5, 3),
        Load::Visit(Generated::AtReceipt),
    );
    (small.nodes, small.senders) = (3, 3);
    small.span.measured = 2 * MILLIS;
    let (run, tape) = run_taped(&small);
    assert!(run.is_sound());
    assert!(tape.passages.iter().any(|passage| passage.is_token));
    let data = tape.passages.iter().filter(|passage| !passage.is_token);
    assert!(data.count() > 20);
    for passage in &tape.passages {
        assert!(passage.leaves < passage.crosses && passage.crosses <= passage.forwarded);
        assert!(passage.forwarded < passage.arrives);
    }
    assert!(tape.passages.is_sorted_by_key(|passage| passage.crosses));
}
