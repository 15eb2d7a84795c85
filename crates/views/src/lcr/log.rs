//! The packets for the successor, in the order of the link: those that it was sent, and those that it has to be sent.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use rota_core::contract::Session;
use rota_core::mutants::{self, Mutant};
use rota_core::resume::Resumed;

/// The last hello of the successor.
#[derive(Clone, Hash, Debug)]
struct Next {
    resumed: Resumed,
    /// For each member, the number up to which the successor had its packets.
    has: Vec<u64>,
}

/// See the module's page.
#[derive(Clone, Hash, Debug, Default)]
pub struct Log {
    /// Sender and number of each. Packets that all hold are forgotten.
    packets: VecDeque<(usize, u64)>,
    /// The number of them that were sent in this session.
    sent: usize,
    next: Option<Next>,
}

impl Log {
    /// The successor has said in this session which packets it has: all others are sent to it.
    pub fn on_hello(&mut self, session: Session, epoch: u32, has: Vec<u64>) {
        let resumed = Resumed::new(session, epoch);
        self.next = Some(Next { resumed, has });
        if !mutants::on(Mutant::L05) {
            self.sent = 0;
        }
    }

    /// The link to the successor has changed: it has to say so again.
    pub fn on_link(&mut self) {
        self.next = None;
    }

    /// The last hello of the successor, if its link is the same.
    pub fn resumed(&self) -> Option<Resumed> {
        self.next.as_ref().map(|next| next.resumed)
    }

    /// A packet has had its turn.
    pub fn push(&mut self, sender: usize, number: u64) {
        self.packets.push_back((sender, number));
    }

    /// The next packet to send: its sender, its number, and whether the successor has had it.
    pub fn unsent(&self) -> Option<(usize, u64, bool)> {
        let (sender, number) = *self.packets.get(self.sent)?;
        let has = self.next.as_ref().map_or(0, |next| next.has[sender]);
        Some((sender, number, number <= has))
    }

    /// That one was sent, or need not be.
    pub const fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Whether the successor was sent all of them.
    pub fn is_sent(&self) -> bool {
        self.sent == self.packets.len()
    }

    /// Forgets packets that all hold: they need not be sent again, whatever happens to the link. `is_held`: whether all
    /// hold the packet of a sender with a number.
    pub fn forget(&mut self, is_held: impl Fn(usize, u64) -> bool) {
        while let Some(&(sender, number)) = self.packets.front()
            && is_held(sender, number)
        {
            self.packets.pop_front();
            self.sent = self.sent.saturating_sub(1);
        }
    }

    /// The view has ended.
    pub fn end(&mut self) {
        self.packets.clear();
    }

    /// Its invariants, in a view of so many members that has not ended.
    pub fn check(&self, members: usize) {
        assert!(
            self.sent <= self.packets.len(),
            "what was sent is remembered"
        );
        let next = self.next.as_ref();
        assert!(next.is_none() || members > 1, "nobody follows who is alone");
        assert!(
            next.is_none_or(|next| next.has.len() == members),
            "a hello speaks of each member"
        );
    }
}
