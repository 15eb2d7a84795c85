//! Runs one seed with some of its faults, and writes its trace.

use rota_sim::campaign::{self, Cuts, EngineName, Options};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let seed: u64 = a[1].parse().unwrap();
    let keep = a.get(3).filter(|k| *k != "all").map(|k| {
        if k == "none" {
            vec![]
        } else {
            k.split(',').map(|x| x.parse().unwrap()).collect()
        }
    });
    let options = Options {
        engine: std::env::var("ENGINE")
            .as_deref()
            .unwrap_or("accelerated-ring")
            .parse::<EngineName>()
            .unwrap(),
        seeds: seed..seed + 1,
        faults: a[2].parse().unwrap(),
        mutant: std::env::var("MUTANT").ok(),
        first: false,
        trace: Some("/tmp/tr".into()),
        jobs: 1,
        cuts: Cuts {
            keep,
            horizon: a.get(4).filter(|h| *h != "-").map(|h| h.parse().unwrap()),
            calm: a.get(5).is_some(),
        },
    };
    println!("{}", campaign::run(&options).unwrap());
}
