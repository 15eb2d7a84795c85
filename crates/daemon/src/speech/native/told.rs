//! What a client is told of the ordered stream, and what it misses of it.

use rota_client::protocol::{self, Reply};
use rota_core::groups::{self, GroupName, Member};

use super::{Encoded, NativeSpeech, Stage};
use crate::speech::answers::Wish;
use crate::speech::missed::Missed;

impl NativeSpeech {
    /// What was encoded for all who get it.
    pub(in crate::speech) fn tell(&mut self, event: &groups::Event, encoded: &Encoded) {
        let Stage::Open { membership, me, .. } = self.stage else {
            return;
        };
        let Encoded { head, payload, .. } = encoded;
        match event {
            groups::Event::Message(_) if payload.is_empty() => self.put(head, &[]),
            groups::Event::Message(_) => self.outbox.append_shared(head, payload),
            groups::Event::View(view) => {
                if membership && let Ok(own) = view.members.binary_search(&me) {
                    self.put(head, &protocol::own_index(own as u32));
                }
                self.answer(view.group, Wish::Join);
            }
            groups::Event::Transitional { .. } if membership => self.put(head, &[]),
            groups::Event::Transitional { .. } => {}
            groups::Event::SelfLeave { group } => {
                if membership {
                    self.put(head, &[]);
                }
                self.answer(*group, Wish::Leave);
            }
        }
    }

    fn put(&mut self, head: &[u8], rest: &[u8]) {
        self.outbox.append(|bytes| {
            bytes.extend_from_slice(head);
            bytes.extend_from_slice(rest);
        });
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

    /// An event of the ordered stream that the client misses; what answers its requests does so even then.
    pub fn miss(&mut self, event: &groups::Event) {
        match event {
            groups::Event::Message(message) => {
                let answers = &self.answers;
                if let Some(missed) = &mut self.missed {
                    missed.message(message, |group| answers.is_in(group));
                }
            }
            groups::Event::View(view) => self.answer(view.group, Wish::Join),
            groups::Event::Transitional { .. } => {}
            groups::Event::SelfLeave { group } => {
                let group = *group;
                if matches!(
                    self.stage,
                    Stage::Open {
                        membership: true,
                        ..
                    }
                ) {
                    self.push(&Reply::SelfLeave { group });
                }
                self.answer(group, Wish::Leave);
            }
        }
    }

    /// The client is told what it has missed. What comes now it gets.
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
        for request in self.answers.effect(group, wish) {
            self.push(&Reply::Done { request });
        }
    }
}
