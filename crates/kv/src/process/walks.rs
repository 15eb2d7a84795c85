//! The places of walks through all keys: clients name them by numbers, on any of their connections.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use bytes::Bytes;

use super::lock;

/// The number of walks that are remembered; older ones begin anew.
const MOST: usize = 4_096;

#[derive(Debug, Default)]
struct Inner {
    at: HashMap<u64, Bytes>,
    order: VecDeque<u64>,
    last: u64,
}

/// The places of walks.
#[derive(Debug, Default)]
pub(super) struct Walks(Mutex<Inner>);

impl Walks {
    /// Remembers the key that a walk goes on with; the number of the walk.
    pub(super) fn keep(&self, from: Bytes) -> u64 {
        let mut inner = lock(&self.0);
        inner.last += 1;
        let number = inner.last;
        inner.at.insert(number, from);
        inner.order.push_back(number);
        if inner.order.len() > MOST
            && let Some(oldest) = inner.order.pop_front()
        {
            inner.at.remove(&oldest);
        }
        number
    }

    /// The key that a walk goes on with; the beginning, if the walk is not remembered. It may be asked for again.
    pub(super) fn of(&self, number: u64) -> Bytes {
        let inner = lock(&self.0);
        inner.at.get(&number).cloned().unwrap_or_default()
    }
}
