//! P-01 to P-08: names of rings and processes, restarts, disks.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use rota_core::contract::{Configuration, ConfigurationKind, NodeId, Process, RingId, Service};
use rota_ring::wire::{Join, Packet};

use crate::net::{Disk, Fate, Kind, MILLI, Net, config, stored};

/// Every ring that anybody has installed, with its members.
fn rings(net: &Net) -> Vec<(RingId, Vec<Process>)> {
    let confs = (0..net.hosts.len()).flat_map(|at| net.confs(at));
    let regular = |conf: &Configuration| match conf.kind {
        ConfigurationKind::Regular(ring) => Some((ring, conf.members.clone())),
        ConfigurationKind::Transitional { .. } => None,
    };
    confs.filter_map(regular).collect()
}

/// No two rings of different members go by one name.
fn names_are_unique(net: &Net) {
    let rings = rings(net);
    let distinct: BTreeSet<_> = rings.iter().cloned().collect();
    let names: BTreeSet<RingId> = rings.iter().map(|(ring, _)| *ring).collect();
    assert_eq!(names.len(), distinct.len());
}

fn talk(net: &mut Net, messages: usize) {
    for index in 0..messages {
        let alive = net.alive();
        let at = alive[index % alive.len()];
        let service = [Service::Agreed, Service::Safe][index % 2];
        net.submit(at, service, &index.to_le_bytes());
        if index % 16 == 0 {
            net.run_for(MILLI / 4);
        }
    }
}

/// It is back before anybody misses it, on its old number, and must not be taken for who it was.
#[test]
fn p_01_the_lowest_node_restarts_inside_the_token_time_out() {
    for keeps_disk in [true, false] {
        let mut net = Net::formed(3);
        talk(&mut net, 1000);
        let old = net.ring(1);
        let former = net.hosts[0].me;
        net.kill(0);
        net.run_for(net.timers().token_loss / 10);
        assert_eq!((net.phase(1), net.ring(1)), ("operational", old));
        // What a survivor says is what it hears first.
        let procs = BTreeSet::from([former, net.hosts[1].me, net.hosts[2].me]);
        let join = Join {
            cluster: 1,
            sender: net.hosts[1].me,
            ring_seq: old.ring_seq,
            leaving: false,
            procs,
            fails: BTreeSet::new(),
        };
        net.inject(1, 0, &Packet::Join(join), 0);
        let records = net.hosts[0].records.clone();
        net.numbers_lost = !keeps_disk;
        net.restart_with(0, if keeps_disk { records } else { Vec::new() });
        assert_eq!(net.members(0), [0], "alone at first");
        let net = net.rest();
        assert_eq!(net.members(0), [0, 1, 2]);
        assert_eq!(
            net.transitional(1),
            [1, 2],
            "its old life does not come along"
        );
        assert_eq!(net.transitional(2), [1, 2]);
        assert_eq!(net.transitional(0), [0]);
        assert!(
            net.confs(1)
                .iter()
                .any(|conf| conf.members.contains(&former))
        );
        names_are_unique(&net);
    }
}

/// Five nodes; 3 and 4 stop; 1, 2 and 5 form anew; 1 and 2 stop while they recover; 5 gathers and knows the
/// ring that failed; 1 to 4 start again, and name a ring.
#[test]
fn p_02_the_same_ring_id_is_not_formed_twice() {
    for keeps_disk in [true, false] {
        let mut net = Net::formed(5);
        talk(&mut net, 20);
        net.kill(2);
        net.kill(3);
        net.run_until("a recovery of three", |net| {
            [0, 1, 4].iter().all(|&at| net.phase(at) == "recovering")
        });
        let failed = net.engine(4).recovering().expect("it recovers");
        let token = net
            .flying()
            .find(|flying| flying.kind == Kind::Token)
            .cloned();
        net.kill(0);
        net.kill(1);
        net.lose_all();
        net.run_until("5 gathers", |net| net.phase(4) == "gathering");
        net.cut.extend((0..4).flat_map(|at| [(at, 4), (4, at)]));
        net.numbers_lost = !keeps_disk;
        for at in 0..4 {
            let records = net.hosts[at].records.clone();
            net.restart_with(at, if keeps_disk { records } else { Vec::new() });
        }
        net.run_until("a ring of four", |net| net.members(0) == [0, 1, 2, 3]);
        net.cut.clear();
        // The token of the ring that failed, and that of the one that may have got its number.
        let mut late: Vec<_> = token.into_iter().collect();
        net.run_to(|flying| flying.kind == Kind::Token);
        late.extend(net.next().cloned());
        let before = net.counters(4).datagrams_foreign_ring;
        let taken = net.counters(4).token_rotations;
        let count = late.len() as u64;
        assert!(count > 0);
        for mut flying in late {
            flying.to = 4;
            net.fly(flying, 0);
            net.step();
        }
        assert_eq!(net.counters(4).datagrams_foreign_ring, before + count);
        assert_eq!(net.counters(4).token_rotations, taken);
        assert!(rings(&net).iter().all(|(ring, _)| *ring != failed));
        names_are_unique(&net.rest());
    }
}

/// What is lost of the first rings that are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lost {
    FirstVisits,
    SecondVisits,
    Tokens,
}

/// Loses that of the first `rings` rings.
fn lose(net: &mut Net, lost: Lost, rings: usize) -> Rc<RefCell<Vec<RingId>>> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let tried = Rc::clone(&seen);
    let installed = net.ring(0);
    net.rule(move |flying| {
        let (ring, hit) = match &*flying.packet {
            Packet::Commit(commit) if commit.is_complete() => {
                (commit.ring, lost == Lost::SecondVisits)
            }
            Packet::Commit(commit) => (commit.ring, lost == Lost::FirstVisits),
            Packet::Token(token) => (token.ring, lost == Lost::Tokens),
            _ => return Fate::Pass,
        };
        let mut tried = seen.borrow_mut();
        if ring != installed && !tried.contains(&ring) {
            tried.push(ring);
        }
        // The token of the installed ring is lost as well: that is how it begins.
        let early = tried
            .iter()
            .position(|&one| one == ring)
            .is_none_or(|index| index < rings);
        if early && (hit || ring == installed) {
            return Fate::Lose;
        }
        Fate::Pass
    });
    tried
}

/// However often a ring fails to form, those who go on together are those of the last installed one.
#[test]
fn p_03_the_old_ring_stays_the_old_ring_however_often_the_next_fails() {
    for lost in [Lost::FirstVisits, Lost::SecondVisits, Lost::Tokens] {
        for times in 1..=10 {
            let mut net = Net::formed(3);
            talk(&mut net, 9);
            let old = net.ring(0);
            let tried = lose(&mut net, lost, times);
            net.run_until("another ring", |net| net.ring(0) != old && net.is_whole());
            assert_eq!(tried.borrow().len(), times + 1, "{lost:?}");
            for at in 0..3 {
                assert_eq!(net.transitional(at), [0, 1, 2], "{lost:?} {times} times");
                let conf = net
                    .confs(at)
                    .iter()
                    .rev()
                    .nth(1)
                    .expect("it is transitional");
                let from = match conf.kind {
                    ConfigurationKind::Transitional { old, .. } => old,
                    ConfigurationKind::Regular(ring) => ring,
                };
                assert_eq!(from, old);
            }
            let numbers: Vec<u64> = tried.borrow().iter().map(|ring| ring.ring_seq).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
            net.rest();
        }
    }
}

/// After a recovery that failed nothing of that ring is taken any more, though the old one is back.
#[test]
fn p_04_a_commit_token_of_a_ring_that_failed_is_refused() {
    let mut net = Net::formed(3);
    talk(&mut net, 9);
    net.keeps_log = true;
    lose(&mut net, Lost::Tokens, 1);
    net.run_until("a recovery", |net| {
        (0..3).all(|at| net.phase(at) == "recovering")
    });
    let failed = net.engine(0).recovering();
    net.run_until("it fails", |net| {
        (0..3).all(|at| net.phase(at) == "gathering")
    });
    net.no_rule();
    net.lose_all();
    let log = std::mem::take(&mut net.log);
    let of_failed = |packet: &Packet| match packet {
        Packet::Commit(commit) => Some(commit.ring) == failed,
        Packet::Token(token) => Some(token.ring) == failed,
        _ => false,
    };
    let late: Vec<_> = log
        .into_iter()
        .filter(|flying| of_failed(&flying.packet))
        .collect();
    assert!(late.len() >= 6, "two rotations");
    for flying in late {
        let at = flying.to;
        net.fly(flying, 0);
        net.step();
        assert_eq!(net.phase(at), "gathering");
    }
    let ignored: u64 = (0..3).map(|at| net.counters(at).commits_ignored).sum();
    assert!(ignored >= 6);
    net.rest();
}

/// A record that is cut short counts as none: the incarnation keeps the names apart.
#[test]
fn p_05_a_broken_record_of_the_ring_number_never_repeats_a_name() {
    for length in 0..=8 {
        let mut net = Net::formed(3);
        talk(&mut net, 9);
        net.numbers_lost = true;
        let mut records = net.hosts[0].records.clone();
        for (_, _, bytes) in &mut records {
            bytes.truncate(length);
        }
        net.restart_with(0, records);
        net.come_together();
        // A bit has turned: far ahead.
        let records = stored(net.ring(0).ring_seq | 1 << 31);
        net.restart_with(0, records);
        let net = net.rest();
        assert_eq!(net.members(2), [0, 1, 2]);
        names_are_unique(&net);
    }
}

/// A node that cannot write agrees to no number; the others go on without it, and it is back once it can.
#[test]
fn p_05_a_full_or_hanging_disk_costs_only_its_own_node() {
    for disk in [Disk::Fails, Disk::Hangs] {
        let mut net = Net::formed(3);
        talk(&mut net, 9);
        net.hosts[1].disk = disk;
        // The numbers that are reserved are used up.
        let far = net.ring(0).ring_seq + 5000;
        let sender = Process {
            node: NodeId::new(9).expect("not 0"),
            ..net.hosts[0].me
        };
        let join = Join {
            cluster: 1,
            sender,
            ring_seq: far,
            leaving: true,
            procs: BTreeSet::new(),
            fails: BTreeSet::from([sender]),
        };
        for to in 0..3 {
            net.inject(0, to, &Packet::Join(join.clone()), 0);
        }
        net.run_for(MILLI);
        net.run_until("the others go on", |net| {
            net.members(0) == [0, 2] && net.members(2) == [0, 2] && net.phase(0) == "operational"
        });
        assert!(net.ring(0).ring_seq > far);
        assert!(
            net.ring(1).ring_seq < far,
            "it has agreed to nothing it could not write"
        );
        if disk == Disk::Fails {
            assert!(net.counters(1).persist_failures > 0);
            net = net.rest();
        } else {
            // A request that never ends is a disk that is gone: it needs a restart.
            net.restart(1);
            net = net.rest();
        }
        assert_eq!(net.members(1), [0, 1, 2]);
    }
}

/// Numbers of rings have 64 bits all the way: on the wire, on the disk, and to the application.
#[test]
fn p_06_ring_numbers_beyond_32_bits() {
    numbers_from((1 << 32) - 3);
}

#[test]
fn p_43_ring_numbers_near_powers_of_two() {
    for power in [30, 31, 32, 53, 62, 63] {
        numbers_from((1 << power) - 3);
    }
}

fn numbers_from(start: u64) {
    let mut net = Net::with(config(3));
    for at in 0..3 {
        net.restart_with(at, stored(start));
    }
    net.come_together();
    let first = net.ring(0).ring_seq;
    assert!(first > start + 3, "{first} after {start}");
    talk(&mut net, 9);
    net.restart(0);
    net.come_together();
    assert!(net.ring(0).ring_seq > first);
    let conf = net.confs(2).last().expect("it has one");
    assert_eq!(conf.kind, ConfigurationKind::Regular(net.ring(0)));
    net.rest();
}

/// A second process under the number of a running one: it counts, and the running one stays what it is.
#[test]
fn p_07_two_processes_with_one_number_are_noticed() {
    let mut net = Net::formed(3);
    talk(&mut net, 9);
    let before = net.ring(1);
    let other = Process {
        incarnation: rota_core::contract::Incarnation(777),
        ..net.hosts[1].me
    };
    let join = Join {
        cluster: 1,
        sender: other,
        ring_seq: before.ring_seq,
        leaving: false,
        procs: BTreeSet::from([other]),
        fails: BTreeSet::new(),
    };
    net.inject(1, 1, &Packet::Join(join), 0);
    net.run_for(MILLI);
    assert_eq!(net.counters(1).duplicate_nodes, 1);
    assert_eq!((net.phase(1), net.ring(1)), ("operational", before));
    assert!(NodeId::new(0).is_none(), "nobody is node 0");
    net.rest();
}
