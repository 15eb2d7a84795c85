//! Simulated regions, and predictions of several rings, without the rest of the report. Arguments: `delays` (if nothing
//! is said) or `predictions`.

use rota_papers::{Calibration, Lab, Leveling, Regions, rings_predictions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::new(Calibration::built_in()?);
    match std::env::args().nth(1).as_deref() {
        None | Some("delays") => delays(&lab),
        Some("predictions") => predictions(&lab),
        Some(other) => return Err(format!("{other}: delays or predictions").into()),
    }
    Ok(())
}

/// Of messages to the regions' own rings, by regions, messages a second to the ring of all, and leveling.
fn delays(lab: &Lab) {
    println!(
        "| regions | to all, a second | leveling | local p50, ms | local p99, ms | to all: p50, ms |"
    );
    println!("|---|---|---|---|---|---|");
    for global in [0, 5, 20] {
        for count in 1..=4 {
            for leveling in Leveling::EACH {
                let regions = Regions {
                    global,
                    ..Regions::new(count, leveling)
                };
                let run = lab.regions(&regions, 1);
                assert!(run.is_sound(), "{regions:?}");
                let local = &run.rings[..count];
                let most = |of: fn(&rota_wire::Delays) -> f64| {
                    let each = local.iter().map(|ring| of(&ring.delays) / 1000.0);
                    each.fold(0.0, f64::max)
                };
                let to_all = run
                    .rings
                    .get(count)
                    .map_or(0.0, |ring| ring.delays.p50 / 1000.0);
                println!(
                    "| {count} | {global} | {} | {:.2} | {:.2} | {to_all:.1} |",
                    leveling.name(),
                    most(|delays| delays.p50),
                    most(|delays| delays.p99),
                );
            }
        }
    }
}

fn predictions(lab: &Lab) {
    println!("| what | hosts | Mbit/s | p50, us | work, us | busiest processor |");
    println!("|---|---|---|---|---|---|");
    for one in rings_predictions(lab, 2) {
        println!(
            "| {} | {} | {:.0} | {:.0} | {:.2} | {:.0} % |",
            one.what,
            one.hosts,
            one.mbps,
            one.p50,
            one.work_us,
            one.busiest * 100.0
        );
    }
}
