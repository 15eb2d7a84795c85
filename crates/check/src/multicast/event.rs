//! The events of processes of several rings: the lines of their traces.

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
    /// The time in nanoseconds. Comparable between nodes in a simulation only.
    pub t: u64,
    /// The node.
    #[serde(default)]
    pub node: u16,
    /// Its life.
    #[serde(default)]
    pub inc: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// The kinds of events. Lines of other layers are [`Event::Other`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "ev", rename_all = "lowercase")]
pub enum Event {
    /// A ring is founded, or heard of.
    Genesis {
        /// The ring.
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
    /// The replicas of a partition, at the beginning and at each ordered change.
    Replicas {
        /// The partition.
        part: String,
        /// Their stores.
        replicas: Vec<u64>,
        /// The number of them that have to have a checkpoint before a ring is trimmed.
        q_t: usize,
        /// The number of them that a recovering replica asks.
        q_r: usize,
    },
    /// A learner subscribes to a ring, from a round on.
    Sub {
        /// The partition.
        part: String,
        /// The ring.
        ring: Ring,
        /// The first round that it delivers.
        from: Round,
    },
    /// A learner leaves a ring.
    Unsub {
        /// The partition.
        part: String,
        /// The ring.
        ring: Ring,
        /// The first round that it does not deliver.
        from: Round,
    },
    /// The application's message was accepted.
    Send {
        /// The message.
        msg: String,
        /// The partitions that it is for.
        #[serde(default)]
        to: Vec<String>,
        /// The hash of its payload.
        hash: String,
    },
    /// A message was handed to the application.
    Deliver(Delivered),
    /// All instances of a ring before one were delivered to this learner, or carry nothing for it.
    Passed {
        /// The partition.
        part: String,
        /// The ring.
        ring: Ring,
        /// The first instance that is not passed.
        next: Instance,
    },
    /// A decision that these instances carry nothing.
    Skip {
        /// The ring.
        ring: Ring,
        /// The first of the instances.
        from: Instance,
        /// The instance behind the last of them.
        next: Instance,
    },
    /// A learner waits for a ring.
    Need {
        /// The ring.
        ring: Ring,
        /// The round up to whose end it waits.
        round: Round,
    },
    /// A checkpoint is durable.
    Checkpoint {
        /// The partition.
        part: String,
        /// The store.
        store: u64,
        /// The point.
        point: Point,
        /// The digest of the state there.
        digest: String,
    },
    /// The state at a point that all replicas have agreed on.
    Digest {
        /// The partition.
        part: String,
        /// The point.
        point: Point,
        /// The digest of the state there.
        digest: String,
    },
    /// A mark was ordered, and delivered here: a store has a checkpoint.
    Mark {
        /// The partition.
        part: String,
        /// The store.
        store: u64,
        /// The ring.
        ring: Ring,
        /// The instance before which the store needs nothing any more.
        next: Instance,
    },
    /// An acceptor forgets.
    Trim {
        /// The ring.
        ring: Ring,
        /// The instance below which it forgets.
        below: Instance,
    },
    /// A learner goes on from a checkpoint.
    Install {
        /// The partition.
        part: String,
        /// The point.
        point: Point,
        /// The digest of the state there.
        digest: String,
        /// The source of the checkpoint: `local`, or `peer`.
        source: String,
    },
    /// The process starts.
    Start,
    /// The process was killed.
    Crash,
    /// The process left of its own will.
    Leave,
    /// Nothing more is to happen: the living processes have got all that they are to get.
    Quiesce,
    /// An event of another layer.
    #[serde(other)]
    Other,
}

/// A delivery.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Delivered {
    /// The message.
    pub msg: String,
    /// The partition that it was delivered to.
    pub part: String,
    /// The ring that it came by.
    pub ring: Ring,
    /// The foundation of the ring.
    pub founded: u64,
    /// The instance; of a message that was cut, that of its last part.
    pub inst: Instance,
    /// The index among the instance's messages.
    pub idx: u32,
    /// The round of that instance.
    pub round: Round,
    /// The instance of its first part.
    pub first: Instance,
    /// The hash of its payload.
    pub hash: String,
}

/// A point of a partition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The round of the next instance.
    pub round: Round,
    /// The ring whose turn it is.
    pub turn: Ring,
    /// The number of instances of that ring in this round that are before the point.
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
    /// The point lies inside a message that was cut.
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
