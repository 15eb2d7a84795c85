//! The papers whose figures are measured.

use std::fmt;
use std::str::FromStr;

use super::series::Figure;
use crate::options::{ParseError, wrong};

/// A paper that has figures which are measured here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// FastCast (2013).
    FastCast,
    /// Multi-Ring Paxos, *Building global and scalable systems with Atomic Multicast* (2014).
    MultiRing,
}

impl Paper {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::FastCast, Self::MultiRing];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FastCast => "fastcast",
            Self::MultiRing => "multi-ring",
        }
    }

    /// Its figures.
    pub fn figures(self) -> Vec<Figure> {
        let all = Figure::ALL.into_iter();
        all.filter(|figure| figure.paper() == self).collect()
    }

    /// The figure with this number.
    ///
    /// # Errors
    /// It has none.
    pub fn figure(self, number: &str) -> Result<Figure, ParseError> {
        let figures = self.figures();
        let named = |figure: &&Figure| figure.to_string() == number;
        match figures.iter().find(named) {
            Some(figure) => Ok(*figure),
            None => {
                let numbers: Vec<String> = figures.iter().map(Figure::to_string).collect();
                let numbers = numbers.join(" ");
                wrong(number, &format!("a figure of {self}: {numbers}"))
            }
        }
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Paper {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match Self::ALL.into_iter().find(|paper| paper.name() == text) {
            Some(paper) => Ok(paper),
            None => wrong(text, "a paper: fastcast multi-ring"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_found_in_its_paper_only() {
        for figure in Figure::ALL {
            for paper in Paper::ALL {
                let found = paper.figure(&figure.to_string());
                assert_eq!(found.ok(), (figure.paper() == paper).then_some(figure));
            }
        }
        let wrong = Paper::FastCast.figure("3").expect_err("it is the other's");
        assert_eq!(
            wrong.to_string(),
            "`3` is not a figure of fastcast: 5 6 7 8"
        );
        for paper in Paper::ALL {
            assert_eq!(paper.to_string().parse(), Ok(paper));
        }
    }
}
