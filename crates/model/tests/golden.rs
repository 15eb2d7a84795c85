//! The model's values, reckoned by hand from the thesis's formulas.

use rota_model::{
    Bounds, Delays, Error, Load, MEASURED, Protocol, Ring, agreed, at_rate, average_broadcast,
    head_start, judge, safe, safe_exact,
};

use Protocol::{Accelerated, Original};

fn near(is: f64, wanted: f64, share: f64) {
    assert!(
        (is - wanted).abs() <= wanted.abs() * share,
        "{is} instead of {wanted}"
    );
}

fn all_near(is: Delays, wanted: [f64; 3]) {
    let is = [is.best, is.average, is.worst];
    for (is, wanted) in is.into_iter().zip(wanted) {
        near(is, wanted, 1e-4);
    }
}

fn ring(nodes: u32, windows: (u32, u32), (burst_us, hop_us): (f64, f64)) -> Ring {
    let ring = Ring {
        nodes,
        personal_window: windows.0,
        accelerated_window: windows.1,
        message_bytes: 1350,
        burst_us,
        hop_us,
    };
    ring.check().expect("there can be such a ring");
    ring
}

/// Rotation and head start; throughput; agreed and safe, original and accelerated.
struct Golden {
    ring: Ring,
    rotations: [f64; 2],
    head_start: f64,
    mbps: [f64; 2],
    agreed: [[f64; 3]; 2],
    safe: [[f64; 3]; 2],
}

fn golden() -> [Golden; 3] {
    [
        Golden {
            ring: ring(8, (30, 20), (356.25, 100.0)),
            rotations: [3650.0, 1750.0],
            head_start: 137.5,
            mbps: [710.137, 1481.143],
            agreed: [[100.0, 2103.125, 4106.25], [237.5, 1179.660, 2206.25]],
            safe: [[3650.0, 7300.0, 10493.75], [1987.5, 4679.660, 7237.5]],
        },
        // A rotation takes as long as a window.
        Golden {
            ring: ring(8, (30, 30), (356.25, 20.0)),
            rotations: [3010.0, 356.25],
            head_start: 311.719,
            mbps: [861.130, 7275.789],
            agreed: [[20.0, 1703.125, 3386.25], [331.719, 512.627, 732.5]],
            safe: [[3010.0, 6020.0, 8653.75], [687.969, 1225.127, 1756.719]],
        },
        // The report's figure 1.
        Golden {
            ring: ring(3, (5, 3), (50.0, 10.0)),
            rotations: [180.0, 90.0],
            head_start: 20.0,
            mbps: [900.0, 1800.0],
            agreed: [[10.0, 125.0, 240.0], [30.0, 84.0, 150.0]],
            safe: [[180.0, 360.0, 480.0], [120.0, 264.0, 390.0]],
        },
    ]
}

#[test]
fn full_load_is_as_reckoned_by_hand() {
    for golden in golden() {
        let ring = &golden.ring;
        for (at, protocol) in [Original, Accelerated].into_iter().enumerate() {
            let rotation = ring.rotation_us(protocol);
            near(rotation, golden.rotations[at], 1e-4);
            near(ring.throughput_mbps(rotation), golden.mbps[at], 1e-4);
            let load = Load::full(ring, protocol);
            all_near(agreed(ring, protocol, load), golden.agreed[at]);
            all_near(safe(ring, protocol, load), golden.safe[at]);
        }
        let rotation = ring.rotation_us(Accelerated);
        near(head_start(ring, rotation), golden.head_start, 1e-4);
    }
}

#[test]
fn a_light_load_is_as_reckoned_by_hand() {
    let ring = ring(8, (30, 20), (356.25, 100.0));
    for protocol in [Original, Accelerated] {
        all_near(agreed(&ring, protocol, Load::Light), [100.0, 500.0, 900.0]);
    }
    all_near(safe(&ring, Original, Load::Light), [800.0, 1600.0, 2300.0]);
    all_near(
        safe(&ring, Accelerated, Load::Light),
        [1600.0, 2400.0, 3200.0],
    );
    all_near(
        safe_exact(&ring, Accelerated, Load::Light),
        [1700.0, 2500.0, 3200.0],
    );
}

/// Over many rings: what grows and what shrinks with the accelerated window, and what lies between what.
#[test]
fn it_goes_the_right_way() {
    for nodes in 2..12 {
        for (burst, hop) in [(40.0, 400.0), (356.25, 100.0), (900.0, 10.0)] {
            let of = |accelerated| ring(nodes, (20, accelerated), (burst, hop));
            let (mut rotation, mut mbps) = (f64::MAX, 0.0);
            for accelerated in 0..=20 {
                let ring = of(accelerated);
                let now = ring.rotation_us(Accelerated);
                assert!(now <= rotation && ring.throughput_mbps(now) >= mbps);
                (rotation, mbps) = (now, ring.throughput_mbps(now));
                let broadcast = average_broadcast(&ring, now);
                assert!((burst / 2.0..=burst).contains(&broadcast), "{broadcast}");
                for load in [Load::Light, Load::Full(now)] {
                    for delays in [agreed, safe, safe_exact].map(|of| of(&ring, Accelerated, load))
                    {
                        assert!(delays.best <= delays.average && delays.average <= delays.worst);
                    }
                }
            }
            let none = of(0);
            let load = Load::full(&none, Original);
            assert_eq!(load, Load::full(&none, Accelerated));
            assert_eq!(
                agreed(&none, Original, load),
                agreed(&none, Accelerated, load)
            );
            assert_eq!(safe(&none, Original, load), safe(&none, Accelerated, load));
        }
    }
}

#[test]
fn bounds_keep_a_gigabit_at_a_gigabit() {
    let ring = ring(8, (30, 30), (356.25, 20.0));
    let bounds = Bounds {
        wire_us: 11.65,
        ..Bounds::default()
    };
    let most = ring.throughput_mbps(bounds.rotation_us(&ring));
    near(most, 1059.0, 1e-3);
    // A sent packet and seven received ones, and what a round costs anyway: they come from t13 and t21, and give them back.
    let bounds = Bounds {
        send_us: 3.3,
        receive_us: 2.0,
        token_us: 151.0,
        ..Bounds::default()
    };
    for (window, mbps) in [(40, 4100.0), (100, 4595.0)] {
        let ring = self::ring(8, (window, window), (3.15 * f64::from(window), 51.0));
        let most = ring.throughput_mbps(bounds.rotation_us(&ring));
        near(most, mbps, 0.01);
    }
    assert!(Bounds::default().rotation_us(&ring) <= 0.0);
}

/// r01 and r02 of the headlines are *below 400 us*, of Spread on a network with a shorter way.
#[test]
fn a_load_in_between_has_the_delays_of_the_report() {
    let ring = ring(8, (30, 20), (356.25, 78.0));
    let original = at_rate(&ring, Original, 100.0).expect("it is little");
    near(original.agreed_us, 432.0, 0.01);
    let accelerated = at_rate(&ring, Accelerated, 400.0).expect("it is little");
    near(accelerated.agreed_us, 407.0, 0.01);
    assert!(accelerated.visit < 20.0);
    // Until a window is full, and no longer.
    assert!(at_rate(&ring, Original, 700.0).is_some());
    assert!(at_rate(&ring, Original, 760.0).is_none());
    assert!(at_rate(&ring, Accelerated, 1000.0).is_none());
    let most = ring.throughput_mbps(ring.rotation_us(Original));
    assert!(at_rate(&ring, Original, most * 0.999).is_some());
    assert!(at_rate(&ring, Original, most * 1.001).is_none());
}

/// Rotation measured and reckoned, throughput, delays: as reckoned by hand, to 1 %.
#[test]
fn what_was_measured_stands_beside_it() {
    let wanted = [
        [2750.0, 2685.0, 644.0, 1592.0, 5499.0],
        [3635.0, 3635.0, 713.0, 2094.0, 7271.0],
        [10286.0, 10286.0, 840.0, 5835.0, 20571.0],
        [1763.0, 785.0, 2201.0, 1099.0, 4624.0],
        [2629.0, 1735.0, 1494.0, 1592.0, 6849.0],
        [1416.0, 1416.0, 2440.0, 822.0, 2832.0],
        [2929.0, 2929.0, 2950.0, 1673.0, 5858.0],
        [843.0, 408.0, 8478.0, 537.0, 2223.0],
        [1880.0, 408.0, 21195.0, 1159.0, 4919.0],
    ];
    for (row, wanted) in MEASURED.iter().zip(wanted) {
        let judged = judge(row);
        let is = [
            judged.rotation_us,
            judged.model_rotation_us,
            judged.model_mbps,
            judged.agreed_us,
            judged.safe_us,
        ];
        for (is, wanted) in is.into_iter().zip(wanted) {
            near(is, wanted, 0.01);
        }
    }
}

#[test]
fn what_cannot_be_is_said() {
    let ring = ring(8, (30, 20), (356.25, 100.0));
    let wrong = [
        (Ring { nodes: 1, ..ring }, Error::Empty),
        (
            Ring {
                message_bytes: 0,
                ..ring
            },
            Error::Empty,
        ),
        (
            Ring {
                personal_window: 0,
                ..ring
            },
            Error::Empty,
        ),
        (
            Ring {
                accelerated_window: 31,
                ..ring
            },
            Error::Window,
        ),
        (
            Ring {
                hop_us: 0.0,
                ..ring
            },
            Error::Time,
        ),
        (
            Ring {
                burst_us: f64::NAN,
                ..ring
            },
            Error::Time,
        ),
    ];
    for (ring, error) in wrong {
        assert_eq!(ring.check(), Err(error));
    }
}
