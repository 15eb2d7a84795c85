//! The state that the receiving half keeps for the sending half: credit, answers and the end of the connection.

use std::collections::BTreeMap;

use rota_core::groups::GroupName;

use super::Settled;
use crate::error::{ConnectionLost, RequestError};
use crate::protocol::{Code, Credit, PrivateName};

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A join or leave has taken effect.
    Done,
    /// The request was not granted.
    Failed {
        /// Why.
        code: Code,
        /// Why, for people.
        text: String,
    },
    /// All groups, and how many members each has.
    Groups(Vec<(GroupName, u32)>),
    /// The members of a group.
    Members(Vec<PrivateName>),
}

impl Answer {
    /// The answer to a join or leave.
    pub fn done(self) -> Result<(), RequestError> {
        match self {
            Self::Done => Ok(()),
            other => Err(other.wrong()),
        }
    }

    /// The answer to a list of groups.
    pub fn groups(self) -> Result<Vec<(GroupName, u32)>, RequestError> {
        match self {
            Self::Groups(groups) => Ok(groups),
            other => Err(other.wrong()),
        }
    }

    /// The answer to a list of members.
    pub fn members(self) -> Result<Vec<PrivateName>, RequestError> {
        match self {
            Self::Members(members) => Ok(members),
            other => Err(other.wrong()),
        }
    }

    fn wrong(self) -> RequestError {
        match self {
            Self::Failed { code, text } => RequestError::Failed { code, text },
            _ => RequestError::Lost(ConnectionLost::Unexpected),
        }
    }
}

/// Credit, answers, and whether the connection still stands.
#[derive(Debug)]
pub struct OutstandingRequests {
    pub credit: Credit,
    pub lost: Option<ConnectionLost>,
    /// Requests whose answers are awaited.
    answers: BTreeMap<u32, Option<Answer>>,
    newest: u32,
    /// Grows with all that the receiving half has changed.
    pub changes: u64,
}

impl OutstandingRequests {
    pub const fn new(credit: Credit) -> Self {
        Self {
            credit,
            lost: None,
            answers: BTreeMap::new(),
            newest: 0,
            changes: 0,
        }
    }

    /// The connection, if it stands.
    pub fn standing(&self) -> Result<(), ConnectionLost> {
        self.lost.clone().map_or(Ok(()), Err)
    }

    /// A number for a request whose answer is waited for.
    pub fn expect(&mut self) -> u32 {
        self.newest = self.newest.wrapping_add(1);
        self.answers.insert(self.newest, None);
        self.newest
    }

    /// The answer, if it has come.
    pub fn answer(&mut self, request: u32) -> Option<Answer> {
        let answer = self.answers.get_mut(&request)?.take()?;
        self.answers.remove(&request);
        Some(answer)
    }

    /// Drops the answer to a request, for which no caller waits any more.
    pub fn forget(&mut self, request: u32) {
        self.answers.remove(&request);
    }

    /// Drops all answers, for which no caller waits any more.
    #[cfg(feature = "tokio")]
    pub fn forget_all(&mut self) {
        self.answers.clear();
    }

    /// Enters the news of the receiving half. True if there is anything that a sender may wait for.
    pub fn settle(&mut self, settled: Settled) -> bool {
        if settled.is_nothing() {
            return false;
        }
        self.credit.give_back(settled.credit);
        for (request, answer) in settled.answers {
            // An answer without an entry came too late: the request was forgotten.
            if let Some(waits) = self.answers.get_mut(&request) {
                *waits = Some(answer);
            }
        }
        self.lost = self.lost.take().or(settled.lost);
        self.changes += 1;
        true
    }
}
