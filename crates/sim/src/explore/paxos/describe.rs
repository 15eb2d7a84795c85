//! Steps, for people, who count nodes from 1.

use super::ledger::show;
use super::moves::{Move, Voters};
use super::state::{Flight, State};

/// The words for a step.
pub(super) fn describe(state: &State, step: Move) -> String {
    let late = |late: bool| if late { ", late" } else { "" };
    let n = |at: u8| at + 1;
    match step {
        Move::Proposal { to, round, place } => {
            let vote = &state.ledger.log(round.into()).proposals[usize::from(place)];
            let (first, end, what) = (vote.first, vote.end(), show(&vote.value));
            format!(
                "node {} gets {what} at {first}..{end} of round {round}",
                n(to)
            )
        }
        Move::Hear { to, upto } => {
            let round = state.nodes[usize::from(to)].learner.round();
            format!(
                "node {} hears of votes in round {round} before {upto}",
                n(to)
            )
        }
        Move::Ask { by, to, late: is } => {
            let coordinator = state.nodes[usize::from(by)].coordinator.as_ref();
            let round = coordinator.map_or(0, |coordinator| coordinator.round());
            let from = coordinator.and_then(|coordinator| coordinator.from());
            let from = from.unwrap_or(0);
            let late = late(is);
            format!(
                "node {} promises round {round} to {}, from {from}{late}",
                n(to),
                n(by)
            )
        }
        Move::AskAgain { by } => format!("node {} asks all again, for more", n(by)),
        Move::Fetch {
            to,
            of,
            from,
            upto,
            late: is,
        } => {
            let late = late(is);
            format!("node {} is told {from}..{upto} by {}{late}", n(to), n(of))
        }
        other => describe_rest(state, other),
    }
}

fn describe_rest(state: &State, step: Move) -> String {
    let n = |at: u8| at + 1;
    match step {
        Move::Arrive(at) => match &state.flights[usize::from(at)] {
            Flight::Promise(promise) => {
                let (who, round) = (promise.acceptor.node, promise.round);
                format!("the promise of node {who} for round {round} arrives")
            }
            Flight::Answer(to, _, _) => format!("an answer arrives at node {}", to + 1),
        },
        Move::Stand { who, voters } => {
            let number = state.ledger.newest() + 1;
            let voters = match voters {
                Voters::Same => String::new(),
                Voters::Mended => ", new disks in place of lost ones".to_owned(),
                Voters::Without(at) => format!(", without node {}", n(at)),
                Voters::With(at) => format!(", with node {}", n(at)),
            };
            format!(
                "configuration {number}: node {} coordinates{voters}",
                n(who)
            )
        }
        Move::Value(by) => format!("node {} proposes a packet", n(by)),
        Move::Skip(by, span) => format!("node {} proposes {span} of nothing", n(by)),
        Move::Complete(at) => format!("node {} hears that {} is complete", n(at), state.claimed),
        Move::Foreign(at) => {
            format!("node {} hears that another cluster's 50 is complete", n(at))
        }
        Move::Trim { who, below } => format!("node {} forgets all before {below}", n(who)),
        Move::Sync(at) => format!("node {} has written", n(at)),
        Move::Restart { who, written } => {
            let waits = state.nodes[usize::from(who)].queue.len();
            format!("node {} is restarted, {written} of {waits} written", n(who))
        }
        Move::Lose(at) => format!("node {} loses its disk", n(at)),
        other => format!("{other:?}"),
    }
}
