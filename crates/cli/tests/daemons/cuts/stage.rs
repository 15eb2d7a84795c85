//! A daemon with somebody who always speaks and somebody who hears everything, and doors that cut.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rota_client::{Client, Event};
use rota_sim::rng::Rng;

use super::judge;
use super::plan::{Plan, Transport};
use super::puppet::{Heard, Order, Puppet};
use super::relay::{Door, Report};
use crate::access::free_address;
use crate::cluster::Cluster;
use crate::native::{PATIENCE, client};
use crate::pki::Pki;

/// What is to be heard, in the one order.
#[derive(Default)]
pub struct Course {
    heard: Mutex<Vec<Heard>>,
    more: Condvar,
}

impl Course {
    fn push(&self, heard: Heard) {
        self.heard.lock().expect("no panic").push(heard);
        self.more.notify_all();
    }

    /// Waits until this has been heard.
    fn await_one(&self, one: &Heard, from: usize) {
        let heard = self.heard.lock().expect("no panic");
        let missing = |heard: &mut Vec<Heard>| !heard[from..].contains(one);
        let waited = self.more.wait_timeout_while(heard, PATIENCE, missing);
        assert!(!waited.expect("no panic").1.timed_out(), "{one:?} is lost");
    }
}

/// One daemon.
struct Place {
    cluster: Cluster,
    order: Arc<Course>,
    marker: Client,
    marks: u32,
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Place {
    fn new(settings: &str) -> Self {
        let cluster = Cluster::start(1, settings);
        let order = Arc::<Course>::default();
        let ended = Arc::<AtomicBool>::default();
        let mut witness = client(&cluster, 1, "witness");
        witness.join("g").expect("it joins");
        let (to, over) = (Arc::clone(&order), Arc::clone(&ended));
        let hearing = thread::spawn(move || hear(witness, &to, &over));
        let (speaker, over) = (client(&cluster, 1, "speaker"), Arc::clone(&ended));
        let speaking = thread::spawn(move || speak(speaker, &over));
        Self {
            marker: client(&cluster, 1, "marker"),
            cluster,
            order,
            marks: 0,
            ended,
            threads: vec![hearing, speaking],
        }
    }

    /// Waits until all that was ordered before now has been heard.
    fn mark(&mut self, from: usize) {
        self.marks += 1;
        let text = format!("{}|", self.marks);
        self.marker.send("g", text.as_bytes()).expect("it is sent");
        let name = self.marker.name().to_string();
        self.order.await_one(&(name, self.marks), from);
    }
}

fn hear(mut witness: Client, order: &Course, over: &AtomicBool) {
    while !over.load(SeqCst) {
        let event = witness.recv_timeout(Duration::from_millis(20));
        if let Some(Event::Message(message)) = event.expect("it stands") {
            let text = String::from_utf8_lossy(&message.payload);
            let number = text.split('|').next().and_then(|text| text.parse().ok());
            order.push((message.sender.to_string(), number.expect("a number")));
        }
    }
}

fn speak(mut speaker: Client, over: &AtomicBool) {
    let mut rng = Rng::new(1);
    let mut number = 0_u32;
    while !over.load(SeqCst) {
        for _ in 0..rng.range(1, 6) {
            number += 1;
            let mut payload = format!("{number}|").into_bytes();
            payload.resize(payload.len() + rng.spread(1, 3000) as usize, b'.');
            speaker.feed("g", &payload).expect("it is fed");
        }
        speaker.flush().expect("it is sent");
        thread::sleep(Duration::from_micros(rng.below(2000)));
    }
}

/// Daemons for all transports.
pub struct Stage {
    pki: Pki,
    /// By transport, as in [`Transport::ALL`].
    doors: [(Door, PathBuf); 4],
    /// With memory and without.
    places: [Place; 2],
}

impl Stage {
    pub fn new() -> Self {
        let pki = Pki::new();
        pki.issue("alice", "alice.example", &pki.ca, (2000, 4000));
        let (tcp, tls) = (free_address(), free_address());
        let section = pki.section(tls, &pki.client_ca());
        let settings = format!("tcp = [\"{tcp}\"]\nper_address = 1000\n{section}");
        let places = [Place::new(&settings), Place::new("client_memory_bytes = 0")];
        let unix = |place: &Place| {
            let path = place.cluster.dir().join("door.sock");
            (Door::unix(&path, place.cluster.socket(1)), path)
        };
        let doors = [
            unix(&places[0]),
            unix(&places[1]),
            (Door::tcp(tcp), PathBuf::new()),
            (Door::tcp(tls), PathBuf::new()),
        ];
        Self { pki, doors, places }
    }

    fn order(&self, plan: Plan) -> Order {
        let (door, path) = &self.doors[plan.transport as usize];
        let address = match plan.transport {
            Transport::Memory | Transport::Unix => path.display().to_string(),
            Transport::Tcp => format!("tcp:{}", door.address()),
            Transport::Tls => format!("tls:{}", door.address()),
        };
        let files = ["ca.pem", "alice.pem", "alice.key"];
        Order {
            plan,
            address,
            files: files.map(|file| self.pki.path(file).display().to_string()),
        }
    }

    /// One connection, to its end, judged.
    pub fn play(&mut self, plan: Plan, puppet: &mut dyn Puppet, seen: &mut judge::Seen) {
        let order = self.order(plan);
        let place = &mut self.places[usize::from(plan.transport == Transport::Unix)];
        let from = place.order.heard.lock().expect("no panic").len();
        let door = &self.doors[plan.transport as usize].0;
        let (log, report) = thread::scope(|scope| {
            let carrying = scope.spawn(|| door.carry(&plan));
            let log = puppet.play(&order);
            (log, carrying.join())
        });
        let report: Report = report.unwrap_or_else(|_| panic!("{plan:?}: {log:?}"));
        place.mark(from);
        let heard = place.order.heard.lock().expect("no panic");
        let verdict = judge::round(&plan, &log, &report, &heard[from..]);
        drop(heard);
        if let Err(wrong) = verdict {
            panic!(
                "{wrong}: {plan:?}: {report:?}: sent {}, {:?}",
                log.sent, log.lost
            );
        }
        seen.add(&plan, &log, &report);
    }

    /// All that anybody heard, together.
    pub fn end(mut self, seen: &judge::Seen) {
        for (which, place) in [false, true].into_iter().zip(&mut self.places) {
            let from = place.order.heard.lock().expect("no panic").len();
            place.mark(from);
            place.ended.store(true, SeqCst);
            for thread in place.threads.drain(..) {
                thread.join().expect("no panic");
            }
            let heard = place.order.heard.lock().expect("no panic");
            seen.whole(which, &heard)
                .unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
}
