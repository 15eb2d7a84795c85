//! O2, causal order: a process that delivers a message has delivered before it, in the same ring,
//! every message that its sender had originated or delivered there before originating it.
//!
//! It is enough to look at the past of the sender itself: the dependencies of a message in that past were looked at
//! when the sender delivered it. Dependencies through reliable and fifo messages do not count.

use rustc_hash::FxHashMap;

use crate::bits::Bits;
use crate::report::Findings;
use crate::trace::Step;
use crate::view::{Delivered, Tenure, View, is_ordered};

/// The past of a process at the origination of a message.
#[derive(Clone, Copy)]
struct Past {
    /// The process, as its place among the ring's tenures.
    sender: u32,
    /// The number of messages of the ring that it had delivered.
    delivered: u32,
    /// The number of messages that it had originated.
    originated: u32,
}

/// The acts of a process in the ring's regular configuration, as ranks.
#[derive(Default)]
struct Acts {
    delivered: Vec<u32>,
    originated: Vec<u32>,
    /// The number of deliveries that are the first of the ring's messages, in order and without a gap. In a ring that
    /// works, all of them.
    dense: u32,
}

struct RingPast {
    /// Ranks of the messages in the total order.
    order: Vec<u32>,
    /// The past of each message, by rank.
    pasts: Vec<Option<Past>>,
    acts: Vec<Acts>,
}

pub(super) fn check(view: &View<'_>, findings: &mut Findings) {
    for ring in 0..view.rings.len() {
        let past = RingPast::of(view, ring);
        for tenure in view.tenures_of(ring) {
            check_tenure(view, tenure, &past, findings);
        }
    }
}

impl RingPast {
    fn of(view: &View<'_>, ring: usize) -> Self {
        let messages = &view.rings[ring].order;
        let is_in_order = |message: u32| {
            let home = view.homes[message as usize];
            home.is_some_and(|home| is_ordered(home.service))
        };
        let ranks = (0..).zip(messages);
        let mut past = Self {
            order: ranks
                .filter(|(_, message)| is_in_order(**message))
                .map(|(rank, _)| rank)
                .collect(),
            pasts: vec![None; messages.len()],
            acts: Vec::new(),
        };
        for tenure in view.tenures_of(ring) {
            past.add(view, tenure);
        }
        past
    }

    fn add(&mut self, view: &View<'_>, tenure: &Tenure) {
        let sender = self.acts.len() as u32;
        let mut acts = Acts::default();
        let steps = tenure.regular.as_ref().map(|span| span.steps());
        for step in &view.steps(tenure.process)[steps.unwrap_or_default()] {
            let (Step::Orig(place) | Step::Deliver(place)) = step else {
                continue;
            };
            let placed = view.delivered(tenure.ring, place);
            let Some(Delivered { rank, .. }) = placed.filter(|placed| is_ordered(placed.service))
            else {
                continue;
            };
            if matches!(step, Step::Deliver(_)) {
                acts.delivered.push(rank);
            } else {
                self.pasts[rank as usize].get_or_insert(Past {
                    sender,
                    delivered: acts.delivered.len() as u32,
                    originated: acts.originated.len() as u32,
                });
                acts.originated.push(rank);
            }
        }
        let mut both = acts.delivered.iter().zip(&self.order);
        let gap = both.position(|(mine, all)| mine != all);
        acts.dense = gap.unwrap_or(acts.delivered.len().min(self.order.len())) as u32;
        self.acts.push(acts);
    }
}

/// The progress of one process in what others had delivered, so that nothing is looked at twice.
struct Progress {
    mine: Bits,
    /// The number of the ring's first messages.
    dense: u32,
    /// By sender: the number of its own messages.
    own: Vec<u32>,
    /// By sender that delivered with gaps: the number of those deliveries.
    gapped: FxHashMap<u32, u32>,
}

impl Progress {
    /// The rank of a message of this past that was not delivered.
    fn missing(&mut self, past: &RingPast, had: Past) -> Option<u32> {
        let acts = &past.acts[had.sender as usize];
        let (sequence, done) = if had.delivered <= acts.dense {
            (&past.order, &mut self.dense)
        } else {
            let done = self.gapped.entry(had.sender).or_default();
            (&acts.delivered, done)
        };
        let own = &mut self.own[had.sender as usize];
        advance(&self.mine, sequence, done, had.delivered)
            .or_else(|| advance(&self.mine, &acts.originated, own, had.originated))
    }
}

/// Counts on through `sequence` up to `goal`; stops at the first missing rank.
fn advance(mine: &Bits, sequence: &[u32], done: &mut u32, goal: u32) -> Option<u32> {
    while *done < goal {
        let rank = sequence[*done as usize];
        if !mine.contains(rank) {
            return Some(rank);
        }
        *done += 1;
    }
    None
}

/// Checks a tenure up to the first gap: later messages often have the same one.
fn check_tenure(view: &View<'_>, tenure: &Tenure, past: &RingPast, findings: &mut Findings) {
    let order = &view.rings[tenure.ring as usize].order;
    let mut progress = Progress {
        mine: Bits::new(order.len()),
        dense: 0,
        own: vec![0; past.acts.len()],
        gapped: FxHashMap::default(),
    };
    for span in tenure.spans() {
        for delivered in view.ordered(tenure, span) {
            let had = past.pasts[delivered.rank as usize];
            let missing = had.and_then(|had| progress.missing(past, had));
            progress.mine.insert(delivered.rank);
            findings.check(missing.is_none(), || {
                let missing = order[missing.unwrap_or_default() as usize];
                format!(
                    "{} delivered {} in {} without {}, which its sender had before",
                    view.who(tenure.process),
                    view.what(delivered.message),
                    view.span(span),
                    view.what(missing)
                )
            });
            if missing.is_some() {
                return;
            }
        }
    }
}
