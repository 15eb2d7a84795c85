//! The time-outs of each profile are those of the section "Times" in `docs/protocols/membership.md`.

use rota_core::timing::{Timers, Timing};

const MILLI: u64 = 1_000_000;

#[test]
fn time_outs_of_a_profile_are_as_written() {
    let cases = [
        (Timing::LanFast, 100, 5),
        (Timing::Default, 300, 10),
        (Timing::Relaxed, 1000, 100),
    ];
    for (profile, of_two, each) in cases {
        for nodes in [1, 2, 3, 8, 128] {
            let timers = Timers::derive(profile, nodes);
            let beyond = u64::try_from(nodes).expect("few").saturating_sub(2);
            let loss = (of_two + each * beyond) * MILLI;
            assert_eq!(timers.token_loss, loss, "{profile:?}, {nodes} nodes");
            assert_eq!(
                timers.consensus,
                loss + loss / 4,
                "1.25 times the token loss"
            );
            assert_eq!(timers.join, (loss / 20).max(10 * MILLI));
            assert_eq!(timers.merge, 100 * MILLI);
        }
    }
}
