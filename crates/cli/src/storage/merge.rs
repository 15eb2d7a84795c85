//! The order that the logs of several acceptors make, as far as they have it.
//!
//! A value that any of them holds as decided counts. Behind all of these it is as when a round begins: in each instance
//! the value of the highest round that anybody has voted in there. The order ends where nobody has voted: values behind
//! may depend on what is missing.

use super::state::{Cast, Log};

/// One order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The index of the log that the order begins with: all that has to be known of everything before is there.
    pub begins: usize,
    /// The first instance of the order.
    pub kept: u64,
    /// The instance before which all was known to be decided.
    pub decided: u64,
    /// The first place without anything.
    pub end: u64,
    /// The votes from `kept` on, and the parts of messages before that go on behind it.
    pub votes: Vec<Cast>,
    /// The number of places behind that are given up, though there are votes for some of them.
    pub cut_off: u64,
}

/// Merges logs, at least one, of one foundation.
pub fn merge(logs: &[Log]) -> Option<Order> {
    let decided = logs.iter().map(|log| log.decided).max()?;
    let reaches = |log: &&Log| held_from(logs, log.kept) >= decided;
    // A process that is behind gets as much as there is.
    let first = logs.iter().filter(reaches).min_by_key(|log| log.kept)?;
    let begins = logs.iter().position(|log| std::ptr::eq(log, first))?;
    let kept = first.kept;
    let parts = first.votes.range(..kept).map(|(_, vote)| vote);
    let mut votes: Vec<Cast> = parts.filter_map(|vote| vote.part(0, kept - 1)).collect();
    let mut next = kept;
    while let Some(cast) = choose(logs, next, decided) {
        next = cast.last + 1;
        votes.push(cast);
    }
    let behind = logs.iter().map(Log::end).max().unwrap_or(next);
    Some(Order {
        begins,
        kept,
        decided,
        end: next,
        votes,
        cut_off: behind.saturating_sub(next),
    })
}

/// Up to where logs together hold what was decided, from this place on.
fn held_from(logs: &[Log], from: u64) -> u64 {
    let mut next = from;
    while let Some(log) = logs.iter().find(|log| holds(log, next)) {
        next = log.decided;
    }
    next
}

fn holds(log: &Log, at: u64) -> bool {
    (log.kept..log.decided).contains(&at)
}

/// The vote that counts at a place, over as many places behind as it counts at.
fn choose(logs: &[Log], at: u64, decided: u64) -> Option<Cast> {
    if let Some(log) = logs.iter().find(|log| holds(log, at)) {
        return log.at(at)?.part(at, log.decided - 1);
    }
    if at < decided {
        return None;
    }
    let votes = || logs.iter().filter_map(|log| log.at(at));
    let ends = votes().map(|vote| vote.last);
    let begins = logs.iter().filter_map(|log| log.begins_after(at));
    let upto = ends.chain(begins.map(|first| first - 1)).min()?;
    votes().max_by_key(|vote| vote.round)?.part(at, upto)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use rota_sim::rng::Rng;

    use rota_core::contract::{LogId, NodeId};
    use rota_storage::acceptor::Identity;

    use super::*;

    /// Kept from `kept`, decided before `decided`, and votes (first, last, round).
    fn log(kept: u64, decided: u64, votes: &[(u64, u64, u64)]) -> Log {
        let cast = |(first, last, round): &(u64, u64, u64)| Cast {
            first: *first,
            last: *last,
            round: *round,
            bytes: Vec::new(),
        };
        let votes = votes.iter().map(cast).map(|vote| (vote.first, vote));
        Log {
            path: PathBuf::new(),
            identity: Identity {
                cluster: 7,
                node: NodeId::new(1).expect("not 0"),
                log: LogId(1),
            },
            life: 1,
            lost_some: false,
            name: None,
            config: None,
            accepted: None,
            complete: 0,
            round: 0,
            kept,
            base: None,
            decided,
            votes: votes.collect(),
        }
    }

    fn merged(logs: &[Log]) -> (Order, Vec<(u64, u64, u64)>) {
        let order = merge(logs).expect("logs");
        let votes = order.votes.iter();
        let votes = votes.map(|vote| (vote.first, vote.last, vote.round));
        let votes = votes.collect();
        (order, votes)
    }

    #[test]
    fn of_one_log_all_is_taken_up_to_the_first_place_it_lacks() {
        let votes = [(3, 3, 1), (5, 5, 1), (6, 8, 1), (9, 9, 2), (11, 12, 2)];
        let (order, taken) = merged(&[log(5, 6, &votes)]);
        // (3, 3) is a part of a message that goes on.
        assert_eq!(taken, votes[..4]);
        assert_eq!((order.kept, order.decided), (5, 6));
        assert_eq!((order.end, order.cut_off), (10, 3));
    }

    #[test]
    fn what_anybody_holds_counts_and_then_the_highest_round() {
        let one = log(1, 3, &[(1, 1, 1), (2, 2, 1), (3, 3, 9), (4, 4, 5)]);
        let other = log(
            1,
            4,
            &[(1, 1, 1), (2, 2, 4), (3, 3, 2), (4, 4, 3), (5, 5, 3)],
        );
        let (order, taken) = merged(&[one, other]);
        assert_eq!(taken[2..], [(3, 3, 2), (4, 4, 5), (5, 5, 3)]);
        assert_eq!((order.decided, order.end, order.cut_off), (4, 6, 0));
    }

    #[test]
    fn ranges_are_cut_where_another_log_has_something_else() {
        let one = log(1, 1, &[(1, 9, 3)]);
        let other = log(1, 1, &[(1, 2, 2), (4, 4, 7)]);
        let (_, taken) = merged(&[one, other]);
        assert_eq!(taken, [(1, 2, 3), (3, 3, 3), (4, 4, 7), (5, 9, 3)]);
    }

    #[test]
    fn who_keeps_most_begins_if_the_others_go_on_from_there() {
        let all = |from: u64, to: u64| (from..to).map(|at| (at, at, 1)).collect::<Vec<_>>();
        let logs = [log(20, 40, &all(20, 45)), log(10, 25, &all(10, 25))];
        let (order, taken) = merged(&logs);
        assert_eq!((order.begins, order.kept, order.end), (1, 10, 45));
        assert_eq!(taken, all(10, 45));
        // Nobody has 25 to 29.
        let logs = [log(30, 40, &all(30, 45)), log(10, 25, &all(10, 25))];
        let (order, taken) = merged(&logs);
        assert_eq!((order.begins, order.kept, order.cut_off), (0, 30, 0));
        assert_eq!(taken, all(30, 45));
    }

    /// Acceptors that vote by the rules of Paxos, in rounds that go on beside each other.
    struct History {
        promised: Vec<u64>,
        /// Of each acceptor, by instance: in which round, and for what.
        votes: Vec<BTreeMap<u64, (u64, u8)>>,
        /// The end of the votes of each acceptor in each round.
        streaks: BTreeMap<(usize, u64), u64>,
        /// The proposals of each round, from instance 1 on.
        rounds: Vec<Vec<u8>>,
        /// The round in which an instance was decided first, and its value.
        decided: BTreeMap<u64, (u64, u8)>,
    }

    impl History {
        fn new(acceptors: usize) -> Self {
            Self {
                promised: vec![0; acceptors],
                votes: vec![BTreeMap::new(); acceptors],
                streaks: BTreeMap::new(),
                rounds: Vec::new(),
                decided: BTreeMap::new(),
            }
        }

        fn begin_round(&mut self, rng: &mut Rng) {
            let round = self.rounds.len() as u64 + 1;
            let all = self.promised.len();
            let first = rng.below(all as u64) as usize;
            let asked: Vec<usize> = (0..=all / 2).map(|step| (first + step) % all).collect();
            let mut values = Vec::new();
            for at in 1.. {
                let told = asked.iter().filter_map(|who| self.votes[*who].get(&at));
                match told.max() {
                    Some((_, value)) => values.push(*value),
                    None => break,
                }
            }
            values.extend((0..3).map(|_| rng.below(250) as u8));
            asked.iter().for_each(|who| self.promised[*who] = round);
            self.rounds.push(values);
        }

        fn vote(&mut self, who: usize, round: u64) {
            let at = *self.streaks.entry((who, round)).or_insert(1);
            let value = self.rounds[round as usize - 1].get(at as usize - 1);
            let Some(value) = value.copied().filter(|_| self.promised[who] <= round) else {
                return;
            };
            self.promised[who] = round;
            self.votes[who].insert(at, (round, value));
            self.streaks.insert((who, round), at + 1);
            let has = |who: &usize| {
                self.streaks
                    .get(&(*who, round))
                    .is_some_and(|next| *next > at)
            };
            let all = self.promised.len();
            if 2 * (0..all).filter(has).count() > all {
                self.decided.entry(at).or_insert((round, value));
            }
        }

        fn log(&self, who: usize) -> Log {
            let mut log = log(1, 1, &[]);
            for (at, (round, value)) in &self.votes[who] {
                let cast = Cast {
                    first: *at,
                    last: *at,
                    round: *round,
                    bytes: vec![*value],
                };
                log.votes.insert(*at, cast);
            }
            // As far as it may know it.
            let holds = |at: &u64| match (self.decided.get(at), self.votes[who].get(at)) {
                (Some((round, _)), Some((own, _))) => own >= round,
                _ => false,
            };
            log.decided = (1..).find(|at| !holds(at)).unwrap_or(1);
            log
        }
    }

    /// The rule of the manual: what is lost is what only lost acceptors have voted for since it was decided, and what is
    /// behind a place that nobody has.
    #[test]
    fn what_was_decided_is_there_if_anybody_has_voted_for_it_since() {
        let (mut kept, mut lost) = (0, 0);
        for seed in 0..3000 {
            let mut rng = Rng::new(seed);
            let all = rng.pick(&[3, 5]);
            let mut history = History::new(all);
            for _ in 0..rng.range(10, 80) {
                let rounds = history.rounds.len() as u64;
                if rounds == 0 || rng.percent(8) {
                    history.begin_round(&mut rng);
                } else {
                    let (who, round) = (rng.below(all as u64), rng.range(1, rounds));
                    history.vote(who as usize, round);
                }
            }
            let here: Vec<usize> = (0..all).filter(|_| rng.percent(50)).collect();
            let logs: Vec<Log> = here.iter().map(|who| history.log(*who)).collect();
            let Some(order) = merge(&logs) else {
                continue;
            };
            for (at, (round, value)) in &history.decided {
                let has = |who: &usize| history.votes[*who].get(at).is_some_and(|v| v.0 >= *round);
                let found = order.votes.iter().find(|vote| vote.first == *at);
                let is_kept = found.is_some_and(|vote| vote.bytes == [*value]);
                let must = here.iter().any(has) && *at < order.end || 2 * here.len() > all;
                assert!(is_kept || !must, "seed {seed}, instance {at}: {order:?}");
                kept += u64::from(is_kept);
                lost += u64::from(!is_kept);
            }
        }
        assert!(kept > 1000 && lost > 100, "{kept} {lost}");
    }
}
