//! The rules for the deliveries that applications see: uniform total order (B4) and view synchrony (B6). Rules are
//! judged at once where they can be, so that a run stops at the first wrong step; the others when all has come to rest.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use bytes::Bytes;
use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Message, MessageId, Process, RingId, Service,
};

/// What a process sent, or the model expects it to have.
pub fn payload(id: MessageId, bytes: usize) -> Vec<u8> {
    let seed = id.counter * 31 + u64::from(id.process.node.get()) * 7 + id.process.incarnation.0;
    (0..bytes as u64).map(|at| (seed + at * 13) as u8).collect()
}

/// A view, as applications saw it.
#[derive(Default)]
struct Seen {
    members: Vec<Process>,
    /// Who saw it begin.
    by: BTreeSet<Process>,
    /// Its deliveries: those of whoever has got furthest.
    order: Vec<(u64, MessageId)>,
    /// How many were delivered by those who went on to another view.
    left: Vec<(usize, RingId)>,
    /// From which views its members came who were not told that they had missed anything.
    from: BTreeSet<RingId>,
    /// And who were.
    from_afar: BTreeSet<RingId>,
}

/// What one application saw.
#[derive(Default)]
pub struct Saw {
    pub view: Option<RingId>,
    /// How much of its view it has delivered.
    pub at: usize,
    last: u64,
    ids: BTreeSet<MessageId>,
    primary: Option<RingId>,
    pub excluded: u64,
    /// It has been told that it missed something, and the view comes next.
    missing: bool,
    pub missed: u64,
    /// So many of its own messages have been delivered, as it was told.
    own: u64,
}

#[derive(Default)]
pub struct Judge {
    views: BTreeMap<RingId, Seen>,
    positions: BTreeMap<u64, MessageId>,
    sent: BTreeMap<MessageId, (Service, usize)>,
    /// What some engine delivered, or would have, while its application had not got it. Others count it
    /// as delivered: if that process dies or is excluded, it may be that no application ever gets it.
    undelivered: BTreeSet<MessageId>,
    /// Such messages that no application got.
    pub unseen: BTreeSet<MessageId>,
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

impl Judge {
    pub fn sent(&mut self, id: MessageId, service: Service, bytes: usize) {
        self.sent.insert(id, (service, bytes));
    }

    pub fn undelivered(&mut self, of: impl Iterator<Item = (Process, RangeInclusive<u64>)>) {
        for (process, counters) in of {
            let id = |counter| MessageId { process, counter };
            self.undelivered.extend(counters.map(id));
        }
    }

    pub fn views(&self) -> usize {
        self.views.len()
    }

    /// The application of `me` gets something.
    pub fn delivered(&mut self, me: Process, saw: &mut Saw, got: &Delivery) -> Result<(), String> {
        if let Some(ring) = saw.primary.take() {
            let primary = *got == Delivery::Primary(ring);
            return check(primary, || {
                format!("VS: {me:?} got {got:?} and not that {ring} is primary")
            });
        }
        if std::mem::take(&mut saw.missing) {
            check(matches!(got, Delivery::Configuration(_)), || {
                format!("VS: {me:?} got {got:?} and not a view")
            })?;
            let Delivery::Configuration(now) = got else {
                unreachable!()
            };
            saw.missed += 1;
            return self.configuration(me, saw, now, true);
        }
        match got {
            Delivery::Missed { own, .. } => {
                let fits = saw.view.is_some() && *own >= saw.own;
                (saw.missing, saw.own) = (true, *own);
                check(fits, || format!("VS: {me:?} got {got:?}"))
            }
            Delivery::Configuration(now) => self.configuration(me, saw, now, false),
            Delivery::Message(message) => self.message(me, saw, message),
            Delivery::Excluded(_) => {
                saw.excluded += 1;
                Ok(())
            }
            other => Err(format!("VS: {me:?} got {other:?}")),
        }
    }

    fn configuration(
        &mut self,
        me: Process,
        saw: &mut Saw,
        now: &Configuration,
        missed: bool,
    ) -> Result<(), String> {
        let ConfigurationKind::Regular(ring) = now.kind else {
            return Err(format!("VS: {me:?} got {now:?}"));
        };
        check(now.members.contains(&me), || {
            format!("VS1: {me:?} got {now:?}")
        })?;
        check(saw.view < Some(ring), || {
            format!("VS1: {me:?}: {ring} after {:?}", saw.view)
        })?;
        if let Some(before) = saw.view
            && let Some(seen) = self.views.get_mut(&before)
        {
            seen.left.push((saw.at, ring));
        }
        let seen = self.views.entry(ring).or_default();
        if seen.members.is_empty() {
            seen.members.clone_from(&now.members);
        }
        check(seen.members == now.members, || {
            format!("VS1: {ring} has two sets of members")
        })?;
        seen.by.insert(me);
        let from = if missed {
            &mut seen.from_afar
        } else {
            &mut seen.from
        };
        from.extend(saw.view);
        (saw.view, saw.at, saw.primary) = (Some(ring), 0, Some(ring));
        Ok(())
    }

    fn message(&mut self, me: Process, saw: &mut Saw, message: &Message) -> Result<(), String> {
        let Message {
            id, payload: bytes, ..
        } = message;
        let (id, position) = (*id, message.position());
        check(id.process != me || id.counter > saw.own, || {
            format!("UI: {me:?} got {id}, which it was told others had")
        })?;
        let Some(view) = saw.view else {
            return Err(format!("VS3: {me:?} got {id} outside of all views"));
        };
        check(saw.ids.insert(id), || format!("UI: {me:?} got {id} twice"))?;
        check(position > saw.last, || {
            format!("UTO: {me:?} got {id} at {position} after {}", saw.last)
        })?;
        saw.last = position;
        let known = *self.positions.entry(position).or_insert(id);
        check(known == id, || {
            format!("UTO: {id} and {known} have the position {position}")
        })?;
        self.content(id, message.service, bytes)?;
        let order = &mut self.views.get_mut(&view).expect("it was seen").order;
        if saw.at == order.len() {
            order.push((position, id));
        }
        let expected = order[saw.at];
        saw.at += 1;
        check(expected == (position, id), || {
            format!("UTO: in {view} {me:?} got {id} at {position}, others {expected:?}")
        })
    }

    fn content(&self, id: MessageId, service: Service, bytes: &Bytes) -> Result<(), String> {
        let Some((asked, len)) = self.sent.get(&id) else {
            return Err(format!("UI: {id} was not sent"));
        };
        check(payload(id, *len) == *bytes && service == *asked, || {
            format!(
                "UI: {id} was sent as {asked:?} of {len} bytes, and got as {service:?} {bytes:?}"
            )
        })
    }

    /// All is at rest, and these are alive.
    pub fn settled(&mut self, alive: &[(Process, &Saw)]) -> Result<(), String> {
        self.survivors()?;
        self.unseen = self.order()?;
        let last = self.views.last_key_value();
        let in_all: BTreeSet<MessageId> = self
            .views
            .values()
            .flat_map(|seen| &seen.order)
            .map(|(_, id)| *id)
            .collect();
        for (process, saw) in alive {
            check(saw.view.as_ref() == last.map(|(ring, _)| ring), || {
                format!("UV: {process:?} is in {:?}, not in the last view", saw.view)
            })?;
            let all = last.map_or(0, |(_, seen)| seen.order.len());
            check(saw.at == all, || {
                format!("UA: {process:?} has {} of {all}", saw.at)
            })?;
            let settled = |id: &MessageId| in_all.contains(id) || self.undelivered.contains(id);
            let mut sent = self.sent.keys();
            let lost = sent.find(|id| id.process == *process && !settled(id));
            check(lost.is_none(), || {
                format!("UV: {lost:?} was delivered by nobody")
            })?;
        }
        Ok(())
    }

    /// VS1: a member of two views in a row sees both. VS2 and uniform agreement: who goes on to the next view has delivered all that anybody has in
    /// the one before; and somebody goes on.
    fn survivors(&self) -> Result<(), String> {
        for ((ring, seen), (next, after)) in self.views.iter().zip(self.views.iter().skip(1)) {
            for (at, to) in &seen.left {
                check(to != next || *at == seen.order.len(), || {
                    let all = seen.order.len();
                    format!("VS2: of {all} deliveries in {ring} one who went on to {next} had {at}")
                })?;
            }
            let stranger = after.from.iter().find(|from| *from != ring);
            check(stranger.is_none(), || {
                format!(
                    "VS6: who came from {stranger:?} to {next} was not told that it missed {ring}"
                )
            })?;
            let blamed = after.from_afar.contains(ring);
            check(!blamed, || {
                format!("VS6: who came from {ring} to {next} was told that it missed something")
            })?;
            let missed = after.by.difference(&seen.by);
            let missed = missed.copied().find(|one| seen.members.contains(one));
            check(missed.is_none(), || {
                format!("VS1: {missed:?} is in {ring} and in {next}, and saw only that")
            })?;
            let survivor = after
                .members
                .iter()
                .any(|member| seen.members.contains(member));
            check(survivor, || format!("VS5: nobody of {ring} is in {next}"))?;
        }
        Ok(())
    }

    /// Over all views: positions ascend, and of each process all messages come in order, none left out.
    /// Says which were delivered as far as processes know, and that no application got.
    fn order(&self) -> Result<BTreeSet<MessageId>, String> {
        let mut last = 0;
        let mut unseen = BTreeSet::new();
        let mut counters: BTreeMap<Process, u64> = BTreeMap::new();
        for (ring, seen) in &self.views {
            for (position, id) in &seen.order {
                check(*position > last, || {
                    format!("VS5: {id} in {ring} at {position}, after {last}")
                })?;
                last = *position;
                let next = counters.entry(id.process).or_insert(1);
                while *next < id.counter && self.undelivered.contains(&with(*id, *next)) {
                    unseen.insert(with(*id, *next));
                    *next += 1;
                }
                check(id.counter == *next, || {
                    format!("UTO: {id} in {ring}, where {next} of that process comes next")
                })?;
                *next += 1;
            }
        }
        Ok(unseen)
    }
}

const fn with(id: MessageId, counter: u64) -> MessageId {
    MessageId { counter, ..id }
}
