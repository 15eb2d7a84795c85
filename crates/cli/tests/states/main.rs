//! The table of ill states: each is made in a cluster of each engine, and the words of the log, of `rota status`, of
//! `rota status --explain` and of the metrics on it within ten seconds are compared with the manual's promises
//! (`docs/operations/states.md`). A cluster that is well is looked at in the same way, and nothing may be said of it.

mod cluster;
mod ills;
mod load;
mod states;
mod steady;
mod table;
mod watcher;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Cluster, NODES};
use rota_bench::{Offload, Testbed};
use rota_node::EngineName;
use states::STATES;
use table::{Is, Page, State};
use watcher::Before;

/// Clusters of each engine, among which the states are shared out.
const PARTS: usize = 3;

/// Cells that may be late while all clusters run, of more than a hundred.
const MOST_LATE: usize = 5;

/// One bed at a time: names of namespaces are those of this process, and times would suffer.
static ONE: Mutex<()> = Mutex::new(());

/// Namespaces for so many clusters. Without root this fails, as nothing here could be tested.
fn bed(clusters: usize) -> Testbed {
    let bed = Testbed::netns(clusters * usize::from(NODES), None, Offload::Pass);
    bed.expect("namespaces")
}

/// Seconds that a cluster of each engine is looked at: `ROTA_SECONDS`.
#[test]
#[ignore = "needs root, for network namespaces"]
fn nothing_well_is_called_ill() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let seconds = std::env::var("ROTA_SECONDS").map(|seconds| seconds.parse().expect("a number"));
    let time = Duration::from_secs(seconds.unwrap_or(8));
    let (bed, failed) = (bed(EngineName::ALL.len()), AtomicBool::new(false));
    thread::scope(|scope| {
        for (index, engine) in EngineName::ALL.into_iter().enumerate() {
            let (bed, failed) = (&bed, &failed);
            scope.spawn(move || steady::watch(&Cluster::start(bed, index, engine), time, failed));
        }
    });
}

/// Makes a state, and says what is not said of it.
fn go_through(cluster: &mut Cluster<'_>, state: &State) -> Vec<String> {
    steady::wait_whole(cluster);
    let before = Before::of(cluster);
    let began = Instant::now();
    (state.make)(cluster);
    let wrong = match state.of(cluster.engine) {
        Is::Said(said) => before.expect(cluster, said),
        _ => {
            steady::wait_well(cluster);
            Vec::new()
        }
    };
    (state.end)(cluster);
    let (engine, took) = (cluster.engine.name(), began.elapsed());
    println!(
        "{engine}: {}: {took:.1?}, {} not said",
        state.name,
        wrong.len()
    );
    let named = |what| format!("{engine}, {}: {what}", state.name);
    let wrong: Vec<String> = wrong.into_iter().map(named).collect();
    wrong.iter().for_each(|what| println!("{what}"));
    wrong
}

/// `ROTA_STATES` are words in the names of states; all, if it is not set.
fn is_wanted(state: &State) -> bool {
    let only = std::env::var("ROTA_STATES").unwrap_or_default();
    only.split(',').any(|words| state.name.contains(words))
}

#[test]
#[ignore = "needs root, for network namespaces"]
fn each_ill_state_is_named_in_each_engine() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let bed = bed(EngineName::ALL.len() * PARTS);
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (number, engine) in EngineName::ALL.into_iter().enumerate() {
            for part in 0..PARTS {
                let (bed, wrong) = (&bed, &wrong);
                scope.spawn(move || {
                    let mut cluster = Cluster::start(bed, number * PARTS + part, engine);
                    let states = STATES.iter().filter(|state| is_wanted(state));
                    for state in states.skip(part).step_by(PARTS) {
                        if !matches!(state.of(engine), Is::Never(_))
                            && !go_through(&mut cluster, state).is_empty()
                        {
                            wrong.lock().expect("no panic").push((engine, state));
                        }
                    }
                });
            }
        }
    });
    let late = wrong.into_inner().expect("no panic");
    assert!(late.len() <= MOST_LATE, "{} cells are wrong", late.len());
    // Ten seconds are for hosts that do not run eighteen clusters: what was late there has to be in time alone.
    let alone = |(engine, state): (EngineName, &State)| {
        println!("{}: {}: once more, alone", engine.name(), state.name);
        go_through(&mut Cluster::start(&bed, 0, engine), state)
    };
    let wrong: Vec<String> = late.into_iter().flat_map(alone).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `ROTA_BLESS=1` writes the page; the diff is what changes in the manual.
#[test]
fn the_page_is_what_the_test_looks_for() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations/states.md");
    let page = Page.to_string();
    if std::env::var_os("ROTA_BLESS").is_some() {
        std::fs::write(&path, &page).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/operations/states.md: write it anew with ROTA_BLESS=1"
    );
}
