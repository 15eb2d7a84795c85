//! Changes that no property notices, since all promises still hold: memory that is not given back, a sum that is wrong,
//! a packet that is sent twice. An invariant of the machine finds each.

use std::process::ExitCode;
use std::time::Instant;

use super::{Killed, say};
use rota_core::mutants::Mutant;
use rota_core::mutants::Mutant::*;
use rota_core::mutants::{keep_checks, set};
use rota_sim::campaign::{EngineName, Options, run_plan};
use rota_sim::observe::Finding;

/// The most seeds that are run until one shows a change.
const SEEDS: u64 = 200;
/// The number of seeds that show that no property notices it.
const QUIET: u64 = 5;

/// A change, where it is, what the invariant says, and what the change does.
type Row = (Mutant, EngineName, &'static str, &'static str);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (I01, EngineName::FastCast, "has no watermark", "nothing delivered has a watermark"),
    (I02, EngineName::FastCast, "are carried on", "what is carried on is never forgotten"),
    (I03, EngineName::URingPaxos, "of what is known", "a register remembers what is known"),
    (I04, EngineName::FastCast, "is sent by one", "all who hold what somebody lacks send it"),
    (I05, EngineName::URingPaxos, "bytes are counted", "a window counts too much"),
    (I06, EngineName::URingPaxos, "bytes are counted", "a proposer counts too much"),
    (I07, EngineName::URingPaxos, "bytes are counted", "a delivery queue counts too much"),
    (I08, EngineName::URingPaxos, "under way is counted", "a disk's requests count too much"),
    (I09, EngineName::RingPaxos, "bytes are counted", "proposals without their values count too much"),
    (I10, EngineName::Lcr, "on its way is counted", "a member of LCR counts too much"),
    (I11, EngineName::TotemRing, "that is held is not repeated", "a token that is held is repeated"),
    (I12, EngineName::TotemRing, "asks nobody to hurry", "the representative asks itself to hurry"),
    (I13, EngineName::TotemRing, "requested are packets", "a packet that was requested counts twice"),
    (I14, EngineName::FastCast, "if nothing is open", "a watch that is over remembers its tries"),
    (I15, EngineName::RingPaxos, "in part are counted", "values that have come in part count too much"),
];

/// The names of all changes.
pub fn names() -> impl Iterator<Item = String> {
    TABLE.iter().map(|row| row.0.to_string())
}

/// Makes one change, in this process.
pub fn one(name: &str) -> ExitCode {
    let Some(row) = TABLE.iter().find(|row| row.0.to_string() == name) else {
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let killed = |seed| Killed {
        seed,
        property: "invariant".to_owned(),
        after: started.elapsed(),
    };
    let judged = kill(row).map(killed);
    say(name, row.3, judged.map_err(|why| format!(": {why}")))
}

/// The first seed that shows it, unless something else does as well, or nothing.
fn kill(&(mutant, engine, says, _): &Row) -> Result<u64, String> {
    set(Some(mutant));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let judged = judge(engine, says);
    std::panic::set_hook(hook);
    keep_checks(false);
    set(None);
    judged
}

fn judge(engine: EngineName, says: &str) -> Result<u64, String> {
    keep_checks(true);
    let shows = |seed: &u64| {
        finding(engine, *seed)
            .is_some_and(|found| found.property == "panic" && found.detail.contains(says))
    };
    let seed = (0..SEEDS).find(shows).ok_or("no seed shows it")?;
    keep_checks(false);
    for quiet in (0..QUIET).chain([seed]) {
        if let Some(found) = finding(engine, quiet) {
            return Err(format!(
                "{} finds it, too: {}",
                found.property, found.detail
            ));
        }
    }
    Ok(seed)
}

fn finding(engine: EngineName, seed: u64) -> Option<Finding> {
    let options = Options::new(engine, 0..u64::MAX);
    run_plan(&options, &options.plan(seed), None).finding
}
