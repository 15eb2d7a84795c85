//! One member is ill, or there is one too many: what becomes of the others.

use rota_core::contract::Service;

use crate::net::{Net, config};

/// The ring breaks, as all tokens are lost for so long.
fn break_ring(net: &mut Net) {
    net.rule(|flying| match flying.kind {
        crate::net::Kind::Token | crate::net::Kind::Hurry => crate::net::Fate::Lose,
        _ => crate::net::Fate::Pass,
    });
    let loss = net.timers().token_loss;
    net.run_for(2 * loss);
    net.no_rule();
}

/// Whether `at` is on a ring of just these.
fn is_on(net: &Net, at: usize, members: &[usize]) -> bool {
    net.phase(at) == "operational" && net.members(at) == members
}

/// An application takes nothing while the ring changes again and again: the others have a ring all the same, and it comes back
/// when its application does.
pub fn an_application_that_hangs_keeps_nobody_from_a_ring() {
    for hung in 0..3 {
        let mut net = Net::formed(3);
        net.hosts[hung].stalled = true;
        for _ in 0..40 {
            break_ring(&mut net);
            let others: Vec<usize> = (0..3).filter(|at| *at != hung).collect();
            let within = net.converges_within();
            let come = net.runs_until(within, |net| {
                let whole = others.iter().all(|&at| is_on(net, at, &[0, 1, 2]));
                whole || others.iter().all(|&at| is_on(net, at, &others))
            });
            assert!(come, "{hung} hangs: {}", net.states());
            net.submit(others[0], Service::Agreed, b"goes on");
        }
        let members = net.members((hung + 1) % 3);
        assert!(!members.contains(&hung), "{hung} hangs: {members:?}");
        net.rest();
    }
}

/// As many as a ring may have are on one: one more leaves it as it is, whatever its number.
pub fn one_too_many_leaves_the_ring_as_it_is() {
    let mut net = Net::with(config(128));
    net.come_together();
    let before = net.ring(0);
    let more = net.add();
    net.run_for(3 * net.timers().consensus);
    for at in 0..128 {
        assert!(
            net.ring(at) == before && net.phase(at) == "operational",
            "{at}"
        );
    }
    assert!(is_on(&net, more, &[more]), "{}", net.states());
    net.check(false);
}

/// More than a ring may have gather at once: the first of them form one.
pub fn of_too_many_the_first_form_a_ring() {
    let mut net = Net::with(config(128));
    let more = net.add();
    let first: Vec<usize> = (0..128).collect();
    net.run_until("a ring of 128", |net| is_on(net, 0, &first));
    net.run_for(2 * net.timers().consensus);
    assert!(first.iter().all(|&at| is_on(&net, at, &first)));
    assert!(!net.members(more).contains(&0));
    net.check(false);
}
