//! A question to a partition: one of its processes is asked, and then others, where that one does not answer. Any
//! answer counts.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::frame::Ask;
use super::link::{Link, Told};
use super::peers::Peers;
use crate::map::Partition;
use crate::store::{Answer, Answered};

/// A process that was asked. Dropping this tells it that nobody waits any more.
struct Asked<'a> {
    link: &'a Link,
    id: u64,
    /// The number of the process among those that were asked.
    number: usize,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.link.give_up(self.id);
    }
}

/// A question to a partition.
pub(super) struct Question<'a> {
    peers: &'a Peers,
    pub(super) partition: Partition,
    asked: Vec<Asked<'a>>,
    /// The place to look from for the process to ask next.
    from: usize,
    tell: mpsc::UnboundedSender<(usize, Told)>,
    told: mpsc::UnboundedReceiver<(usize, Told)>,
    /// The number of processes that were asked.
    count: usize,
}

impl<'a> Question<'a> {
    pub(super) fn new(peers: &'a Peers, partition: Partition) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        Self {
            peers,
            partition,
            asked: Vec::new(),
            from: 0,
            tell,
            told,
            count: 0,
        }
    }

    /// Asks the next process. `false`: no process is connected.
    pub(super) fn put(&mut self, ask: impl FnOnce(u64) -> Ask) -> bool {
        let Some((link, at)) = self.peers.of(self.partition, self.from) else {
            return false;
        };
        self.count += 1;
        let (tell, number) = (self.tell.clone(), self.count);
        let id = link.ask(ask, move |told| drop(tell.send((number, told))));
        self.asked.push(Asked { link, id, number });
        self.from = at + 1;
        true
    }

    /// The next answer of any of them; `None`: there was none until then.
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
