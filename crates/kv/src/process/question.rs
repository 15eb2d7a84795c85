//! A partition is asked: one of its processes, and then others, where that says nothing. What any of them says counts.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::frame::Ask;
use super::gateway::Gateway;
use super::link::{Link, Told};
use crate::map::Partition;
use crate::store::{Answer, Answered};

/// A process that was asked. Dropping it says that nobody waits any more.
struct Asked<'a> {
    link: &'a Link,
    id: u64,
    /// Which of those that were asked.
    number: usize,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.link.give_up(self.id);
    }
}

/// See the module's page.
pub(super) struct Question<'a> {
    gateway: &'a Gateway,
    pub(super) partition: Partition,
    asked: Vec<Asked<'a>>,
    /// Whom to ask next, among the processes of the partition.
    from: usize,
    tell: mpsc::UnboundedSender<(usize, Told)>,
    told: mpsc::UnboundedReceiver<(usize, Told)>,
    /// So many were asked.
    count: usize,
}

impl<'a> Question<'a> {
    pub(super) fn new(gateway: &'a Gateway, partition: Partition) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        Self {
            gateway,
            partition,
            asked: Vec::new(),
            from: 0,
            tell,
            told,
            count: 0,
        }
    }

    /// The next process is asked. `false`: nobody is there.
    pub(super) fn put(&mut self, ask: impl FnOnce(u64) -> Ask) -> bool {
        let Some((link, at)) = self.gateway.of(self.partition, self.from) else {
            return false;
        };
        self.count += 1;
        let (tell, number) = (self.tell.clone(), self.count);
        let id = link.ask(ask, move |told| drop(tell.send((number, told))));
        self.asked.push(Asked { link, id, number });
        self.from = at + 1;
        true
    }

    /// What any of them says next; `None`: nothing until then.
    pub(super) async fn hears(&mut self, until: Instant) -> Option<Told> {
        if self.asked.is_empty() {
            return None;
        }
        let (number, told) = timeout_at(until, self.told.recv()).await.ok().flatten()?;
        self.asked.retain(|asked| asked.number != number);
        Some(told)
    }
}

pub(super) fn answers_of(bytes: &Bytes) -> Option<Vec<Answer>> {
    Answered::decode(bytes).map(|answered| answered.answers)
}
