//! The exchange of a configuration: its members tell each other which packets they hold, and send those that others
//! lack.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;

use super::message::{Recover, Word};
use super::outcome::Outcome;
use super::path::{Packet, PacketId};
use rota_core::contract::{NodeId, Process, RingId, Time};
use rota_core::mutants::{self, Mutant};

/// The longest word that is taken in parts, in bytes. The knowledge of a member is the names of the packets of all
/// windows, with their places: about as much as the windows themselves, if packets are tiny. A name that was read takes
/// up to twenty times its bytes.
const MOST_IN_PARTS: usize = 64 << 20;

/// The exchange of one configuration.
#[derive(Debug)]
pub(super) struct Exchange {
    pub ring: RingId,
    pub members: Vec<Process>,
    /// The index of this process among the members.
    me: usize,
    /// The time at which the configuration began.
    pub since: Time,
    /// Whether no transitional configuration has followed yet.
    pub regular: bool,
    /// Whether the ring has said that the configuration is primary.
    pub primary: bool,
    /// Whether the application was told that it is in no view.
    pub told_excluded: bool,
    pub step: Step,
    unsent: VecDeque<Vec<u8>>,
    told: Vec<Option<Recover>>,
    /// The parts that have come of longer words, by sender.
    parts: Vec<Vec<u8>>,
    payloads: BTreeMap<PacketId, Packet>,
    ended: Vec<bool>,
}

/// The progress of this process in an exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The process has not told its knowledge.
    Silent,
    /// The process has told, and waits until all members have.
    Told,
    /// All have told. Too few remember the views before, so no view begins here.
    Forgotten,
    /// All have told, and the process waits until all have sent the packets that others lack.
    Sending(Outcome),
    /// The exchange is over.
    Done,
}

impl Exchange {
    pub fn new(ring: RingId, members: Vec<Process>, me: Process, since: Time) -> Self {
        let count = members.len();
        Self {
            ring,
            me: members.iter().position(|member| *member == me).unwrap_or(0),
            members,
            since,
            regular: true,
            primary: false,
            told_excluded: false,
            step: Step::Silent,
            unsent: VecDeque::new(),
            told: vec![None; count],
            parts: vec![Vec::new(); count],
            payloads: BTreeMap::new(),
            ended: vec![false; count],
        }
    }

    /// Tells the knowledge of this process.
    pub fn tell(&mut self, recover: Recover) {
        self.step = Step::Told;
        self.send(&Word::Recover(recover));
    }

    fn send(&mut self, word: &Word) {
        self.unsent.extend(word.encode_in_parts(self.ring));
    }

    /// The word to be submitted next.
    pub fn unsent(&self) -> Option<&[u8]> {
        let unsent = self.unsent.front().filter(|_| self.regular);
        unsent.map(Vec::as_slice)
    }

    /// Notes that the next word was submitted.
    pub fn sent(&mut self) {
        self.unsent.pop_front();
    }

    /// Takes a message that was delivered; returns whether it is a sound word of an exchange.
    pub fn on_message(&mut self, from: Process, payload: &Bytes) -> bool {
        let from = self.members.iter().position(|member| *member == from);
        let (Some(from), Some((ring, word))) = (from, Word::decode(payload)) else {
            return false;
        };
        if ring != self.ring {
            // The word got its place only after the configuration it was for.
            return true;
        }
        self.on_word(from, word)
    }

    fn on_word(&mut self, from: usize, word: Word) -> bool {
        match word {
            Word::Recover(recover) => {
                self.told[from].get_or_insert(recover);
            }
            Word::Payload(packets) => {
                for packet in packets {
                    self.payloads.entry(packet.id).or_insert(packet);
                }
            }
            Word::EndRecovery => self.ended[from] = true,
            Word::Part { last, bytes } => return self.on_part(from, last, &bytes),
        }
        true
    }

    /// Takes a part of a word. The knowledge of a member may be so long that it comes in parts, and a single packet
    /// after that; no other word may.
    fn on_part(&mut self, from: usize, last: bool, bytes: &Bytes) -> bool {
        let parts = &mut self.parts[from];
        if parts.len() + bytes.len() > MOST_IN_PARTS {
            return false;
        }
        parts.extend_from_slice(bytes);
        if !last {
            return true;
        }
        let whole = Bytes::from(mem::take(parts));
        let Some((ring, word)) = Word::decode(&whole) else {
            return false;
        };
        let comes_in_parts = match &word {
            Word::Recover(_) => self.told[from].is_none(),
            Word::Payload(packets) => self.told[from].is_some() && packets.len() == 1,
            Word::EndRecovery | Word::Part { .. } => false,
        };
        comes_in_parts && ring == self.ring && self.on_word(from, word)
    }

    /// The knowledge of all members, once all have told.
    pub fn all_told(&self) -> Option<Vec<&Recover>> {
        let told = self.told.iter().map(Option::as_ref);
        told.collect()
    }

    /// The notes of the data paths, by member.
    pub fn notes(&self) -> Vec<Bytes> {
        let note = |told: &Option<Recover>| told.as_ref().map(|recover| recover.note.clone());
        self.told
            .iter()
            .map(|told| note(told).unwrap_or_default())
            .collect()
    }

    /// Sends the packets that this process has to send, as all have told.
    pub fn send_all<'a>(
        &mut self,
        outcome: Outcome,
        packet: impl Fn(PacketId) -> Option<&'a Packet>,
    ) {
        let ids = outcome.to_send.get(self.me).into_iter().flatten();
        let packets = ids.filter_map(|id| packet(*id)).cloned();
        for word in Word::payloads(packets) {
            self.send(&word);
        }
        self.send(&Word::EndRecovery);
        self.step = Step::Sending(outcome);
    }

    /// Whether the ring was given all words of this process in the configuration.
    pub fn has_said(&self) -> bool {
        self.regular && self.unsent.is_empty() && matches!(self.step, Step::Sending(_))
    }

    /// The outcome, and the packets that were sent, once all members have said that they have sent theirs.
    pub fn all_ended(&self) -> Option<(&Outcome, &BTreeMap<PacketId, Packet>)> {
        let Step::Sending(outcome) = &self.step else {
            return None;
        };
        let ended = self.ended.iter().filter(|ended| **ended).count();
        let enough = if mutants::on(Mutant::V01) {
            2 * ended > self.ended.len()
        } else {
            ended == self.ended.len()
        };
        enough.then_some((outcome, &self.payloads))
    }

    /// The nodes that this process waits for.
    pub fn waiting_for(&self) -> Vec<NodeId> {
        let silent = |at: usize| match self.step {
            Step::Sending(_) => !self.ended[at],
            _ => self.told[at].is_none(),
        };
        let members = self.members.iter().enumerate();
        members
            .filter(|(at, _)| silent(*at))
            .map(|(_, member)| member.node)
            .collect()
    }
}

impl Exchange {
    /// Its invariants, at the process `me`.
    pub fn check(&self, me: Option<Process>) {
        let count = self.members.len();
        assert!(
            self.me < count && self.members.is_sorted(),
            "this process is among the members, which are sorted"
        );
        assert_eq!(Some(self.members[self.me]), me, "at its place");
        let of_each = [self.told.len(), self.parts.len(), self.ended.len()];
        assert!(
            of_each.into_iter().all(|len| len == count),
            "each member has its own"
        );
        assert!(
            self.parts.iter().all(|parts| parts.len() <= MOST_IN_PARTS),
            "what comes in parts is bounded"
        );
        let has_told = self.told.iter().all(Option::is_some);
        match &self.step {
            Step::Silent => assert!(self.unsent.is_empty(), "nothing was said yet"),
            Step::Told | Step::Done => {}
            Step::Forgotten => assert!(has_told, "all have told"),
            Step::Sending(outcome) => {
                assert!(has_told, "all have told");
                assert_eq!(outcome.to_send.len(), count, "each has its part to send");
                outcome.check();
            }
        }
    }
}
