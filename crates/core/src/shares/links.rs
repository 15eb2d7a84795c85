//! The links of all members: each says what its own takes in, and all go by the slowest.

use alloc::vec::Vec;

use super::{Capacity, Word, WordError};
use crate::mutants::{self, Mutant};

/// The capacity that all go by has to change by more than one part in this number to be worth a word.
const NOTABLE: u64 = 64;

/// The capacities of the links as their members have said them, and the word about the own one.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// The configured capacity of the own link: it counts for no more.
    most: Capacity,
    /// The capacity of the own link now.
    own: Capacity,
    /// The place of this process among the members.
    me: usize,
    /// The capacity of each member's link, in bits per second, as that member has said it last; empty in no view.
    said: Vec<u64>,
    /// The last number of a word about the own link, and whether there is something to say.
    number: u64,
    news: bool,
    /// The capacity in a word under way.
    under_way: Option<u64>,
    /// The smallest capacity in the view.
    slowest: Capacity,
}

impl Links {
    /// For a process whose link takes in `capacity`.
    pub const fn new(capacity: Capacity) -> Self {
        Self {
            most: capacity,
            own: capacity,
            me: 0,
            said: Vec::new(),
            number: 0,
            news: false,
            under_way: None,
            slowest: capacity,
        }
    }

    /// The configured capacity of the own link.
    pub const fn most(&self) -> Capacity {
        self.most
    }

    /// The capacity of the own link now.
    pub const fn own(&self) -> Capacity {
        self.own
    }

    /// The capacity that all members go by.
    pub const fn slowest(&self) -> Capacity {
        self.slowest
    }

    /// The number of words about the own link so far.
    pub const fn words(&self) -> u64 {
        self.number
    }

    /// The view has ended: nothing is said any more.
    pub fn freeze(&mut self) {
        self.said.clear();
        (self.news, self.under_way) = (false, None);
    }

    /// A view begins, for which each member has said its capacity; the one of `me` is the own.
    pub fn install(&mut self, me: usize, said: Vec<u64>) {
        self.me = me;
        self.said = said;
        (self.news, self.under_way) = (false, None);
        self.slowest = self.least();
        self.weigh();
    }

    /// The own link takes in `link` now. The others are told if it makes a difference.
    pub fn set_own(&mut self, link: Capacity) {
        self.own = link.min(self.most);
        self.weigh();
    }

    /// There is something to say of the own link if all members would go by less, or if they may have gone by the
    /// capacity of it that was said, and there is more now: others with slow links may have the same to say.
    fn weigh(&mut self) {
        // One word at a time: the next when this one is delivered.
        let Some(&said) = self.said.get(self.me).filter(|_| self.under_way.is_none()) else {
            return;
        };
        let own = self.own.bits_per_second();
        let least = self.least().bits_per_second();
        let part = least / NOTABLE;
        let more = said <= least.saturating_add(part) && own > said.saturating_add(part);
        self.news = own < least - part || more;
    }

    /// The capacity of the slowest link, where the own one counts as it was said.
    fn least(&self) -> Capacity {
        let least = self.said.iter().min();
        let least = Capacity::new(least.copied().unwrap_or(u64::MAX));
        least.min(self.most).max(Capacity::LEAST)
    }

    /// The word about the own link that is to be broadcast, if there is one.
    pub fn poll_word(&mut self) -> Option<Word> {
        if !core::mem::take(&mut self.news) {
            return None;
        }
        self.number += 1;
        let capacity = self.own.bits_per_second();
        self.under_way = Some(capacity);
        Some(Word::Capacity {
            number: self.number,
            capacity,
        })
    }

    /// The word of a member is delivered. All members go by the slowest link. A member that has not heard of the new
    /// capacity yet goes by the one before, so rates fit the larger of both.
    ///
    /// # Errors
    /// If there is no such member.
    pub fn on_word(&mut self, sender: usize, capacity: u64) -> Result<(), WordError> {
        *self.said.get_mut(sender).ok_or(WordError::Sender)? = capacity;
        if sender == self.me {
            self.under_way = None;
        }
        self.slowest = if mutants::on(Mutant::B06) {
            Capacity::new(capacity).min(self.most)
        } else {
            self.least()
        };
        self.weigh();
        Ok(())
    }
}
