//! The start of a search: the first configuration, or a state behind a story that is too long to be found by chance of
//! depth.

use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use super::moves::{Move, Voters};
use super::state::State;
use super::{Budget, Rules};

/// The start of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// The first configuration; nobody was asked for a promise.
    #[default]
    First,
    /// Its round has begun, with the promises of all.
    Begun,
    /// Of five acceptors, 1 and 3 have voted for a value in round 1, and 2 for another one in round 2; 1, 4 and 5 have decided the
    /// first in round 3, and know it. Node 3 knows only what comes behind.
    Older,
    /// The same, and then 3 has learnt it and leads, 1 has lost its disk and its new one has learnt from 3, and that
    /// configuration is complete; 3 has begun to change it once more.
    Mended,
    /// Of three acceptors, 1 has voted in round 1 at two places; in round 2 the others have decided other things there, of which a
    /// part is nothing, and know it.
    Skipped,
    /// The same, and then 1 has learnt all but the last of that, and 3 was restarted and has learnt only what is last, with a part of
    /// what 1 has.
    Parted,
}

impl Start {
    /// All of them.
    pub const EACH: [Self; 6] = [
        Self::First,
        Self::Begun,
        Self::Older,
        Self::Mended,
        Self::Skipped,
        Self::Parted,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Begun => "begun",
            Self::Older => "older",
            Self::Mended => "mended",
            Self::Skipped => "skipped",
            Self::Parted => "parted",
        }
    }

    /// The number of acceptors that it takes at least.
    pub const fn acceptors(self) -> usize {
        match self {
            Self::First | Self::Begun => 1,
            Self::Older | Self::Mended => 5,
            Self::Skipped | Self::Parted => 3,
        }
    }

    /// The state of the start, with the events that may happen after.
    pub(super) fn state(self, rules: Rc<Rules>, left: Budget) -> State {
        let plenty = Budget {
            stands: 9,
            values: 9,
            skips: 9,
            disks: 9,
            crashes: 9,
            ..left
        };
        let mut story = Story(State::new(rules, plenty));
        match self {
            Self::First => story.0.ask_itself(0),
            Self::Begun => {
                let all = story.0.rules.acceptors as u8;
                story.ask(0, &(0..all).collect::<Vec<u8>>());
            }
            Self::Older => older(&mut story),
            Self::Mended => {
                older(&mut story);
                mended(&mut story);
            }
            Self::Skipped => skipped(&mut story),
            Self::Parted => {
                skipped(&mut story);
                parted(&mut story);
            }
        }
        let mut state = story.0;
        state.left = left;
        state
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "start '{}'", self.name())
    }
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut each = Self::EACH.into_iter();
        each.find(|start| start.name() == text)
            .ok_or_else(|| format!("there is no start '{text}'"))
    }
}

/// A state on its way through a list of steps.
struct Story(State);

impl Story {
    /// Leaves violations before the search to the search: a step that is taken once more shows them.
    fn step(&mut self, step: Move) {
        self.0.step(step);
        if self.0.rules.lazy {
            for at in 0..self.0.nodes.len() {
                self.0.step(Move::Sync(at as u8));
            }
        }
        *self.0.ledger.finding() = None;
    }

    fn ask(&mut self, by: u8, all: &[u8]) {
        for &to in all {
            let late = false;
            self.step(Move::Ask { by, to, late });
        }
    }

    fn propose(&mut self, round: u8, place: u8, all: &[u8]) {
        for &to in all {
            self.step(Move::Proposal { to, round, place });
        }
    }

    fn hear(&mut self, all: &[u8]) {
        for &to in all {
            let upto = u8::MAX;
            self.step(Move::Hear { to, upto });
        }
    }

    fn stand(&mut self, who: u8, voters: Voters) {
        self.step(Move::Stand { who, voters });
    }

    fn fetch(&mut self, to: u8, of: u8, (from, upto): (u8, u8)) {
        let late = false;
        self.step(Move::Fetch {
            to,
            of,
            from,
            upto,
            late,
        });
    }
}

/// If rounds begin without members a packet takes their place.
fn begin(story: &mut Story, by: u8, all: &[u8]) {
    story.ask(by, all);
    if !story.0.rules.members {
        story.step(Move::Value(by));
    }
}

fn older(story: &mut Story) {
    begin(story, 0, &[0, 1, 2]);
    story.propose(1, 0, &[0, 2]);
    story.stand(1, Voters::Same);
    begin(story, 1, &[1, 3, 4]);
    story.propose(2, 0, &[1]);
    story.stand(0, Voters::Same);
    begin(story, 0, &[0, 3, 4]);
    story.propose(3, 0, &[0, 3, 4]);
    story.hear(&[0, 3, 4]);
    story.propose(3, 1, &[2]);
    story.hear(&[2]);
}

fn mended(story: &mut Story) {
    story.fetch(2, 0, (1, 2));
    story.step(Move::Lose(0));
    story.stand(2, Voters::Mended);
    begin(story, 2, &[2, 3, 4]);
    story.propose(4, 0, &[2, 0]);
    story.fetch(0, 2, (1, 2));
    story.stand(2, Voters::Same);
}

fn skipped(story: &mut Story) {
    story.0.ask_itself(0);
    begin(story, 0, &[0, 1, 2]);
    story.step(Move::Value(0));
    if story.0.rules.apart {
        story.propose(1, 0, &[0]);
        story.propose(1, 1, &[0]);
    }
    story.stand(1, Voters::Same);
    // No acceptor that is asked has voted for anything: these places are free.
    begin(story, 1, &[1, 2]);
    story.step(Move::Skip(1, 3));
    story.propose(2, 0, &[1, 2]);
    story.propose(2, 1, &[1, 2]);
    story.hear(&[1, 2]);
}

fn parted(story: &mut Story) {
    let end = story.0.ledger.end() as u8;
    story.stand(1, Voters::Same);
    story.ask(1, &[1, 0]);
    story.fetch(0, 1, (1, end - 1));
    let (who, written) = (2, 0);
    story.step(Move::Restart { who, written });
    story.ask(1, &[2]);
    story.fetch(2, 1, (end - 2, end));
}
