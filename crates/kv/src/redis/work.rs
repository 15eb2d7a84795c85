//! The work that is ordered for commands, and the replies to them.

use bytes::Bytes;
use rota_multiring::Place;
use rota_resp::Reply;

use super::command::{Fold, Plan, Shape};
use super::reply::{joined, name_of, reply};
use crate::map::Partition;
use crate::store::{Action, Batch, Found, Operation, Outcome, Test, Wanted};

/// A command of a client.
#[derive(Clone, PartialEq, Debug)]
pub enum Task {
    /// The command is ordered.
    Store {
        /// The name, of the table.
        name: &'static str,
        /// The arguments behind the name.
        arguments: Vec<Bytes>,
    },
    /// Its reply is known.
    Known(Reply),
}

/// The next part of a walk through all keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    /// From this key on.
    pub from: Bytes,
    /// The number of keys, about.
    pub count: u32,
    /// The pattern of names.
    pub pattern: Option<Bytes>,
    /// The kind of values, as `TYPE` names it.
    pub kind: Option<Bytes>,
}

/// A piece of work for a client at one place of the order.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// A command.
    One(Task),
    /// A transaction, if the watched keys are as they were.
    Transaction(Vec<Task>, Vec<(Bytes, Option<Place>)>),
    /// The versions of some keys.
    Watch(Vec<Bytes>),
    /// Some keys.
    Walk(Walk),
}

/// The result of a piece of work.
#[derive(Clone, PartialEq, Debug)]
pub enum Done {
    /// A reply.
    Reply(Reply),
    /// The versions of the keys that are watched.
    Watched(Vec<(Bytes, Option<Place>)>),
    /// Keys, and the key to go on with, if there are more.
    Walked(Vec<Bytes>, Option<Bytes>),
}

impl Done {
    /// The memory of the result.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Reply(reply) => reply.memory_bytes(),
            Self::Watched(keys) => bytes_of(keys.iter().map(|(key, _)| key)),
            Self::Walked(keys, _) => bytes_of(keys),
        }
    }
}

/// The way from outcomes to the reply to one task.
#[derive(Clone, Debug)]
enum Part {
    /// The reply comes from the outcomes of this number of operations.
    Of(usize, Shape, Fold),
    /// The reply is known already.
    Known(Reply),
}

/// The way from the outcomes of one batch to the replies to several pieces of work.
#[derive(Debug)]
pub struct Answering(Vec<Vec<Part>>);

impl Work {
    /// Whether it may be ordered together with work that the client has asked for before and behind it.
    pub fn is_free(&self) -> bool {
        match self {
            Self::One(Task::Store { name, .. }) => *name != "msetnx",
            Self::One(Task::Known(_)) => true,
            Self::Transaction(_, watched) => watched.is_empty(),
            Self::Watch(_) | Self::Walk(_) => false,
        }
    }

    /// The bytes of the work.
    pub fn bytes(&self) -> usize {
        match self {
            Self::One(task) => task.bytes(),
            Self::Transaction(tasks, _) => tasks.iter().map(Task::bytes).sum(),
            Self::Watch(keys) => bytes_of(keys),
            Self::Walk(walk) => walk.from.len(),
        }
    }
}

/// The memory of arguments.
pub(super) fn bytes_of<'a>(arguments: impl IntoIterator<Item = &'a Bytes>) -> usize {
    arguments.into_iter().map(|bytes| 16 + bytes.len()).sum()
}

impl Task {
    /// The bytes of the task.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Store { arguments, .. } => bytes_of(arguments),
            Self::Known(reply) => reply.memory_bytes(),
        }
    }

    fn plan<'a>(&'a self, batch: &mut Batch<'a>) -> Part {
        match self {
            Self::Known(reply) => Part::Known(reply.clone()),
            Self::Store { name, arguments } => match Plan::new(name, arguments) {
                Some(Ok(plan)) => {
                    let part = Part::Of(plan.operations.len(), plan.shape, plan.fold);
                    batch.operations.extend(plan.operations);
                    batch.conditions.extend(plan.conditions);
                    part
                }
                Some(Err(reply)) => Part::Known(reply),
                None => Part::Known(Reply::error("ERR this command has no keys")),
            },
        }
    }
}

/// All pieces of work as one batch, in this order, and the way to the replies. The batch is empty where all replies are
/// known already. `of`: walks through all keys, their number, and their end by `FLUSHALL`, are of this partition only.
pub fn assemble<'a>(
    works: impl IntoIterator<Item = &'a Work>,
    of: Option<Partition>,
) -> (Batch<'a>, Answering) {
    let mut batch = Batch::default();
    let works = works.into_iter();
    let parts = works.map(|work| work.plan(&mut batch, of)).collect();
    for operation in &mut batch.operations {
        if let Operation::Size(partition) | Operation::Clear(partition) = operation {
            *partition = of;
        }
    }
    (batch, Answering(parts))
}

impl Work {
    fn plan<'a>(&'a self, batch: &mut Batch<'a>, of: Option<Partition>) -> Vec<Part> {
        match self {
            Self::One(task) => vec![task.plan(batch)],
            Self::Transaction(tasks, watched) => {
                let test = |(key, version): &'a (Bytes, Option<Place>)| {
                    (&key[..], Test::Version(*version))
                };
                batch.conditions.extend(watched.iter().map(test));
                tasks.iter().map(|task| task.plan(batch)).collect()
            }
            Self::Watch(keys) => {
                let version = |key: &'a Bytes| Operation::Key(key, Action::Version);
                batch.operations.extend(keys.iter().map(version));
                Vec::new()
            }
            Self::Walk(walk) => {
                batch.operations.push(Operation::Range {
                    from: &walk.from,
                    to: None,
                    limit: walk.count,
                    wanted: match walk.kind {
                        Some(_) => Wanted::Kinds,
                        None => Wanted::Names,
                    },
                    of,
                });
                Vec::new()
            }
        }
    }
}

/// The results of pieces of work. `outcomes`: of each operation, those of all partitions that have answered it; `None`:
/// the conditions did not hold. `works`: those that were put together.
pub fn done<'a>(
    works: impl IntoIterator<Item = &'a Work>,
    Answering(parts): Answering,
    outcomes: Option<Vec<Vec<Outcome>>>,
) -> Vec<Done> {
    let Some(outcomes) = outcomes else {
        return works.into_iter().zip(parts).map(refused).collect();
    };
    let mut outcomes = outcomes.into_iter();
    let works = works.into_iter().zip(parts);
    let done = works.map(|(work, parts)| {
        let mut replies = parts.into_iter().map(|part| match part {
            Part::Known(reply) => reply,
            Part::Of(count, shape, fold) => {
                let own: Vec<_> = outcomes.by_ref().take(count).collect();
                reply((shape, fold), Some(own))
            }
        });
        match work {
            Work::One(_) => Done::Reply(replies.next().unwrap_or(Reply::Null)),
            Work::Transaction(..) => Done::Reply(Reply::Array(replies.collect())),
            Work::Watch(keys) => {
                drop(replies);
                watched(keys, outcomes.by_ref())
            }
            Work::Walk(walk) => {
                drop(replies);
                walked(walk, outcomes.next().unwrap_or_default())
            }
        }
    });
    done.collect()
}

fn refused((work, parts): (&Work, Vec<Part>)) -> Done {
    let none = match (work, parts.first()) {
        (Work::One(_), Some(Part::Of(_, shape, fold))) => reply((*shape, *fold), None),
        _ => Reply::NullArray,
    };
    Done::Reply(none)
}

/// The versions of all keys; an error reply if that of one is missing.
fn watched(keys: &[Bytes], outcomes: impl Iterator<Item = Vec<Outcome>>) -> Done {
    let version = |(key, outcomes): (&Bytes, Vec<Outcome>)| match outcomes.first() {
        Some(Outcome::Version(version)) => Some((key.clone(), *version)),
        _ => None,
    };
    let watched: Option<Vec<_>> = keys.iter().zip(outcomes).map(version).collect();
    let watched = watched.filter(|watched| watched.len() == keys.len());
    watched.map_or_else(too_much, Done::Watched)
}

fn too_much() -> Done {
    Done::Reply(Reply::error(
        "TRYAGAIN more was asked for at once than is answered: it was not done",
    ))
}

fn walked(walk: &Walk, outcomes: Vec<Outcome>) -> Done {
    let Some((keys, next)) = joined(outcomes) else {
        // The keys of one partition would be left out.
        return too_much();
    };
    let is_wanted = |(key, found): &(Bytes, Found)| {
        let pattern = walk.pattern.as_ref();
        let is_like = pattern.is_none_or(|pattern| rota_front::glob::matches(pattern, key));
        let is_of_kind = match (&walk.kind, found) {
            (Some(wanted), Found::Kind(kind)) => {
                wanted.eq_ignore_ascii_case(name_of(*kind).as_bytes())
            }
            (wanted, _) => wanted.is_none(),
        };
        is_like && is_of_kind
    };
    let keys = keys.into_iter().filter(is_wanted).map(|(key, _)| key);
    Done::Walked(keys.collect(), next)
}
