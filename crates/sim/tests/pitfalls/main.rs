//! Pitfalls that need many nodes, load or time: worlds with nothing left to chance but what is said. All properties are
//! checked as the worlds run and when they have come to rest.

mod checked;

use checked::{cut, fault, loaded, run};
use rota_ring::Protocol;
use rota_sim::plan::{DiskLoss, FaultKind, MICROS, MILLIS, Matrix, Plan, SECONDS};

const BOTH: [Protocol; 2] = [Protocol::Accelerated, Protocol::Original];

/// The clocks of machines differ by hours and by a tenth in speed; a process dies and its node is back with
/// a clock of its own. Nothing is named after a clock.
#[test]
fn p_08_clocks_that_have_nothing_in_common() {
    for protocol in BOTH {
        let mut plan = loaded(4, protocol, 2 * SECONDS);
        for (at, host) in plan.hosts.iter_mut().enumerate() {
            host.clock.offset = at as u64 * 3600 * SECONDS;
            host.clock.drift = [0, -100, 100, 37][at];
        }
        plan.faults = vec![
            fault(500 * MILLIS, 50 * MILLIS, kill(0)),
            fault(900 * MILLIS, 400 * MILLIS, cut(4, &[0, 1])),
        ];
        run(&plan);
    }
}

fn kill(host: usize) -> FaultKind {
    FaultKind::Kill {
        host,
        outputs: 0,
        host_too: false,
        disk: DiskLoss::Unsynced,
        for_good: false,
    }
}

/// Directed links are cut for good between five and eight nodes; when they are mended, all find together.
#[test]
fn p_12_random_directed_cuts_of_larger_rings() {
    let mut random = 7_u64;
    for nodes in [5, 8] {
        for _ in 0..6 {
            let mut links = Matrix::open(nodes);
            for from in 0..nodes {
                for to in 0..nodes {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    if (random >> 40).is_multiple_of(4) {
                        links.cut(from, to);
                    }
                }
            }
            let mut plan = loaded(nodes, Protocol::Accelerated, 5 * SECONDS);
            let shape = "directed";
            plan.faults = vec![fault(
                200 * MILLIS,
                3 * SECONDS,
                FaultKind::Cut { shape, links },
            )];
            run(&plan);
        }
    }
}

/// Processes stand still under full load, with thousands of datagrams waiting for them when they go on.
#[test]
fn p_14_pauses_under_load() {
    for protocol in BOTH {
        for millis in [155, 309, 310, 311, 620, 3000] {
            let mut plan = loaded(3, protocol, 4 * SECONDS);
            plan.faults = vec![
                fault(300 * MILLIS, millis * MILLIS, FaultKind::Pause { host: 1 }),
                fault(400 * MILLIS, 40 * MILLIS, FaultKind::Pause { host: 2 }),
            ];
            let outcome = run(&plan);
            assert_eq!(outcome.tally.coverage["pauses"], 2);
        }
    }
}

/// Sixty-four nodes start within ten milliseconds, or some within a second, and half of them stop at once.
#[test]
fn p_15_sixty_four_nodes() {
    for (nodes, within) in [(64, 10 * MILLIS), (16, SECONDS)] {
        let mut plan = Plan::plain(nodes, Protocol::Accelerated);
        for (at, host) in (0..).zip(&mut plan.hosts) {
            host.start = at * within / nodes as u64;
        }
        plan.horizon = within + SECONDS;
        for at in 0..nodes / 2 {
            plan.faults
                .push(fault(within + SECONDS / 2, 10 * MILLIS, kill(at)));
        }
        run(&plan);
    }
}

/// A whole global window comes in one burst, and some sockets hold hardly any of it.
#[test]
fn p_46_bursts_of_a_full_window_into_small_sockets() {
    for protocol in BOTH {
        let mut plan = loaded(4, protocol, SECONDS);
        plan.net.socket_bytes = 8 << 10;
        plan.cost.receive_datagram = 20 * MICROS;
        for host in &mut plan.hosts {
            host.source.small_bytes = 1300;
        }
        plan.faults = vec![fault(300 * MILLIS, 0, FaultKind::Rush { messages: 4000 })];
        let outcome = run(&plan);
        assert!(outcome.tally.coverage["sockets_overflown"] > 0);
    }
}

/// Data takes longer than tokens, by one to five rotations, all the time.
#[test]
fn p_47_data_slower_than_tokens() {
    for late in 1..=5 {
        let mut plan = loaded(3, Protocol::Accelerated, SECONDS);
        plan.net.lanes[0].delay = 20 * MICROS + late * 100 * MICROS;
        run(&plan);
    }
}

/// Bits turn on the wire, and the checksum is all there is against it.
#[test]
fn p_48_damaged_datagrams() {
    for protocol in BOTH {
        let mut plan = loaded(3, protocol, SECONDS);
        for lane in &mut plan.net.lanes {
            lane.damage = 30_000;
        }
        let outcome = run(&plan);
        assert!(outcome.tally.coverage["datagrams_damaged"] > 100);
    }
}

/// A clock runs a tenth too fast or too slow, its timers fire late, and the process stands still as well.
#[test]
fn p_49_pauses_and_clocks_that_jump() {
    let mut plan = loaded(3, Protocol::Accelerated, 3 * SECONDS);
    for (host, drift) in plan.hosts.iter_mut().zip([100, -100, 0]) {
        (host.clock.drift, host.clock.coarse) = (drift, 4 * MILLIS);
    }
    for turn in 0..5 {
        let host = turn as usize % 3;
        let at = (200 + 500 * turn) * MILLIS;
        plan.faults.push(fault(
            at,
            (turn + 1) * 90 * MILLIS,
            FaultKind::Pause { host },
        ));
    }
    run(&plan);
}

/// An application takes nothing for a second, and little after that: the others wait for it and do not give
/// it up.
#[test]
fn p_50_a_slow_application_slows_the_ring_and_stays_on_it() {
    for protocol in BOTH {
        let mut plan = loaded(3, protocol, 2 * SECONDS);
        plan.hosts[1].appetite.take = 16;
        plan.hosts[1].appetite.pause = MILLIS;
        plan.faults = vec![fault(300 * MILLIS, SECONDS, FaultKind::Stall { host: 1 })];
        let outcome = run(&plan);
        assert_eq!(outcome.tally.counter("token_losses"), 0);
        assert_eq!(outcome.tally.counter("members_deaf"), 0);
        // Three first rings of one, and few more until all are together.
        assert!(outcome.tally.configurations < 8);
    }
}

/// Every token and every packet that forms rings comes twice, at any time, while rings form and break.
#[test]
fn p_56_everything_comes_twice() {
    for protocol in BOTH {
        let mut plan = loaded(4, protocol, 3 * SECONDS);
        for lane in &mut plan.net.lanes {
            lane.duplicate = 900_000;
            (lane.jitter, lane.spike, lane.spike_for) = (300 * MICROS, 50_000, 20 * MILLIS);
        }
        plan.faults = vec![
            fault(500 * MILLIS, 600 * MILLIS, cut(4, &[0])),
            fault(SECONDS, 50 * MILLIS, kill(2)),
            fault(2 * SECONDS, 300 * MILLIS, cut(4, &[1, 3])),
        ];
        run(&plan);
    }
}

/// The first to install is cut off, again and again.
#[test]
fn p_29_the_first_to_install_is_cut_off_in_a_row() {
    for protocol in BOTH {
        let mut plan = loaded(7, protocol, 6 * SECONDS);
        for turn in 0..5 {
            plan.faults
                .push(fault((300 + turn) * MILLIS, u64::MAX, FaultKind::Snipe));
        }
        plan.faults.push(fault(400 * MILLIS, 2 * SECONDS, kill(6)));
        let outcome = run(&plan);
        assert!(outcome.tally.coverage["snipes"] > 0);
    }
}
