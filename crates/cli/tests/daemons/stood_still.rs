//! A daemon that stands still for longer than the others wait for it, and goes on.

use std::thread;
use std::time::Duration;

use rota_client::{Cause, Event};
use rota_node::EngineName;
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::Cluster;
use crate::native::{client, meet, member, next, next_view};

const HEALTHY: [u16; 3] = [2, 3, 4];
/// Longer than it takes to be given up.
const STILL: Duration = Duration::from_secs(2);

fn signal(cluster: &Cluster, id: u16, signal: Signal) {
    let pid = i32::try_from(cluster.pid(id)).expect("a number");
    kill_process(Pid::from_raw(pid).expect("not 0"), signal).expect("it runs");
}

/// The others stay together, whatever it makes of what has come meanwhile: members of a group on them see no change of the network.
fn the_others_stay_together(engine: EngineName) {
    let cluster = Cluster::over(4, engine);
    meet(&cluster, &[1, 2, 3, 4]);
    let mut members = HEALTHY.map(|id| member(&cluster, id, &format!("m{id}")));
    for client in &mut members {
        client.join("g").expect("it is taken");
    }
    for client in &mut members {
        while next_view(client).members.len() < HEALTHY.len() {}
    }
    for round in 0..3 {
        signal(&cluster, 1, Signal::STOP);
        thread::sleep(STILL);
        signal(&cluster, 1, Signal::CONT);
        // Once it is back this comes to all.
        meet(&cluster, &[1, 2, 3, 4]);
        let mut speaker = client(&cluster, 1, "speaker");
        speaker.send("g", b"back").expect("it is sent");
        for client in &mut members {
            loop {
                match next(client) {
                    Event::Message(_) => break,
                    Event::View(view) => assert!(
                        !matches!(view.cause, Cause::Network(_)),
                        "round {round}: {view:?}"
                    ),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn who_stood_still_does_not_tear_the_others_apart() {
    the_others_stay_together(EngineName::AcceleratedRing);
}

#[test]
fn who_stood_still_does_not_tear_the_others_apart_with_totem_ring() {
    the_others_stay_together(EngineName::TotemRing);
}
