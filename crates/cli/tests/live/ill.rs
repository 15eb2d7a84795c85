//! One member is ill, and stays so: from ten seconds on the others serve each other nearly all the time, whatever it has.
//!
//! As `crates/sim/tests/ill`, with processes and the kernel's network. Each engine has one illness here; all of them, with
//! other loads and more nodes, are looked at with `ROTA_ILL_KIND=` (a part of their names), `ROTA_ILL_NODES=3,8` and
//! `ROTA_ILL_RATE=50,5000` (messages a second, of all nodes).

use std::time::{Duration, Instant};

use rota_net::monotonic;
use rota_node::{EngineName, TimingName, VoteStorage};
use rustix::process::Signal;

use crate::cluster::Cluster;
use crate::{setting, votes};

/// Bytes of a message.
const BYTES: usize = 200;
/// Whoever is ill is left alone by then.
const LOOKS: Duration = Duration::from_secs(10);
/// Nanoseconds of a slot: as the nodes count them.
const SLOT: u64 = 300_000_000;
/// So much of the time, in thousandths.
const LEAST: u64 = 950;
/// All that a node sends to all goes there.
const GROUP: &str = "ip daddr 239.192.0.0/16";

/// What one of them has.
#[derive(Clone, Copy)]
enum Illness {
    Stopped,
    /// Stands still for so many milliseconds in each so many.
    Pauses(u64, u64),
    /// Its port goes off and on again after so many milliseconds each.
    Flaps(u64),
    /// Dies each so many milliseconds, and is started again 300 ms later.
    Dies(u64),
    /// What is lost.
    Loses(fn(&Place) -> Vec<Loss>),
    /// The same between it and the next, either of which may be left out.
    Link(fn(&Place) -> Vec<Loss>),
}

use Illness::{Dies, Flaps, Link, Loses, Pauses, Stopped};

/// Where it is.
struct Place {
    ill: u16,
    next: u16,
    others: Vec<u16>,
}

/// A node loses what comes from another, of which this is true for the filter.
struct Loss {
    at: u16,
    from: u16,
    what: &'static str,
}

impl Place {
    fn losses_to(&self, what: &'static str) -> Vec<Loss> {
        let loss = |from: &u16| self.loss(self.ill, *from, what);
        self.others.iter().map(loss).collect()
    }

    fn losses_from(&self, what: &'static str) -> Vec<Loss> {
        let loss = |at: &u16| self.loss(*at, self.ill, what);
        self.others.iter().map(loss).collect()
    }

    fn both(&self, what: &'static str) -> Vec<Loss> {
        let (mut some, more) = (self.losses_to(what), self.losses_from(what));
        some.extend(more);
        some
    }

    const fn loss(&self, at: u16, from: u16, what: &'static str) -> Loss {
        Loss { at, from, what }
    }

    fn next_to_it(&self, what: &'static str) -> Loss {
        self.loss(self.ill, self.next, what)
    }

    fn it_to_next(&self, what: &'static str) -> Loss {
        self.loss(self.next, self.ill, what)
    }
}

const HALF: &str = "numgen random mod 2 0";

const KINDS: [(&str, Illness); 20] = [
    ("stands still", Stopped),
    ("is mute", Loses(|place| place.losses_from(""))),
    ("is deaf", Loses(|place| place.losses_to(""))),
    (
        "is mute for multicast",
        Loses(|place| place.losses_from(GROUP)),
    ),
    (
        "is deaf for multicast",
        Loses(|place| place.losses_to(GROUP)),
    ),
    (
        "is not heard by one",
        Link(|place| vec![place.it_to_next("")]),
    ),
    (
        "does not hear one",
        Link(|place| vec![place.next_to_it("")]),
    ),
    (
        "has no link to one",
        Link(|place| vec![place.it_to_next(""), place.next_to_it("")]),
    ),
    (
        "is mute to one for multicast",
        Link(|place| vec![place.it_to_next(GROUP)]),
    ),
    (
        "is deaf to one for multicast",
        Link(|place| vec![place.next_to_it(GROUP)]),
    ),
    ("loses half", Loses(|place| place.both(HALF))),
    (
        "loses half of what it is told",
        Loses(|place| place.losses_to(HALF)),
    ),
    ("pauses 800 of 1500 ms", Pauses(800, 1500)),
    ("pauses 400 of 3000 ms", Pauses(400, 3000)),
    ("pauses 2500 of 6000 ms", Pauses(2500, 6000)),
    ("pauses 200 of 250 ms", Pauses(200, 250)),
    ("flaps", Flaps(700)),
    ("flaps slowly", Flaps(5000)),
    ("dies again and again", Dies(1000)),
    ("dies every four seconds", Dies(4000)),
];

fn formed(engine: EngineName, nodes: u16) -> Cluster {
    if engine.has_votes() {
        votes::formed(engine, nodes, VoteStorage::Memory)
    } else {
        Cluster::formed_with(nodes, TimingName::Default, engine)
    }
}

impl Illness {
    fn begin(self, cluster: &mut Cluster, place: &Place) {
        match self {
            Stopped => cluster.signal(place.ill, Signal::STOP),
            Loses(losses) | Link(losses) => {
                losses(place).iter().for_each(|loss| lose(cluster, loss))
            }
            Pauses(..) | Flaps(_) | Dies(_) => {}
        }
    }

    /// Lives with it for a while.
    fn go_on(self, cluster: &mut Cluster, ill: u16, period: u64, until: Instant) {
        let sleep = |cluster: &mut Cluster, millis| {
            let left = until.saturating_duration_since(Instant::now());
            cluster.sleep(Duration::from_millis(millis).min(left));
        };
        while Instant::now() < until {
            match self {
                Stopped | Loses(_) | Link(_) => sleep(cluster, 1000),
                Pauses(millis, every) => {
                    cluster.signal(ill, Signal::STOP);
                    sleep(cluster, millis);
                    cluster.signal(ill, Signal::CONT);
                    sleep(cluster, every - millis);
                }
                Flaps(millis) => {
                    cluster.set_port(ill, false);
                    sleep(cluster, millis);
                    cluster.set_port(ill, true);
                    sleep(cluster, millis);
                }
                Dies(every) => {
                    cluster.kill(ill);
                    sleep(cluster, 300);
                    cluster.start(ill);
                    cluster.tell(ill, &format!("load {BYTES} {period}"));
                    sleep(cluster, every - 300);
                }
            }
        }
    }
}

fn lose(cluster: &Cluster, loss: &Loss) {
    let Loss { at, from, what } = loss;
    let from = cluster.address(*from);
    let table = "add table ip ill; add chain ip ill in { type filter hook input priority 0; }";
    let rule = format!("add rule ip ill in ip saddr {from} {what} counter drop");
    cluster.run_at(*at, &format!("nft '{table}; {rule}'"));
}

/// Whether anything was lost.
fn has_lost(cluster: &Cluster, loss: &Loss) -> bool {
    let rules = cluster.run_at(loss.at, "nft list table ip ill");
    let counts = rules.split("counter packets ").skip(1);
    let mut numbers = counts.filter_map(|text| text.split(' ').next());
    numbers.any(|number| number != "0")
}

/// For how much of the time the others serve each other, in thousandths.
fn look(engine: EngineName, nodes: u16, rate: u64, illness: Illness, ill: u16) -> u64 {
    let mut cluster = formed(engine, nodes);
    let all = cluster.all();
    let place = Place {
        ill,
        next: ill % nodes + 1,
        others: all.iter().copied().filter(|node| *node != ill).collect(),
    };
    cluster.traced = false;
    let period = u64::from(nodes) * 1_000_000 / rate;
    cluster.load(BYTES, period);
    cluster.sleep(Duration::from_secs(1));
    illness.begin(&mut cluster, &place);
    illness.go_on(&mut cluster, ill, period, Instant::now() + LOOKS);
    let from = monotonic().0;
    let lasts = Duration::from_secs(setting("ROTA_ILL_SECONDS", 20));
    illness.go_on(&mut cluster, ill, period, Instant::now() + lasts);
    let slots = from.div_ceil(SLOT)..monotonic().0 / SLOT;
    let without = |cluster: &mut Cluster, out: u16| {
        let healthy: Vec<u16> = all.iter().copied().filter(|node| *node != out).collect();
        let served = cluster.served(&healthy);
        let is_good = |slot: &u64| {
            let mut to = served.iter();
            to.all(|got| healthy.iter().all(|from| got.contains(&(*slot, *from))))
        };
        slots.clone().filter(is_good).count() as u64 * 1000 / (slots.end - slots.start)
    };
    if let Loses(losses) | Link(losses) = illness {
        let losses = losses(&place);
        let lost = losses.iter().any(|loss| has_lost(&cluster, loss));
        // Where values go along links next to nothing is multicast.
        let may_be_none = losses.iter().all(|loss| loss.what == GROUP) && engine.has_links();
        assert!(lost || may_be_none, "nothing was lost");
    }
    let mut share = without(&mut cluster, ill);
    if matches!(illness, Link(_)) {
        share = share.max(without(&mut cluster, place.next));
    }
    if share < LEAST {
        for node in place.others {
            println!("node {node}: {}", cluster.status(node));
        }
    }
    share
}

fn numbers(name: &str, default: u64) -> Vec<u64> {
    let number = |text: &str| text.parse().expect("a number");
    std::env::var(name).map_or(vec![default], |text| text.split(',').map(number).collect())
}

/// With this illness, or with those that are asked for.
fn the_others_are_served(engine: EngineName, usual: &str) {
    let asked = std::env::var("ROTA_ILL_KIND").ok();
    let mut bad = Vec::new();
    for (name, illness) in KINDS {
        let is_meant = asked
            .as_ref()
            .map_or(name == usual, |part| name.contains(part.as_str()));
        if !is_meant {
            continue;
        }
        for nodes in numbers("ROTA_ILL_NODES", 3) {
            for rate in numbers("ROTA_ILL_RATE", 50) {
                for ill in numbers("ROTA_ILL_WHO", 2) {
                    let [nodes, ill] = [nodes, ill].map(|number| number as u16);
                    let share = look(engine, nodes, rate, illness, ill);
                    let line =
                        format!("{engine:?}, {ill} of {nodes} {name}, {rate} a second: {share}");
                    println!("{line}");
                    if share < LEAST {
                        bad.push(line);
                    }
                }
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn accelerated_ring_goes_on_beside_one_that_pauses() {
    the_others_are_served(EngineName::AcceleratedRing, "pauses 800 of 1500 ms");
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn totem_ring_goes_on_beside_one_that_dies_again_and_again() {
    the_others_are_served(EngineName::TotemRing, "dies again and again");
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn fastcast_goes_on_where_one_link_is_cut() {
    the_others_are_served(EngineName::FastCast, "has no link to one");
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn lcr_goes_on_where_one_direction_is_cut() {
    the_others_are_served(EngineName::Lcr, "is not heard by one");
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn ring_paxos_goes_on_beside_one_that_is_deaf_for_multicast() {
    the_others_are_served(EngineName::RingPaxos, "is deaf for multicast");
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn u_ring_paxos_goes_on_beside_one_whose_port_flaps() {
    the_others_are_served(EngineName::URingPaxos, "flaps");
}
