//! P-14 and P-49: a process stands still in each state, for the token time-out, a tick less, a tick more.

use rota_core::contract::{ConfigurationKind, Service};

use crate::commit::broken;
use crate::net::{MILLI, Net, SECOND};

const STATES: [&str; 4] = ["operational", "gathering", "committing", "recovering"];

/// A ring, or one that forms, with node `at` in a state.
fn in_state(state: &str, at: usize) -> Net {
    if state == "operational" {
        let mut net = Net::formed(3);
        for index in 0..30_usize {
            net.submit(
                index % 3,
                [Service::Safe, Service::Agreed][index % 2],
                &[1; 600],
            );
        }
        net.run_for(MILLI / 5);
        return net;
    }
    let mut net = broken(3);
    net.run_until(state, |net| net.phase(at) == state);
    net
}

/// Exactly the token time-out and a tick to either side, in each state; it goes on with its timers first, or
/// with what has come.
#[test]
fn p_14_a_pause_of_the_token_time_out_and_a_tick() {
    for state in STATES {
        for at in 0..3 {
            for tick in [-1, 0, 1] {
                for timers_first in [false, true] {
                    let mut net = in_state(state, at);
                    net.pause(at);
                    let loss = net.timers().token_loss;
                    net.run_for(loss.saturating_add_signed(tick));
                    net.submit(at, Service::Agreed, b"from the pause");
                    net.resume(at, timers_first);
                    net.rest();
                }
            }
        }
    }
}

/// From half a time-out to a minute, while the others send.
#[test]
fn p_14_pauses_of_any_length_in_each_state() {
    for state in STATES {
        for at in 0..3 {
            for timers_first in [false, true] {
                for halves in [1, 2, 4, 5] {
                    pause(state, at, halves, timers_first);
                }
            }
        }
    }
}

fn pause(state: &str, at: usize, halves: u64, timers_first: bool) {
    let mut net = in_state(state, at);
    net.pause(at);
    let end = net.now.after(halves * net.timers().token_loss / 2);
    while net.now < end {
        net.submit((at + 1) % 3, Service::Safe, &[2; 300]);
        net.run_for(10 * MILLI);
    }
    net.resume(at, timers_first);
    net.rest();
}

/// Who has slept for a minute sees the others leave and come back, and what it submitted in the meantime is
/// sent in the ring that follows.
#[test]
fn p_14_a_long_pause_is_seen_as_leaving_and_coming_back() {
    for at in 0..3 {
        for timers_first in [false, true] {
            let mut net = Net::formed(3);
            net.submit(0, Service::Safe, b"before");
            net.run_for(MILLI);
            let old = net.ring(at);
            net.pause(at);
            let end = net.now.after(60 * SECOND);
            while net.now < end {
                net.submit((at + 1) % 3, Service::Agreed, &[2; 300]);
                net.run_for(50 * MILLI);
            }
            net.submit(at, Service::Agreed, b"dreamt");
            net.resume(at, timers_first);
            let net = net.rest();
            assert_eq!(net.transitional(at), [at], "the others have gone on");
            let dreamt = net.hosts[at].app.got.iter();
            let dreamt = dreamt.filter(|(.., text)| text == b"dreamt");
            let confs: Vec<_> = dreamt.map(|(conf, ..)| *conf).collect();
            let [ConfigurationKind::Regular(ring)] = confs[..] else {
                panic!("{confs:?}");
            };
            assert_ne!(ring, old, "nobody is left there to get it");
        }
    }
}

/// P-49: the clock of who stood still jumps with it; all its timers are due at once, long ago.
#[test]
fn p_49_two_of_three_stand_still_together() {
    for halves in [1, 3, 8, 200] {
        let mut net = Net::formed(3);
        for index in 0..30_usize {
            net.submit(index % 3, Service::Safe, &[1; 600]);
        }
        net.pause(0);
        net.pause(1);
        net.run_for(halves * net.timers().token_loss / 2);
        net.resume(1, true);
        net.resume(0, false);
        net.rest();
    }
}
