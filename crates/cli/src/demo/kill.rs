//! `--kill-one`: the node to kill, and the check that the others have what they must have then.

use std::io;
use std::str::FromStr;

use rota_core::contract::Time;
use rota_net::random_u64;
use sha2::{Digest, Sha256};

use super::DemoError;
use super::source::{Input, Share, Step, share_of};
use super::talk::Done;
use super::tally::hex;
use super::witness::Seen;

/// Whom to kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KillOne {
    /// Anybody.
    Random,
    /// This node.
    Node(u16),
}

impl FromStr for KillOne {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "random" {
            return Ok(Self::Random);
        }
        match text.parse() {
            Ok(node) if node > 0 => Ok(Self::Node(node)),
            _ => Err("it has to be the number of a node, or `random`".to_owned()),
        }
    }
}

impl KillOne {
    /// The node to kill, of `nodes`. The survivors have to be a majority if only one goes on.
    pub fn victim(self, nodes: u16, majority: bool) -> Result<u16, DemoError> {
        let wrong = |what: String| Err(DemoError::Usage(what));
        match self {
            _ if nodes < 2 => wrong("--kill-one needs at least 2 nodes: one has to survive".into()),
            _ if majority && nodes < 3 => wrong(
                "--kill-one needs at least 3 nodes with this engine: only a majority goes on"
                    .into(),
            ),
            Self::Node(node) if node > nodes => {
                wrong(format!("--kill-one={node}: there are {nodes} nodes"))
            }
            Self::Node(node) => Ok(node),
            Self::Random => {
                let random = random_u64().map_err(|error| DemoError::Failed(error.to_string()))?;
                // Below `nodes`, which is a `u16`.
                Ok((random % u64::from(nodes)) as u16 + 1)
            }
        }
    }
}

/// A node that was killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Killed {
    /// The node.
    pub node: u16,
    /// The time.
    pub at: Time,
}

/// The outcome of a run in which a node was killed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The killed node.
    pub node: u16,
    /// The number of messages that it was to send.
    pub share: u64,
    /// The number of them that each survivor has; the same everywhere if `complete`.
    pub delivered: u64,
    /// The longest time that a survivor got nothing in, after the kill; `None` if nothing was left to
    /// deliver.
    pub gap_nanos: Option<u64>,
    /// Views that a survivor was told of after the one with all nodes.
    pub reconfigurations: u64,
    /// These views, for each survivor.
    pub views: Vec<(u16, Vec<String>)>,
    /// The way in which the killed one's client lost its daemon.
    pub lost: String,
    /// All survivors have all messages of survivors, and the same first part of the killed one's.
    pub complete: bool,
}

impl Outcome {
    /// Judges the notes of the survivors.
    pub fn new(
        input: &Input,
        messages: u64,
        nodes: u16,
        (killed, lost): (Killed, &str),
        done: &[Done],
    ) -> Result<Self, DemoError> {
        let seen: Vec<&Seen> = done.iter().filter_map(|node| node.seen.as_ref()).collect();
        let survivors = usize::from(nodes) - 1;
        let noted = seen.len() == survivors
            && seen
                .iter()
                .all(|seen| seen.senders.len() == usize::from(nodes));
        if !noted {
            let what = "a node has not said what came from whom".to_owned();
            return Err(DemoError::Failed(what));
        }
        let index = usize::from(killed.node) - 1;
        let delivered = seen[0].senders[index].0;
        let mut complete = true;
        for node in 1..=nodes {
            let share = share_of(messages, node, u64::from(nodes));
            let expected = if node == killed.node {
                delivered
            } else {
                share
            };
            let first = first_of(input, node, nodes, expected)
                .map_err(|error| DemoError::Failed(format!("cannot read the input: {error}")))?;
            let sender = usize::from(node) - 1;
            complete &= seen.iter().all(|seen| seen.senders[sender] == first);
        }
        Ok(Self {
            node: killed.node,
            share: share_of(messages, killed.node, u64::from(nodes)),
            delivered,
            gap_nanos: gap(killed.at, &seen),
            views: done
                .iter()
                .filter_map(|node| Some((node.node, node.seen.as_ref()?.views.clone())))
                .collect(),
            lost: lost.to_owned(),
            reconfigurations: seen.iter().map(|s| s.reconfigurations).max().unwrap_or(0),
            complete,
        })
    }
}

/// The longest time without deliveries, as far as it lies after the kill.
fn gap(killed: Time, seen: &[&Seen]) -> Option<u64> {
    let pauses = seen.iter().flat_map(|seen| &seen.pauses);
    let after = pauses.filter(|(_, end)| *end > killed.0);
    after.map(|(start, end)| end - killed.0.max(*start)).max()
}

/// The number of a node's first messages, at most `limit`, and their digest in that order.
fn first_of(input: &Input, node: u16, nodes: u16, limit: u64) -> io::Result<(u64, String)> {
    let mut share = Share::open(input, node, u64::from(nodes))?;
    let (mut count, mut order) = (0, Sha256::new());
    while count < limit {
        let mut effort = usize::MAX;
        match share.load(&mut effort)? {
            Step::Ready => {
                order.update(share.current());
                order.update(b"\n");
                share.advance();
                count += 1;
            }
            Step::More => {}
            Step::End => break,
        }
    }
    Ok((count, hex(&order.finalize())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: Input = Input::Generated {
        messages: 9,
        size: 4,
    };

    fn done(node: u16, counts: [u64; 3]) -> Done {
        let senders = (1..=3).map(|from| first_of(&INPUT, from, 3, counts[usize::from(from) - 1]));
        Done {
            node,
            messages: counts.iter().sum(),
            bytes: 0,
            digest: String::new(),
            sum: String::new(),
            started: None,
            finished: 0,
            latencies: serde_json::Value::Null,
            retransmissions: None,
            seen: Some(Seen {
                senders: senders.collect::<io::Result<_>>().expect("no file"),
                pauses: vec![(10, 20), (90, 130), (150, 160)],
                reconfigurations: 1,
                views: vec!["#demo#2 #demo#3".to_owned()],
            }),
        }
    }

    fn judge(done: &[Done]) -> Outcome {
        let killed = Killed {
            node: 1,
            at: Time(100),
        };
        Outcome::new(&INPUT, 9, 3, (killed, "it has ended"), done).expect("everybody has spoken")
    }

    #[test]
    fn the_survivors_must_have_their_own_and_the_same_of_the_killed() {
        let good = judge(&[done(2, [1, 3, 3]), done(3, [1, 3, 3])]);
        assert!(good.complete);
        assert_eq!(
            (good.delivered, good.share, good.gap_nanos),
            (1, 3, Some(30))
        );
        assert!(judge(&[done(2, [0, 3, 3]), done(3, [0, 3, 3])]).complete);
        assert!(!judge(&[done(2, [1, 3, 3]), done(3, [2, 3, 3])]).complete);
        assert!(!judge(&[done(2, [1, 3, 2]), done(3, [1, 3, 2])]).complete);
    }

    #[test]
    fn what_the_killed_has_sent_must_be_there_from_its_beginning() {
        let mut nodes = [done(2, [1, 3, 3]), done(3, [1, 3, 3])];
        for node in &mut nodes {
            let seen = node.seen.as_mut().expect("it has spoken");
            seen.senders[0].1 = hex(&Sha256::digest(b"its second message\n"));
        }
        assert!(!judge(&nodes).complete);
    }

    #[test]
    fn a_victim_is_a_node() {
        assert_eq!("3".parse(), Ok(KillOne::Node(3)));
        assert!("0".parse::<KillOne>().is_err() && "x".parse::<KillOne>().is_err());
        assert!(
            KillOne::Node(3).victim(2, false).is_err() && KillOne::Random.victim(1, false).is_err()
        );
        assert!((1..=2).contains(&KillOne::Random.victim(2, false).expect("random numbers")));
    }
}
