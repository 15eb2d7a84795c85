//! Breaks the protocol in one way after the other, and shows that the checks notice.
//!
//! For each mutant, seeds are run until one violates a property of the kind that the mutant's mistake
//! breaks: a panic, or some other property that happens to be hit first, does not count.

mod assertions;
mod groups;
mod table;
mod views;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rota_core::mutants::Mutant;
use rota_sim::campaign::{EngineName, GroupsChoice, Options, run_calm, run_plan};
use rota_sim::world::Outcome;
use table::{Known, SURVIVORS, TABLE};

/// How long one mutant may live.
const LIMIT: Duration = Duration::from_secs(600);

/// The engine in which a seed looks for a mutant.
type Engines = fn(Mutant, u64) -> EngineName;

/// How a mutant was found out.
struct Killed {
    seed: u64,
    property: String,
    after: Duration,
}

impl Killed {
    fn say(&self, known: &Known) {
        println!(
            "{:<7} {:<10} {:>8} {:>8.1}  {}",
            known.mutant.to_string(),
            self.property,
            self.seed,
            self.after.as_secs_f64(),
            known.what
        );
    }
}

fn main() -> ExitCode {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |known: &Known| only.is_empty() || only.contains(&known.mutant.to_string());
    println!("mutant  killed by   at seed  seconds  what it does");
    let mut times = Vec::new();
    let mut alive = 0;
    let first = TABLE.iter().chain(views::TABLE);
    let first = first.map(|known| (known, views::engine as Engines));
    let all = first.chain(
        groups::TABLE
            .iter()
            .map(|known| (known, groups::engine as _)),
    );
    for (known, engines) in all.filter(|(known, _)| wanted(known)) {
        match kill(known, engines) {
            Some(killed) => {
                times.push(killed.after);
                killed.say(known);
            }
            None => {
                alive += 1;
                println!("{:<7} SURVIVED  {}", known.mutant.to_string(), known.what);
            }
        }
    }
    let (mut found, missed) = assertions::run(&only);
    times.append(&mut found);
    alive += missed;
    times.sort_unstable();
    let seconds = |time: Option<&Duration>| time.map_or(0.0, Duration::as_secs_f64);
    println!(
        "{} killed, {alive} alive; seconds: median {:.1}, most {:.1}",
        times.len(),
        seconds(times.get(times.len() / 2)),
        seconds(times.last())
    );
    if only.is_empty() {
        for (mutant, why) in SURVIVORS
            .iter()
            .chain(views::SURVIVORS)
            .chain(groups::SURVIVORS)
        {
            println!("{:<7} not run: {why}", mutant.to_string());
        }
    }
    if alive == 0 && !times.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn kill(known: &Known, engines: Engines) -> Option<Killed> {
    let mut options = Options::new(EngineName::AcceleratedRing, 0..u64::MAX);
    options.mutant = Some(known.mutant.to_string());
    options.groups = if known.is_of_groups() {
        GroupsChoice::All
    } else {
        GroupsChoice::None
    };
    rota_core::mutants::set(Some(known.mutant));
    let hook = std::panic::take_hook();
    // Debug assertions notice some mutants, too.
    std::panic::set_hook(Box::new(|_| {}));
    let started = Instant::now();
    let killed = (0..)
        .take_while(|_| started.elapsed() < LIMIT)
        .find_map(|seed| {
            options.engine = engines(known.mutant, seed);
            let finding = run(known, &options, seed).finding?;
            let after = started.elapsed();
            let property = finding.property;
            known.kinds.contains(&property.as_str()).then_some(Killed {
                seed,
                property,
                after,
            })
        });
    std::panic::set_hook(hook);
    rota_core::mutants::set(None::<Mutant>);
    killed
}

/// What breaks no promise and only costs is looked for where it costs nothing without the mutant.
fn run(known: &Known, options: &Options, seed: u64) -> Outcome {
    if known.kinds == ["spurious"] {
        return run_calm(options, 2 + seed as usize % 7);
    }
    run_plan(options, &options.plan(seed), None)
}
