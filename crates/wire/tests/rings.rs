//! Whole runs of several rings: what any of them must be.

use rota_multiring::level::Mode;
use rota_wire::{
    Costs, DiskPlan, Interface, LinkPlan, Load, OneRing, RingsRun, RingsSetup, Span, WirePlan,
    run_rings,
};

const MILLIS: u64 = 1_000_000;

fn setup(hosts: usize, rings: Vec<OneRing>) -> RingsSetup {
    RingsSetup {
        hosts,
        wire: WirePlan {
            rate: 1_000_000_000,
            path: 20_000,
            switch: 5_000,
            cut_through: false,
            port_bytes: 1 << 20,
            pool_bytes: None,
            card_bytes: 1 << 20,
            mtu: 1500,
            socket_bytes: 4 << 20,
            far: Vec::new(),
        },
        costs: Costs {
            interface: Interface::Single,
            send: 2_000,
            receive: 2_000,
            call: 0,
            send_byte: 0,
            receive_byte: 0,
            token: 2_000,
            submit: 0,
            deliver: 200,
            deliver_byte: 0,
            wake: 0,
            client: 0,
        },
        links: LinkPlan {
            call: 2_000,
            ..LinkPlan::default()
        },
        disk: DiskPlan::MEMORY,
        rings,
        span: Span {
            warm_up: 100 * MILLIS,
            measured: 300 * MILLIS,
        },
        seed: 1,
    }
}

/// Rings on all hosts.
fn rings(hosts: usize, rings: u16, load: Load) -> RingsSetup {
    let ring = |rank| OneRing::new(rank, (0..hosts).collect(), load, 1350);
    setup(hosts, (1..=rings).map(ring).collect())
}

/// Runs it, and checks what holds of all runs.
fn sound(setup: &RingsSetup) -> RingsRun {
    let run = run_rings(setup);
    assert!(run.one_order, "{run:?}");
    assert!(run.complete, "{run:?}");
    assert_eq!(run.disturbed, 0, "{run:?}");
    assert!(run.all_deliveries > 0, "{run:?}");
    run
}

#[track_caller]
fn near(ours: f64, expected: f64, share: f64) {
    let off = ours / expected - 1.0;
    assert!(off.abs() <= share, "{ours} where {expected} was expected");
}

const PAPER: Mode = Mode::Paper {
    delta: 5 * MILLIS,
    lambda: 9000,
};

#[test]
fn rings_on_the_same_hosts_deliver_all_in_one_order() {
    for mode in [Mode::Pull, Mode::Horizon, PAPER] {
        let mut setup = rings(3, 4, Load::Poisson(50_000_000));
        setup.rings.iter_mut().for_each(|ring| ring.mode = mode);
        // One of them has nothing to order.
        setup.rings[2].senders.clear();
        let run = sound(&setup);
        near(run.ordered_mbps, 150.0, 0.05);
        assert_eq!(run.rings[2].deliveries, 0);
        assert!(run.rings[2].skips > 0, "{run:?}");
    }
}

#[test]
fn hosts_deliver_the_rings_that_they_subscribe_to() {
    // Two rings of their own, and one in common.
    let ring =
        |rank, hosts: &[usize]| OneRing::new(rank, hosts.to_vec(), Load::Rate(20_000_000), 1350);
    let mut setup = setup(
        6,
        vec![
            ring(1, &[0, 1, 2]),
            ring(2, &[3, 4, 5]),
            ring(3, &[0, 1, 2, 3, 4, 5]),
        ],
    );
    setup.rings[2].subscribers = vec![0, 1, 4, 5];
    setup.rings[2].senders = vec![0, 5];
    let run = sound(&setup);
    let each = run.rings.iter().map(|ring| ring.goodput_mbps);
    each.for_each(|mbps| near(mbps, 20.0, 0.05));
    near(
        run.rings[2].deliveries as f64 / run.rings[0].deliveries as f64,
        4.0 / 3.0,
        0.02,
    );
}

#[test]
fn one_setup_is_one_run_and_another_seed_another() {
    let mut setup = rings(3, 2, Load::Rate(40_000_000));
    let first = sound(&setup);
    assert_eq!(first, sound(&setup));
    setup.seed = 2;
    assert_ne!(first.digest, sound(&setup).digest);
}

/// Alone it is the same ring as in the world of one ring, but for its leveling.
#[test]
fn one_ring_is_no_slower_than_in_the_world_of_one() {
    let several = rings(3, 1, Load::Rate(100_000_000));
    let ours = sound(&several);
    let alone = rota_wire::run(&rota_wire::Setup {
        nodes: 3,
        wire: several.wire.clone(),
        costs: several.costs,
        engine: rota_wire::EnginePlan::Paxos {
            acceptors: 3,
            multicast: None,
        },
        load: Load::Rate(100_000_000),
        senders: 3,
        message_bytes: 1350,
        service: rota_core::contract::Service::Safe,
        loss: None,
        links: several.links,
        disk: several.disk,
        span: several.span,
        seed: 1,
    });
    near(ours.rings[0].delays.mean, alone.delays.mean, 0.05);
    near(ours.ordered_mbps, alone.goodput_mbps, 0.02);
}

#[test]
fn a_ring_that_is_idle_costs_a_busy_one_little() {
    let alone = sound(&rings(3, 1, Load::Full));
    let mut setup = rings(3, 4, Load::Full);
    setup.rings[1..]
        .iter_mut()
        .for_each(|ring| ring.senders.clear());
    let beside = sound(&setup);
    assert!(beside.ordered_mbps > 0.9 * alone.ordered_mbps, "{beside:?}");
    assert!(beside.work_us >= alone.work_us, "{beside:?} {alone:?}");
}

#[test]
fn each_ring_has_a_disk_of_its_own() {
    let mbps = |rings_count| {
        let mut setup = rings(3, rings_count, Load::Full);
        setup.wire.rate = 10_000_000_000;
        setup.disk = DiskPlan {
            write: 100_000,
            byte: 100_000,
            groups: true,
            votes: true,
        };
        sound(&setup).ordered_mbps
    };
    let (one, three) = (mbps(1), mbps(3));
    // A disk takes 80 Mbit/s.
    assert!(one < 85.0, "{one}");
    near(three, 3.0 * one, 0.1);
}

#[test]
fn rates_below_that_of_a_ring_hold_it_back() {
    let mut setup = rings(3, 2, Load::Rate(10_000_000));
    setup.rings.iter_mut().for_each(|ring| {
        ring.mode = Mode::Paper {
            delta: 5 * MILLIS,
            lambda: 100,
        };
    });
    // 1,000 messages a second of one ring, and 100 instances a second of the other.
    setup.rings[1].senders.clear();
    let run = sound(&setup);
    assert!(run.rings[0].delays.p50 > 50_000.0, "{run:?}");
}

/// What a sender is told of the room of a link is on its way while it sends.
#[test]
fn links_with_little_room_are_not_overrun() {
    let mut setup = rings(3, 8, Load::Full);
    setup.links.queue_bytes = 150_000;
    setup.wire.rate = 10_000_000_000;
    sound(&setup);
}
