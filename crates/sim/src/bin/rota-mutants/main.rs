//! Breaks the protocol in one way after the other, and shows that the checks notice. Each mutant has a process of its own, and there are as many of
//! these at a time as processors.
//!
//! For each mutant, seeds are run until one violates a property of the kind that the mutant's mistake
//! breaks: a panic, or some other property that happens to be hit first, does not count.

mod assertions;
mod groups;
mod table;
mod views;

use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rota_core::mutants::Mutant;
use rota_sim::campaign::{EngineName, GroupsChoice, Options, run_calm, run_plan};
use rota_sim::world::Outcome;
use table::{Known, SURVIVORS, TABLE};

/// The longest life of one mutant.
const LIMIT: Duration = Duration::from_secs(600);
/// The argument before the name of a mutant that this process is for.
const ONE: &str = "--one";

/// The engine in which a seed looks for a mutant.
type Engines = fn(Mutant, u64) -> EngineName;

/// The finding by which a mutant was found out.
struct Killed {
    seed: u64,
    property: String,
    after: Duration,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [flag, name] if flag == ONE => one(name),
        only => all(only),
    }
}

/// All mutants that simulations find out, or these.
fn all(only: &[String]) -> ExitCode {
    let known: Vec<String> = simulated()
        .map(|(known, _)| known.mutant.to_string())
        .chain(assertions::names())
        .collect();
    if let Some(unknown) = only.iter().find(|name| !known.contains(name)) {
        eprintln!("rota-mutants: no simulation looks for {unknown}");
        return ExitCode::from(2);
    }
    let is_wanted = |name: &String| only.is_empty() || only.contains(name);
    let wanted: Vec<String> = known.into_iter().filter(is_wanted).collect();
    println!("mutant  killed by   at seed  seconds  what it does");
    let next = Mutex::new(wanted.iter());
    let ended = Mutex::new((Vec::new(), 0_usize));
    let work = || {
        while let Some(name) = next.lock().expect("nobody panics").next() {
            let (took, is_dead) = in_own_process(name);
            let mut ended = ended.lock().expect("nobody panics");
            ended.0.push(took);
            ended.1 += usize::from(!is_dead);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (mut times, alive) = ended.into_inner().expect("nobody panics");
    times.sort_unstable();
    let seconds = |time: Option<&Duration>| time.map_or(0.0, Duration::as_secs_f64);
    println!(
        "{} killed, {alive} alive; seconds: median {:.1}, most {:.1}",
        times.len() - alive,
        seconds(times.get(times.len() / 2)),
        seconds(times.last())
    );
    if only.is_empty() {
        let survivors = SURVIVORS.iter().chain(views::SURVIVORS);
        for (mutant, why) in survivors.chain(groups::SURVIVORS) {
            println!("{:<7} not run: {why}", mutant.to_string());
        }
    }
    match alive {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The time that a mutant took, and whether it is dead. Its process says the rest.
fn in_own_process(name: &str) -> (Duration, bool) {
    let started = Instant::now();
    let program = std::env::current_exe().expect("this program has a name");
    let output = Command::new(program).args([ONE, name]).output();
    let output = output.expect("this program can be started");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    (started.elapsed(), output.status.success())
}

/// The mutants that a property finds out, and the engines in which it does.
fn simulated() -> impl Iterator<Item = (&'static Known, Engines)> {
    let first = TABLE.iter().chain(views::TABLE);
    let first = first.map(|known| (known, views::engine as Engines));
    let groups = groups::TABLE.iter();
    first.chain(groups.map(|known| (known, groups::engine as Engines)))
}

/// One mutant, in this process.
fn one(name: &str) -> ExitCode {
    let mut simulated = simulated();
    let Some((known, engines)) = simulated.find(|(known, _)| known.mutant.to_string() == name)
    else {
        return assertions::one(name);
    };
    say(
        name,
        known.what,
        kill(known, engines).ok_or_else(String::new),
    )
}

/// Prints the line of a mutant, and its process's exit status. `Err`: why it lives, if that is known.
fn say(name: &str, what: &str, killed: Result<Killed, String>) -> ExitCode {
    match killed {
        Ok(Killed {
            seed,
            property,
            after,
        }) => {
            let seconds = after.as_secs_f64();
            println!("{name:<7} {property:<10} {seed:>8} {seconds:>8.1}  {what}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{name:<7} SURVIVED  {what}{why}");
            ExitCode::FAILURE
        }
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

/// Runs a seed. A mutant that breaks no promise and only costs is looked for in a world in which it costs nothing
/// without the mutant.
fn run(known: &Known, options: &Options, seed: u64) -> Outcome {
    if known.kinds == ["spurious"] {
        return run_calm(options, 2 + seed as usize % 7);
    }
    run_plan(options, &options.plan(seed), None)
}
