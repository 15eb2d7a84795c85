//! Fits the numbers of `docs/papers/calibration.toml` that name a claim to that claim, one after the other, and prints
//! them. No other claim is looked at.

use rota_papers::{Calibration, fitted};

/// A number, and the claim that it is fitted to.
struct Knob {
    name: &'static str,
    claim: &'static str,
    said: f64,
    number: fn(&mut Calibration) -> &mut f64,
    /// The least and the largest that it may be.
    within: (f64, f64),
}

const KNOBS: [Knob; 8] = [
    knob(
        "one_gig.path_us",
        "t04",
        713.0,
        |all| &mut all.one_gig.path_us,
        (1.0, 200.0),
    ),
    knob(
        "machine.send_us",
        "t20",
        2950.0,
        |all| &mut all.machine.send_us,
        (0.5, 6.0),
    ),
    knob(
        "machine.receive_us",
        "t21",
        4595.0,
        |all| &mut all.machine.receive_us,
        (0.5, 6.0),
    ),
    knob(
        "ten_gig.path_us",
        "r27",
        520.0,
        |all| &mut all.ten_gig.path_us,
        (1.0, 100.0),
    ),
    knob(
        "machine.byte_ns",
        "r30",
        7300.0,
        |all| &mut all.machine.byte_ns,
        (0.0, 1.4),
    ),
    knob(
        "daemon.message_us",
        "r24",
        3300.0,
        |all| &mut all.daemon.message_us,
        (0.0, 6.0),
    ),
    knob(
        "spread.message_us",
        "r22",
        2300.0,
        |all| &mut all.spread.message_us,
        (0.0, 9.0),
    ),
    knob(
        "fastcast.path_us",
        "f09",
        5.65,
        |all| &mut all.fastcast.path_us,
        (1.0, 300.0),
    ),
];

const fn knob(
    name: &'static str,
    claim: &'static str,
    said: f64,
    number: fn(&mut Calibration) -> &mut f64,
    within: (f64, f64),
) -> Knob {
    Knob {
        name,
        claim,
        said,
        number,
        within,
    }
}

/// Rounds over all numbers.
const ROUNDS: usize = 4;
/// The share by which a number is changed to see what that does.
const PROBE: f64 = 0.1;
/// The most that one step changes a number by.
const STEP: f64 = 0.5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let mut all = Calibration::built_in()?;
    for round in 1..=ROUNDS {
        println!("# round {round}");
        for knob in KNOBS {
            if !only.is_empty() && !only.iter().any(|name| name == knob.name) {
                continue;
            }
            let before = *(knob.number)(&mut all);
            let here = fitted(&all, knob.claim)?;
            *(knob.number)(&mut all) = before * (1.0 + PROBE) + 0.01;
            let there = fitted(&all, knob.claim)?;
            let probed = *(knob.number)(&mut all);
            let slope = (there - here) / (probed - before);
            let step = (knob.said - here) / slope;
            let most = STEP * before.max(1.0);
            let step = if step.is_finite() {
                step.clamp(-most, most)
            } else {
                0.0
            };
            let next = (before + step).clamp(knob.within.0, knob.within.1);
            *(knob.number)(&mut all) = next;
            println!(
                "{} = {next:.3}  # was {before:.3}: {} {here:.3} of {}",
                knob.name, knob.claim, knob.said
            );
        }
    }
    Ok(())
}
