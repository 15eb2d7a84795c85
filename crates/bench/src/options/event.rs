//! What happens to the nodes while a load runs.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{ParseError, parse_duration, wrong};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The process of a node is killed.
    Kill(usize),
    /// The process of a node stands still for so long.
    Pause(usize, Duration),
    /// Nothing gets from one node to the other, nor back, for so long.
    Cut(usize, usize, Duration),
}

/// Something that happens so long after the measured time began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happens.
    pub what: Happening,
    /// When, after the measured time began.
    pub at: Duration,
}

impl Event {
    /// When it is over, after the measured time began.
    pub fn ends(&self) -> Duration {
        self.at
            + match self.what {
                Happening::Kill(_) => Duration::ZERO,
                Happening::Pause(_, time) | Happening::Cut(_, _, time) => time,
            }
    }

    /// The same event, where all times are so many times longer.
    #[must_use]
    pub fn slowed(self, slow: u32) -> Self {
        let what = match self.what {
            Happening::Kill(node) => Happening::Kill(node),
            Happening::Pause(node, time) => Happening::Pause(node, time * slow),
            Happening::Cut(one, other, time) => Happening::Cut(one, other, time * slow),
        };
        Self {
            what,
            at: self.at * slow,
        }
    }

    /// The nodes that it happens to.
    pub fn nodes(&self) -> impl Iterator<Item = usize> {
        let (one, other) = match self.what {
            Happening::Kill(node) | Happening::Pause(node, _) => (node, None),
            Happening::Cut(one, other, _) => (one, Some(other)),
        };
        std::iter::once(one).chain(other)
    }
}

impl FromStr for Event {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let hint = "an event: kill:2@1s, pause:3@1s+500ms, cut:1-2@2s+1s";
        let read = || {
            let (kind, rest) = text.split_once(':')?;
            let (nodes, times) = rest.split_once('@')?;
            let duration = |text: &str| parse_duration(text).ok();
            let (at, length) = match times.split_once('+') {
                Some((at, length)) => (duration(at)?, Some(duration(length)?)),
                None => (duration(times)?, None),
            };
            let what = match (kind, length) {
                ("kill", None) => Happening::Kill(nodes.parse().ok()?),
                ("pause", Some(length)) => Happening::Pause(nodes.parse().ok()?, length),
                ("cut", Some(length)) => {
                    let (one, other) = nodes.split_once('-')?;
                    Happening::Cut(one.parse().ok()?, other.parse().ok()?, length)
                }
                _ => return None,
            };
            Some(Self { what, at })
        };
        read().map_or_else(|| wrong(text, hint), Ok)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.what {
            Happening::Kill(node) => write!(f, "kill:{node}@{at:?}"),
            Happening::Pause(node, time) => write!(f, "pause:{node}@{at:?}+{time:?}"),
            Happening::Cut(one, other, time) => write!(f, "cut:{one}-{other}@{at:?}+{time:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_written() {
        for text in ["kill:2@1s", "pause:3@1s+500ms", "cut:1-2@2s+1s"] {
            let event: Event = text.parse().expect(text);
            assert_eq!(event.to_string(), text);
        }
        let cut: Event = "cut:1-2@2s+1s".parse().expect("an event");
        assert_eq!(cut.ends(), Duration::from_secs(3));
        assert_eq!(cut.nodes().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn half_an_event_is_none() {
        for text in [
            "kill:2",
            "pause:3@1s",
            "kill:2@1s+1s",
            "cut:1@1s+1s",
            "halt:1@1s",
            "",
            "kill:x@1s",
        ] {
            assert!(text.parse::<Event>().is_err(), "{text}");
        }
    }
}
