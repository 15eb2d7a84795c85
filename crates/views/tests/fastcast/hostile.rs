//! Members of the view that send anything at all.

use super::net::{DATAGRAM_BYTES, Net, Weather, process};
use bytes::Bytes;
use rota_core::contract::{Class, Service, Time};
use rota_core::wire::SEAL_BYTES;
use rota_views::fastcast::{FastControl, FastHead, FastPlaces, FastRequest, FastRun};
use rota_views::{DataPath, Load};

/// A number that is small, close to the windows, or beyond all reason.
fn number(net: &mut Net) -> u64 {
    match net.random(4) {
        0 => net.random(8),
        1 => net.random(200),
        2 => u64::MAX - net.random(5),
        _ => net.random(u64::MAX),
    }
}

fn control(net: &mut Net, from: usize) -> Vec<u8> {
    let members = net.members.len();
    let acked = number(net);
    let first = number(net).clamp(1, u64::MAX - 200_000);
    let control = FastControl {
        cluster: super::net::CLUSTER,
        ring: net.view,
        sender: process(from).node,
        acked,
        delivered: number(net).min(acked),
        ask: u128::from(net.random(1 << members)),
        have: (0..members).map(|_| number(net)).collect(),
        first,
        runs: (0..net.random(4))
            .map(|_| FastRun {
                sender: net.random(members as u64) as u16,
                count: 1 + net.random(40) as u16,
            })
            .collect(),
        requests: (0..net.random(4))
            .map(|_| FastRequest {
                to: net.random(members as u64) as u16,
                of: (net.random(2) == 0).then(|| net.random(members as u64) as u16),
                first: number(net).clamp(1, u64::MAX / 2),
                count: 1 + net.random(u64::from(u32::MAX)) as u32,
            })
            .collect(),
        applied: (0..members as u64 * net.random(2))
            .map(|_| number(net))
            .collect(),
    };
    let mut bytes = Vec::new();
    control.encode_into(&mut bytes, SEAL_BYTES);
    bytes
}

fn data(net: &mut Net, from: usize) -> Vec<u8> {
    let own = net.random(2) == 0;
    let head = FastHead {
        cluster: super::net::CLUSTER,
        ring: net.view,
        sender: process(from).node,
        number: number(net).max(1),
        following: net.random(70_000) as u16,
        load: if own {
            Load::Own
        } else {
            Load::Messages(Service::Agreed)
        },
        places: (net.random(3) == 0).then(|| FastPlaces {
            first: number(net).max(1),
            count: net.random(100) as u16 + 1,
        }),
    };
    let mut bytes = Vec::new();
    // A frame of one message, or what is none.
    let contents = [1, 0, net.random(3) as u8, 0, 9];
    head.encode_into(&contents, &mut bytes, SEAL_BYTES);
    bytes
}

#[test]
fn no_datagram_makes_a_member_panic_or_keep_more_than_its_windows() {
    for seed in 0..60 {
        let mut net = Net::new(3, 32, seed, Weather::fine());
        for step in 0..2_000 {
            let to = net.random(3) as usize;
            let from = net.random(3) as usize;
            let mut datagram = match net.random(3) {
                0 => data(&mut net, from),
                _ => control(&mut net, from),
            };
            if net.random(4) == 0 {
                let at = net.random(datagram.len() as u64) as usize;
                datagram[at] = net.random(256) as u8;
            }
            let now = Time(net.now);
            let path = &mut net.members[to].path;
            path.on_datagram(now, Class::Data, Bytes::from(datagram));
            if step % 10 == 0 {
                net.submit(to, DATAGRAM_BYTES);
            }
            // What the others make of the answers is their affair: nothing is as it should be here.
            net.broken = None;
            net.step();
        }
        for member in &mut net.members {
            let frozen = member.path.freeze(Time(net.now));
            assert!(frozen.held.len() <= 3 * 32, "seed {seed}");
        }
    }
}

#[test]
fn what_is_of_another_cluster_or_view_or_of_no_member_is_counted_and_dropped() {
    let mut net = Net::new(3, 32, 1, Weather::fine());
    let sound = control(&mut net, 1);
    let mut inject = |at: usize, value: u8| {
        let mut datagram = sound.clone();
        datagram[at] = value;
        let now = Time(net.now);
        let path = &mut net.members[0].path;
        path.on_datagram(now, Class::Data, Bytes::from(datagram));
        let counters = path.counters();
        (
            counters.fast_datagrams_malformed,
            counters.fast_datagrams_foreign_cluster,
            counters.fast_datagrams_foreign_view,
        )
    };
    assert_eq!(inject(0, 0), (1, 0, 0), "the version");
    assert_eq!(inject(4, 99), (1, 1, 0), "the cluster");
    assert_eq!(inject(8, 99), (1, 1, 1), "the view");
    assert_eq!(inject(32, 99), (1, 1, 2), "the sender");
}
