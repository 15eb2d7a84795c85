//! Clients whose connections are cut at a random byte, under load in both directions. With every library and transport,
//! the messages that a client hears are a part of the one order without gaps and doubles; messages that had come are
//! told before the loss; of its own messages a first part is heard, once, and all of them where closing said so; by TLS
//! no cut passes for an end; and nothing hangs.
//!
//! `ROTA_SEED` and `ROTA_CUTS` make a campaign of it: so many connections for each library, from that seed on.
//! `ROTA_PYTHON` is an interpreter that has the package.

mod judge;
mod plan;
mod puppet;
mod relay;
mod rust;
mod stage;

use judge::Seen;
use plan::Plan;
use puppet::{Program, Puppet};
use stage::Stage;

use crate::from_c::{Workshop, ffi};
use crate::languages::{go_program, java_program};

/// Connections of each library, where nobody asks for more.
const SLICE: u64 = 60;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

fn campaign(library: &str, puppet: &mut dyn Puppet) {
    let (first, rounds) = (setting("ROTA_SEED", 1), setting("ROTA_CUTS", SLICE));
    let mut stage = Stage::new();
    let mut seen = Seen::default();
    for plan in Plan::special() {
        println!("{library}: {plan:?}");
        stage.play(plan, puppet, &mut seen);
    }
    for seed in first..first + rounds {
        println!("{library}: ROTA_SEED={seed} ROTA_CUTS=1");
        stage.play(Plan::draw(seed), puppet, &mut seen);
    }
    stage.end(&seen);
    println!("{library}: {seen}");
    if rounds >= SLICE {
        seen.assert_not_idle();
    }
}

#[test]
fn cuts_of_the_blocking_client() {
    campaign("blocking", &mut rust::Blocking);
}

#[test]
fn cuts_of_the_async_client() {
    campaign("async", &mut rust::Async);
}

#[test]
fn cuts_of_the_client_in_c() {
    let workshop = Workshop::new();
    let program = workshop.compile(&ffi("tests/cuts.c"), &["-lrota", "-lpthread"]);
    campaign("c", &mut Program::start(workshop.command(&program)));
}

#[test]
fn cuts_of_the_client_in_go() {
    campaign("go", &mut Program::start(go_program("cuts")));
}

#[test]
fn cuts_of_the_client_in_java() {
    campaign("java", &mut Program::start(java_program("Cuts")));
}

/// Of both clients for Python, where the package is there.
#[test]
fn cuts_of_the_clients_for_python() {
    let Ok(interpreter) = std::env::var("ROTA_PYTHON") else {
        println!("without ROTA_PYTHON: nothing");
        return;
    };
    for flavour in ["blocking", "asyncio"] {
        let mut program = Program::python(&interpreter, flavour);
        campaign(&format!("python {flavour}"), &mut program);
    }
}
