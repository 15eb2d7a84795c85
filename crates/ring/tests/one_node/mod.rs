//! One process among others that exist only as the packets they send.

#![allow(dead_code, reason = "each test uses a part of it")]

use bytes::Bytes;
use rota_core::contract::{
    Channel, Checked, Class, Engine, Incarnation, Input, NodeId, Output, Process, RingId, Service,
    StartState, Time, TimerReason,
};
use rota_core::timing::Timers;
use rota_core::wire::{Frame, push_whole, start_frame};
use rota_ring::RingEngine;
use rota_ring::wire::{Commit, Data, Join, MergeDetect, OldRing, Packet, Token, decode};
use rota_ring::{Counters, RingConfig};

const CLUSTER: u32 = 7;
/// The process under test, unless it has to be the representative: then it is `PEER`.
pub const ME: u16 = 2;
pub const PEER: u16 = 1;
pub const THIRD: u16 = 3;

pub fn id(node: u16) -> NodeId {
    NodeId::new(node).expect("not 0")
}

pub fn process(node: u16) -> Process {
    Process {
        node: id(node),
        incarnation: Incarnation(10),
    }
}

pub fn ring_of(rep: u16, ring_seq: u64) -> RingId {
    let Process { node, incarnation } = process(rep);
    RingId {
        ring_seq,
        rep: node,
        incarnation,
    }
}

pub fn join(sender: u16, ring_seq: u64, procs: &[u16], fails: &[u16]) -> Packet {
    Packet::Join(Join {
        cluster: CLUSTER,
        sender: process(sender),
        ring_seq,
        leaving: false,
        procs: procs.iter().copied().map(process).collect(),
        fails: fails.iter().copied().map(process).collect(),
    })
}

/// A process on a ring of its own.
pub fn presence(sender: u16, ring_seq: u64) -> Packet {
    Packet::MergeDetect(MergeDetect {
        cluster: CLUSTER,
        sender: process(sender),
        ring: ring_of(sender, ring_seq),
    })
}

/// What member `index` of a ring without packets tells of it.
pub fn old_ring(ring: RingId, index: u32) -> OldRing {
    OldRing {
        ring,
        aru: 0,
        high: 0,
        safe_line: 0,
        obligations: 1 << index,
        next_message: 1,
        settings: rota_ring::RingConfig::new(1, Vec::new()).settings(),
        counts: Default::default(),
        have: vec![],
        more: false,
    }
}

pub struct Node {
    pub engine: Checked<RingEngine>,
    pub now: Time,
    me: u16,
    peer: u16,
    /// What it has sent, and what of that was not looked at yet.
    log: Vec<Packet>,
    unseen: Vec<Packet>,
}

impl Node {
    /// On a ring of its own.
    fn started(me: u16) -> Self {
        let members = [PEER, ME, THIRD].map(id).to_vec();
        let engine = RingEngine::new(RingConfig::new(CLUSTER, members)).expect("a valid ring");
        let mut node = Self {
            engine: Checked::new(engine),
            now: Time(1),
            me,
            peer: PEER + ME - me,
            log: Vec::new(),
            unseen: Vec::new(),
        };
        let start = StartState {
            me: process(me),
            seed: 1,
            records: Vec::new(),
            lost_some: false,
        };
        node.engine.handle(node.now, Input::Start(start));
        node.carry_out();
        node
    }

    /// On a ring with the peer, and the application knows.
    pub fn operational(me: u16) -> Self {
        let mut node = Self::started(me);
        node.tell(&presence(node.peer, 1));
        node.commit_anew();
        node.recover();
        if me == PEER {
            let mut third = node.commit();
            third.token_seq += 1;
            node.tell(&Packet::Commit(third));
        } else {
            let token = node.first_token();
            node.tell(&Packet::Token(token));
        }
        node.rotate_until("operational");
        while node.engine.poll_delivery().is_some() {}
        node.sent();
        node
    }

    /// It has lost the token.
    pub fn gathering(me: u16) -> Self {
        let mut node = Self::operational(me);
        node.wait_for("gathering");
        node.sent();
        node
    }

    pub fn committing(me: u16) -> Self {
        let mut node = Self::gathering(me);
        node.commit_anew();
        node.sent();
        node
    }

    pub fn recovering(me: u16) -> Self {
        let mut node = Self::committing(me);
        node.recover();
        node.sent();
        node
    }

    pub fn in_every_state() -> [Self; 4] {
        [
            Self::operational(ME),
            Self::gathering(ME),
            Self::committing(ME),
            Self::recovering(ME),
        ]
    }

    /// From Gather to Commit.
    pub fn commit_anew(&mut self) {
        self.agree();
        if self.me == ME {
            let ring_seq = self.last_join().ring_seq + 4;
            let commit = self.first_visit(ring_seq, &[PEER, ME]);
            self.tell(&Packet::Commit(commit));
        }
        assert_eq!(self.phase(), "committing");
    }

    fn recover(&mut self) {
        let commit = self.second_visit();
        self.tell(&Packet::Commit(commit));
        assert_eq!(self.phase(), "recovering");
    }

    pub fn tell(&mut self, packet: &Packet) {
        let bytes = Bytes::from(packet.encode());
        let segment = bytes.len();
        let input = Input::Datagrams {
            class: Class::Token,
            channel: Channel(0),
            bytes,
            segment,
        };
        self.engine.handle(self.now, input);
        self.carry_out();
        self.engine.reading();
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Persist { id, .. } => {
                    self.engine.handle(self.now, Input::Persisted { id });
                }
                Output::Send { burst, .. } => {
                    for datagram in burst.datagrams() {
                        let packet = decode(Bytes::copy_from_slice(datagram));
                        self.unseen.push(packet.expect("it sends valid packets"));
                        self.log.extend(self.unseen.last().cloned());
                    }
                }
                other => panic!("{other:?} was not asked for"),
            }
        }
    }

    /// What it has sent since it was asked last.
    pub fn sent(&mut self) -> Vec<Packet> {
        self.carry_out();
        std::mem::take(&mut self.unseen)
    }

    pub fn phase(&self) -> &'static str {
        self.engine.get().phase_name()
    }

    pub fn counters(&self) -> Counters {
        self.engine.get().counters().clone()
    }

    pub fn timers(&self) -> Timers {
        self.engine.get().config().timers
    }

    pub fn ring(&self) -> RingId {
        self.engine
            .get()
            .ordering()
            .expect("it is on a ring")
            .ring()
    }

    /// The nodes of the installed ring.
    pub fn members(&self) -> Vec<u16> {
        let ring = self.engine.get().ordering().expect("it is on a ring");
        ring.members()
            .iter()
            .map(|member| member.node.get())
            .collect()
    }

    pub fn next_timer(&self) -> (Time, TimerReason) {
        self.engine.next_timer().expect("a timer runs")
    }

    /// Lets the next timer expire; answers with what it was for.
    pub fn fire(&mut self) -> TimerReason {
        let (at, reason) = self.next_timer();
        self.now = self.now.max(at);
        self.engine.handle(self.now, Input::Timer);
        self.carry_out();
        reason
    }

    pub fn fire_until(&mut self, reason: TimerReason) {
        for _ in 0..100 {
            if self.fire() == reason {
                return;
            }
        }
        panic!("no timer for {reason:?}");
    }

    pub fn wait_for(&mut self, phase: &str) {
        for _ in 0..1000 {
            if self.phase() == phase {
                return;
            }
            self.fire();
        }
        panic!("{} for ever, not {phase}", self.phase());
    }

    fn last<T>(&self, of_kind: impl Fn(&Packet) -> Option<T>) -> T {
        let found = self.log.iter().rev().find_map(of_kind);
        found.expect("it has sent one")
    }

    pub fn last_join(&self) -> Join {
        self.last(|packet| match packet {
            Packet::Join(join) => Some(join.clone()),
            _ => None,
        })
    }

    /// The commit token it has sent last.
    pub fn commit(&self) -> Commit {
        self.last(|packet| match packet {
            Packet::Commit(commit) => Some(commit.clone()),
            _ => None,
        })
    }

    pub fn last_token(&self) -> Token {
        self.last(|packet| match packet {
            Packet::Token(token) => Some(token.clone()),
            _ => None,
        })
    }

    /// The peer says the same as this process.
    pub fn agree(&mut self) {
        self.agree_as(self.peer);
    }

    pub fn agree_as(&mut self, sender: u16) {
        let said = self.last_join();
        let sender = process(sender);
        self.tell(&Packet::Join(Join { sender, ..said }));
    }

    /// A commit token in which only the peer, its representative, has told its part.
    pub fn first_visit(&self, ring_seq: u64, members: &[u16]) -> Commit {
        let ring = ring_of(PEER, ring_seq);
        Commit {
            cluster: CLUSTER,
            ring,
            sender: id(PEER),
            token_seq: 1,
            members: members.iter().copied().map(process).collect(),
            electorates: vec![],
            told: vec![self.peers_part(0)],
        }
    }

    /// The peer comes from the same ring, if this process is not alone on it.
    fn peers_part(&self, index: u32) -> OldRing {
        let alone = self.members().len() == 1;
        let ring = if alone {
            ring_of(self.peer, 1)
        } else {
            self.ring()
        };
        old_ring(ring, if alone { 0 } else { index })
    }

    /// The commit token that comes in answer to the one sent last.
    pub fn second_visit(&self) -> Commit {
        let mut commit = self.commit();
        if self.me == PEER {
            commit.told.push(self.peers_part(1));
        }
        commit.token_seq += 1;
        commit.sender = id(self.peer);
        commit
    }

    /// The first token of the ring to be.
    pub fn first_token(&self) -> Token {
        let (fcc, backlog, idle) = (0, 0, false);
        Token {
            cluster: CLUSTER,
            ring: self.commit().ring,
            sender: id(self.peer),
            token_seq: 2,
            seq: 0,
            aru: 0,
            aru_id: None,
            fcc,
            backlog,
            idle,
            recovering: false,
            rtr: vec![],
        }
    }

    /// The token as the peer passes it on.
    pub fn next_token(&self) -> Token {
        let mut token = self.last_token();
        token.token_seq += 1;
        token.sender = id(self.peer);
        // It would have to be held.
        token.idle = false;
        token
    }

    pub fn rotate(&mut self) {
        let token = self.next_token();
        self.tell(&Packet::Token(token));
    }

    pub fn rotate_until(&mut self, phase: &str) {
        for _ in 0..10 {
            if self.phase() == phase {
                return;
            }
            self.rotate();
        }
        panic!("{} for ever, not {phase}", self.phase());
    }

    pub fn foreign_data(&mut self, sender: u16) {
        let mut bytes = Vec::new();
        start_frame(&mut bytes, 1);
        push_whole(&mut bytes, b"foreign");
        let frame = Frame::parse(Bytes::from(bytes)).expect("a frame by the rules");
        self.tell(&Packet::Data(Data {
            cluster: CLUSTER,
            ring: ring_of(sender, 1),
            seq: 5,
            sender: id(sender),
            round: 1,
            service: Service::Agreed,
            encapsulated: false,
            frame,
        }));
    }

    pub fn submit(&mut self) {
        let submitted = self.engine.submit(self.now, Service::Agreed, b"mine");
        submitted.expect("there is room");
        self.carry_out();
    }

    /// Nobody listens at a node's address.
    pub fn refuse(&mut self, peer: u16) {
        let peer = id(peer);
        self.engine.handle(self.now, Input::Unreachable { peer });
        self.carry_out();
    }
}
