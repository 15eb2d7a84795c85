//! Crashes at the moments that hurt, restarts of many, and state that must not grow.

use rota_core::contract::{ConfigurationKind, Service};

use crate::commit::broken;
use crate::net::{Net, SECOND, stored};

/// The last to install the ring dies when its application has seen the transitional configuration and not
/// the regular one, or anything between.
#[test]
fn the_last_to_install_dies_between_its_two_configurations() {
    for nodes in 2..=5 {
        for last in 0..nodes {
            for taken in 0..8 {
                let mut net = broken(nodes);
                net.hosts[last].stalled = true;
                net.run_until("the ring is installed", Net::is_whole);
                let seen = net.confs(last).len();
                let mut count = 0;
                while count < taken && net.take_one(last) {
                    count += 1;
                }
                let regular = net.confs(last).len() > seen + 1;
                net.kill(last);
                let survivors = net.alive();
                let mut net = net.rest();
                let died_between = net.confs(last).len() == seen + 1;
                assert!(!(died_between && regular));
                assert_eq!(net.members(survivors[0]), survivors);
                net.restart(last);
                net.rest();
            }
        }
    }
}

/// So many rings of one that see each other at the same moment.
#[test]
fn many_single_rings_merge_at_once() {
    for nodes in 2..=16 {
        let mut net = Net::started(nodes);
        net.lose_all();
        for from in 0..nodes {
            net.cut
                .extend((0..nodes).filter(|&to| to != from).map(|to| (from, to)));
        }
        for at in 0..nodes {
            net.submit(at, Service::Safe, &[at as u8]);
        }
        net.run_for(SECOND);
        net.heal();
        let before = net.now;
        net.run_until("one ring", Net::is_whole);
        let most = net.timers().merge + net.timers().token_loss;
        assert!(net.now.since(before) <= most, "{nodes} nodes");
        let net = net.rest();
        for at in 0..nodes {
            assert_eq!(net.transitional(at), [at]);
            assert_eq!(net.hosts[at].app.got.len(), 1, "its own, in its own ring");
        }
    }
}

/// All stop at once and each gets the disk of its neighbour, as it was some rings ago.
#[test]
fn all_restart_with_an_old_disk_of_another_node() {
    for nodes in 2..=5 {
        let mut net = Net::formed(nodes);
        let old: Vec<_> = net.hosts.iter().map(|host| host.records.clone()).collect();
        for at in 0..nodes {
            net.restart(at);
            net.come_together();
        }
        net.numbers_lost = true;
        for at in 0..nodes {
            net.submit(at, Service::Safe, b"before");
            net.kill(at);
        }
        net.lose_all();
        for at in 0..nodes {
            net.restart_with(at, old[(at + 1) % nodes].clone());
        }
        net.come_together();
        // And with disks that are far apart.
        for at in 0..nodes {
            net.restart_with(at, stored(7 + 100_000 * at as u64));
        }
        let net = net.rest();
        let rings: Vec<_> = net.confs(0).iter().map(|conf| conf.kind).collect();
        let regular = ConfigurationKind::Regular(net.ring(0));
        assert_eq!(rings.iter().filter(|kind| **kind == regular).count(), 1);
    }
}

/// Thousands of rings later nothing has grown: what an engine holds is written out and measured.
#[test]
fn p_51_no_engine_grows_with_the_number_of_rings() {
    let mut net = Net::formed(2);
    let mut sizes = Vec::new();
    for _ in 0..4 {
        for _ in 0..200 {
            net.restart(1);
            net.submit(0, Service::Agreed, b"again");
            net.come_together();
        }
        sizes.push(format!("{:?}", net.engine(0)).len());
    }
    // Digits grow, and the lives of others that are remembered have come to their limit.
    let (early, late) = (sizes[1], sizes[3]);
    assert!(late < early + 1024, "{sizes:?} bytes");
}
