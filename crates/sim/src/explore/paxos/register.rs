//! All schedules of the register by which the acceptors of a configuration choose the next.
//!
//! Candidates may try again; acceptors may be restarted between any two steps, with slow disks without the records that
//! they have not been told to be durable. Messages of candidates stay, as in the search of the consensus. An answer
//! arrives as soon as it may leave, or never: the step that a candidate takes on a majority does not depend on the
//! order of its answers, and answers behind the majority make no difference. Checked: all candidates that get to know
//! the choice know the same, and of the ballots that a majority has durably accepted all are for one value.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use rota_core::contract::{Incarnation, Process};
use rota_paxos::{AcceptorId, Ballot, Candidate, Register, Slot, Word};

use super::node::acceptor_id;
use super::search::{Limits, World, search};
use super::{Options, Report};
use crate::observe::Finding;

/// The number of the configuration that is chosen.
const NUMBER: u64 = 2;

/// The wish of a candidate: itself, by place.
type Wanted = u8;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Effect {
    Write(Slot<Wanted>),
    /// To a candidate, when all before is durable.
    Send(u8, Word<Wanted>),
}

#[derive(Clone, Hash, Debug)]
struct Acceptor {
    disk: Option<Slot<Wanted>>,
    register: Register<Wanted>,
    queue: Vec<Effect>,
}

/// A step.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// A candidate's word arrives at an acceptor; the answer arrives when it may leave, unless it is lost.
    Ask { to: u8, word: u8, lost: bool },
    /// An acceptor has written the slots that wait.
    Sync(u8),
    /// An acceptor is restarted, with what is on its disk.
    Restart(u8),
    /// A candidate tries again.
    Again(u8),
}

/// A ballot, the value accepted in it, and the acceptors that accepted it, as bits.
type Cast = (Ballot, Wanted, u8);

#[derive(Clone, Debug)]
struct State {
    acceptors: Vec<Rc<Acceptor>>,
    candidates: Vec<Rc<Candidate<Wanted>>>,
    /// The messages of candidates, each with the place of its candidate.
    words: Rc<Vec<(u8, Word<Wanted>)>>,
    cast: Rc<Vec<Cast>>,
    chosen: Option<Wanted>,
    crashes: u8,
    tries: u8,
    /// A disk write is a step of its own.
    lazy: bool,
    /// Promises are not written, as mutant U17 of the engines has it: the search has to notice.
    forgets: bool,
    finding: Option<Finding>,
}

impl Acceptor {
    /// The slot that its disk has, or will have.
    fn last(&self) -> Option<&Slot<Wanted>> {
        let writes = self.queue.iter().rev();
        let mut writes = writes.filter_map(|effect| match effect {
            Effect::Write(slot) => Some(slot),
            Effect::Send(..) => None,
        });
        writes.next().or(self.disk.as_ref())
    }
}

/// Searches all schedules of as many acceptors and candidates as the options have acceptors and coordinators:
/// candidates may try again as often as there are configurations in the budget, and acceptors may be restarted as often
/// as there are crashes in it. `forgets`: promises are not written, so that the search has to find something.
pub fn explore(options: &Options, forgets: bool) -> Report {
    #[cfg(feature = "mutants")]
    rota_core::mutants::set(options.mutant);
    let found = search(State::new(options, forgets), Limits::of(options));
    #[cfg(feature = "mutants")]
    rota_core::mutants::set(None);
    Report::new(options, found)
}

impl State {
    fn new(options: &Options, forgets: bool) -> Self {
        let count = options.rules.acceptors;
        let voters: Vec<AcceptorId> = (0..count).map(|at| acceptor_id(at, at)).collect();
        let acceptor = || Acceptor {
            disk: None,
            register: Register::default(),
            queue: Vec::new(),
        };
        let candidate = |at: usize| {
            let me = Process {
                node: acceptor_id(at, at).node,
                incarnation: Incarnation(1),
            };
            Candidate::new(NUMBER, voters.clone(), me, 1, at as u8)
        };
        let all = 0..options.rules.coordinators;
        let mut state = Self {
            acceptors: (0..count).map(|_| Rc::new(acceptor())).collect(),
            candidates: all.map(|at| Rc::new(candidate(at))).collect(),
            words: Rc::default(),
            cast: Rc::default(),
            chosen: None,
            crashes: options.budget.crashes,
            tries: options.budget.stands,
            lazy: options.rules.lazy,
            forgets,
            finding: None,
        };
        (0..state.candidates.len()).for_each(|at| state.say(at));
        state
    }

    fn say(&mut self, at: usize) {
        let said = (at as u8, self.candidates[at].word());
        if !self.words.contains(&said) {
            Rc::make_mut(&mut self.words).push(said);
        }
    }

    fn ask(&mut self, to: usize, word: usize, lost: bool) {
        let (candidate, word) = self.words[word].clone();
        let acceptor = Rc::make_mut(&mut self.acceptors[to]);
        let Some(answer) = acceptor.register.on_word(NUMBER, word) else {
            return;
        };
        let is_promise = matches!(answer, Word::Promise(..));
        let slot = acceptor.register.slot(NUMBER).cloned();
        let slot = slot.filter(|slot| acceptor.last() != Some(slot));
        let slot = slot.filter(|_| !(self.forgets && is_promise));
        acceptor.queue.extend(slot.map(Effect::Write));
        let send = Effect::Send(candidate, answer);
        if !lost && !acceptor.queue.contains(&send) {
            acceptor.queue.push(send);
        }
        // An effect that waits for nothing takes place at once.
        if !self.lazy || matches!(acceptor.queue.first(), Some(Effect::Send(..))) {
            self.sync(to);
        }
    }

    /// All records become durable, and the answers that waited for that arrive.
    fn sync(&mut self, at: usize) {
        let acceptor = Rc::make_mut(&mut self.acceptors[at]);
        for effect in std::mem::take(&mut acceptor.queue) {
            match effect {
                Effect::Write(slot) => {
                    self.on_written(at, &slot);
                    Rc::make_mut(&mut self.acceptors[at]).disk = Some(slot);
                }
                Effect::Send(to, word) => self.answer(acceptor_id(at, at), to.into(), word),
            }
        }
    }

    fn on_written(&mut self, at: usize, slot: &Slot<Wanted>) {
        let Some((ballot, value)) = slot.accepted else {
            return;
        };
        let cast = Rc::make_mut(&mut self.cast);
        match cast.iter_mut().find(|(known, ..)| *known == ballot) {
            Some((_, _, by)) => *by |= 1 << at,
            None => cast.push((ballot, value, 1 << at)),
        }
        cast.sort_unstable();
        let all = self.acceptors.len();
        let is_chosen = |cast: &&Cast| cast.2.count_ones() as usize > all / 2;
        let mut chosen: Vec<Wanted> = self.cast.iter().filter(is_chosen).map(|it| it.1).collect();
        chosen.dedup();
        if chosen.len() > 1 {
            let detail = format!("configuration {NUMBER} is that of candidates {chosen:?}");
            self.finding = Some(Finding::new("configuration", detail));
        }
    }

    fn answer(&mut self, who: AcceptorId, to: usize, word: Word<Wanted>) {
        let chosen = Rc::make_mut(&mut self.candidates[to]).on_word(who, word);
        self.say(to);
        let Some(chosen) = chosen else {
            return;
        };
        let known = *self.chosen.get_or_insert(chosen);
        if known != chosen {
            let detail = format!("configuration {NUMBER} is that of {known}, and of {chosen}");
            self.finding = Some(Finding::new("configuration", detail));
        }
    }
}

impl World for State {
    type Move = Move;

    fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for (at, acceptor) in self.acceptors.iter().enumerate() {
            let to = at as u8;
            let words = 0..self.words.len() as u8;
            let both = words.flat_map(|word| [(word, false), (word, true)]);
            moves.extend(both.map(|(word, lost)| Move::Ask { to, word, lost }));
            if !acceptor.queue.is_empty() {
                moves.push(Move::Sync(to));
            }
            if self.crashes > 0 {
                moves.push(Move::Restart(to));
            }
        }
        if self.tries > 0 {
            moves.extend((0..self.candidates.len() as u8).map(Move::Again));
        }
        moves
    }

    fn step(&mut self, step: Move) {
        match step {
            Move::Ask { to, word, lost } => self.ask(to.into(), word.into(), lost),
            Move::Sync(at) => self.sync(at.into()),
            Move::Restart(at) => {
                self.crashes -= 1;
                let acceptor = Rc::make_mut(&mut self.acceptors[usize::from(at)]);
                acceptor.queue.clear();
                acceptor.register = Register::default();
                if let Some(slot) = acceptor.disk.clone() {
                    acceptor.register.restore(NUMBER, slot);
                }
            }
            Move::Again(at) => {
                self.tries -= 1;
                Rc::make_mut(&mut self.candidates[usize::from(at)]).again(None, None);
                self.say(at.into());
            }
        }
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.acceptors, &self.candidates, self.chosen).hash(&mut hasher);
        let mut words: Vec<u64> = self.words.iter().map(hash_of).collect();
        words.sort_unstable();
        (words, &self.cast).hash(&mut hasher);
        (self.crashes, self.tries).hash(&mut hasher);
        hasher.finish()
    }

    fn finding(&mut self) -> &mut Option<Finding> {
        &mut self.finding
    }

    fn describe(&self, step: Move) -> String {
        match step {
            Move::Ask { to, word, lost } => {
                let (by, word) = &self.words[usize::from(word)];
                let lost = if lost { "; the answer is lost" } else { "" };
                format!("acceptor {} hears {} say {word:?}{lost}", to + 1, by + 1)
            }
            Move::Sync(at) => format!("acceptor {} has written", at + 1),
            Move::Restart(at) => format!("acceptor {} is restarted", at + 1),
            Move::Again(at) => format!("candidate {} tries again", at + 1),
        }
    }

    fn close(&mut self) {}

    fn trail(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn is_far(&self) -> bool {
        self.chosen.is_some()
    }
}

fn hash_of(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
