//! Ring Paxos: values do not go along the ring, but from their proposers to all members at once, by datagrams, which
//! may be lost. A follower that lacks the value of a proposal waits with everything behind, and asks its predecessor,
//! which has the value; the coordinator asks the proposer.

use alloc::vec;
use alloc::vec::Vec;

use super::held::BlockedProposals;
use super::parts::Arriving;
use super::rate::Rate;
use crate::Instance;
use rota_core::contract::Time;
use rota_core::mutants::{self, Mutant};

/// A value that has not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// The value of a proposal.
    Of(Instance),
    /// The next value of the process at this place, at the coordinator: its counter.
    Next(usize, u64),
}

/// The first missing value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lacking {
    pub lack: Lack,
    /// The time at which it is asked for.
    pub at: Time,
    /// The time that the last question is given, in nanoseconds; 0 if there was none.
    pub pause: u64,
}

/// The state of multicast at a process in the ring of one configuration.
#[derive(Debug)]
pub struct Cast {
    /// By place in the ring.
    pub arriving: Vec<Arriving>,
    pub held: BlockedProposals,
    /// By place in the ring: the number of times that values had to be asked for there.
    pub losses: Vec<u64>,
    /// Own values that may be under way, in bytes: less after losses, anywhere.
    window: usize,
    most_window: usize,
    least_window: usize,
    /// The time at which the window was last made smaller.
    slowed: Time,
    /// The first missing value, and the time at which it is asked for.
    pub lack: Option<Lacking>,
    /// The own value that is to be proposed next, the time at which it is sent to the coordinator alone, and the last
    /// pause, which doubles each time.
    pub late: Option<(u64, Time, u64)>,
    /// The place in the ring whose value the coordinator looks for first.
    pub turn: usize,
    /// The rate of own values, if the capacity of the links is known.
    pub rate: Option<Rate>,
}

impl Cast {
    /// For a ring of `places`; own values of `most_window` bytes may be under way, and always one of `least_window`.
    pub fn new(places: usize, most_window: usize, least_window: usize) -> Self {
        let mut arriving = Vec::new();
        arriving.resize_with(places, Arriving::default);
        Self {
            arriving,
            held: BlockedProposals::default(),
            losses: vec![0; places],
            window: most_window,
            most_window,
            least_window,
            slowed: Time(0),
            lack: None,
            late: None,
            turn: 0,
            rate: None,
        }
    }

    /// The bytes of proposals that wait here, and of values that have come in part.
    pub fn bytes(&self) -> usize {
        let arriving = self.arriving.iter().map(Arriving::bytes);
        self.held.bytes() + arriving.sum::<usize>()
    }

    /// Own values that may be under way now, in bytes.
    pub const fn window(&self) -> usize {
        self.window
    }

    /// Halves the window, as values had to be asked for somewhere, but not twice for what may be the same loss.
    pub fn slow_down(&mut self, now: Time, pause: u64) {
        if now >= self.slowed.after(pause) {
            self.slowed = now;
            self.window = (self.window / 2).max(self.least_window);
        }
    }

    /// Own values have counted: the window grows by one value for each window of them.
    pub fn on_counted(&mut self, bytes: usize) {
        let more = (self.least_window * bytes).div_ceil(self.window.max(1));
        self.window = (self.window + more).min(self.most_window);
    }

    /// Takes the number of times that another process had to ask. Returns whether that is news.
    pub fn on_losses(&mut self, place: usize, count: u64) -> bool {
        let is_news = self.losses[place] < count;
        self.losses[place] = self.losses[place].max(count);
        is_news
    }

    /// Takes the first missing value, if there is one, and sets the time at which it is asked for.
    pub fn watch(&mut self, now: Time, lack: Option<(Lack, u64)>) {
        self.lack = match (self.lack, lack) {
            (Some(old), Some((new, wait))) if old.lack == new => {
                let sooner = old.at.min(now.after(wait));
                let at = if old.pause > 0 { old.at } else { sooner };
                Some(Lacking { at, ..old })
            }
            (_, Some((lack, wait))) if !mutants::on(Mutant::U28) => Some(Lacking {
                lack,
                at: now.after(wait),
                pause: 0,
            }),
            _ => None,
        };
    }
}

impl Cast {
    /// Its invariants, in a ring of `places`.
    pub fn check(&self, places: usize) {
        assert_eq!(self.arriving.len(), places, "each process has its place");
        assert_eq!(self.losses.len(), places, "each process has its losses");
        let most = self.most_window.max(self.least_window);
        assert!(self.window <= most, "no more is under way than may be");
        assert!(
            self.window >= self.least_window.min(self.most_window),
            "one value may always be"
        );
        self.held.check();
    }
}
