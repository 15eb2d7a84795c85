//! FastCast over a network that loses, repeats, delays and reorders: order, uniformity, completeness,
//! bounds, and silence when all is done.

// Broken versions need less of it.
#[cfg_attr(feature = "mutants", allow(dead_code))]
mod net;

use net::{DATAGRAM_BYTES, Net, Weather};

#[cfg(not(feature = "mutants"))]
mod bandwidth;
#[cfg(not(feature = "mutants"))]
mod hostile;
#[cfg(not(feature = "mutants"))]
mod idle;
#[cfg(not(feature = "mutants"))]
mod losses;

/// Messages of all sizes from all, in a view of three to five, while some applications pause.
fn random_run(seed: u64) -> Net {
    let mut net = begin(seed);
    let members = net.members.len();
    let mut messages = vec![0; members];
    for _ in 0..200 {
        let member = send_something(&mut net);
        messages[member] += 1;
        if net.random(20) == 0 {
            let member = net.random(members as u64) as usize;
            net.members[member].takes = !net.members[member].takes;
        }
    }
    for member in 0..members {
        net.members[member].takes = true;
        net.drain(member);
    }
    net.run();
    net.check_complete(&messages);
    net.check_counters();
    net
}

/// The same, but the view ends in the midst of it, and not all go on.
fn cut_off_run(seed: u64) -> Net {
    let mut net = begin(seed);
    let members = net.members.len() as u64;
    for _ in 0..=net.random(60) {
        send_something(&mut net);
    }
    let gone = net.random((1 << members) - 1);
    let survivors: Vec<usize> = (0..members as usize)
        .filter(|member| gone & (1 << member) == 0)
        .collect();
    net.end_view(&survivors);
    net
}

fn begin(seed: u64) -> Net {
    let mut net = Net::new(3 + (seed % 3) as usize, 32, seed, Weather::fine());
    net.weather = Weather {
        loss: net.random(3) * 60,
        doubled: net.random(3) * 50,
        late: net.random(3) * 50,
        delay: (10_000, 10_001 + net.random(200_000)),
        ..Weather::fine()
    };
    net
}

/// Some member sends a message of some size, and the world goes on for some steps.
fn send_something(net: &mut Net) -> usize {
    let member = net.random(net.members.len() as u64) as usize;
    let bytes = 1 + net.random(3 * DATAGRAM_BYTES as u64) as usize;
    net.submit(member, bytes);
    for _ in 0..net.random(20) {
        net.step();
    }
    member
}

/// What a member has sent never comes from it to another, who gets it from a third.
fn cut_run(sender: usize, receiver: usize) -> Net {
    let weather = Weather {
        cut: Some((sender, receiver)),
        ..Weather::fine()
    };
    let mut net = Net::new(3, 32, 1, weather);
    for _ in 0..20 {
        net.submit(sender, 2 * DATAGRAM_BYTES);
    }
    net.run();
    let mut messages = [0; 3];
    messages[sender] = 20;
    net.check_complete(&messages);
    net
}

#[cfg(not(feature = "mutants"))]
#[test]
fn everything_is_delivered_everywhere_in_one_order_whatever_the_weather() {
    for seed in 0..150 {
        let net = random_run(seed);
        assert_eq!(net.broken, None, "seed {seed}");
    }
}

#[cfg(not(feature = "mutants"))]
#[test]
fn who_goes_on_to_the_next_view_ends_this_one_as_all_others_do() {
    for seed in 0..400 {
        let net = cut_off_run(seed);
        assert_eq!(net.broken, None, "seed {seed}");
    }
}

#[cfg(not(feature = "mutants"))]
#[test]
fn what_does_not_come_from_its_sender_comes_from_somebody_else() {
    // What cannot come to the leader from its sender, it does not know of: nobody else may say so.
    for (sender, receiver) in [(0, 1), (0, 2), (1, 2), (2, 1)] {
        let net = cut_run(sender, receiver);
        assert_eq!(net.broken, None, "from {sender} to {receiver}");
    }
}

#[cfg(feature = "mutants")]
#[test]
fn each_broken_version_is_found_out() {
    use rota_core::mutants::{self, Mutant};
    let found = |mutant: Mutant, rules: &[&str]| {
        mutants::set(Some(mutant));
        let weather = (0..200).find_map(|seed| random_run(seed).broken);
        let first = weather
            .or_else(|| (0..400).find_map(|seed| cut_off_run(seed).broken))
            .or_else(|| cut_run(1, 2).broken);
        mutants::set(None);
        let first = first.unwrap_or_else(|| panic!("{mutant} is not found"));
        println!("{mutant} {first}");
        assert!(
            rules.iter().any(|rule| first.starts_with(rule)),
            "{mutant}: {first}"
        );
    };
    found(Mutant::M38, &["held"]);
    found(Mutant::F01, &["held"]);
    found(Mutant::F02, &["complete", "silence"]);
    found(Mutant::F03, &["held"]);
    found(Mutant::F04, &["held", "order"]);
    found(Mutant::F05, &["complete", "silence"]);
    found(Mutant::F06, &["held", "order"]);
    // Beyond its window, the leader gives places that it does not keep.
    found(Mutant::F07, &["window", "held"]);
    found(Mutant::F08, &["forced"]);
    found(Mutant::F09, &["complete", "silence"]);
    found(Mutant::F10, &["forced"]);
}
