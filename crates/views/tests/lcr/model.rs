//! Every order in which packets can be sent and link messages can arrive.
//!
//! Two machines are searched. [`Paper`] is the bare algorithm, one packet or acknowledgement at a time: it shows that
//! the first pending packet may be delivered as soon as it is stable. [`Real`] is the data path itself, with its
//! batches.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use bytes::Bytes;
use rota_core::contract::{Output, Session, Time};
use rota_views::lcr::{Config, Lcr, precedes};
use rota_views::{DataPath, Link, PacketId};

use super::ring::{FRAME, backlog, notes, path, process, view};

pub trait Machine: Clone + Hash {
    type Step: Copy + Debug;

    fn steps(&self) -> Vec<Self::Step>;
    fn take(&mut self, step: Self::Step);
    /// What process `at` delivers now.
    fn deliver(&mut self, at: usize) -> Option<PacketId>;
    fn holds(&self, at: usize, id: PacketId) -> bool;
    fn processes(&self) -> usize;
    /// Nothing more is done to it in this state.
    fn settle(&mut self) {}
    /// What must not have happened by the end.
    fn complaints(&self) -> u64;
}

/// What all deliver, as far as anybody has; and how far each has come.
#[derive(Clone, Hash)]
struct Told {
    order: Vec<PacketId>,
    at: Vec<usize>,
}

/// Searches everything. The number of states, or what went wrong.
pub fn search<M: Machine>(start: M, packets: usize) -> Result<usize, String> {
    let told = Told {
        order: Vec::new(),
        at: vec![0; start.processes()],
    };
    let mut seen = HashSet::new();
    let mut open = vec![(start, told)];
    while let Some((machine, told)) = open.pop() {
        let steps = machine.steps();
        let all = told.at.iter().all(|&at| at == packets);
        if steps.is_empty() && (!all || machine.complaints() > 0) {
            let complaints = machine.complaints();
            return Err(format!(
                "rest: {:?} of {packets}, {complaints} complaints",
                told.at
            ));
        }
        for step in steps {
            let (mut machine, mut told) = (machine.clone(), told.clone());
            machine.take(step);
            deliver(&mut machine, &mut told)?;
            machine.settle();
            if seen.insert(digest(&(&machine, &told))) {
                open.push((machine, told));
            }
        }
    }
    Ok(seen.len())
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn deliver<M: Machine>(machine: &mut M, told: &mut Told) -> Result<(), String> {
    for at in 0..machine.processes() {
        while let Some(id) = machine.deliver(at) {
            match told.order.get(told.at[at]) {
                Some(&other) if other != id => return Err(format!("order: {other:?}, {id:?}")),
                None if told.order.contains(&id) => return Err(format!("twice: {id:?}")),
                None => told.order.push(id),
                Some(_) => {}
            }
            told.at[at] += 1;
            if !(0..machine.processes()).all(|other| machine.holds(other, id)) {
                return Err(format!("uniform: {id:?}"));
            }
        }
    }
    Ok(())
}

/// A packet of the bare algorithm.
#[derive(Clone, PartialEq, Hash, Debug)]
struct Data {
    id: PacketId,
    clock: Vec<u64>,
}

#[derive(Clone, Hash)]
enum Hop {
    Data(Data),
    Ack(PacketId),
}

#[derive(Clone, Hash)]
struct Member {
    clock: Vec<u64>,
    pending: Vec<(Data, bool)>,
    /// On the way from the predecessor.
    link: VecDeque<Hop>,
    to_send: usize,
}

/// The algorithm as it was published, with links that keep order.
#[derive(Clone, Hash)]
pub struct Paper {
    members: Vec<Member>,
    /// An acknowledgement passes packets on its way: as one that is put in front of a batch would.
    overtaking: bool,
}

impl Paper {
    pub fn new(count: usize, each: usize, overtaking: bool) -> Self {
        let member = Member {
            clock: vec![0; count],
            pending: Vec::new(),
            link: VecDeque::new(),
            to_send: each,
        };
        Self {
            members: vec![member; count],
            overtaking,
        }
    }

    fn pass(&mut self, at: usize, hop: Hop) {
        let next = (at + 1) % self.members.len();
        let link = &mut self.members[next].link;
        let place = match &hop {
            Hop::Ack(_) if self.overtaking => link.len().saturating_sub(1),
            _ => link.len(),
        };
        link.insert(place, hop);
    }

    fn arrive(&mut self, at: usize) {
        let count = self.members.len();
        let back = |index: usize, by: usize| (index + count * 2 - by) % count;
        match self.members[at].link.pop_front() {
            Some(Hop::Data(data)) => {
                let sender = usize::from(data.id.sender);
                self.members[at].clock[sender] += 1;
                let last = at == back(sender, 1);
                self.members[at].pending.push((data.clone(), last));
                self.pass(
                    at,
                    if last {
                        Hop::Ack(data.id)
                    } else {
                        Hop::Data(data)
                    },
                );
            }
            Some(Hop::Ack(id)) => {
                for (data, stable) in &mut self.members[at].pending {
                    *stable |= data.id == id;
                }
                if at != back(usize::from(id.sender), 2) {
                    self.pass(at, Hop::Ack(id));
                }
            }
            None => {}
        }
    }

    fn send(&mut self, at: usize) {
        let member = &mut self.members[at];
        member.to_send -= 1;
        member.clock[at] += 1;
        let data = Data {
            id: PacketId {
                sender: at as u16,
                number: member.clock[at],
            },
            clock: member.clock.clone(),
        };
        let alone = member.clock.len() == 1;
        member.pending.push((data.clone(), alone));
        if !alone {
            self.pass(at, Hop::Data(data));
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Send(usize),
    /// From whom, at whom.
    Arrive(usize, usize),
    /// Only [`Real`]: what is to be sent next leaves.
    Leave(usize),
    /// Only [`Real`]: the session of `.0` with `.1` ends, and the next begins.
    Reset(usize, usize),
}

impl Machine for Paper {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        let members = self.members.iter().enumerate();
        let steps = members.flat_map(|(at, member)| {
            let send = (member.to_send > 0).then_some(Step::Send(at));
            let arrive = (!member.link.is_empty()).then_some(Step::Arrive(at, at));
            send.into_iter().chain(arrive)
        });
        steps.collect()
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Send(at) => self.send(at),
            Step::Arrive(_, at) => self.arrive(at),
            Step::Leave(_) | Step::Reset(..) => unreachable!("there is nothing of that kind"),
        }
    }

    fn deliver(&mut self, at: usize) -> Option<PacketId> {
        let pending = &mut self.members[at].pending;
        let head = (0..pending.len()).reduce(|first, next| {
            let [a, b] = [first, next].map(|index| {
                let data = &pending[index].0;
                (usize::from(data.id.sender), &data.clock[..])
            });
            if precedes(b, a) { next } else { first }
        })?;
        pending[head].1.then(|| pending.remove(head).0.id)
    }

    fn holds(&self, at: usize, id: PacketId) -> bool {
        self.members[at].clock[usize::from(id.sender)] >= id.number
    }

    fn processes(&self) -> usize {
        self.members.len()
    }

    fn complaints(&self) -> u64 {
        0
    }
}

/// A path, shared by all states in which it is the same, with its digest.
#[derive(Clone)]
struct Shared {
    path: Rc<Lcr>,
    digest: Option<u64>,
}

impl Shared {
    fn change(&mut self) -> &mut Lcr {
        self.digest = None;
        Rc::make_mut(&mut self.path)
    }
}

impl Hash for Shared {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let digest = self.digest.unwrap_or_else(|| digest(&self.path));
        digest.hash(hasher);
    }
}

/// Messages on their way, each with its session.
type Way = VecDeque<(u64, Bytes)>;

/// The data path itself.
#[derive(Clone, Hash)]
pub struct Real {
    paths: Vec<Shared>,
    /// What is on the way from each process to each: in which session, and the message.
    links: BTreeMap<(usize, usize), Way>,
    /// Which session with whom each process knows of.
    ends: BTreeMap<(usize, usize), u64>,
    /// How many links may still break.
    breaks: usize,
    to_send: Vec<usize>,
    /// Frames in the backlog.
    waiting: Vec<usize>,
    /// Something may be left to send.
    stirred: Vec<bool>,
    /// What is received is not passed on at once, but in a step of its own, one message at a time.
    lazy: bool,
}

const NOW: Time = Time(1);

impl Real {
    /// `batch_bytes` of 1 puts each packet into a message of its own.
    pub fn new(count: usize, each: usize, lazy: bool, batch_bytes: usize) -> Self {
        let config = Config {
            frame_bytes: FRAME,
            window_bytes: 1 << 20,
            batch_bytes,
        };
        let paths: Vec<_> = (0..count).map(|me| path(&config, me)).collect();
        let notes = notes(&paths);
        let shared = paths.into_iter().map(|path| Shared {
            path: Rc::new(path),
            digest: None,
        });
        let mut real = Self {
            paths: shared.collect(),
            links: BTreeMap::new(),
            ends: BTreeMap::new(),
            breaks: 0,
            to_send: vec![each; count],
            waiting: vec![0; count],
            stirred: vec![false; count],
            lazy: false,
        };
        for me in 0..count {
            real.paths[me]
                .change()
                .install(NOW, &view(1, count, me), &notes);
            let neighbours = [(me + 1) % count, (me + count - 1) % count];
            let peers = &neighbours[..neighbours.len().min(count - 1)];
            for &peer in peers {
                real.begin(me, peer, 1);
            }
        }
        for me in 0..count {
            real.drain(me);
        }
        loop {
            let next = real.arrivals().next();
            let Some((from, at)) = next else {
                break;
            };
            real.arrive(from, at);
        }
        real.lazy = lazy;
        real
    }

    /// The same, where so many times a link breaks.
    pub fn breaking(mut self, breaks: usize) -> Self {
        self.breaks = breaks;
        self
    }

    /// A session begins at one of its ends.
    fn begin(&mut self, me: usize, other: usize, session: u64) {
        self.ends.insert((me, other), session);
        let (peer, session) = (process(other), Session(session));
        let up = Link::Up { peer, session };
        let writable = Link::Writable {
            peer: peer.node,
            session,
            bytes: 1 << 20,
        };
        self.paths[me].change().on_link(NOW, up);
        self.paths[me].change().on_link(NOW, writable);
    }

    /// One end of a link finds out that its session is over. What was on the way to it is lost.
    fn reset(&mut self, me: usize, other: usize) {
        let old = self.ends[&(me, other)];
        if self.ends[&(other, me)] == old {
            self.breaks -= 1;
        }
        if let Some(link) = self.links.get_mut(&(other, me)) {
            link.retain(|&(session, _)| session > old);
        }
        let down = Link::Down {
            peer: process(other).node,
            session: Session(old),
        };
        self.paths[me].change().on_link(NOW, down);
        self.begin(me, other, old + 1);
        self.stir(me);
    }

    /// Which ends may find out now: any, if links may break, or the other end of one that has.
    fn resets(&self) -> impl Iterator<Item = (usize, usize)> {
        self.ends.iter().filter_map(|(&(me, other), session)| {
            let others = self.ends[&(other, me)];
            let may = others > *session || self.breaks > 0 && others == *session;
            may.then_some((me, other))
        })
    }

    /// From whom something can arrive at whom: in sessions that both know of.
    fn arrivals(&self) -> impl Iterator<Item = (usize, usize)> {
        self.links.iter().filter_map(|(&(from, at), link)| {
            let (session, _) = link.front()?;
            (self.ends[&(at, from)] == *session).then_some((from, at))
        })
    }

    /// One message leaves; `false` if there was none.
    fn leave(&mut self, at: usize) -> bool {
        let mut frames = backlog(self.waiting[at]);
        let output = self.paths[at].change().poll_output(NOW, &mut frames);
        self.waiting[at] = frames.len();
        match output {
            Some(Output::LinkSend {
                peer,
                session,
                bytes,
                ..
            }) => {
                let to = usize::from(peer.get()) - 1;
                // Who does not know yet that the session is over sends to nobody.
                if self.ends[&(to, at)] <= session.0 {
                    let link = self.links.entry((at, to)).or_default();
                    link.push_back((session.0, bytes.into_bytes()));
                }
                true
            }
            Some(other) => panic!("{other:?}"),
            None => false,
        }
    }

    fn drain(&mut self, at: usize) {
        while self.leave(at) {}
        self.stirred[at] = false;
    }

    fn stir(&mut self, at: usize) {
        self.stirred[at] = true;
        if !self.lazy {
            self.drain(at);
        }
    }

    fn arrive(&mut self, from: usize, at: usize) {
        let link = self.links.get_mut(&(from, at));
        if let Some((session, bytes)) = link.and_then(VecDeque::pop_front) {
            let (peer, session) = (process(from).node, Session(session));
            let message = Link::Message {
                peer,
                session,
                bytes,
            };
            self.paths[at].change().on_link(NOW, message);
            self.stir(at);
        }
    }
}

impl Machine for Real {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        let steps = (0..self.paths.len()).flat_map(|at| {
            [
                (self.to_send[at] > 0).then_some(Step::Send(at)),
                self.stirred[at].then_some(Step::Leave(at)),
            ]
        });
        let arrivals = self.arrivals().map(|(from, at)| Step::Arrive(from, at));
        let resets = self.resets().map(|(me, other)| Step::Reset(me, other));
        steps.flatten().chain(arrivals).chain(resets).collect()
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Send(at) => {
                self.to_send[at] -= 1;
                self.waiting[at] += 1;
                self.stir(at);
            }
            Step::Arrive(from, at) => self.arrive(from, at),
            Step::Reset(me, other) => self.reset(me, other),
            Step::Leave(at) => self.stirred[at] = self.leave(at),
        }
    }

    fn deliver(&mut self, at: usize) -> Option<PacketId> {
        // Only the process that the last step was taken at can have something.
        self.paths[at].digest.is_none().then_some(())?;
        let packet = self.paths[at].change().poll_packet()?;
        if self.paths[at].path.next_timer().is_some() {
            self.paths[at].change().on_timer(NOW);
            self.stir(at);
        }
        Some(packet.id)
    }

    fn holds(&self, at: usize, id: PacketId) -> bool {
        let ring = view(1, self.paths.len(), at).ring;
        self.paths[at].path.holds(ring, id) == Some(true)
    }

    fn settle(&mut self) {
        for shared in &mut self.paths {
            shared.digest = shared.digest.or_else(|| Some(digest(&shared.path)));
        }
    }

    fn processes(&self) -> usize {
        self.paths.len()
    }

    fn complaints(&self) -> u64 {
        let mut counters = std::collections::BTreeMap::new();
        let of = |path: &Shared| {
            path.path.count(&mut counters);
            [
                "lcr_messages_refused",
                "lcr_packets_duplicate",
                "lcr_messages_stale",
            ]
            .map(|name| counters[name])
            .iter()
            .sum::<u64>()
        };
        self.paths.iter().map(of).sum()
    }
}
