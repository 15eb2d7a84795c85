//! Runs a range of seeds.

use rota_sim::campaign::{self, Cuts, EngineName, Options};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let from: u64 = a[1].parse().unwrap();
    let to: u64 = a[2].parse().unwrap();
    let options = Options {
        engine: a
            .get(4)
            .map_or("accelerated-ring", String::as_str)
            .parse::<EngineName>()
            .unwrap(),
        seeds: from..to,
        faults: a.get(3).map_or("all", String::as_str).parse().unwrap(),
        mutant: std::env::var("MUTANT").ok(),
        first: std::env::var("FIRST").is_ok(),
        trace: std::env::var_os("TRACE").map(Into::into),
        jobs: 1,
        cuts: Cuts::default(),
    };
    let report = campaign::run(&options).unwrap();
    println!("{report}");
}
