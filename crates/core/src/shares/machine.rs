//! The state of one member: the requirements of all members, and its own request (FastCast figure 4, lines 1 to 33).

mod invariants;

use alloc::vec;
use alloc::vec::Vec;

use super::links::Links;
use super::{Capacity, Note, Word, WordError, max_min};
use crate::mutants::{self, Mutant};

/// A request of this process, from its broadcast until it is settled.
#[derive(Clone, Debug)]
struct Request {
    number: u64,
    requirement: u64,
    /// An increase is only in force when all members know of it; a decrease is in force before any other member does.
    increase: bool,
    /// Whether the path has taken the word.
    sent: bool,
    /// Whether it was delivered here.
    delivered: bool,
    /// The members that have said that they applied it.
    acked: Vec<bool>,
}

/// The requirements of all members of the view, as far as this process knows, and its rate that follows from them.
///
/// The path hands in the rate that the application wants ([`Self::want`]), each word in the order of delivery
/// ([`Self::on_word`]), and the requests that members say they have applied ([`Self::on_applied`]). It takes out words
/// to broadcast ([`Self::poll_word`]) and acknowledgements of the others' requests ([`Self::applied`]), and may send at
/// [`Self::rate`].
#[derive(Clone, Debug)]
pub struct Shares {
    /// The links of all members. The requirement is never more than the own one is configured to take in.
    links: Links,
    me: usize,
    /// Empty while no view is installed.
    requirements: Vec<u64>,
    /// For each member, the last of its requests that was applied here.
    applied: Vec<u64>,
    /// Whether `applied` has changed since it was last told.
    news: bool,
    /// The rate that the application wants.
    wish: u64,
    /// The requirement that is in force, or was when the last view ended.
    own: u64,
    /// The last number that was used.
    number: u64,
    request: Option<Request>,
    share: u64,
}

impl Shares {
    /// For a process whose link takes in `capacity`. It requires nothing yet, and is in no view.
    pub fn new(capacity: Capacity) -> Self {
        Self {
            links: Links::new(capacity),
            me: 0,
            requirements: Vec::new(),
            applied: Vec::new(),
            news: false,
            wish: 0,
            own: 0,
            number: 0,
            request: None,
            share: 0,
        }
    }

    /// The note for the other members of the next view.
    pub fn note(&self) -> Note {
        Note {
            requirement: self.own,
            capacity: self.links.own().bits_per_second(),
        }
    }

    /// The view has ended: nothing may be sent, and the wish of the application is only remembered.
    pub fn freeze(&mut self) {
        self.requirements.clear();
        self.applied.clear();
        self.links.freeze();
        self.news = false;
        self.share = 0;
        if !mutants::on(Mutant::B04) {
            self.request = None;
        }
    }

    /// A view begins, with the note of each member; `me` is one of them. A request that was under way is forgotten, as
    /// not all members may have heard of it, and made anew. `None` is a note that could not be read: its requirement
    /// counts as all that there is.
    ///
    /// # Panics
    /// If there is no member `me`.
    pub fn install(&mut self, me: usize, notes: &[Option<Note>]) {
        self.freeze();
        let unknown = u64::MAX;
        let capacity = |note: &Option<Note>| note.map_or(unknown, |note| note.capacity);
        self.links.install(me, notes.iter().map(capacity).collect());
        self.me = me;
        let all = self.capacity().shared();
        let required = |note: &Option<Note>| note.map_or(all, |note| note.requirement);
        self.requirements = notes.iter().map(required).collect();
        self.applied = vec![0; notes.len()];
        self.own = self.requirements[me];
        self.recompute();
        self.go_on();
    }

    /// The own link takes in `link` now. The others are told if it makes a difference.
    pub fn set_link(&mut self, link: Capacity) {
        self.links.set_own(link);
    }

    /// The application wants to send at this rate, in bits per second. While a request is under way the wish is only
    /// remembered: the next request says what is wanted then.
    pub fn want(&mut self, bits_per_second: u64) {
        self.wish = bits_per_second;
        self.go_on();
    }

    /// A word to broadcast in the one order.
    pub fn poll_word(&mut self) -> Option<Word> {
        if let Some(word) = self.links.poll_word() {
            return Some(word);
        }
        let request = self.request.as_mut().filter(|request| !request.sent)?;
        request.sent = true;
        Some(Word::Requirement {
            number: request.number,
            requirement: request.requirement,
        })
    }

    /// A word of a member, perhaps of this one, is delivered (figure 4, lines 11 to 16 and 31 to 33).
    ///
    /// # Errors
    /// If the bytes of a peer are no word. Nothing changes.
    pub fn on_word(&mut self, sender: usize, bytes: &[u8]) -> Result<(), WordError> {
        match Word::decode(bytes)? {
            Word::Requirement {
                number,
                requirement,
            } => self.on_requirement(sender, number, requirement),
            Word::Capacity { capacity, .. } => {
                self.links.on_word(sender, capacity)?;
                self.recompute();
                Ok(())
            }
        }
    }

    fn on_requirement(
        &mut self,
        sender: usize,
        number: u64,
        requirement: u64,
    ) -> Result<(), WordError> {
        let last = self.applied.get_mut(sender).ok_or(WordError::Sender)?;
        if number <= *last {
            return Ok(());
        }
        *last = number;
        if sender == self.me {
            self.on_own_word(number);
        } else {
            self.news = true;
            self.requirements[sender] = requirement;
            self.recompute();
        }
        Ok(())
    }

    /// Member `member` says that `number` is the last request of this process that it has applied (figure 4,
    /// lines 17 to 25). May be said any number of times, and late.
    pub fn on_applied(&mut self, member: usize, number: u64) {
        let Some(request) = self.request.as_mut().filter(|_| member != self.me) else {
            return;
        };
        if request.number == number || mutants::on(Mutant::B03) {
            if let Some(acked) = request.acked.get_mut(member) {
                *acked = true;
            }
            self.settle();
        }
    }

    /// For each member, the number of the last of its requests that was applied here: its acknowledgement.
    /// It may get lost, so the path says it as often as it says what it has received.
    pub fn applied(&self) -> &[u64] {
        &self.applied
    }

    /// Whether [`Self::applied`] has something new since the last call: another member waits for it.
    pub fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.news)
    }

    /// The rate at which this process may send in all, in bits per second: its share, and its part of the reserve. 0
    /// while no view is installed.
    pub fn rate(&self) -> u64 {
        match self.requirements.len() {
            0 => 0,
            members => self.share + self.capacity().reserved(members),
        }
    }

    /// This process's share, in bits per second (`currentBW`).
    pub fn share(&self) -> u64 {
        self.share
    }

    /// The capacity that is divided in this view.
    pub fn capacity(&self) -> Capacity {
        self.links.slowest()
    }

    /// The capacity of the own link now, whether the others were told or not.
    pub fn link(&self) -> Capacity {
        self.links.own()
    }

    /// The number of words about the own link so far.
    pub fn link_words(&self) -> u64 {
        self.links.words()
    }

    /// The requirement of each member, in bits per second; of this process, the one in force (`bwRequirements`).
    pub fn requirements(&self) -> &[u64] {
        &self.requirements
    }

    /// The amount by which the increase under way is to raise the own requirement, in bits per second; 0 if there is
    /// none (`ongoing_increase`).
    pub fn ongoing_increase(&self) -> u64 {
        let request = self.request.as_ref().filter(|request| request.increase);
        request.map_or(0, |request| request.requirement - self.own)
    }

    /// The number of the increase under way, once its word has been taken.
    pub fn increase_number(&self) -> Option<u64> {
        let request = self.request.as_ref();
        let request = request.filter(|request| request.increase && request.sent);
        request.map(|request| request.number)
    }

    /// The number of others that have acknowledged the increase under way (`acks`).
    pub fn acks(&self) -> usize {
        let request = self.request.as_ref().filter(|request| request.increase);
        request.map_or(0, |request| {
            request.acked.iter().filter(|&&acked| acked).count()
        })
    }

    /// Whether the increase under way was delivered here (`delivered_req`).
    pub fn delivered(&self) -> bool {
        let request = self.request.as_ref();
        request.is_some_and(|request| request.increase && request.delivered)
    }

    /// Begins a request if the wish differs from the requirement in force, and none is under way (figure 4, lines 7 to
    /// 10 and 26 to 30).
    fn go_on(&mut self) {
        let wish = self.wish.min(self.links.most().shared());
        if self.requirements.is_empty() || self.request.is_some() || wish == self.own {
            return;
        }
        self.number += 1;
        let increase = wish > self.own;
        self.request = Some(Request {
            number: self.number,
            requirement: wish,
            increase,
            sent: false,
            delivered: false,
            acked: vec![false; self.requirements.len()],
        });
        if !increase && !mutants::on(Mutant::B02) {
            self.enforce(wish);
        }
    }

    fn on_own_word(&mut self, number: u64) {
        if let Some(request) = &mut self.request
            && request.number == number
        {
            request.delivered = true;
            self.settle();
        }
    }

    /// Ends the request if it is settled: an increase when it was delivered here and all others have
    /// acknowledged it, a decrease when it was delivered here.
    fn settle(&mut self) {
        let Some(request) = &self.request else {
            return;
        };
        let others = request.acked.iter().enumerate();
        let known = !request.increase
            || mutants::on(Mutant::B01)
            || others.clone().all(|(at, &acked)| acked || at == self.me);
        if !request.delivered || !known {
            return;
        }
        let requirement = request.requirement;
        self.request = None;
        self.enforce(requirement);
        self.go_on();
    }

    fn enforce(&mut self, requirement: u64) {
        self.own = requirement;
        self.requirements[self.me] = requirement;
        self.recompute();
    }

    fn recompute(&mut self) {
        self.share = max_min(&self.requirements, self.me, self.capacity().shared());
    }
}
