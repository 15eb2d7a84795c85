//! The time of the token: a node that keeps it, all of them, or none.

use super::{Finding, Seen, list, sum, time};

/// A node that has the token for this share of the time, and others do not, is slow.
const SHARE: f64 = 0.2;
/// The factor by which its time has to exceed that of the others on average.
const TIMES_OTHERS: f64 = 3.0;
/// The share of the time in which all nodes wait for a processor that is too much.
const CROWDED: f64 = 0.6;
/// A rotation that takes longer than this, in microseconds, is worth a word.
const SLOW_ROTATION: f64 = 10_000.0;
/// The bound of the histogram below that, in microseconds.
const SLOW_BOUND: u64 = 8192;
/// Of fewer rotations than these nothing is said: one late wake-up of a host makes one of them slow.
const FEW_ROTATIONS: u64 = 5;

/// The token at a node during the interval.
struct Hold {
    node: u16,
    visits: u64,
    /// Parts of the interval.
    share: f64,
    waited: f64,
    clients: f64,
    blocked: f64,
    mean_micros: f64,
}

impl Hold {
    fn of(seen: &Seen) -> Self {
        let (before, after) = (&seen.before.token, &seen.after.token);
        let micros = seen.micros() as f64;
        let part = |before: u64, after: u64| after.saturating_sub(before) as f64 / micros;
        let visits = after.held.count.saturating_sub(before.held.count);
        let share = part(before.held.sum_us, after.held.sum_us);
        Self {
            node: seen.node(),
            visits,
            share,
            waited: part(before.waited_us, after.waited_us),
            clients: part(before.clients_us, after.clients_us),
            blocked: part(before.blocked_us, after.blocked_us),
            mean_micros: share * micros / visits.max(1) as f64,
        }
    }

    /// The share that goes for other things than its own sending.
    fn idle(&self) -> f64 {
        self.waited + self.clients + self.blocked
    }

    fn why(&self) -> &'static str {
        if self.waited >= self.clients && self.waited >= self.blocked {
            "the token lies there and is not read: the process does not get a processor, or was stopped"
        } else if self.clients >= self.blocked {
            "it waits for what its clients ask for: they ask for a lot at once"
        } else {
            "a socket is full: the interface cannot send as fast as it is to"
        }
    }
}

pub(super) fn look(seen: &[Seen]) -> Vec<Finding> {
    let holds: Vec<Hold> = seen.iter().map(Hold::of).collect();
    let slow = holds.iter().filter(|hold| is_slow(hold, &holds));
    let findings: Vec<Finding> = slow.map(|hold| slow_node(hold, &holds)).collect();
    if !findings.is_empty() {
        return findings;
    }
    let idle: f64 = holds.iter().map(Hold::idle).sum();
    if idle >= CROWDED {
        let nodes = list(holds.iter().map(|hold| hold.node));
        let text = format!(
            "all nodes that were asked ({nodes}) are slow to take the token: it waits for them {:.0} % of the \
             time. Their hosts are crowded: less load, or timing = \"relaxed\"",
            100.0 * idle
        );
        return vec![Finding::wrong(text)];
    }
    slow_links(seen, &holds).into_iter().collect()
}

/// The mean of a value over the other nodes; none if there are none.
fn mean_of_others(hold: &Hold, holds: &[Hold], value: impl Fn(&Hold) -> f64) -> Option<f64> {
    let others = holds.iter().filter(|other| other.node != hold.node);
    let values: Vec<f64> = others.map(value).collect();
    let count = values.len() as f64;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)
}

fn is_slow(hold: &Hold, holds: &[Hold]) -> bool {
    let least = match mean_of_others(hold, holds, Hold::idle) {
        Some(others) => SHARE.max(TIMES_OTHERS * others),
        // Nobody to compare with.
        None => 0.5,
    };
    hold.visits > 0 && hold.idle() >= least
}

fn slow_node(hold: &Hold, holds: &[Hold]) -> Finding {
    let others = mean_of_others(hold, holds, |other| other.mean_micros);
    let others = others.map_or_else(String::new, |mean| format!(" (others {})", time(mean)));
    Finding::wrong(format!(
        "node {} is slow: it has the token {:.0} % of the time, {} on average{others}; {}",
        hold.node,
        100.0 * hold.share,
        time(hold.mean_micros),
        hold.why()
    ))
}

/// The token is away for long, and nobody keeps it.
fn slow_links(seen: &[Seen], holds: &[Hold]) -> Option<Finding> {
    let most = seen.iter().max_by_key(|one| one.rotations().0)?;
    let (count, micros) = most.rotations();
    let known: f64 = holds.iter().map(|hold| hold.share).sum();
    // A few that are very late make a mean slow, and no link.
    let are_most = most.rotations_beyond(SLOW_BOUND) > count / 2;
    if count < FEW_ROTATIONS || micros < SLOW_ROTATION || !are_most || known > 0.5 {
        return None;
    }
    let asked: Vec<u16> = holds.iter().map(|hold| hold.node).collect();
    let members = seen
        .iter()
        .flat_map(|one| one.after.members.iter().copied());
    let mut others: Vec<u16> = members.filter(|node| !asked.contains(node)).collect();
    others.sort_unstable();
    others.dedup();
    let took = time(micros);
    let text = if others.is_empty() {
        format!(
            "the token takes {took} to go round, and no node keeps it: the links are slow, or lose tokens \
             (token_retransmissions has grown by {})",
            sum(seen.iter().map(|one| one.grown("token_retransmissions")))
        )
    } else {
        format!(
            "the token takes {took} to go round, and of the nodes that were asked none keeps it: ask the \
             others ({}), or look at the links to them",
            list(others)
        )
    };
    Some(Finding::wrong(text))
}
