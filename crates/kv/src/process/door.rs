//! The listener for the other processes: they have messages ordered and answered here, and hear the signals of the
//! replica.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use rota_core::contract::{NodeId, Process};
use rota_multiring::Rank;
use rota_net::{Hearing, KeyRing, Landing, RpcConnection};
use rota_replica::{CallError, Orders};
use tokio::time::Instant;

use super::desk::{Desk, Listening};
use super::frame::{Ask, Failed, Health, Tell};
use super::link::{SILENCE, say};
use super::lock;
use super::maps::Maps;
use super::outbox::{Counts, Outbox};
use super::{Item, Lane, Said, Teller};
use crate::map::{Partition, Partitions};
use crate::outlook::Signal;
use crate::store::{Answered, Store};
use rota_replica::Ready;

/// The bytes that may wait for a process, at most, while more of its questions are taken.
const MOST_WAITING: usize = 32 << 20;
/// The bytes of a part of an answer.
const PART_BYTES: usize = 1 << 20;
/// The number of connections, at most: several of each process while old ones end.
const MOST_GUESTS: usize = 256;

/// The parts that serve the other processes.
pub(super) struct Room {
    pub(super) own: (Process, u32),
    pub(super) keys: Option<KeyRing>,
    /// The nodes that may connect.
    pub(super) others: BTreeSet<NodeId>,
    pub(super) orders: Orders<Store>,
    /// The ring of the own partition.
    pub(super) ring: Rank,
    /// The ring of all.
    pub(super) global: Rank,
    pub(super) desk: Arc<Desk>,
    pub(super) maps: Arc<Maps>,
    pub(super) ready: Arc<Ready<Store>>,
    pub(super) is_full: Arc<AtomicBool>,
    /// The queue of batches that only read.
    pub(super) looks: Arc<Lane>,
    pub(super) partition: Partition,
    pub(super) patience: Duration,
    pub(super) counts: Arc<Counts>,
}

/// Serves the other processes at an address, until the returned value is dropped.
pub(super) fn open(address: SocketAddr, room: Room) -> io::Result<Landing> {
    let (room, of) = (Arc::new(room), ("rota-kv-guest", MOST_GUESTS));
    Landing::open(address, of, move |stream| room.serve(stream))
}

impl Room {
    fn serve(self: &Arc<Self>, stream: TcpStream) -> io::Result<()> {
        let may = |node: NodeId| self.others.contains(&node);
        let talk = RpcConnection::accept(stream, self.own, may, self.keys.as_ref(), SILENCE)?;
        let other = talk.peer().node;
        let (saying, hearing) = talk.split();
        let way = Arc::new(Outbox::new(other, Arc::clone(&self.counts)));
        let news = Arc::new(News::default());
        let listening = self.listen(&way, &news);
        let room = Arc::clone(self);
        let encode = move |out: &Out| match out {
            Out::Tell(tell) => vec![tell.encode()],
            Out::Answer(id, answer) => in_parts(*id, answer.clone()),
            Out::News => vec![room.signal(&news).encode()],
        };
        let (says, queue) = (thread::Builder::new(), Arc::clone(&way));
        let says = says.name("rota-kv-tell".to_owned());
        let says = says.spawn(move || say(saying, &queue, || Out::News, encode))?;
        let heard = self.hear(hearing, &way);
        drop(listening);
        way.close();
        let _ = says.join();
        heard
    }

    /// Has one message tell the newest signal, for all changes since the last one.
    fn listen(&self, way: &Way, news: &Arc<News>) -> Listening {
        let (way, news) = (Arc::clone(way), Arc::clone(news));
        self.desk.listen(Box::new(move |signal| {
            *lock(&news.signal) = signal;
            if !news.is_due.swap(true, SeqCst) {
                way.say(Out::News);
            }
        }))
    }

    fn signal(&self, news: &News) -> Tell {
        news.is_due.store(false, SeqCst);
        let health = Health {
            is_full: self.is_full.load(SeqCst),
            is_open: self.ready.is_open(),
            epoch: self.maps.own().epoch(),
            clock: rota_front::now(),
        };
        Tell::Signal(*lock(&news.signal), health)
    }

    fn look(&self, id: u64, pack: Bytes, way: &Way) {
        if !self.orders.is_open() {
            way.say(Out::Tell(Tell::Failed(id, Failed::Busy)));
            return;
        }
        let way = Arc::clone(way);
        self.looks.push(Item {
            bytes: pack,
            answer_bytes: 0,
            to: Partitions::from([self.partition]),
            until: Instant::now() + self.patience,
            tell: Teller::There(Box::new(move |said| looked(id, said, &way))),
        });
    }

    /// Has a message ordered, and answers it.
    fn give(
        &self,
        id: u64,
        (ring, of, command): (Rank, (u64, u64), &[u8]),
        (waits, way): (&Waits, &Way),
    ) {
        waits.wait(id, of, (way, &self.desk));
        if let Err(error) = self.orders.give(ring, of, command) {
            waits.give_up(id);
            way.say(Out::Tell(Tell::Failed(id, error.into())));
        }
    }

    fn hear(&self, mut hearing: Hearing, way: &Way) -> io::Result<()> {
        let waits = Waits {
            orders: self.orders.clone(),
            names: Arc::default(),
        };
        loop {
            if !way.has_room(MOST_WAITING) {
                return Ok(());
            }
            match Ask::decode(&hearing.hear()?) {
                Some(Ask::Alive) => {}
                Some(Ask::Give(id, of, command)) => {
                    self.give(id, (self.ring, of, &command), (&waits, way));
                }
                Some(Ask::GiveToAll(id, of, command)) => {
                    self.give(id, (self.global, of, &command), (&waits, way));
                }
                Some(Ask::Look(id, pack)) => self.look(id, pack, way),
                Some(Ask::GiveUp(id)) => waits.give_up(id),
                Some(Ask::Map(id)) => {
                    let mut map = Vec::new();
                    self.maps.own().encode(&mut map);
                    way.say(Out::Answer(id, map.into()));
                }
                Some(Ask::Await(id, of)) => waits.wait(id, of, (way, &self.desk)),
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }
}

/// Answers batches of another process that only read.
fn looked(id: u64, said: Said, way: &Way) {
    match said {
        Ok(answers) => {
            let behind = None;
            let answer = Answered { behind, answers }.encode();
            way.say(Out::Answer(id, answer.into()));
        }
        Err(_) => way.say(Out::Tell(Tell::Failed(id, Failed::Busy))),
    }
}

/// A message to the other process.
enum Out {
    Tell(Tell),
    /// An answer, in parts.
    Answer(u64, Bytes),
    /// The signal of the replica, as it is by then.
    News,
}

/// The messages that wait for the other process.
type Way = Arc<Outbox<Out>>;

impl Outbox<Out> {
    /// Adds a message, unless the connection is to end: then the other process asks others, or knows that the command
    /// may count.
    fn say(&self, out: Out) {
        let bytes = match &out {
            Out::Answer(_, answer) => answer.len(),
            Out::Tell(_) | Out::News => 0,
        };
        self.put(out, bytes);
    }
}

/// The newest signal of the replica.
#[derive(Default)]
struct News {
    signal: Mutex<Signal>,
    /// The signal is among the messages that wait.
    is_due: AtomicBool,
}

/// The names of waiters, by the number of the question.
type Names = HashMap<u64, ((u64, u64), u64)>;

/// The waiters of one connection. They are removed when it ends.
struct Waits {
    orders: Orders<Store>,
    names: Arc<Mutex<Names>>,
}

impl Waits {
    fn wait(&self, id: u64, of: (u64, u64), (way, desk): (&Way, &Arc<Desk>)) {
        let (way, desk, names) = (Arc::clone(way), Arc::clone(desk), Arc::clone(&self.names));
        let (back, is_answered) = (Arc::clone(&way), Arc::new(AtomicBool::new(false)));
        let answered = Arc::clone(&is_answered);
        let then = move |answer: Result<Vec<u8>, CallError>| {
            answered.store(true, SeqCst);
            lock(&names).remove(&id);
            tell(id, answer, way, &desk);
        };
        let Some(name) = self.orders.wait_for(of, then) else {
            back.say(Out::Tell(Tell::Failed(id, Failed::Stopped)));
            return;
        };
        let mut names = lock(&self.names);
        // The answer may have come before the name is known.
        if !is_answered.load(SeqCst) {
            names.insert(id, (of, name));
        }
    }

    fn give_up(&self, id: u64) {
        let name = lock(&self.names).remove(&id);
        if let Some((of, name)) = name {
            self.orders.give_up(of, name);
        }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let names = std::mem::take(&mut *lock(&self.names));
        for (of, name) in names.into_values() {
            self.orders.give_up(of, name);
        }
    }
}

fn tell(id: u64, answer: Result<Vec<u8>, CallError>, way: Way, desk: &Desk) {
    let told = answer.map_err(Failed::from).and_then(|answer| {
        let answered = Answered::decode(&answer).ok_or(Failed::Stopped)?;
        Ok((answered.behind, Bytes::from(answer)))
    });
    match told {
        Ok((behind, answer)) => {
            desk.tell_when(behind, move || way.say(Out::Answer(id, answer)));
        }
        Err(why) => way.say(Out::Tell(Tell::Failed(id, why))),
    }
}

fn in_parts(id: u64, mut answer: Bytes) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    while answer.len() > PART_BYTES {
        parts.push(Tell::Part(id, answer.split_to(PART_BYTES)).encode());
    }
    parts.push(Tell::Answer(id, answer).encode());
    parts
}
