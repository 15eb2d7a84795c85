//! Where walks through all keys are: clients name them by numbers, on any of their connections.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use bytes::Bytes;

use super::lock;

/// So many are remembered; of the others nothing is known any more, and they begin anew.
const MOST: usize = 4_096;

#[derive(Debug, Default)]
struct Inner {
    at: HashMap<u64, Bytes>,
    order: VecDeque<u64>,
    last: u64,
}

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Walks(Mutex<Inner>);

impl Walks {
    /// A walk goes on from this key: under which number.
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

    /// From where a walk goes on; the beginning, if it is not remembered. It may be asked for again.
    pub(super) fn of(&self, number: u64) -> Bytes {
        let inner = lock(&self.0);
        inner.at.get(&number).cloned().unwrap_or_default()
    }
}
