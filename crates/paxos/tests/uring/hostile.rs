//! Neighbours that say anything: a process that hears them neither panics, nor keeps more than it should, nor says
//! things that others could not read.

use std::sync::Arc;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rota_core::contract::{Engine, Input, NodeId, Process, Session, Time};
use rota_core::wire::PartHead;
use rota_paxos as paxos;
use rota_paxos::uring::{
    Head, Hello, ProposerConfig, ResumeFrom, Said, URingConfig, Word, Writer, decode,
};
use rota_paxos::{AcceptorId, Ballot, Config, Prior, Promise, Value, ValueId, Vote};

use super::alone::{Alone, FOUNDED, acceptor, process, settings};
use super::base;
use super::datagrams::SETTINGS;
use super::rules::batch_of;

/// Mostly small, so that they meet; some that nobody believes.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..8_u64, 2 => 0..10_000_u64, 1 => Just(1 << 60), 1 => Just(1 << 61), 1 => any::<u64>()]
}

fn who() -> impl Strategy<Value = Process> {
    (1..5_u16, 1..3_u64).prop_map(|(node, life)| process(node, life))
}

fn store() -> impl Strategy<Value = AcceptorId> {
    (1..5_u16).prop_map(acceptor)
}

fn value() -> impl Strategy<Value = Value> {
    let frame = prop_oneof![Just(0_u8), any::<u8>()];
    let packet = (who(), number(), vec(frame, 0..60));
    prop_oneof![
        packet.prop_map(|(process, counter, frame)| Value::Packet {
            id: ValueId { process, counter },
            frame: frame.into(),
        }),
        (number(), vec(who(), 1..4))
            .prop_map(|(number, members)| Value::Members(number, members.into())),
        number().prop_map(|count| Value::Skip(count.max(1))),
    ]
}

fn vote() -> impl Strategy<Value = Vote> {
    (number(), number(), value()).prop_map(|(first, round, value)| Vote {
        first,
        round,
        value,
    })
}

fn config() -> impl Strategy<Value = Arc<Config>> {
    let lists = (vec(who(), 1..4), vec(store(), 1..4), vec(store(), 1..4));
    let numbers = (0..3_u64, number(), number());
    (numbers, who(), lists).prop_map(|((founded, number, prior), coordinator, lists)| {
        let (ring, acceptors, before) = lists;
        let prior = Prior {
            number: prior,
            acceptors: before,
        };
        Arc::new(Config {
            founded,
            number,
            coordinator,
            ring,
            acceptors,
            prior: vec![prior],
        })
    })
}

fn base() -> impl Strategy<Value = base::Bytes> {
    let view = proptest::option::of((number(), vec(who(), 0..4)));
    let open = vec((who(), vec(any::<u8>(), 0..40)), 0..3);
    let lives = vec((who(), number()), 0..4);
    (number(), lives, view, open).prop_map(|(next, lives, view, open)| base::Bytes {
        next,
        lives,
        view,
        open,
    })
}

fn ballot() -> impl Strategy<Value = Ballot> {
    (number(), who()).prop_map(|(count, by)| Ballot { count, by })
}

fn arbitration() -> impl Strategy<Value = paxos::Word<Arc<Config>>> {
    prop_oneof![
        ballot().prop_map(paxos::Word::Prepare),
        (ballot(), proptest::option::of((ballot(), config())))
            .prop_map(|(ballot, accepted)| paxos::Word::Promise(ballot, accepted)),
        (ballot(), config()).prop_map(|(ballot, config)| paxos::Word::Accept(ballot, config)),
        ballot().prop_map(paxos::Word::Accepted),
        (ballot(), ballot()).prop_map(|(one, other)| paxos::Word::Refused(one, other)),
    ]
}

fn word() -> impl Strategy<Value = Word> {
    let here = (
        number(),
        proptest::option::of(store()),
        number(),
        any::<bool>(),
    );
    let promise = (number(), store(), number(), number(), number());
    prop_oneof![
        here.prop_map(|(number, acceptor, complete, joins)| Word::Hello(Hello {
            number,
            acceptor,
            complete,
            joins,
        })),
        config().prop_map(Word::Known),
        (number(), arbitration()).prop_map(|(number, word)| Word::Ask(number, word)),
        (number(), store(), arbitration())
            .prop_map(|(number, who, word)| Word::Answer(number, who, word)),
        (number(), number()).prop_map(|(round, from)| Word::Prepare(round, from)),
        (promise, vec(vote(), 0..4), any::<bool>()).prop_map(|(head, votes, more)| {
            let (round, acceptor, from, held, kept) = head;
            let promise = Promise {
                round,
                acceptor,
                from,
                held,
                kept,
                votes,
            };
            Word::Promise(promise, more)
        }),
        (number(), any::<u32>(), number()).prop_map(|(round, epoch, next)| {
            Word::ResumeFrom(ResumeFrom { round, epoch, next }, vec![next])
        }),
        (number(), number()).prop_map(|(from, upto)| Word::Fetch(from, upto)),
        vec(vote(), 0..4).prop_map(Word::Chosen),
        (vec(any::<u8>(), 0..80), any::<bool>()).prop_map(|(part, more)| Word::Forgotten(
            0,
            part.into(),
            more
        )),
        base().prop_map(|base| Word::Forgotten(0, base.encode().into(), false)),
        Just(Word::Leaving),
        vec(number(), 0..4).prop_map(Word::Want),
        number().prop_map(Word::Need),
        number().prop_map(Word::Watch),
        number().prop_map(Word::Decided),
        (store(), number()).prop_map(|(who, next)| Word::Offer(who, next)),
        (1..9_u64, vec(any::<u8>(), 0..60))
            .prop_map(|(counter, value)| Word::Value(counter, value.into())),
    ]
}

/// What happens to the process.
#[derive(Clone, Debug)]
enum Step {
    Up(Process),
    Down(u16),
    Word(u16, Word),
    /// With what the process expects of its predecessor at the head, if that is so.
    Batch(u16, bool, Head, Vec<Vote>),
    Bytes(u16, Vec<u8>),
    /// A part of a value, or nearly.
    Part(PartHead, usize),
    Written,
    Failed,
    Time(u64),
    Submit,
}

fn step() -> impl Strategy<Value = Step> {
    let head = (
        number(),
        any::<u32>(),
        number(),
        number(),
        number(),
        any::<bool>(),
    );
    let head = head.prop_map(|(round, epoch, start, kept, from, complete)| Head {
        founded: FOUNDED,
        round,
        epoch,
        start,
        kept,
        from,
        complete,
    });
    prop_oneof![
        2 => who().prop_map(Step::Up),
        1 => (1..5_u16).prop_map(Step::Down),
        12 => (1..5_u16, word()).prop_map(|(from, word)| Step::Word(from, word)),
        4 => (1..5_u16, any::<bool>(), head, vec(vote(), 0..4))
            .prop_map(|(from, fits, head, votes)| Step::Batch(from, fits, head, votes)),
        1 => (1..5_u16, vec(any::<u8>(), 0..60)).prop_map(|(from, bytes)| Step::Bytes(from, bytes)),
        4 => (part(), 1..62_usize).prop_map(|(head, len)| Step::Part(head, len)),
        3 => Just(Step::Written),
        1 => Just(Step::Failed),
        2 => (0..3_000_000_000_u64).prop_map(Step::Time),
        2 => Just(Step::Submit),
    ]
}

fn part() -> impl Strategy<Value = PartHead> {
    let numbers = (0..4_u16, 1..4_u16, 1..200_u32);
    let counter = prop_oneof![8 => 1..9_u64, 1 => Just(u64::MAX), 1 => 1..100_000_u64];
    (who(), counter, numbers).prop_map(|(proposer, counter, (index, count, total))| PartHead {
        cluster: SETTINGS.cluster,
        proposer,
        counter,
        index,
        count,
        total,
    })
}

fn batch(head: &Head, votes: &[Vote]) -> Bytes {
    let mut batch = Writer::new(head, usize::MAX, usize::MAX);
    for (index, vote) in votes.iter().enumerate() {
        match &vote.value {
            Value::Packet { id, frame } if index % 2 == 0 => batch.value(None, *id, frame),
            Value::Packet { id, frame } => batch.packet(None, *id, frame, vote.round % 2 == 0),
            Value::Members(number, members) => batch.members(*number, members),
            Value::Skip(count) => batch.skip(*count),
        }
        batch.voted(index as u8, vote.first);
        batch.learnt(index as u8, vote.round);
        batch.lost(index as u8, vote.round);
        batch.log_failed(index as u8);
    }
    batch.finish().into_bytes()
}

fn take(alone: &mut Alone, me: u16, step: Step) {
    match step {
        Step::Up(peer) if peer.node != process(me, 1).node => alone.link(peer),
        Step::Up(_) => {}
        Step::Down(node) => {
            let peer = NodeId::new(node).expect("not 0");
            let session = Session(u64::from(node));
            alone.tell(Input::LinkDown { peer, session });
        }
        Step::Word(from, word) => alone.hear(from, word.encode(FOUNDED)),
        Step::Batch(from, fits, mut head, votes) => {
            if let (true, Some(follow)) = (fits, alone.followed()) {
                (head.round, head.epoch) = (follow.round, follow.epoch);
                (head.start, head.from) = (head.start.max(1), follow.next.max(1));
            }
            alone.hear(from, batch(&head, &votes));
        }
        Step::Bytes(from, bytes) => alone.hear(from, bytes),
        Step::Part(head, len) => alone.datagram(&head, &[0; 62][..len]),
        Step::Written => alone.write(),
        Step::Failed => alone.fail(),
        Step::Time(pass) => {
            alone.now = Time(alone.now.0 + pass);
            alone.tell(Input::Timer);
        }
        Step::Submit => alone.submit(b"something"),
    }
}

/// `PROPTEST_CASES` cases, but at least 600.
fn more(config: ProptestConfig) -> ProptestConfig {
    let cases = config.cases.max(600);
    ProptestConfig { cases, ..config }
}

proptest! {
    #![proptest_config(more(ProptestConfig::default()))]

    #[test]
    fn anything_may_be_said(
        first in any::<bool>(),
        multicast in any::<bool>(),
        me in 1..3_u16,
        steps in vec(step(), 0..120),
    ) {
        let multicast = multicast.then_some(SETTINGS);
        let settings = URingConfig {
            proposer: ProposerConfig {
                window_bytes: 300,
                frame_bytes: 100,
                ..settings().proposer
            },
            multicast,
            ..settings()
        };
        let mut alone = Alone::with(settings.clone(), process(me, 1), Vec::new());
        if first {
            alone.join();
        }
        for step in steps {
            take(&mut alone, me, step);
            while alone.engine.poll_delivery().is_some() {}
            let most = 15 * (2 * settings.proposer.window_bytes + 64);
            prop_assert!(alone.engine.carried_bytes() <= most);
        }
        // What it leaves on its disk it can begin with.
        let _ = Alone::new(process(me, 2), alone.records_without(None));
    }

    /// Who has asked for what was forgotten begins there, or goes on asking.
    #[test]
    fn any_base_may_be_the_answer(base in base(), steps in vec(step(), 0..40)) {
        let mut alone = base::behind();
        let answer = Word::Forgotten(0, base.encode().into(), false);
        for step in std::iter::once(Step::Word(1, answer)).chain(steps) {
            take(&mut alone, 2, step);
            while alone.engine.poll_delivery().is_some() {}
        }
        let _ = Alone::new(process(2, 2), alone.records_without(None));
    }

    #[test]
    fn words_are_read_as_they_were_written(word in word()) {
        let bytes = Bytes::from(word.encode(FOUNDED));
        if let Some(read) = decode(bytes) {
            prop_assert_eq!(read, (FOUNDED, Said::Word(word)));
        }
    }

    #[test]
    fn any_bytes_are_read_or_not(bytes in vec(any::<u8>(), 0..200), kind in 0..16_u8) {
        let _ = decode(bytes.clone().into());
        let mut named = vec![2, kind];
        named.extend(bytes);
        if let Some((founded, Said::Word(word))) = decode(named.clone().into()) {
            prop_assert_eq!(word.encode(founded), named);
        }
    }
}

/// A predecessor repeats what it has proposed, and in other pieces: what it goes on with has no gap.
#[test]
fn proposals_in_other_pieces_leave_no_gap() {
    for multicast in [None, Some(SETTINGS)] {
        let settings = URingConfig {
            multicast,
            ..settings()
        };
        let mut alone = Alone::with(settings, process(2, 1), Vec::new());
        alone.join();
        let epoch = alone.follow().epoch;
        batch_of(&mut alone, epoch, 1, |batch| batch.skip(1));
        batch_of(&mut alone, epoch, 1, |batch| {
            batch.skip(1);
            batch.skip(1);
        });
        batch_of(&mut alone, epoch, 1, |batch| {
            batch.skip(4);
            batch.skip(1);
        });
        // The last batch is refused: the predecessor is told where to begin again.
        take(&mut alone, 2, Step::Time(1_000_000_000));
        assert_eq!(alone.follow().next, 3);
    }
}

/// No configuration is without a foundation.
#[test]
fn a_configuration_without_foundation_is_not_read() {
    let mut alone = Alone::new(process(2, 1), Vec::new());
    alone.join();
    let mut config = (*alone.config(1)).clone();
    let read = |config: &Config| decode(Word::Known(Arc::new(config.clone())).encode(1).into());
    assert!(read(&config).is_some());
    config.founded = 0;
    assert!(read(&config).is_none());
}
