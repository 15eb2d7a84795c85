//! The link to another process: questions go there, and answers and signals come back.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rota_core::bytes::Reader;
use rota_core::contract::{NodeId, Process};
use rota_net::{Hearing, KeyRing, RpcConnection, Saying};

use super::clock::Clock;
use super::desk::Desk;
use super::frame::{Ask, Failed, Health, Tell};
use super::lock;
use super::maps::Maps;
use super::outbox::{Counts, Next, Outbox};
use crate::map::{Map, Partition};

/// The time without a message after which a process counts as gone.
pub(super) const SILENCE: Duration = Duration::from_secs(2);
/// The time after which a message tells that this process is there, if nothing else is sent.
pub(super) const ALIVE: Duration = Duration::from_millis(400);
/// The pause between two tries to connect.
const AGAIN: Duration = Duration::from_millis(200);

/// The answer to a question.
pub(super) type Told = Result<Bytes, Lost>;

/// The reason why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lost {
    /// The other process has answered this.
    Failed(Failed),
    /// There is no connection: the question was not sent.
    Down,
    /// The connection is gone: the command may count or not.
    Gone,
}

type Then = Box<dyn FnOnce(Told) + Send>;

/// The parts of this process that hear of the other one.
pub(super) type Knows = (Arc<Desk>, Arc<Maps>, Arc<Counts>, Arc<Clock>);

/// The other process: its node, its partition and its address.
#[derive(Clone)]
pub(super) struct Other {
    pub(super) node: NodeId,
    pub(super) partition: Partition,
    pub(super) address: SocketAddr,
}

struct Inner {
    other: Other,
    own: (Process, u32),
    keys: Option<KeyRing>,
    desk: Arc<Desk>,
    maps: Arc<Maps>,
    counts: Arc<Counts>,
    clock: Arc<Clock>,
    /// The queue of questions, while there is a connection.
    queue: Mutex<Option<Arc<Outbox<Ask>>>>,
    pending: Mutex<HashMap<u64, Then>>,
    last: AtomicU64,
    /// The health of the other process, as it has told last on this connection.
    health: Mutex<Health>,
    stop: AtomicBool,
}

/// The link to another process. Dropping this ends it.
pub(super) struct Link {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    pub(super) fn open(
        other: Other,
        own: (Process, u32),
        keys: Option<KeyRing>,
        (desk, maps, counts, clock): Knows,
    ) -> std::io::Result<Self> {
        let inner = Arc::new(Inner {
            other,
            own,
            keys,
            desk,
            maps,
            counts,
            clock,
            queue: Mutex::new(None),
            pending: Mutex::new(HashMap::new()),
            last: AtomicU64::new(0),
            health: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let thread = thread::Builder::new().name("rota-kv-link".to_owned());
        let of = Arc::clone(&inner);
        let thread = thread.spawn(move || of.run())?;
        Ok(Self {
            inner,
            thread: Some(thread),
        })
    }

    /// Whether there is a connection.
    pub(super) fn is_up(&self) -> bool {
        lock(&self.inner.queue).is_some()
    }

    /// The health of the other process.
    pub(super) fn health(&self) -> Health {
        *lock(&self.inner.health)
    }

    /// Sends a question, and calls `then` with the answer. The number is for [`Self::give_up`].
    pub(super) fn ask(
        &self,
        ask: impl FnOnce(u64) -> Ask,
        then: impl FnOnce(Told) + Send + 'static,
    ) -> u64 {
        self.inner.ask(ask, then)
    }

    /// Drops the question with this number.
    pub(super) fn give_up(&self, id: u64) {
        let queue = lock(&self.inner.queue);
        let was_asked = lock(&self.inner.pending).remove(&id).is_some();
        if let (true, Some(way)) = (was_asked, &*queue) {
            way.put(Ask::GiveUp(id), 0);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.inner.stop.store(true, SeqCst);
        self.inner.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Inner {
    fn ask(&self, ask: impl FnOnce(u64) -> Ask, then: impl FnOnce(Told) + Send + 'static) -> u64 {
        let id = self.last.fetch_add(1, SeqCst) + 1;
        let queue = lock(&self.queue);
        let Some(way) = &*queue else {
            drop(queue);
            then(Err(Lost::Down));
            return id;
        };
        lock(&self.pending).insert(id, Box::new(then));
        let ask = ask(id);
        let bytes = ask.bytes();
        let is_said = way.ask(ask, bytes);
        drop(queue);
        if !is_said {
            self.answer(id, Err(Lost::Failed(Failed::Busy)));
        }
        id
    }

    /// Asks for the map of the other process: once on each connection, and when it knows of a later epoch.
    fn ask_for_map(&self) {
        let (maps, counts) = (Arc::clone(&self.maps), Arc::clone(&self.counts));
        let node = self.other.node;
        self.ask(Ask::Map, move |told| {
            if let Ok(bytes) = told {
                hear_map((&maps, &counts), node, &bytes);
            }
        });
    }

    /// Ends the connection, if there is one.
    fn close(&self) {
        if let Some(way) = lock(&self.queue).take() {
            way.close();
        }
    }

    fn answer(&self, id: u64, told: Told) {
        let then = lock(&self.pending).remove(&id);
        if let Some(then) = then {
            then(told);
        }
    }

    fn run(self: Arc<Self>) {
        let node = self.other.node;
        while !self.stop.load(SeqCst) {
            let to = (node, self.other.address);
            match RpcConnection::dial(self.own, to, self.keys.as_ref(), SILENCE) {
                Ok(talk) => {
                    tracing::info!(%node, "connected to another process");
                    self.talk(talk);
                    tracing::info!(%node, "the connection to another process is gone");
                }
                Err(error) => tracing::debug!(%node, %error, "no connection to another process"),
            }
            if !self.stop.load(SeqCst) {
                thread::sleep(AGAIN);
            }
        }
    }

    fn talk(self: &Arc<Self>, talk: RpcConnection) {
        let (saying, hearing) = talk.split();
        let queue = Arc::new(Outbox::new(self.other.node, Arc::clone(&self.counts)));
        {
            // A drop of the link takes the queue away after it has set `stop`: the queue must not come after that.
            let mut asks = lock(&self.queue);
            if self.stop.load(SeqCst) {
                return;
            }
            *asks = Some(Arc::clone(&queue));
        }
        self.ask_for_map();
        let of = Arc::clone(self);
        let hears = thread::Builder::new().name("rota-kv-hear".to_owned());
        let hears = hears.spawn(move || of.hear(hearing));
        if let Ok(hears) = hears {
            say(saying, &queue, || Ask::Alive, |ask| vec![ask.encode()]);
            let _ = hears.join();
        }
        self.close();
        *lock(&self.health) = Health::default();
        let pending = std::mem::take(&mut *lock(&self.pending));
        for (_, then) in pending {
            then(Err(Lost::Gone));
        }
    }

    fn hear(&self, mut hearing: Hearing) {
        let mut parts: HashMap<u64, Vec<u8>> = HashMap::new();
        while let Ok(heard) = hearing.hear() {
            match Tell::decode(&heard) {
                Some(Tell::Signal(signal, health)) => {
                    *lock(&self.health) = health;
                    self.clock.hear(self.other.node, health.clock);
                    if self.maps.is_behind(health.epoch) {
                        self.ask_for_map();
                    }
                    let (node, partition) = (self.other.node, self.other.partition);
                    self.desk.on_signal(node, partition, signal);
                }
                Some(Tell::Part(id, part)) if lock(&self.pending).contains_key(&id) => {
                    parts.entry(id).or_default().extend(part);
                }
                Some(Tell::Part(id, _)) => drop(parts.remove(&id)),
                Some(Tell::Answer(id, rest)) => {
                    let answer = match parts.remove(&id) {
                        Some(parts) => [&parts[..], &rest].concat().into(),
                        None => rest,
                    };
                    self.answer(id, Ok(answer));
                }
                Some(Tell::Failed(id, why)) => {
                    parts.remove(&id);
                    self.answer(id, Err(Lost::Failed(why)));
                }
                None => break,
            }
        }
        // The thread that sends has to end, too.
        self.close();
    }
}

/// Takes in the map of another process. One that cannot be read, or that began with other slots than the file here has,
/// is counted, and the log says so.
fn hear_map((maps, counts): (&Maps, &Counts), node: NodeId, bytes: &[u8]) {
    match Map::decode(&mut Reader(bytes)).map(|map| maps.hear(map)) {
        Some(true) => return,
        Some(false) => tracing::error!(
            %node,
            "another process began with other slots of partitions: its file and the one here differ"
        ),
        None => tracing::error!(%node, "the map of slots of another process cannot be read"),
    }
    counts.maps_refused.fetch_add(1, SeqCst);
}

/// Sends messages, and one every [`ALIVE`] that this process is there, until the connection is to end or breaks.
pub(super) fn say<T>(
    mut saying: Saying,
    queue: &Outbox<T>,
    alive: impl Fn() -> T,
    encode: impl Fn(&T) -> Vec<Vec<u8>>,
) {
    let mut due = Instant::now() + ALIVE;
    loop {
        let next = match Instant::now() < due {
            true => queue.next(due),
            false => Next::Nothing,
        };
        let what = match next {
            Next::Message(what) => what,
            Next::Nothing => {
                due = Instant::now() + ALIVE;
                alive()
            }
            Next::Closed => return,
        };
        if !encode(&what).iter().all(|part| saying.say(part).is_ok()) {
            return queue.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::Incarnation;
    use std::net::TcpListener;

    #[test]
    fn a_map_that_is_not_taken_is_counted() {
        let all = [1, 2].map(Partition);
        let maps = Maps::new(Map::even(&all).expect("two"));
        let counts = Counts::default();
        let hear = |map: &Map, cut: usize| {
            let mut bytes = Vec::new();
            map.encode(&mut bytes);
            let node = NodeId::new(2).expect("not 0");
            hear_map((&maps, &counts), node, &bytes[..bytes.len() - cut]);
            counts.maps_refused.load(SeqCst)
        };
        assert_eq!(hear(&maps.own(), 0), 0, "it is that of this store");
        assert_eq!(hear(&maps.own(), 1), 1, "it cannot be read");
        let other = Map::of_ranges(&all, &[(all[0], 0, 99), (all[1], 100, 16_383)]);
        assert_eq!(hear(&other.expect("a map"), 0), 2, "it began otherwise");
    }

    /// A link that had just connected did not end: its queue was taken away before it was there.
    #[test]
    fn a_link_ends_whenever_it_is_told_to() {
        let process = |number| Process {
            node: NodeId::new(number).expect("not 0"),
            incarnation: Incarnation(1),
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("a port");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let talk = RpcConnection::accept(stream, (process(2), 7), |_| true, None, SILENCE);
                if let Ok(talk) = talk {
                    // The other end is alive, and says so for as long as the link does.
                    let (saying, mut hearing) = talk.split();
                    let queue = Arc::new(Outbox::new(process(1).node, Arc::default()));
                    let ends = Arc::clone(&queue);
                    let idle = || Tell::Failed(0, Failed::Busy);
                    thread::spawn(move || say(saying, &queue, idle, |tell| vec![tell.encode()]));
                    thread::spawn(move || {
                        while hearing.hear().is_ok() {}
                        ends.close();
                    });
                }
            }
        });
        let map = Map::even(&[1, 2].map(Partition)).expect("two");
        let maps = Arc::new(Maps::new(map));
        let desk = Arc::new(Desk::new(Partition(1), SILENCE));
        for round in 0..200 {
            let other = Other {
                node: NodeId::new(2).expect("not 0"),
                partition: Partition(2),
                address,
            };
            let link = Link::open(
                other,
                (process(1), 7),
                None,
                (
                    Arc::clone(&desk),
                    Arc::clone(&maps),
                    Arc::default(),
                    Arc::new(Clock::new(true)),
                ),
            );
            let link = link.expect("a thread");
            thread::sleep(Duration::from_micros(round % 20 * 50));
            let (ended, ends) = std::sync::mpsc::channel();
            thread::spawn(move || {
                drop(link);
                let _ = ended.send(());
            });
            let patience = Duration::from_secs(30);
            assert!(ends.recv_timeout(patience).is_ok(), "round {round}");
        }
    }
}
