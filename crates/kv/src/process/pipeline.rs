//! The commands that a client has sent at once: they are ordered together. Where nothing of them was done, as one asks
//! for what cannot be, the others are ordered without it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering::SeqCst;

use rota_resp::Reply;

use super::gateway::OrderError;
use super::listen::Server;
use crate::map::Partition;
use crate::redis::{Done, Work, assemble, done};
use crate::store::{Batch, Outcome};

/// The outcomes of each operation of a batch; `None`: the conditions did not hold.
type Outcomes = Option<Vec<Vec<Outcome>>>;

/// The commands of a client, which are ordered together.
pub(super) struct Pipeline<'a> {
    pub(super) server: &'a Server,
    pub(super) works: &'a [Work],
    /// The client is content with the state of the replica here.
    pub(super) reads_near: bool,
    /// Walks through all keys, and their number, are of this partition only.
    pub(super) of: Option<Partition>,
}

impl Pipeline<'_> {
    /// What becomes of each command.
    pub(super) async fn answers(&self) -> Vec<Done> {
        let mut answers = vec![None; self.works.len()];
        let mut groups = VecDeque::from([(0..self.works.len()).collect::<Vec<usize>>()]);
        // A group is done before the next one, so commands are done in their order.
        while let Some(group) = groups.pop_front() {
            let works = || group.iter().filter_map(|at| self.works.get(*at));
            let (mut batch, answering) = assemble(works(), self.of);
            let dones = match self.outcomes(&mut batch).await {
                Ok(outcomes) => done(works(), answering, outcomes),
                Err(error) => {
                    let (refused, others) = self.divide(&group, &error);
                    others
                        .into_iter()
                        .rev()
                        .for_each(|group| groups.push_front(group));
                    self.refuse(&refused, &error, &mut answers);
                    continue;
                }
            };
            for (at, done) in group.iter().zip(dones) {
                answers[*at] = Some(done);
            }
        }
        let lost = || Done::Reply(Reply::Null);
        answers
            .into_iter()
            .map(|done| done.unwrap_or_else(lost))
            .collect()
    }

    fn refuse(&self, refused: &[usize], error: &OrderError, answers: &mut [Option<Done>]) {
        if error.is_unknown() {
            self.server.unknown.fetch_add(1, SeqCst);
        }
        for at in refused {
            answers[*at] = Some(Done::Reply(Reply::Error(error.to_string())));
        }
    }

    /// The commands of a group for which an error counts, and the groups in which the others are ordered: nothing of
    /// them was done.
    fn divide(&self, group: &[usize], error: &OrderError) -> (Vec<usize>, Vec<Vec<usize>>) {
        let (refused, others) = match error {
            OrderError::NoReplica(away) => {
                let map = self.server.gateway.maps.now();
                self.part(group, |batch, _| batch.to(&map).contains(away))
            }
            OrderError::Full(_, lacking) => self.part(group, |_, operations| {
                lacking.iter().any(|at| operations.contains(at))
            }),
            // It is not known which of them it is.
            OrderError::TooLarge | OrderError::TooMuch | OrderError::Spread => {
                (Vec::new(), group.to_vec())
            }
            // They may be done, or nothing is ordered just now.
            OrderError::Busy
            | OrderError::Unknown(_)
            | OrderError::Unreadable
            | OrderError::Moving => (group.to_vec(), Vec::new()),
        };
        match (group, refused.is_empty()) {
            ([_] | [], _) => (group.to_vec(), Vec::new()),
            (_, true) => {
                let (first, second) = group.split_at(group.len() / 2);
                (Vec::new(), vec![first.to_vec(), second.to_vec()])
            }
            _ if others.is_empty() => (refused, Vec::new()),
            _ => (refused, vec![others]),
        }
    }

    /// Parts a group by what each command asks for: its own batch, and the numbers of its operations in that of the
    /// group.
    fn part(
        &self,
        group: &[usize],
        is_refused: impl Fn(&Batch<'_>, &Range<usize>) -> bool,
    ) -> (Vec<usize>, Vec<usize>) {
        let mut next = 0;
        group.iter().partition(|at| {
            let (batch, _) = assemble(self.works.get(**at), self.of);
            let operations = next..next + batch.operations.len();
            next = operations.end;
            is_refused(&batch, &operations)
        })
    }

    async fn outcomes(&self, batch: &mut Batch<'_>) -> Result<Outcomes, OrderError> {
        if batch.is_empty() {
            return Ok(Some(Vec::new()));
        }
        if self.reads_near
            && let Some(outcomes) = self.server.gateway.look(batch)
        {
            return Ok(Some(outcomes));
        }
        self.server.batches.fetch_add(1, SeqCst);
        self.server.gateway.order(batch).await
    }
}
