//! Regions with rings of their own and a ring of all of them: what the ring of all costs those that speak locally.

use rota_papers::{Calibration, Lab, Leveling, Regions};
use rota_wire::RingsRun;

fn lab() -> Lab {
    Lab::new(Calibration::built_in().expect("the calibration"))
}

fn sound(lab: &Lab, regions: &Regions) -> RingsRun {
    let run = lab.regions(regions, 1);
    assert!(run.is_sound(), "{regions:?}: {run:?}");
    assert_eq!(run.disturbed, 0, "{regions:?}: {run:?}");
    run
}

/// The longest median of a region's ring, in microseconds.
fn local(run: &RingsRun, regions: usize) -> f64 {
    let rings = run.rings[..regions].iter();
    rings.map(|ring| ring.delays.p50).fold(0.0, f64::max)
}

/// The rates of messages to the ring of all, a second.
const GLOBAL: [u64; 3] = [0, 5, 20];

#[test]
fn local_messages_do_not_wait_for_the_ring_of_all_regions_with_horizon() {
    let lab = lab();
    for count in 1..=4 {
        let alone = local(&sound(&lab, &Regions::new(count, Leveling::Alone)), count);
        for global in GLOBAL {
            let regions = Regions {
                global,
                ..Regions::new(count, Leveling::Horizon)
            };
            let beside = local(&sound(&lab, &regions), count);
            assert!(
                beside <= 1.2 * alone,
                "{regions:?}: {beside} us, and {alone} us alone"
            );
        }
    }
}

/// Each message waits for the ring of all, as the paper has it: for the time between two skips, and its lap.
#[test]
fn local_messages_wait_for_a_lap_with_the_leveling_of_the_paper() {
    let lab = lab();
    let p50 = |count| local(&sound(&lab, &Regions::new(count, Leveling::Paper)), count);
    let (one, four) = (p50(1), p50(4));
    assert!(one > 2_000.0, "{one}");
    // A lap goes from us-west-2 over us-west-1, us-east-1 and eu-west-1 back: half of 19, 72, 80 and 137 ms there and
    // back, 154 ms.
    assert!(four > 154_000.0, "{four}");
}

/// With `pull` a ring of all regions costs the local messages nothing while nothing is sent to it; what is sent to it
/// holds them up.
#[test]
fn what_is_sent_to_all_regions_holds_local_messages_up_with_pull() {
    let lab = lab();
    let p50 = |leveling, global| {
        let regions = Regions {
            global,
            ..Regions::new(4, leveling)
        };
        local(&sound(&lab, &regions), 4)
    };
    let alone = p50(Leveling::Alone, 0);
    assert!(p50(Leveling::Pull, 0) <= 1.2 * alone);
    let held_up = p50(Leveling::Pull, 20);
    assert!(held_up > 50.0 * alone, "{held_up}");
}
