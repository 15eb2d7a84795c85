//! Rules of the list of acceptors that one engine keeps: who takes which step towards it and when, and who votes meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;

use rota_core::contract::{Engine, Input, NodeId, Time};
use rota_core::timing::{Timers, Timing};
#[cfg(not(feature = "mutants"))]
use rota_paxos::uring::acceptor_list::{MOST_ACCEPTORS, Unfit};
use rota_paxos::uring::accounts::{Command, Refused, Replicas, Table};
use rota_paxos::uring::{Head, Hello, ResumeFrom, Snapshot, URing, URingConfig, Word};
use rota_paxos::{self as paxos, AcceptorId, Config, Prior, Promise, Vote};

use super::accounts::ordered;
use super::alone::{Alone, FOUNDED, acceptor, process};
use super::cut::{KEPT, Second, again, begins_at, keeps_little};
use super::rounds::passes;
use super::rules::{batch_by, hear_batch};

fn node(number: u16) -> NodeId {
    process(number, 1).node
}

fn set(nodes: &[u16]) -> Replicas {
    nodes.iter().map(|number| node(*number)).collect()
}

/// Five processes in a ring, of which the first three vote.
fn five() -> URingConfig {
    let ring: Vec<NodeId> = (1..=5).map(node).collect();
    URingConfig {
        acceptors: ring[..3].to_vec(),
        ..URingConfig::new(ring, &Timers::derive(Timing::Default, 5))
    }
}

/// A configuration of them, which the first coordinates.
fn config_of(alone: &Alone, number: u64, acceptors: &[u16]) -> Config {
    let mine = alone.votes_as();
    let as_named = |number: &u16| match node(*number) == mine.node {
        true => mine,
        false => acceptor(*number),
    };
    Config {
        founded: FOUNDED,
        number,
        coordinator: process(1, 1),
        ring: (1..=5).map(|node| process(node, 1)).collect(),
        acceptors: acceptors.iter().map(as_named).collect(),
        prior: Vec::new(),
    }
}

const fn rule_head(round: u64, epoch: u32) -> Head {
    Head {
        founded: FOUNDED,
        round,
        epoch,
        start: 1,
        kept: 1,
        from: 0,
        complete: false,
    }
}

/// The first, which coordinates a round that has begun.
struct First {
    alone: Alone,
    next: u64,
}

impl First {
    fn new() -> Self {
        let mut alone = Alone::with(five(), process(1, 1), Vec::new());
        (2..=5).for_each(|node| alone.link(process(node, 1)));
        let known = Word::Known(Arc::new(config_of(&alone, 1, &[1, 2, 3])));
        alone.hear(2, known.encode(FOUNDED));
        let mut first = Self { alone, next: 1 };
        first.begins(Vec::new(), 0);
        assert!(first.alone.engine.is_operational());
        first
    }

    /// The round of the newest configuration begins: the second has these votes, and has forgotten so many instances that the first
    /// lacks.
    fn begins(&mut self, votes: Vec<Vote>, forgotten: u64) {
        let round = self.alone.engine.number();
        self.alone.write_all();
        let promise = Promise {
            round,
            acceptor: acceptor(2),
            from: self.next,
            held: self.next + forgotten,
            kept: [1, self.next + forgotten][usize::from(forgotten > 0)],
            votes,
        };
        self.alone
            .hear(2, Word::Promise(promise, false).encode(FOUNDED));
        self.alone.write_all();
        let follow = ResumeFrom {
            round,
            epoch: 1,
            next: 0,
        };
        self.alone
            .hear(2, Word::ResumeFrom(follow, Vec::new()).encode(FOUNDED));
        for number in 2..=5 {
            let here = Hello {
                number: round,
                acceptor: Some(acceptor(number)),
                complete: 0,
                joins: false,
            };
            self.alone.hear(number, Word::Hello(here).encode(FOUNDED));
        }
    }

    /// The last in the ring is heard.
    fn beat(&mut self, voted: Option<u64>) {
        let (round, epoch) = (self.alone.engine.number(), self.alone.follow().epoch);
        let head = rule_head(round, epoch);
        hear_batch(&mut self.alone, 5, &head, |batch| {
            if let Some(next) = voted {
                batch.voted(1, next);
                batch.learnt(1, next);
            }
        });
        self.alone.write_all();
    }

    /// Everything that was proposed is decided.
    fn decides(&mut self) {
        self.alone.tell(Input::Timer);
        self.alone.write_all();
        self.next = self.alone.engine.proposed().expect("it coordinates");
        self.beat(Some(self.next));
        assert_eq!(self.alone.engine.learnt(), self.next, "all is decided");
    }

    /// The others of the three vote for everything before an instance, and two of them may say that they have learnt all of it.
    fn vote(&mut self, next: u64, learnt: bool) {
        let (round, epoch) = (self.alone.engine.number(), self.alone.follow().epoch);
        let mut head = rule_head(round, epoch);
        head.start = next - 1;
        hear_batch(&mut self.alone, 5, &head, |batch| {
            batch.voted(1, next);
            if learnt {
                batch.learnt(1, next);
                batch.learnt(2, next);
            }
        });
        self.alone.write_all();
    }

    fn orders(&mut self, command: &Command) {
        let alone = &mut self.alone;
        assert!(alone.engine.order_account(alone.now, (command, 0)));
        self.decides();
    }

    fn offers(&mut self, number: u16, theirs: u64) {
        let offer = Word::Offer(acceptor(number), theirs);
        self.alone.hear(number, offer.encode(FOUNDED));
    }

    /// The configuration for which it stands soon, if for any.
    fn wants(&mut self) -> Option<Arc<Config>> {
        for _ in 0..3 {
            self.alone.now = Time(self.alone.now.0 + 20_000_000);
            self.beat(None);
            self.alone.tell(Input::Timer);
            self.alone.write_all();
        }
        let number = self.alone.engine.number() + 1;
        let ballot = self.alone.said.iter().find_map(|word| match word {
            Word::Ask(of, paxos::Word::Prepare(ballot)) if *of == number => Some(*ballot),
            _ => None,
        })?;
        self.answers(number, paxos::Word::Promise(ballot, None));
        self.alone.said.iter().rev().find_map(|word| match word {
            Word::Ask(of, paxos::Word::Accept(_, config)) if *of == number => Some(config.clone()),
            _ => None,
        })
    }

    /// Whether it stands for no other acceptors.
    #[cfg(not(feature = "mutants"))]
    fn keeps(&mut self) -> bool {
        let wanted = self.wants();
        wanted.is_none_or(|wanted| nodes(&wanted) == [1, 2, 3].into())
    }

    fn answers(&mut self, number: u64, word: paxos::Word<Arc<Config>>) {
        for who in [2, 3] {
            let answer = Word::Answer(number, acceptor(who), word.clone());
            self.alone.hear(who, answer.encode(FOUNDED));
        }
        self.alone.write_all();
    }
}

fn nodes(config: &Config) -> BTreeSet<u16> {
    config.acceptors.iter().map(|who| who.node.get()).collect()
}

/// However many are to come and to go: one comes at a time, and one goes.
pub fn one_acceptor_changes_at_a_time() -> bool {
    let mut first = First::new();
    first.decides();
    first.orders(&Command::Acceptors(1, set(&[1, 4, 5])));
    first.offers(4, first.next);
    first.offers(5, first.next);
    let wanted = first.wants().expect("it stands");
    let nodes = nodes(&wanted);
    assert!(nodes.contains(&1) && nodes.len() == 3, "{nodes:?}");
    nodes.intersection(&[2, 3].into()).count() == 1
}

/// A step is taken from a configuration that is complete: the set before is asked no more then.
pub fn no_step_is_taken_before_a_configuration_is_complete() -> bool {
    let mut first = First::new();
    first.decides();
    first.orders(&Command::Acceptors(1, set(&[1, 2, 4])));
    let mut config = config_of(&first.alone, 2, &[1, 2, 3]);
    config.coordinator = process(1, 1);
    first
        .alone
        .hear(2, Word::Known(Arc::new(config)).encode(FOUNDED));
    let undecided = Vote {
        first: first.next,
        round: 1,
        value: paxos::Value::Skip(3),
    };
    first.begins(vec![undecided], 0);
    assert!(first.alone.engine.is_operational());
    first.offers(4, first.next);
    let early = first.wants().is_some();
    first.decides();
    first.offers(4, first.next);
    let wanted = first.wants().expect("it is complete");
    !early && nodes(&wanted) == [1, 2, 4].into()
}

/// A round may begin behind instances that its acceptors lack, and one before has forgotten: until they have learnt them, or what
/// follows from them, the one before is not let go.
pub fn no_configuration_is_complete_before_its_acceptors_know_what_was_decided() -> bool {
    let mut first = First::new();
    first.decides();
    first.orders(&Command::Acceptors(1, set(&[1, 2, 4])));
    let config = config_of(&first.alone, 2, &[1, 2, 3]);
    let known = Word::Known(Arc::new(config));
    first.alone.hear(2, known.encode(FOUNDED));
    first.begins(Vec::new(), 10);
    let start = first.next + 10;
    assert!(first.alone.engine.is_operational());
    first.vote(start + 1, false);
    let early = first.alone.engine.is_complete();
    first.vote(start + 1, true);
    !early && first.alone.engine.is_complete()
}

/// Who is to come in has to catch up first.
pub fn who_has_not_caught_up_is_not_taken_in() -> bool {
    let mut first = First::new();
    first.decides();
    first.orders(&Command::Acceptors(1, set(&[1, 2, 4])));
    let far = first.next + 3000;
    first
        .alone
        .engine
        .submit_skips_to(first.alone.now, far)
        .expect("it coordinates");
    first.decides();
    first.offers(4, 2);
    let early = first.wants().is_some();
    first.offers(4, first.next - 500);
    let wanted = first.wants().expect("it has nearly all");
    !early && nodes(&wanted) == [1, 2, 4].into()
}

/// The first list with a number counts, and only the next number makes another.
pub fn a_list_follows_the_newest() -> bool {
    let mut table = Table::default();
    let mut apply = |at, number, nodes: &[u16]| {
        let command = Command::Acceptors(number, set(nodes));
        table.apply((at, 0), command)
    };
    let taken = [
        apply(4, 1, &[1, 2, 4]),
        apply(5, 1, &[1, 2, 5]),
        apply(6, 3, &[1, 2]),
        apply(7, 2, &[1, 2, 3]),
        apply(8, 1, &[1, 2, 4]),
    ];
    let list = table.acceptor_list();
    taken
        == [
            Ok(()),
            Err(Refused::List(1)),
            Err(Refused::List(1)),
            Ok(()),
            Err(Refused::List(2)),
        ]
        && (list.number(), list.nodes()) == (2, &set(&[1, 2, 3]))
}

/// Whoever begins at a base, and whoever is restarted behind one, knows the list that was ordered before it.
pub fn who_begins_at_a_base_knows_the_list() -> bool {
    let mut second = Second::new(keeps_little());
    second.values(&ordered(&[Command::Acceptors(1, set(&[1, 2, 3]))]));
    second.skips(4 * KEPT);
    let knows = |engine: &URing| engine.accounts().acceptor_list().number() == 1;
    assert!(knows(&second.alone.engine), "it has ordered it");
    let base = Snapshot::decode(second.base().into()).expect("a base");
    assert!(base.next > 10, "it is before it");
    knows(&begins_at(&base.encode()).engine) && knows(&again(&second).engine)
}

/// The acceptors before have to be asked as long as the new ones may lack what those decided.
pub fn the_set_before_is_asked_after_a_step() -> bool {
    let mut first = First::new();
    first.decides();
    first.orders(&Command::Acceptors(1, set(&[1, 2, 4])));
    let before = config_of(&first.alone, 1, &[1, 2, 3]).acceptors;
    first.offers(4, first.next);
    let wanted = first.wants().expect("it stands");
    let prior = Prior {
        number: 1,
        acceptors: before,
    };
    wanted.prior == [prior]
}

/// The second, in a ring in which it votes, and what its neighbours tell it.
fn second_of_five() -> (Alone, Config) {
    let mut alone = Alone::with(five(), process(2, 1), Vec::new());
    for node in [1, 3, 4, 5] {
        alone.link(process(node, 1));
    }
    let config = config_of(&alone, 1, &[1, 2, 3]);
    let known = Word::Known(Arc::new(config.clone()));
    alone.hear(1, known.encode(FOUNDED));
    alone.write_all();
    (alone, config)
}

/// It learns this list, in the round of this configuration.
fn learns_list(alone: &mut Alone, config: &Config, nodes: &[u16]) {
    let list = ordered(&[Command::Acceptors(1, set(nodes))]);
    let (ring, epoch) = (config.ring.clone(), alone.follow().epoch);
    batch_by(alone, 1, (epoch, 1), |batch| {
        batch.members(1, &ring);
        for (id, frame) in &list {
            batch.packet(None, *id, frame, true);
        }
        batch.voted(0, 3);
        batch.voted(2, 3);
    });
    alone.write_all();
    assert_eq!(alone.engine.accounts().acceptor_list().number(), 1);
}

/// Whether it would vote, by its last word.
fn would_vote(alone: &Alone) -> Option<AcceptorId> {
    let here = alone.said.iter().rev().find_map(|word| match word {
        Word::Hello(here) => Some(here.acceptor),
        _ => None,
    });
    here.flatten()
}

/// Who is left out of the acceptors promises as long as it may have to be asked, and no longer.
pub fn who_is_left_out_votes_until_that_is_complete() -> bool {
    let (mut second, config) = second_of_five();
    learns_list(&mut second, &config, &[1, 3, 4]);
    let mut next = config_of(&second, 2, &[1, 3, 4]);
    next.prior = vec![Prior {
        number: 1,
        acceptors: config.acceptors.clone(),
    }];
    second.hear(1, Word::Known(Arc::new(next)).encode(FOUNDED));
    second.hear(1, Word::Prepare(2, 3).encode(FOUNDED));
    second.write_all();
    assert!(second.has_promised(2), "it is asked");
    let before = would_vote(&second).is_some();
    let here = Hello {
        number: 2,
        acceptor: Some(acceptor(1)),
        complete: 2,
        joins: false,
    };
    second.hear(1, Word::Hello(here).encode(FOUNDED));
    second.write_all();
    before && would_vote(&second).is_none()
}

/// One that does not vote, and has learnt some instances; then it is to vote.
fn is_to_vote(accounts: &[Command]) -> Alone {
    let mut second = has_learnt(accounts);
    learns_that_others_have(&mut second);
    second
}

/// The acceptors say that they have learnt all that it has.
fn learns_that_others_have(second: &mut Alone) {
    let (epoch, next) = (second.follow().epoch, second.engine.learnt());
    batch_by(second, 1, (epoch, next), |batch| {
        batch.learnt(0, next);
        batch.learnt(1, next);
    });
    passes(second, 300, |alone, _| alone.write_all());
}

/// The same, before it knows how much the others have.
fn has_learnt(accounts: &[Command]) -> Alone {
    let mut second = Alone::with(five(), process(2, 1), Vec::new());
    for node in [1, 3, 4, 5] {
        second.link(process(node, 1));
    }
    let config = config_of(&second, 1, &[1, 3, 5]);
    second.hear(1, Word::Known(Arc::new(config.clone())).encode(FOUNDED));
    second.write_all();
    let mut commands = accounts.to_vec();
    commands.push(Command::Acceptors(1, set(&[1, 2, 3])));
    let epoch = second.follow().epoch;
    let values = ordered(&commands);
    let end = 2 + values.len() as u64 + 10;
    batch_by(&mut second, 1, (epoch, 1), |batch| {
        batch.members(1, &config.ring);
        batch.skip(10);
        for (id, frame) in &values {
            batch.packet(None, *id, frame, true);
        }
        batch.voted(0, end);
        batch.voted(1, end);
    });
    second.write_all();
    second.write_all();
    assert_eq!(second.engine.accounts().acceptor_list().number(), 1);
    passes(&mut second, 100, |alone, _| alone.write_all());
    second
}

fn offer(alone: &Alone) -> Option<(AcceptorId, u64)> {
    alone.said.iter().rev().find_map(|word| match word {
        Word::Offer(who, next) => Some((*who, *next)),
        _ => None,
    })
}

/// Who becomes an acceptor while it runs has kept nothing of what it learnt before: it begins there, and says so to who asks, also
/// after a restart.
pub fn who_is_to_vote_begins_where_it_is() -> bool {
    let mut second = is_to_vote(&[]);
    let next = second.engine.learnt();
    assert_eq!(offer(&second), Some((second.votes_as(), next)), "it offers");
    let tells_base = |alone: &mut Alone| {
        alone.said.clear();
        alone.hear(3, Word::Fetch(1, 2).encode(FOUNDED));
        alone.room();
        alone.tell(Input::Timer);
        let is_base = |word: &Word| matches!(word, Word::Forgotten(..));
        alone.said.iter().any(is_base)
    };
    let mut then = Alone::with(five(), process(2, 2), second.all_on_disk());
    then.link(process(3, 1));
    then.write_all();
    second.engine.kept() == next
        && tells_base(&mut second)
        && tells_base(&mut then)
        && then.engine.accounts().acceptor_list().number() == 1
}

/// Who is to vote has kept nothing of what it learnt before, and no round starts there with it: the acceptors have to have all of that,
/// before it offers to vote.
pub fn who_offers_to_vote_has_kept_what_others_have_not_learnt() -> bool {
    let mut second = has_learnt(&[]);
    passes(&mut second, 300, |alone, _| alone.write_all());
    let early = offer(&second).is_some();
    learns_that_others_have(&mut second);
    !early && offer(&second).is_some()
}

/// Who offers to vote has on its disk whatever it says that it has.
pub fn who_offers_to_vote_has_it_on_its_disk() -> bool {
    let mut second = is_to_vote(&[]);
    let (_, offered) = offer(&second).expect("it offers");
    let (epoch, next) = (second.follow().epoch, second.engine.learnt());
    batch_by(&mut second, 1, (epoch, next), |batch| {
        batch.skip(20);
        batch.voted(0, next + 20);
        batch.voted(1, next + 20);
    });
    assert_eq!(second.engine.learnt(), next + 20);
    passes(&mut second, 300, |_, _| {});
    let early = offer(&second).is_some_and(|(_, theirs)| theirs > offered);
    second.write_all();
    passes(&mut second, 300, |alone, _| alone.write_all());
    !early && offer(&second).is_some_and(|(_, theirs)| theirs == next + 20)
}

/// Who is to vote and has not kept what a partition needs does not offer to vote: what others have forgotten would be gone with
/// the acceptor in whose place it comes.
pub fn who_lacks_what_a_partition_needs_does_not_offer() -> bool {
    let hold = Command::Hold(1, set(&[3, 4]), 5);
    let second = is_to_vote(&[hold]);
    assert!(would_vote(&second).is_some(), "it keeps what it learns");
    offer(&second).is_none()
}

/// Who is left out of the acceptors does not coordinate any more: it would have no vote in its own round.
pub fn who_is_left_out_does_not_coordinate() -> bool {
    let mut first = First::new();
    first.decides();
    first.orders(&Command::Acceptors(1, set(&[2, 3])));
    let wanted = first.wants().expect("it stands");
    assert_eq!(nodes(&wanted), [2, 3].into());
    [2, 3].contains(&wanted.coordinator.node.get())
}

/// An acceptor that is to go and does not vote goes first; a list of which no majority would vote is not come nearer to.
#[cfg(not(feature = "mutants"))]
#[test]
fn who_does_not_vote_goes_first() {
    let mut first = First::new();
    first.decides();
    first.orders(&Command::Acceptors(1, set(&[1, 4, 5])));
    let here = Hello {
        number: 1,
        acceptor: None,
        complete: 0,
        joins: false,
    };
    first.alone.hear(3, Word::Hello(here).encode(FOUNDED));
    first.offers(5, first.next);
    let wanted = first.wants().expect("it stands");
    assert_eq!(nodes(&wanted), [1, 2, 5].into());

    let mut first = First::new();
    first.decides();
    first.orders(&Command::Acceptors(1, set(&[1, 3])));
    first.alone.hear(3, Word::Hello(here).encode(FOUNDED));
    assert!(first.keeps(), "the third does not vote");
}

/// An offer counts while it is new, of the process that is there, and for its own node.
#[cfg(not(feature = "mutants"))]
#[test]
fn an_offer_counts_for_a_while() {
    let elected = || {
        let mut first = First::new();
        first.decides();
        first.orders(&Command::Acceptors(1, set(&[1, 2, 4])));
        first
    };
    let mut first = elected();
    let anothers = Word::Offer(acceptor(4), first.next);
    first.alone.hear(5, anothers.encode(FOUNDED));
    assert!(first.keeps());
    let mut first = elected();
    first.offers(4, first.next);
    first.alone.unlink(4);
    assert!(first.keeps(), "it is another process when it is back");
    let mut first = elected();
    first.offers(4, first.next);
    first.alone.now = Time(first.alone.now.0 + 5 * five().patience.retry);
    assert!(first.keeps(), "that was long ago");
}

/// What is refused before it is ordered is refused in words.
#[cfg(not(feature = "mutants"))]
#[test]
fn lists_that_cannot_be_are_refused() {
    let mut first = First::new();
    first.decides();
    let ask = |first: &First, nodes: &[u16], follows, forced| {
        let nodes: Vec<NodeId> = nodes.iter().map(|number| node(*number)).collect();
        first.alone.engine.next_list(&nodes, follows, forced)
    };
    let list = Ok(Command::Acceptors(1, set(&[1, 4, 5])));
    assert_eq!(ask(&first, &[5, 1, 4], 0, false), list);
    for (nodes, unfit, words) in [
        (&[][..], Unfit::Empty, "the last one is not removed"),
        (&[1, 2, 1], Unfit::Twice(node(1)), "node 1 is listed twice"),
        (&[1, 7], Unfit::Unknown(node(7)), "node 7 is none"),
    ] {
        assert_eq!(ask(&first, nodes, 0, true), Err(unfit.clone()));
        assert!(unfit.to_string().contains(words), "{unfit}");
    }
    assert_eq!(ask(&first, &[1, 2], 1, true), Err(Unfit::Old(0)));
    first.alone.unlink(4);
    first.alone.unlink(3);
    let away = Err(Unfit::Away(vec![node(3), node(4)]));
    assert_eq!(ask(&first, &[1, 3, 4], 0, false), away);
    assert!(ask(&first, &[1, 3, 4], 0, true).is_ok(), "it is forced");
    first.orders(&Command::Acceptors(1, set(&[1, 2])));
    assert_eq!(ask(&first, &[1, 2], 0, true), Err(Unfit::Old(1)));
    let many: Replicas = (1..=MOST_ACCEPTORS as u16 + 1).map(node).collect();
    for nodes in [many, Replicas::new()] {
        let command = Command::Acceptors(2, nodes.clone());
        assert_eq!(Command::decode(command.encode(5).into()), None);
        let mut table = Table::default();
        assert_eq!(table.apply((3, 0), command), Err(Refused::Unsound));
    }
}

/// A table is read as it was written, and no part of it is another one with a list.
#[cfg(not(feature = "mutants"))]
#[test]
fn bytes_of_tables_with_a_list() {
    let mut table = Table::default();
    let list = Command::Acceptors(1, set(&[2, 4, 7]));
    table.apply((30, 5), list).expect("the first");
    let whole = Snapshot {
        accounts: table,
        ..Snapshot::default()
    };
    let whole = whole.encode();
    let read = |bytes: &[u8]| Snapshot::decode(bytes.to_vec().into());
    assert_eq!(read(&whole).map(|base| base.encode()), Some(whole.clone()));
    let without = Snapshot::default().encode().len();
    for end in without + 1..whole.len() {
        let has_none = |base: Snapshot| base.accounts.acceptor_list().is_none();
        assert!(read(&whole[..end]).is_none_or(has_none), "{end}");
    }
    for at in without..whole.len() {
        let mut other = whole.clone();
        other[at] ^= 1 << (at % 8);
        if let Some(base) = read(&other) {
            assert_eq!(base.encode(), other, "{at}: it has one form");
        }
    }
    assert_eq!(read(&[&whole[..], &[0]].concat()), None);
}

#[cfg(not(feature = "mutants"))]
#[test]
fn rules() {
    assert!(one_acceptor_changes_at_a_time());
    assert!(no_step_is_taken_before_a_configuration_is_complete());
    assert!(who_has_not_caught_up_is_not_taken_in());
    assert!(no_configuration_is_complete_before_its_acceptors_know_what_was_decided());
    assert!(a_list_follows_the_newest());
    assert!(who_begins_at_a_base_knows_the_list());
    assert!(the_set_before_is_asked_after_a_step());
    assert!(who_is_left_out_votes_until_that_is_complete());
    assert!(who_is_to_vote_begins_where_it_is());
    assert!(who_lacks_what_a_partition_needs_does_not_offer());
    assert!(who_is_left_out_does_not_coordinate());
    assert!(who_offers_to_vote_has_it_on_its_disk());
    assert!(who_offers_to_vote_has_kept_what_others_have_not_learnt());
}
