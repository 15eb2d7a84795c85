//! The events of the ordered stream for a client, and those that it misses.

use rota_client::protocol::{self, Reply};
use rota_core::groups::{self, GroupName, Member};

use super::{Encoded, NativeSpeech, Stage};
use crate::speech::answers::Wish;
use crate::speech::missed::Missed;

impl NativeSpeech {
    /// Takes an event that was encoded once for all receivers.
    pub(in crate::speech) fn tell(&mut self, event: &groups::Event, encoded: &Encoded) {
        let Stage::Open {
            membership,
            knows_exclusion,
            me,
            ..
        } = self.stage
        else {
            return;
        };
        let Encoded { head, payload, .. } = encoded;
        match event {
            // There is no frame for it, as the log says.
            groups::Event::Message(_) if head.is_empty() => {}
            groups::Event::Message(_) if payload.is_empty() => self.put(head),
            groups::Event::Message(_) => self.outbox.append_shared(head, payload),
            groups::Event::View(view) => {
                if membership
                    && !head.is_empty()
                    && let Ok(own) = view.members.binary_search(&me)
                {
                    let own = protocol::own_index(own as u32);
                    self.outbox.append_common(head, payload, &own);
                }
                self.answer(view.group, Wish::Join);
            }
            groups::Event::Transitional { .. } if membership => self.put(head),
            groups::Event::Transitional { .. } => {}
            groups::Event::SelfLeave { group } => {
                self.left(*group, membership);
            }
            // An earlier client sees nothing, and then views.
            groups::Event::Excluded | groups::Event::Included { .. } if knows_exclusion => {
                self.put(head);
            }
            groups::Event::Excluded | groups::Event::Included { .. } => {}
        }
    }

    /// The client is out of a group. It is told even without membership if that was not its own wish.
    fn left(&mut self, group: GroupName, membership: bool) {
        let answered = self.answers.effect(group, Wish::Leave);
        if membership || answered.contains(&None) {
            self.push(&Reply::SelfLeave { group });
        }
        self.done(answered);
    }

    fn put(&mut self, frame: &[u8]) {
        self.outbox.append(|bytes| bytes.extend_from_slice(frame));
    }

    /// The client may miss something, and would know what to make of it.
    pub const fn can_skip(&self) -> bool {
        matches!(self.stage, Stage::Open { can_skip: true, .. })
    }

    /// Others may be made to wait for the client.
    pub const fn can_throttle(&self) -> bool {
        matches!(
            self.stage,
            Stage::Open {
                can_throttle: true,
                ..
            }
        )
    }

    /// Whether it is made to skip just now.
    pub const fn skips(&self) -> bool {
        self.missed.is_some()
    }

    /// Begins to skip: messages and views that wait are dropped, and so are those of [`Self::miss`]. The client
    /// is `member` from here on.
    pub fn skip(&mut self, member: Member) {
        if let Stage::Open { me, .. } = &mut self.stage {
            *me = member;
        }
        let mut missed = Box::<Missed>::default();
        self.outbox.take_back(|frame| missed.frame(frame));
        self.missed = Some(missed);
    }

    /// Notes an event of the ordered stream that the client misses; an event that answers a request of the client does
    /// so even then.
    pub fn miss(&mut self, event: &groups::Event) {
        match event {
            groups::Event::Message(message) => {
                let answers = &self.answers;
                if let Some(missed) = &mut self.missed {
                    missed.message(message, |group| answers.is_in(group));
                }
            }
            groups::Event::View(view) => self.answer(view.group, Wish::Join),
            // The client learns of its exclusion under its next name.
            groups::Event::Excluded | groups::Event::Included { .. } => {}
            groups::Event::Transitional { .. } => {}
            groups::Event::SelfLeave { group } => {
                let membership = matches!(
                    self.stage,
                    Stage::Open {
                        membership: true,
                        ..
                    }
                );
                self.left(*group, membership);
            }
        }
    }

    /// Tells the client what it has missed. From here on it gets all events again.
    pub fn go_on(&mut self) {
        if let Some(missed) = self.missed.take() {
            let (messages, bytes) = missed.size();
            tracing::info!(messages, bytes, "a client has skipped");
            let answers = &self.answers;
            let reply = missed.reply(|group| answers.is_in(group));
            self.push(&reply);
        }
    }

    /// The client is warned, before all else that waits for it.
    pub fn lag(&mut self, limit: usize) {
        if !self.is_open() {
            return;
        }
        let (waiting, limit) = (self.outbox.len() as u64, limit as u64);
        self.outbox.put_first(|bytes| {
            // Two numbers always fit.
            let _ = Reply::Lagging { waiting, limit }.encode(bytes);
        });
    }

    fn answer(&mut self, group: GroupName, wish: Wish) {
        let answered = self.answers.effect(group, wish);
        self.done(answered);
    }

    fn done(&mut self, requests: Vec<Option<u32>>) {
        for request in requests.into_iter().flatten() {
            self.push(&Reply::Done { request });
        }
    }

    /// The daemon has the client leave a group, and the client is told when it has.
    pub fn expel(&mut self, group: GroupName) {
        self.answers.expel(group);
    }
}
