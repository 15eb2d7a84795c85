//! What processes of several rings saw: the lines of their traces.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// A ring's number, and its rank in a round.
pub type Ring = u32;
/// An instance of a ring, from 1.
pub type Instance = u64;
/// A round of all rings, from 0.
pub type Round = u64;

/// A line of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Nanoseconds. Comparable between nodes in a simulation only.
    pub t: u64,
    /// Which node.
    #[serde(default)]
    pub node: u16,
    /// Which life of it.
    #[serde(default)]
    pub inc: u64,
    /// What it saw.
    #[serde(flatten)]
    pub event: Event,
}

/// What was seen. Lines of other layers are [`Event::Other`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "ev", rename_all = "lowercase")]
pub enum Event {
    /// A ring is founded, or heard of.
    Genesis {
        /// Which.
        ring: Ring,
        /// Its rank.
        rank: u32,
        /// Instances in a round.
        m: u64,
        /// The round of its first instance.
        origin: Round,
        /// Its foundation.
        founded: u64,
    },
    /// Who the replicas of a partition are, at the beginning and at each ordered change.
    Replicas {
        /// Which partition.
        part: String,
        /// Their stores.
        replicas: Vec<u64>,
        /// So many of them have to have a checkpoint before a ring is trimmed,
        q_t: usize,
        /// and so many are asked by one that recovers.
        q_r: usize,
    },
    /// A learner subscribes to a ring, from a round on.
    Sub {
        /// Of which partition.
        part: String,
        /// To which ring.
        ring: Ring,
        /// From which round on.
        from: Round,
    },
    /// A learner leaves a ring: the first round of which it delivers nothing.
    Unsub {
        /// Of which partition.
        part: String,
        /// Which ring.
        ring: Ring,
        /// From which round on.
        from: Round,
    },
    /// The application's message was accepted.
    Send {
        /// Which.
        msg: String,
        /// For these partitions.
        #[serde(default)]
        to: Vec<String>,
        /// Of its payload.
        hash: String,
    },
    /// A message was handed to the application.
    Deliver(Delivered),
    /// Everything of a ring before an instance was delivered to this learner, or is nothing to it.
    Passed {
        /// Of which partition.
        part: String,
        /// Which ring.
        ring: Ring,
        /// Before this.
        next: Instance,
    },
    /// It was decided that these instances carry nothing.
    Skip {
        /// Of which ring.
        ring: Ring,
        /// From this one on,
        from: Instance,
        /// up to this one.
        next: Instance,
    },
    /// A learner waits for a ring.
    Need {
        /// Which.
        ring: Ring,
        /// Up to the end of this round.
        round: Round,
    },
    /// A checkpoint is durable.
    Checkpoint {
        /// Of which partition.
        part: String,
        /// In which store.
        store: u64,
        /// At which point.
        point: Point,
        /// Of the state there.
        digest: String,
    },
    /// What the state is at a point that all replicas have agreed on.
    Digest {
        /// Of which partition.
        part: String,
        /// At which point.
        point: Point,
        /// Of the state there.
        digest: String,
    },
    /// That a store has a checkpoint was ordered, and delivered here.
    Mark {
        /// Of which partition.
        part: String,
        /// Which store.
        store: u64,
        /// In which ring.
        ring: Ring,
        /// What is before this it does not need any more.
        next: Instance,
    },
    /// An acceptor forgets.
    Trim {
        /// Of which ring.
        ring: Ring,
        /// What is before this.
        below: Instance,
    },
    /// A learner goes on from a checkpoint.
    Install {
        /// Of which partition.
        part: String,
        /// From which point.
        point: Point,
        /// Of the state there.
        digest: String,
        /// `local`, or `peer`.
        source: String,
    },
    /// The process starts.
    Start,
    /// The process was killed.
    Crash,
    /// The process left of its own will.
    Leave,
    /// Nothing more is to happen: whoever lives has got all that it is to get.
    Quiesce,
    /// Of another layer.
    #[serde(other)]
    Other,
}

/// A delivery.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Delivered {
    /// Which message.
    pub msg: String,
    /// To which partition.
    pub part: String,
    /// By which ring.
    pub ring: Ring,
    /// Of which foundation.
    pub founded: u64,
    /// In which instance; of a message that was cut, that of its last part.
    pub inst: Instance,
    /// Which of the instance's messages.
    pub idx: u32,
    /// The round of that instance.
    pub round: Round,
    /// The instance of its first part.
    pub first: Instance,
    /// Of its payload.
    pub hash: String,
}

/// A point of a partition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The round of what is next.
    pub round: Round,
    /// The ring whose turn it is.
    pub turn: Ring,
    /// So many of its instances of this round are before the point.
    pub used: u64,
    /// By ring: the first instance that is not before it.
    #[serde(deserialize_with = "by_ring")]
    pub next: BTreeMap<Ring, Instance>,
    /// The rings of the partition.
    #[serde(rename = "S")]
    pub rings: Vec<Ring>,
    /// By ring: its foundation.
    #[serde(deserialize_with = "by_ring")]
    pub founded: BTreeMap<Ring, u64>,
    /// It lies inside a message that was cut.
    pub open: bool,
}

/// Keys of JSON are text.
fn by_ring<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Ring, u64>, D::Error> {
    let texts = BTreeMap::<String, u64>::deserialize(from)?;
    let number = |(ring, value): (String, u64)| {
        let ring = ring.parse().map_err(serde::de::Error::custom)?;
        Ok((ring, value))
    };
    texts.into_iter().map(number).collect()
}
