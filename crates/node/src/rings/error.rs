//! The errors of several rings.

use std::fmt;

use super::charter_file::CharterFileError;
use crate::config::{ConfigError, EngineName};
use crate::node::StartError;

/// An error of a configuration of several rings.
#[derive(Debug)]
pub enum RingsError {
    /// Not TOML, an unknown setting or a value of the wrong kind.
    Syntax(Box<toml::de::Error>),
    /// An error in the settings that all rings have in common.
    Common(ConfigError),
    /// An error in the resulting configuration of one ring, by its id.
    Of(u16, ConfigError),
    /// There is no ring, or there are more than 1024.
    Count,
    /// An id is 0, or two rings have it.
    Id(u16),
    /// A ring names a node that is not listed, or none.
    Nodes(u16),
    /// No merge may be fed by such an engine.
    Engine(u16, EngineName),
    /// Its first round is further than rounds ever come.
    Origin(u16),
    /// `delta_ms` and `lambda` go with `leveling = "paper"`, are at least 1, and nothing else has them.
    Rate(u16),
    /// Ports are more than there are, or two rings have the same at one address.
    Ports(u16),
    /// A second ring is marked as the control ring.
    Control(u16),
    /// This ring was the control ring when rings were founded.
    OtherControl(u16),
    /// The charter of a ring cannot be read.
    Charter(u16),
}

impl fmt::Display for RingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => error.fmt(f),
            Self::Common(error) => error.fmt(f),
            Self::Of(ring, error) => write!(f, "ring {ring}: {error}"),
            Self::Count => {
                f.write_str("there has to be a [[ring]] section for each ring: 1 to 1024 of them")
            }
            Self::Id(ring) => write!(
                f,
                "ring {ring}: ids are at least 1, and each ring has its own"
            ),
            Self::Nodes(ring) => write!(
                f,
                "ring {ring}: its `nodes` have to be listed as [[node]], and at least one of them"
            ),
            Self::Engine(ring, engine) => write!(
                f,
                "ring {ring}: {engine:?} cannot feed a merge: what it orders may differ on two sides of a partition, or begins anew; \
                 use u-ring-paxos or ring-paxos"
            ),
            Self::Origin(ring) => write!(f, "ring {ring}: `origin` is at most 2^47"),
            Self::Rate(ring) => write!(
                f,
                "ring {ring}: `delta_ms` and `lambda`, each at least 1, are for `leveling = \"paper\"`, and for that only"
            ),
            Self::Ports(ring) => write!(
                f,
                "ring {ring}: with its `port_offset` two sockets of one address would have the same port, or one beyond 65535"
            ),
            Self::Control(ring) => write!(
                f,
                "ring {ring}: `control` is for one ring, and another one has it"
            ),
            Self::OtherControl(ring) => write!(
                f,
                "ring {ring} was the control ring when others were founded while the processes ran, and stays it: mark it with \
                 `control = true`"
            ),
            Self::Charter(ring) => write!(
                f,
                "ring {ring}: its charter cannot be read by this version of the program"
            ),
        }
    }
}

impl std::error::Error for RingsError {}

/// Why a node of several rings did not start.
#[derive(Debug)]
pub enum RingsStartError {
    /// The configuration is wrong.
    Config(RingsError),
    /// The node subscribes to a ring that it is not on, or to none.
    Subscription(u16),
    /// The node is to be a replica of a partition, and only observes this ring of it: it could order none of its marks.
    Observes(u16),
    /// The state that it begins with is of a ring that is founded otherwise.
    State(u16),
    /// One of the rings did not start, by its id.
    Ring(u16, StartError),
    /// A ring that was founded while processes ran does not go with the configuration.
    Charter(u16, RingsError),
    /// The file with the charters of such rings cannot be used.
    Charters(CharterFileError),
}

impl fmt::Display for RingsStartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => write!(f, "configuration: {error}"),
            Self::Subscription(0) => f.write_str("this node is on no ring that it subscribes to"),
            Self::Subscription(ring) => write!(f, "this node is not on ring {ring}"),
            Self::Observes(ring) => write!(
                f,
                "ring {ring}: this node only observes it, and a replica of a partition orders its marks there: take the node out of \
                 `observers`"
            ),
            Self::State(ring) => write!(
                f,
                "ring {ring} has another `per_round` or `origin` than in the state that this node begins with, or there is no state of it"
            ),
            Self::Ring(ring, error) => write!(f, "ring {ring}: {error}"),
            Self::Charter(ring, error) => write!(
                f,
                "ring {ring} was founded while the processes ran, and does not go with the configuration: {error}"
            ),
            Self::Charters(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RingsStartError {}

impl From<RingsError> for RingsStartError {
    fn from(error: RingsError) -> Self {
        Self::Config(error)
    }
}
