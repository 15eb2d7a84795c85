//! Daemons with engines that order in primary views alone: one of them stands still until the others go on without
//! it, and comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_check::trace::Trace;
use rota_check::{Options, check_uniform};
use rota_client::{Cause, Client, Event, View};
use rota_node::EngineName;
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::Cluster;
use crate::native::{PATIENCE, client, meet, member, next};

const IDS: [u16; 3] = [1, 2, 3];

fn signal(cluster: &Cluster, id: u16, signal: Signal) {
    let pid = i32::try_from(cluster.pid(id)).expect("a number");
    kill_process(Pid::from_raw(pid).expect("not 0"), signal).expect("it runs");
}

/// A client of daemon `id` that sends numbers until it is stopped, and then says how many; it reads nothing.
fn speaker(cluster: &Cluster, id: u16, stop: &Arc<AtomicBool>) -> JoinHandle<usize> {
    let mut client = client(cluster, id, "speaker");
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let mut count = 0;
        while !stop.load(Ordering::Relaxed) {
            client
                .send("g", format!("{id} {count}").as_bytes())
                .expect("it is sent");
            count += 1;
            thread::sleep(Duration::from_micros(300));
        }
        client
            .send("g", format!("{id} end").as_bytes())
            .expect("it is sent");
        client.close().expect("all of it is taken");
        count
    })
}

/// What a listener was told, until all speakers were at their ends.
#[derive(Default, Debug)]
struct Told {
    texts: Vec<String>,
    excluded: usize,
    /// With, and without a gap.
    included: [usize; 2],
    views: Vec<View>,
}

fn listen(mut client: Client, seen: Arc<AtomicMembers>) -> JoinHandle<Told> {
    thread::spawn(move || {
        let mut told = Told::default();
        let mut ends = 0;
        let (mut excluded, mut due) = (false, false);
        while ends < IDS.len() {
            match next(&mut client) {
                Event::Message(message) => {
                    assert!(!excluded && !due, "{message:?}");
                    let text = String::from_utf8_lossy(&message.payload).into_owned();
                    ends += usize::from(text.ends_with("end"));
                    told.texts.push(text);
                }
                Event::View(view) => {
                    assert!(!excluded, "{view:?}");
                    if std::mem::take(&mut due) {
                        assert!(matches!(view.cause, Cause::Network(_)), "{view:?}");
                        assert_eq!(view.came_with_me().len(), 1, "{view:?}");
                    }
                    seen.0.store(view.members.len(), Ordering::Relaxed);
                    told.views.push(*view);
                }
                Event::Excluded => {
                    assert!(!std::mem::replace(&mut excluded, true), "twice");
                    told.excluded += 1;
                }
                Event::Included { missed } => {
                    assert!(std::mem::take(&mut excluded), "it was not excluded");
                    due |= missed;
                    told.included[usize::from(!missed)] += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        told
    })
}

/// How many members the view has that a listener saw last.
#[derive(Default)]
struct AtomicMembers(std::sync::atomic::AtomicUsize);

fn until_there_are(seen: &AtomicMembers, members: usize) {
    let until = Instant::now() + PATIENCE;
    while seen.0.load(Ordering::Relaxed) != members {
        assert!(Instant::now() < until, "never {members} members");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The numbers of each speaker, as they came.
fn numbers(told: &Told) -> BTreeMap<u16, Vec<usize>> {
    let mut numbers: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for text in told.texts.iter().filter(|text| !text.ends_with("end")) {
        let (id, number) = text.split_once(' ').expect("two numbers");
        let of = numbers.entry(id.parse().expect("a number")).or_default();
        of.push(number.parse().expect("a number"));
    }
    numbers
}

fn run(engine: EngineName) {
    let mut cluster = Cluster::over(3, engine);
    meet(&cluster, &IDS);
    let seen: Vec<Arc<AtomicMembers>> = IDS.iter().map(|_| Arc::default()).collect();
    let listeners: Vec<Client> = IDS
        .iter()
        .map(|id| {
            let mut client = member(&cluster, *id, "listener");
            client.join("g").expect("it joins");
            client
        })
        .collect();
    let listeners = listeners.into_iter().zip(&seen);
    let listeners: Vec<_> = listeners
        .map(|(client, seen)| listen(client, Arc::clone(seen)))
        .collect();
    let stop = Arc::default();
    let speakers: Vec<_> = IDS.iter().map(|id| speaker(&cluster, *id, &stop)).collect();
    for _ in 0..3 {
        for seen in &seen {
            until_there_are(seen, 3);
        }
        thread::sleep(Duration::from_millis(200));
        signal(&cluster, 3, Signal::STOP);
        until_there_are(&seen[0], 2);
        until_there_are(&seen[1], 2);
        thread::sleep(Duration::from_millis(100));
        signal(&cluster, 3, Signal::CONT);
        until_there_are(&seen[0], 3);
        until_there_are(&seen[1], 3);
        thread::sleep(Duration::from_millis(200));
    }
    stop.store(true, Ordering::Relaxed);
    let counts: Vec<usize> = speakers
        .into_iter()
        .map(|speaker| speaker.join().expect("it has sent all"))
        .collect();
    let told: Vec<Told> = listeners
        .into_iter()
        .map(|listener| listener.join().expect("it has heard all"))
        .collect();

    assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
    // The one that stood still was told each time.
    assert!(
        told[2].excluded >= 3 && told[2].included[0] >= 3,
        "{:?}",
        told[2].included
    );
    for told in &told {
        let all: BTreeSet<&String> = told.texts.iter().collect();
        assert_eq!(all.len(), told.texts.len(), "something came twice");
        for (id, numbers) in numbers(told) {
            assert!(numbers.is_sorted(), "messages of {id}");
            // Whoever was not told that it missed something got everything of everybody.
            let whole = numbers.iter().copied().eq(0..counts[usize::from(id) - 1]);
            assert!(
                whole || told.included[0] > 0,
                "messages of {id} are missing"
            );
        }
    }
    for id in IDS {
        assert!(cluster.terminate(id).success());
    }
    let files = IDS.map(|id| cluster.dir().join(format!("{id}.jsonl")));
    let trace = Trace::from_files(&files).expect("sound traces");
    assert!(trace.is_uniform());
    let report = check_uniform(&trace, &Options::default());
    assert!(report.holds(), "{:#?}", report.violations);
    let excluded = report.verdicts.iter().find(|v| v.property == "K10");
    assert!(excluded.expect("it is judged").checked >= 6);
}

#[test]
fn with_fastcast_clients_of_an_excluded_daemon_are_told_and_nothing_comes_twice() {
    run(EngineName::FastCast);
}

#[test]
fn with_lcr_clients_of_an_excluded_daemon_are_told_and_nothing_comes_twice() {
    run(EngineName::Lcr);
}
