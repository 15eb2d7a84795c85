//! The figures, and the series that they compare.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::paper::Paper;
use crate::options::{BenchOptions, ParseError, Pattern, Subject, wrong};
use rota_core::EngineName;

/// A figure that is measured here: FastCast's (§4), and one of Multi-Ring Paxos (§8.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Bandwidth of each sender over time.
    Shares,
    /// Throughput against the number of nodes.
    Throughput,
    /// Response time against load.
    ResponseTime,
    /// Latency at little load against the number of nodes.
    Latency,
    /// Throughput, latency and processor time of one ring against the size of requests and the storage.
    Storage,
}

impl Figure {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Shares,
        Self::Throughput,
        Self::ResponseTime,
        Self::Latency,
        Self::Storage,
    ];

    /// The paper of the figure.
    pub const fn paper(self) -> Paper {
        match self {
            Self::Shares | Self::Throughput | Self::ResponseTime | Self::Latency => Paper::FastCast,
            Self::Storage => Paper::MultiRing,
        }
    }

    /// Its number in the paper.
    pub const fn number(self) -> u8 {
        match self {
            Self::Shares => 5,
            Self::Throughput => 6,
            Self::ResponseTime => 7,
            Self::Latency => 8,
            Self::Storage => 3,
        }
    }

    /// The name of its files, without what says their kind.
    pub const fn stem(self) -> &'static str {
        match self {
            Self::Shares => "figure-5-shares",
            Self::Throughput => "figure-6-throughput",
            Self::ResponseTime => "figure-7-response-time",
            Self::Latency => "figure-8-latency",
            Self::Storage => "multi-ring-figure-3",
        }
    }

    /// The series that it compares; none in the figure of shares, which is FastCast's alone.
    pub const fn series(self) -> &'static [Series] {
        use Series::{AllAck, Engine, Hop, Multicast, Tcp};
        const FAST: Series = Engine(EngineName::FastCast);
        const LCR: Series = Engine(EngineName::Lcr);
        const RING: Series = Engine(EngineName::AcceleratedRing);
        const TOTEM: Series = Engine(EngineName::TotemRing);
        const PAXOS: Series = Engine(EngineName::RingPaxos);
        const U_RING: Series = Engine(EngineName::URingPaxos);
        match self {
            Self::Shares => &[],
            Self::Throughput => &[FAST, LCR, RING, TOTEM, PAXOS, U_RING, Multicast, Tcp],
            Self::ResponseTime => &[FAST, LCR, RING, TOTEM, PAXOS, U_RING, AllAck],
            Self::Storage => &[PAXOS, U_RING],
            Self::Latency => &[FAST, LCR, RING, TOTEM, PAXOS, U_RING, AllAck, Hop],
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}

/// A line of a figure: an engine, or the same sockets with no protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// `rota bench` with this engine.
    Engine(EngineName),
    /// `rota bench raw`: bursts of one sender to all.
    Multicast,
    /// `rota bench raw --tcp`.
    Tcp,
    /// `rota bench raw --pattern all-ack`.
    AllAck,
    /// `rota bench raw --pattern hop`.
    Hop,
}

impl Series {
    /// All there are.
    pub const ALL: [Self; 10] = [
        Self::Engine(EngineName::FastCast),
        Self::Engine(EngineName::Lcr),
        Self::Engine(EngineName::AcceleratedRing),
        Self::Engine(EngineName::TotemRing),
        Self::Engine(EngineName::RingPaxos),
        Self::Engine(EngineName::URingPaxos),
        Self::Multicast,
        Self::Tcp,
        Self::AllAck,
        Self::Hop,
    ];

    /// Its name on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Engine(engine) => engine.name(),
            Self::Multicast => "raw-multicast",
            Self::Tcp => "raw-tcp",
            Self::AllAck => "raw-all-ack",
            Self::Hop => "raw-hop",
        }
    }

    /// A benchmark with its engine, if it has one.
    pub(super) fn of(self, bench: BenchOptions) -> BenchOptions {
        match self {
            Self::Engine(engine) => BenchOptions {
                engine: Subject::Engine(engine),
                ..bench
            },
            _ => bench,
        }
    }

    /// Of a benchmark without a protocol: what is sent. (With [`Series::Tcp`] that is one stream.)
    pub(super) const fn pattern(self) -> Option<Pattern> {
        match self {
            Self::Engine(_) => None,
            Self::Multicast | Self::Tcp => Some(Pattern::Multicast),
            Self::AllAck => Some(Pattern::AllAck),
            Self::Hop => Some(Pattern::Hop),
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Series {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match Self::ALL.into_iter().find(|series| series.name() == text) {
            Some(series) => Ok(series),
            None => {
                let names = Self::ALL.map(Self::name).join(" ");
                wrong(text, &format!("something to compare: {names}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for figure in Figure::ALL {
            assert!(figure.stem().contains(&format!("figure-{figure}")));
        }
        for series in Series::ALL {
            assert_eq!(series.to_string().parse(), Ok(series));
        }
        assert!("paxos".parse::<Series>().is_err());
    }

    #[test]
    fn everything_is_compared_somewhere() {
        let everywhere = Figure::ALL.map(Figure::series).concat();
        for series in Series::ALL {
            assert!(everywhere.contains(&series), "{series}");
        }
    }
}
