//! The contradictions that a check of shared logs finds.

use std::fmt;

use super::At;

/// A contradiction. Steps are named by their places in the history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// A value is in the logs twice.
    Twice(String, At, At),
    /// An acknowledged value is not where the answer said.
    Lost(usize, String, At),
    /// A value that was refused is there.
    Refused(usize, String, At),
    /// A part of the values that were appended at once is there.
    Part(usize, String),
    /// A value is there that was never asked for.
    Invented(String, At),
    /// Of two appends to a log the second was asked for after the answer about the first, and stands before it.
    Order(usize, usize, String),
    /// A reader was told another value than is there.
    Read(usize, At, String),
    /// A reader was not told of an entry that had been acknowledged before it asked.
    Stale(usize, usize, At),
    /// Entries of several logs were not told in the order of their places, or one log has a gap.
    Merged(usize, At),
    /// Two readers were told different places of an entry.
    Place(usize, At),
    /// The answer comes before the question.
    Time(usize),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |(log, position): &At| format!("{log} {position}");
        match self {
            Self::Twice(value, one, other) => {
                write!(f, "{value} is twice there: {} and {}", at(one), at(other))
            }
            Self::Lost(step, value, where_to) => {
                write!(
                    f,
                    "step {step}: {value} was acknowledged and is not at {}",
                    at(where_to)
                )
            }
            Self::Refused(step, value, where_to) => {
                write!(
                    f,
                    "step {step}: {value} was refused and is at {}",
                    at(where_to)
                )
            }
            Self::Part(step, value) => {
                write!(f, "step {step}: a part of it is there, and {value} is not")
            }
            Self::Invented(value, where_to) => {
                write!(
                    f,
                    "nobody has appended {value}, which is at {}",
                    at(where_to)
                )
            }
            Self::Order(one, other, log) => write!(
                f,
                "step {one} was told before step {other} was asked for, and stands behind it in {log}"
            ),
            Self::Read(step, where_to, value) => {
                write!(f, "step {step}: {} is not {value}", at(where_to))
            }
            Self::Stale(step, append, where_to) => write!(
                f,
                "step {step} did not see {}, which step {append} was told of before",
                at(where_to)
            ),
            Self::Merged(step, where_to) => {
                write!(f, "step {step}: {} is told out of order", at(where_to))
            }
            Self::Place(step, where_to) => {
                write!(f, "step {step}: {} has two places", at(where_to))
            }
            Self::Time(step) => write!(f, "step {step} ends before it begins"),
        }
    }
}
