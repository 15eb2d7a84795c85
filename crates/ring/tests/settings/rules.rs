//! The rules that have to hold for nodes that are configured in different ways.

use std::collections::{BTreeMap, BTreeSet};

use rota_core::contract::{Engine, Service};
use rota_core::timing::{Timers, Timing};
use rota_ring::RingConfig;
use rota_ring::wire::{Join, Packet};

use crate::net::{MILLI, Net, SECOND, config};

type Change = fn(&mut RingConfig);

/// Three nodes, of which the one at `at` is configured in another way.
fn with_one(at: usize, all: Change, one: Change) -> Net {
    let mut common = config(3);
    all(&mut common);
    let mut own = common.clone();
    one(&mut own);
    let mut net = Net::with_own(common, BTreeMap::from([(at, own)]));
    net.come_together();
    net
}

fn narrow(config: &mut RingConfig) {
    (config.windows.personal, config.windows.accelerated) = (5, 5);
    (config.windows.outstanding, config.windows.global) = (100, 200);
}

/// Sends much while an application takes nothing, and breaks the ring.
fn break_behind_a_slow_application(net: &mut Net, slow: usize, sender: usize) {
    net.hosts[slow].stalled = true;
    for index in 0..2000_usize {
        let service = [Service::Safe, Service::Agreed][index % 2];
        net.submit(sender, service, &[index as u8; 1200]);
    }
    net.run_for(SECOND / 2);
    for at in 0..3 {
        if at != slow {
            net.pause(at);
        }
    }
    let loss = net.timers().token_loss;
    net.run_for(2 * loss);
    for at in 0..3 {
        if at != slow {
            net.resume(at, true);
        }
    }
    net.run_for(4 * loss);
}

/// Whoever has the larger window, all of one transitional configuration deliver the same, and the ring lasts.
pub fn windows_that_differ_are_agreed_on() {
    for at in 0..3 {
        for outstanding in [5, 100, 20_000] {
            for slow in 0..3 {
                let mut net = with_one(at, narrow, |_| {});
                net.own_configs
                    .get_mut(&at)
                    .expect("it differs")
                    .windows
                    .outstanding = outstanding;
                net.restart(at);
                net.come_together();
                break_behind_a_slow_application(&mut net, slow, (slow + 1) % 3);
                net.rest();
            }
        }
    }
}

/// How often the rings of idle nodes change in ten seconds, where the time-outs of the one at `at` are others.
fn changes_when_idle(at: usize, others: Timing, own: Timing) -> u64 {
    let timers = |timing| Timers::derive(timing, 3);
    let mut common = config(3);
    common.timers = timers(others);
    let mut one = common.clone();
    one.timers = timers(own);
    let mut net = Net::with_own(common, BTreeMap::from([(at, one)]));
    net.come_together();
    let configurations = |net: &Net| {
        (0..3)
            .map(|at| net.counters(at).configurations)
            .sum::<u64>()
    };
    let before = configurations(&net);
    net.run_for(10 * SECOND);
    configurations(&net) - before
}

/// An idle ring lasts, whoever has which time-outs.
pub fn an_idle_ring_lasts_where_time_outs_differ() {
    let all = [Timing::LanFast, Timing::Default, Timing::Relaxed];
    for at in 0..3 {
        for others in all {
            for own in all {
                let changes = changes_when_idle(at, others, own);
                assert_eq!(changes, 0, "{at} has {own:?}, the others {others:?}");
            }
        }
    }
}

/// What each has sent in a second in which all have more to send than they may; the one at `at` has another global window.
fn sent(at: usize, global: u32) -> Vec<u64> {
    let mut net = with_one(at, narrow, |_| {});
    net.own_configs
        .get_mut(&at)
        .expect("it differs")
        .windows
        .global = global;
    net.restart(at);
    net.come_together();
    let sent = |net: &Net| -> Vec<u64> { (0..3).map(|at| net.counters(at).packets_sent).collect() };
    let before = sent(&net);
    for _ in 0..200 {
        for at in 0..3 {
            while net.engine(at).backlog() < 50 {
                net.submit(at, Service::Agreed, &[0; 1300]);
            }
        }
        net.run_for(MILLI / 2);
    }
    let after = sent(&net);
    after
        .iter()
        .zip(before)
        .map(|(now, then)| now - then)
        .collect()
}

/// Nobody is starved for having a smaller global window.
pub fn a_smaller_global_window_starves_nobody() {
    for at in 0..3 {
        for global in [3, 8, 1000] {
            let sent = sent(at, global);
            let mean = sent.iter().sum::<u64>() / 3;
            let least = sent.iter().min().copied().unwrap_or(0);
            assert!(10 * least >= 9 * mean, "{at} has {global}: {sent:?}");
        }
    }
}

/// What one may submit all deliver, whatever they may submit themselves.
pub fn a_message_that_others_must_not_submit_is_delivered_by_all() {
    for at in 0..3 {
        let mut net = with_one(
            at,
            |all| all.message_bytes = 2000,
            |own| own.message_bytes = 100_000,
        );
        net.submit(at, Service::Agreed, b"before");
        net.submit(at, Service::Agreed, &[7; 100_000]);
        net.submit(at, Service::Safe, b"after");
        net.run_for(SECOND);
        for host in &net.hosts {
            let lengths: Vec<usize> = host
                .app
                .got
                .iter()
                .map(|(_, _, bytes)| bytes.len())
                .collect();
            assert_eq!(lengths, [6, 100_000, 5]);
        }
        net.rest();
    }
}

/// Whoever has given a process up cannot be on a ring with it, and does not call it away from its ring.
pub fn who_has_given_a_process_up_leaves_its_ring_alone() {
    let mut net = Net::with(config(3));
    net.come_together();
    let before = net.ring(0);
    let members = net.engine(0).ordering().expect("it is on a ring").members();
    let (given_up, sender) = (members[0], members[2]);
    let join = Join {
        cluster: 1,
        sender,
        ring_seq: before.ring_seq + 1,
        leaving: false,
        procs: BTreeSet::from([sender]),
        fails: BTreeSet::from([given_up]),
    };
    let ignored = net.counters(0).joins_ignored;
    net.inject(2, 0, &Packet::Join(join), 0);
    net.run_for(SECOND);
    assert_eq!((net.ring(0), net.phase(0)), (before, "operational"));
    assert_eq!(net.counters(0).joins_ignored, ignored + 1);
    net.rest();
}

/// Both sides say which setting, and which values.
pub fn both_say_what_differs() {
    let net = with_one(1, narrow, |own| own.windows.outstanding = 200);
    let notes = |at: usize| net.hosts[at].engine.status().notes;
    assert_eq!(
        notes(0),
        ["node 2 has outstanding_window = 200, this node 100: the smallest is in force"]
    );
    assert_eq!(
        notes(1),
        [
            "node 1 has outstanding_window = 100, this node 200: the smallest is in force",
            "node 3 has outstanding_window = 100, this node 200: the smallest is in force"
        ]
    );
}
