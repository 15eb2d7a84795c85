//! Snapshots: a process begins at one when others have forgotten the instances before, as it comes over a link.

use rota_core::contract::{ConfigurationKind, Delivery, Engine, Input, Process};
use rota_paxos::uring::Word;

use super::alone::{Alone, FOUNDED, process, settings};
use super::behind::{asks, full, lacks_much};
use super::rounds::stands;
use super::rules::{batch_of, head, hear_batch, second};

/// The bytes of a base.
#[derive(Clone, Debug)]
pub struct Bytes {
    pub next: u64,
    /// Members and the counters of their last values, and one life of each that is over.
    pub lives: Vec<(Process, u64)>,
    pub view: Option<(u64, Vec<Process>)>,
    /// Values that go on behind it.
    pub open: Vec<(Process, Vec<u8>)>,
}

fn put_process(out: &mut Vec<u8>, who: Process) {
    out.extend(who.node.get().to_le_bytes());
    out.extend(who.incarnation.0.to_le_bytes());
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend((count as u16).to_le_bytes());
}

impl Bytes {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.next.to_le_bytes().to_vec();
        out.extend(1_u64.to_le_bytes());
        put_count(&mut out, self.lives.len());
        for (who, last) in &self.lives {
            put_process(&mut out, *who);
            out.extend(last.to_le_bytes());
            out.push(1);
            put_count(&mut out, 1);
            out.extend(7_u64.to_le_bytes());
        }
        out.push(u8::from(self.view.is_some()));
        if let Some((first, members)) = &self.view {
            out.extend(first.to_le_bytes());
            put_count(&mut out, members.len());
            members.iter().for_each(|who| put_process(&mut out, *who));
        }
        put_count(&mut out, self.open.len());
        for (who, value) in &self.open {
            put_process(&mut out, *who);
            out.extend(1_u32.to_le_bytes());
            out.extend(1_u64.to_le_bytes());
            out.extend((value.len() as u32).to_le_bytes());
            out.extend(value);
        }
        out
    }
}

/// Everything before the tenth instance, where these were named in one of them.
fn with_view(first: u64, members: &[(u16, u64)]) -> Bytes {
    let members = members.iter().map(|(node, life)| process(*node, *life));
    Bytes {
        next: 10,
        lives: vec![(process(1, 1), 3), (process(3, 1), 0)],
        view: Some((first, members.collect())),
        open: Vec::new(),
    }
}

/// The second of three, to which the ring brings what comes from the tenth instance on: it has asked the first for the rest.
pub fn behind() -> Alone {
    let mut alone = second();
    begins_behind(&mut alone);
    alone
}

fn begins_behind(alone: &mut Alone) {
    let epoch = alone.follow().epoch;
    batch_of(alone, epoch, 10, |batch| {
        batch.skip(2);
        batch.voted(0, 12);
        batch.voted(2, 12);
    });
    assert!(alone.has_said(&Word::Fetch(1, 10)), "{:?}", alone.said);
}

/// What the application is told by who gets this base: places, how many are missed, or who the members are.
fn told(base: &Bytes) -> Vec<(u64, u64, Vec<u16>)> {
    let mut alone = behind();
    alone.hear(
        1,
        Word::Forgotten(0, base.encode().into(), false).encode(FOUNDED),
    );
    let deliveries = std::iter::from_fn(|| alone.engine.poll_delivery());
    let deliveries = deliveries.map(|delivery| match delivery {
        Delivery::Missed { seq, count, .. } => (seq, count, Vec::new()),
        Delivery::Configuration(config) => {
            let ConfigurationKind::Regular(ring) = config.kind else {
                panic!("{config:?}");
            };
            let nodes = config.members.iter().map(|who| who.node.get());
            (ring.ring_seq, 0, nodes.collect())
        }
        other => panic!("{other:?}"),
    });
    deliveries.collect()
}

#[test]
fn who_begins_behind_what_is_forgotten_gets_to_know_the_members() {
    let named = |first| told(&with_view(first, &[(1, 1), (3, 1)]));
    assert_eq!(
        named(4),
        [(1, 3, vec![]), (4, 0, vec![1, 3]), (5, 5, vec![])]
    );
    assert_eq!(named(1), [(1, 0, vec![1, 3]), (2, 8, vec![])]);
    assert_eq!(named(9), [(1, 8, vec![]), (9, 0, vec![1, 3])]);
    let nobody = Bytes {
        view: None,
        ..with_view(1, &[])
    };
    assert_eq!(told(&nobody), [(1, 9, vec![])]);
}

/// The members are not named again in any of the configurations that follow: each is wanted later than the one before, as all
/// stand still for a moment with it.
pub fn members_are_named_again_each_time_later() -> bool {
    let mut settings = settings();
    settings.learner.only_as_member = true;
    let mut alone = Alone::with(settings, process(2, 1), Vec::new());
    alone.join();
    begins_behind(&mut alone);
    let mut base = with_view(4, &[(1, 1), (2, 1), (3, 1)]);
    base.lives.insert(1, (process(2, 1), 0));
    alone.hear(
        1,
        Word::Forgotten(0, base.encode().into(), false).encode(FOUNDED),
    );
    let mut number = 1;
    for _ in 0..200 {
        alone.now = alone.now.after(50_000_000);
        let head = head(number, alone.follow().epoch, (10, 12));
        hear_batch(&mut alone, 1, &head, |_| {});
        alone.room();
        alone.tell(Input::Timer);
        alone.write();
        if stands(&alone).contains(&(number + 1)) {
            number += 1;
            let known = Word::Known(alone.config(number));
            alone.hear(1, known.encode(FOUNDED));
        }
    }
    (3..9).contains(&number)
}

/// An answer that is waited for no more is told to its end; what comes then of another begins anew.
#[test]
fn parts_of_two_bases_are_not_put_together() {
    let base = with_view(4, &[(1, 1), (3, 1)]).encode();
    let (first, second) = base.split_at(20);
    let part = |at: u64, bytes: &[u8], more| {
        let bytes = bytes.to_vec().into();
        Word::Forgotten(at, bytes, more).encode(FOUNDED)
    };
    let told = |parts: Vec<Vec<u8>>| {
        let mut alone = behind();
        parts.into_iter().for_each(|part| alone.hear(1, part));
        alone.engine.poll_delivery().is_some()
    };
    let (begin, end) = (part(0, first, true), part(20, second, false));
    assert!(told(vec![begin.clone(), end.clone()]));
    assert!(!told(vec![end.clone()]));
    assert!(told(vec![end.clone(), begin.clone(), end.clone()]));
    assert!(told(vec![begin.clone(), begin.clone(), end.clone()]));
    assert!(!told(vec![begin, part(21, &second[1..], false)]));
}

/// Where each part takes longer than who is asked is waited for, the base comes all the same.
#[test]
fn a_base_comes_over_a_slow_link() {
    let base = with_view(4, &[(1, 1), (3, 1)]).encode();
    let mut alone = behind();
    let silence = super::alone::settings().patience.silence;
    for (at, part) in base.chunks(10).enumerate() {
        alone.now = alone.now.after(silence + 50_000_000);
        alone.tell(rota_core::contract::Input::Timer);
        let more = 10 * at + part.len() < base.len();
        let word = Word::Forgotten(10 * at as u64, part.to_vec().into(), more);
        alone.hear(1, word.encode(FOUNDED));
        // Another one, asked meanwhile, begins to tell its own.
        let other = Word::Forgotten(0, base[..5].to_vec().into(), true);
        alone.hear(3, other.encode(FOUNDED));
    }
    assert!(alone.engine.poll_delivery().is_some());
}

#[test]
fn a_base_that_cannot_be_is_refused() {
    let members = [(1, 1), (3, 1)];
    for wrong in [
        with_view(0, &members),
        with_view(10, &members),
        with_view(u64::MAX, &members),
        with_view(4, &[]),
        with_view(4, &[(1, 1), (1, 2)]),
        with_view(4, &[(1, u64::MAX)]),
        Bytes {
            next: 0,
            ..with_view(4, &members)
        },
        Bytes {
            next: (1 << 62) + 1,
            ..with_view(4, &members)
        },
    ] {
        assert_eq!(told(&wrong), [], "{wrong:?}");
    }
    let right = with_view(4, &members).encode();
    for length in 0..right.len() {
        let mut alone = behind();
        let part = right[..length].to_vec();
        alone.hear(1, Word::Forgotten(0, part.into(), false).encode(FOUNDED));
        assert!(alone.engine.poll_delivery().is_none(), "{length} bytes");
    }
    let mut more = right;
    more.push(0);
    let mut alone = behind();
    alone.hear(1, Word::Forgotten(0, more.into(), false).encode(FOUNDED));
    assert!(alone.engine.poll_delivery().is_none(), "one byte more");
}

/// What is asked about instances behind a base is waited for, also if several questions have that base as their answer.
#[test]
fn a_base_answers_only_what_is_before_it() {
    let (mut alone, mut under_way) = lacks_much();
    for _ in 0..3 {
        alone.now = alone.now.after(50_000_000);
        let asked = under_way.pop_front().expect("it asks");
        let votes = full(asked.start);
        let votes = votes.into_iter().filter(|vote| asked.contains(&vote.first));
        alone.hear(1, Word::Chosen(votes.collect()).encode(FOUNDED));
        under_way.extend(asks(&mut alone));
    }
    let base = with_view(4, &[(1, 1), (3, 1)]).encode();
    assert!(under_way.iter().any(|asked| asked.start < 10));
    under_way.retain(|asked| asked.start >= 10);
    for _ in 0..2 {
        let base = Word::Forgotten(0, base.clone().into(), false);
        alone.hear(1, base.encode(FOUNDED));
        under_way.extend(asks(&mut alone));
    }
    let mut from = 10;
    under_way.make_contiguous().sort_by_key(|asked| asked.start);
    for asked in &under_way {
        assert_eq!(asked.start, from, "{under_way:?}");
        from = asked.end;
    }
    assert_eq!(under_way.len(), 4);
}
