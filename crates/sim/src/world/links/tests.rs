//! The promises of links, over many draws: order, no loss within a session, sessions that ascend.

use std::collections::BTreeMap;

use bytes::Bytes;
use rota_core::contract::{Incarnation, NodeId, Process};

use super::*;

const QUEUE: usize = 1000;

/// Two hosts, and the news that each process was told.
struct Two {
    links: Links,
    queue: Queue,
    now: u64,
    rng: Rng,
    cut: bool,
    lives: [Option<u64>; 2],
    fragile: bool,
    /// Nobody sends.
    mute: bool,
    /// Of each process: its session, room, the last message it got, and sessions so far.
    knows: [Knows; 2],
    counts: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Default)]
struct Knows {
    session: Option<u64>,
    greatest: u64,
    room: usize,
    got: u64,
    sent: u64,
}

fn process(at: usize, life: u64) -> Process {
    Process {
        node: NodeId::new(at as u16 + 1).expect("not 0"),
        incarnation: Incarnation(life),
    }
}

impl Two {
    fn new(seed: u64) -> Self {
        let plan = LinksPlan {
            queue_bytes: QUEUE,
            patience: 300 * MILLIS,
            retry: 20 * MILLIS,
            breaks: 50_000,
            byte_nanos: 8,
        };
        let mut queue = Queue::default();
        let mut links = Links::new(plan, 2, seed);
        links.begin(&mut queue);
        Self {
            links,
            queue,
            now: 0,
            rng: Rng::new(seed),
            cut: false,
            lives: [Some(1), Some(1)],
            fragile: true,
            mute: false,
            knows: Default::default(),
            counts: BTreeMap::new(),
        }
    }

    fn step(&mut self) {
        if let Some((time, What::Link { way, step })) = self.queue.pop() {
            self.now = time;
            let (at, peer) = self.links.hosts_of(way);
            match step {
                LinkStep::Tend => {
                    let [one, other] = self.lives;
                    let both = one.zip(other);
                    let pair = Pair {
                        hosts: [0, 1],
                        processes: both.map(|(one, other)| [process(0, one), process(1, other)]),
                        cut: self.cut,
                        fragile: self.fragile,
                    };
                    self.links.tend(&mut self.queue, self.now, &pair);
                }
                LinkStep::Open => self.links.open(at, peer),
                LinkStep::Close => self.links.close(self.now, at, peer),
                LinkStep::Move => {
                    self.links
                        .carry(&mut self.queue, self.now, (at, peer), self.cut);
                }
            }
        }
        for at in 0..2 {
            if self.lives[at].is_some() {
                while self.rng.percent(60) && self.read(at) {}
                self.write(at);
            }
        }
    }

    /// Messages are numbers, from 1 in each session and direction, of as many bytes as they like.
    fn write(&mut self, at: usize) {
        let knows = &mut self.knows[at];
        let Some(session) = knows.session else { return };
        let bytes = 16 + self.rng.index(200);
        if self.mute || bytes > knows.room || self.rng.percent(50) {
            return;
        }
        knows.room -= bytes;
        knows.sent += 1;
        let mut text = session.to_le_bytes().to_vec();
        text.extend(knows.sent.to_le_bytes());
        text.resize(bytes, 7);
        let (message, delay) = ((session, Bytes::from(text)), self.rng.below(MILLIS));
        let way = (at, 1 - at);
        let sent = self
            .links
            .send(&mut self.queue, self.now, way, message, delay);
        assert_eq!(sent, Ok(()), "there is as much room as was told");
    }

    fn read(&mut self, at: usize) -> bool {
        let Some((peer, session, told, room)) = self.links.next(at) else {
            return false;
        };
        assert_eq!(peer, 1 - at);
        let knows = &mut self.knows[at];
        match told {
            Told::Up(process) => {
                assert_eq!(knows.session, None, "one session at a time");
                assert!(session > knows.greatest, "sessions ascend");
                assert_eq!(process.node.get() as usize, peer + 1);
                *knows = Knows {
                    session: Some(session),
                    greatest: session,
                    ..Knows::default()
                };
                self.count("up");
            }
            Told::Message(bytes) => {
                let word = |from: usize| {
                    let word = bytes[from..from + 8].first_chunk().expect("8 bytes");
                    u64::from_le_bytes(*word)
                };
                assert_eq!(knows.session, Some(session), "nothing outside of sessions");
                assert_eq!(word(0), session, "what was sent in a session arrives in it");
                assert_eq!(word(8), knows.got + 1, "in order, and none is left out");
                assert!(bytes[16..].iter().all(|&byte| byte == 7));
                knows.got += 1;
                self.count("message");
            }
            Told::Room => {
                assert_eq!(knows.session, Some(session));
                assert!(room <= QUEUE);
                knows.room = room;
                self.count("room");
            }
            Told::Down => {
                assert_eq!(
                    knows.session.take(),
                    Some(session),
                    "down once, after all else"
                );
                self.count("down");
            }
        }
        true
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn trouble(&mut self) {
        match self.rng.below(400) {
            0 => self.cut = !self.cut,
            1 | 2 => {
                let at = self.rng.index(2);
                if let Some(life) = self.lives[at].take() {
                    let machine = self.rng.percent(50);
                    self.links.lost(&mut self.queue, self.now, at, machine);
                    self.knows[at] = Knows {
                        greatest: self.knows[at].greatest,
                        ..Knows::default()
                    };
                    self.counts.insert("life", life);
                }
            }
            3..=8 => {
                let life = self.counts.get("life").copied().unwrap_or(1) + 1;
                let dead = self.lives.iter_mut().find(|life| life.is_none());
                if let Some(dead) = dead {
                    *dead = Some(life);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn within_a_session_messages_come_in_order_and_sessions_ascend() {
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut tally = LinkTally::default();
    for seed in 0..50 {
        let mut two = Two::new(seed);
        for _ in 0..4000 {
            two.step();
            two.trouble();
        }
        for (what, count) in two.counts {
            *counts.entry(what).or_default() += count;
        }
        tally.sessions += two.links.tally.sessions;
        tally.breaks += two.links.tally.breaks;
        tally.lost += two.links.tally.lost;
    }
    for what in ["up", "down", "message", "room"] {
        assert!(counts[what] > 1000, "{what}: {counts:?}");
    }
    assert!(tally.breaks > 100 && tally.lost > 1000, "{tally:?}");
}

#[test]
fn where_nothing_goes_wrong_everything_arrives_in_one_session() {
    for seed in 0..20 {
        let mut two = Two::new(seed);
        two.fragile = false;
        for _ in 0..2000 {
            two.step();
        }
        let sent = [0, 1].map(|at: usize| two.knows[at].sent);
        two.mute = true;
        for _ in 0..500 {
            // Only messages under way go on.
            two.step();
        }
        assert!(sent.iter().all(|sent| *sent > 100), "{sent:?}");
        for at in 0..2 {
            while two.read(at) {}
        }
        assert_eq!([two.knows[1].got, two.knows[0].got], sent);
        assert_eq!(two.links.tally.sessions, 1);
        assert_eq!(two.links.tally.lost, 0);
    }
}

#[test]
fn a_link_that_stays_cut_goes_down_and_comes_back() {
    let mut two = Two::new(3);
    two.fragile = false;
    let until = |two: &mut Two, wanted: fn(&Two) -> bool| {
        for _ in 0..100_000 {
            if wanted(two) {
                return;
            }
            two.step();
        }
        panic!("it never came about");
    };
    until(&mut two, |two| {
        two.knows.iter().all(|knows| knows.session == Some(1))
    });
    two.cut = true;
    let since = two.now;
    until(&mut two, |two| {
        two.knows.iter().all(|knows| knows.session.is_none())
    });
    assert!(two.now - since > 300 * MILLIS);
    two.cut = false;
    until(&mut two, |two| {
        two.knows.iter().all(|knows| knows.session == Some(2))
    });
}

/// The room of the session before once kept that of the next from being told, and a process that had stood still
/// meanwhile never sent anything over it.
#[test]
fn who_has_not_read_of_one_session_is_told_the_room_of_the_next() {
    let mut end = End::default();
    for session in 1..=3 {
        end.open(session, process(1, 1), QUEUE);
    }
    let rooms: Vec<u64> = end
        .inbox
        .iter()
        .filter_map(|(session, told)| (*told == Told::Room).then_some(*session))
        .collect();
    assert_eq!(rooms, [1, 2, 3]);
    // Within a session it is told once.
    end.tell_room(QUEUE);
    assert_eq!(end.inbox.len(), 3 + 3 + 2);
}
