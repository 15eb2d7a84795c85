//! The load of a benchmark.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{BitRate, ParseError, Senders, wrong};

/// The load of all senders together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Load {
    /// As much as the ring takes: the backlog is never empty when the token comes.
    Max,
    /// At fixed times, this much clean payload in all; 0 measures the idle ring.
    Fixed(BitRate),
    /// A number of messages under way in all, a closed loop: each sender submits the next when one of its own is
    /// delivered to it.
    Outstanding(u32),
}

impl FromStr for Load {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "max" => Ok(Self::Max),
            _ => text.parse().map(Self::Fixed).or_else(|_| {
                wrong(
                    text,
                    "a load; write a rate like 100mbit, `max`, or 0 for an idle ring",
                )
            }),
        }
    }
}

impl Load {
    /// The number of `nodes` that send, of which `senders` may: where fewer messages are to be under way than there are
    /// senders, the others have none.
    pub(crate) fn senders(self, senders: Senders, nodes: usize) -> usize {
        let all = senders.of(nodes);
        match self {
            Self::Outstanding(count) => all.min(count as usize),
            Self::Max | Self::Fixed(_) => all,
        }
    }
}

/// Of `count` messages under way what sender `index` of `senders` keeps, counted from 0: the same for all, and what is
/// left over goes to the first ones, one each.
pub(crate) const fn share(count: u32, index: usize, senders: usize) -> u32 {
    let (senders, index) = (senders as u32, index as u32);
    count / senders + (index < count % senders) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_is_split_evenly_and_the_rest_goes_to_the_first() {
        let shares = |count, senders| -> Vec<u32> {
            let indices = 0..senders;
            indices.map(|index| share(count, index, senders)).collect()
        };
        assert_eq!(shares(200, 3), [67, 67, 66]);
        assert_eq!(shares(30, 3), [10, 10, 10]);
        assert_eq!(shares(1, 3), [1, 0, 0]);
        assert_eq!(Load::Outstanding(1).senders(Senders::All, 3), 1);
        assert_eq!(Load::Outstanding(9).senders(Senders::Half, 3), 2);
        assert_eq!(Load::Max.senders(Senders::All, 3), 3);
    }
}
