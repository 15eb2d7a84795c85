//! What happens to the nodes while a load runs: they are killed, they stand still, their links are cut.

use std::time::Duration;

use rustix::process::Signal;

use crate::clock::sleep_until;
use crate::cluster::Cluster;
use crate::error::BenchError;
use crate::options::{Event, Happening};
use crate::testbed::Testbed;

/// A step of an event: its beginning, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin(Happening),
    End(Happening),
}

/// The steps of all events, in the order of their times.
#[derive(Debug)]
pub(super) struct Events<'a> {
    testbed: &'a Testbed,
    steps: Vec<(Duration, Step)>,
}

impl<'a> Events<'a> {
    /// Makes the testbed ready for what is to happen.
    pub(super) fn prepare(events: &[Event], testbed: &'a Testbed) -> Result<Self, BenchError> {
        if events
            .iter()
            .any(|event| matches!(event.what, Happening::Cut(..)))
        {
            testbed.prepare_cuts()?;
        }
        Ok(Self {
            testbed,
            steps: steps(events),
        })
    }

    /// Lets it all happen; `from` is when the measured time begins. Returns when the last step is done.
    pub(super) fn happen(&mut self, from: u64, cluster: &mut Cluster) -> Result<(), BenchError> {
        for (at, step) in self.steps.drain(..) {
            sleep_until(from + at.as_nanos() as u64);
            match step {
                Step::Begin(Happening::Kill(node)) => cluster.kill(node)?,
                Step::Begin(Happening::Pause(node, _)) => cluster.signal(node, Signal::STOP)?,
                Step::End(Happening::Pause(node, _)) => cluster.signal(node, Signal::CONT)?,
                Step::Begin(Happening::Cut(one, other, _)) => {
                    self.testbed.cut(&[(one, other), (other, one)])?;
                }
                Step::End(Happening::Cut(one, other, _)) => {
                    self.testbed.mend(&[(one, other), (other, one)])?;
                }
                Step::End(Happening::Kill(_)) => {}
            }
        }
        Ok(())
    }
}

fn steps(events: &[Event]) -> Vec<(Duration, Step)> {
    let both = |event: &Event| {
        [
            (event.at, Step::Begin(event.what)),
            (event.ends(), Step::End(event.what)),
        ]
    };
    let mut steps: Vec<_> = events.iter().flat_map(both).collect();
    steps.sort_by_key(|(at, _)| *at);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_events_that_overlap_are_in_the_order_of_time() {
        let events = ["pause:1@1s+2s", "cut:1-2@2s+3s"].map(|text| text.parse().expect("an event"));
        let seconds: Vec<(u64, bool)> = steps(&events)
            .into_iter()
            .map(|(at, step)| (at.as_secs(), matches!(step, Step::Begin(_))))
            .collect();
        assert_eq!(seconds, [(1, true), (2, true), (3, false), (5, false)]);
    }
}
