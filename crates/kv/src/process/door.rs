//! Where the other processes connect: they ask for what is ordered and answered here, and are told how far the replica is.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use rota_core::contract::{NodeId, Process};
use rota_multiring::Rank;
use rota_net::{Hearing, KeyRing, Talk};
use rota_replica::{CallError, Orders};

use super::desk::Desk;
use super::frame::{Ask, Failed, Tell};
use super::link::{SILENCE, say};
use super::lock;
use crate::outlook::Signal;
use crate::store::{Answered, Store};

/// How often it is looked whether somebody comes.
const LOOK: Duration = Duration::from_millis(20);
/// So much may wait to be told to a process.
const MOST_QUEUED: usize = 65_536;
/// So many connections at most: several of each process while old ones end.
const MOST_GUESTS: usize = 256;

/// What is served.
pub(super) struct Room {
    pub(super) own: (Process, u32),
    pub(super) keys: Option<KeyRing>,
    /// Who may come.
    pub(super) others: BTreeSet<NodeId>,
    pub(super) orders: Orders<Store>,
    /// The ring of the own partition.
    pub(super) ring: Rank,
    pub(super) desk: Arc<Desk>,
    pub(super) is_full: Arc<AtomicBool>,
    pub(super) stop: AtomicBool,
}

/// See the module's page. Dropping it ends it.
pub(super) struct Door {
    room: Arc<Room>,
    guests: Arc<Mutex<HashMap<u64, TcpStream>>>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    pub(super) fn open(address: SocketAddr, room: Room) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let (room, guests) = (Arc::new(room), Arc::default());
        let thread = thread::Builder::new().name("rota-kv-door".to_owned());
        let (of, connections) = (Arc::clone(&room), Arc::clone(&guests));
        let thread = thread.spawn(move || of.wait(&listener, &connections))?;
        Ok(Self {
            room,
            guests,
            thread: Some(thread),
        })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.room.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for guest in lock(&self.guests).values() {
            // It ends the threads of that connection.
            let _ = guest.shutdown(Shutdown::Both);
        }
    }
}

impl Room {
    fn wait(
        self: &Arc<Self>,
        listener: &TcpListener,
        guests: &Arc<Mutex<HashMap<u64, TcpStream>>>,
    ) {
        for number in 0.. {
            let stream = loop {
                if self.stop.load(SeqCst) {
                    return;
                }
                match listener.accept() {
                    Ok((stream, _)) => break stream,
                    Err(_) => thread::sleep(LOOK),
                }
            };
            let is_room = lock(guests).len() < MOST_GUESTS;
            let Some(copy) = stream.try_clone().ok().filter(|_| is_room) else {
                continue;
            };
            lock(guests).insert(number, copy);
            let (room, of) = (Arc::clone(self), Arc::clone(guests));
            let thread = thread::Builder::new().name("rota-kv-guest".to_owned());
            let serve = move || {
                if let Err(error) = room.serve(stream) {
                    tracing::debug!(%error, "another process is served no more");
                }
                lock(&of).remove(&number);
            };
            if thread.spawn(serve).is_err() {
                lock(guests).remove(&number);
            }
        }
    }

    fn serve(self: &Arc<Self>, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        let may = |node: NodeId| self.others.contains(&node);
        let talk = Talk::accept(stream, self.own, may, self.keys.as_ref(), SILENCE)?;
        let (saying, hearing) = talk.split();
        let (way, queue) = mpsc::sync_channel(MOST_QUEUED);
        let last = Arc::new(Mutex::new(Signal::default()));
        self.listen(&way, &last);
        let room = Arc::clone(self);
        let idle = move || Tell::Signal(*lock(&last), room.is_full.load(SeqCst));
        let says = thread::Builder::new().name("rota-kv-tell".to_owned());
        let says = says.spawn(move || say(saying, &queue, idle, Tell::encode))?;
        let heard = self.hear(hearing, &way);
        drop(way);
        let _ = says.join();
        heard
    }

    /// Each change of how far the replica is, is told; what does not fit is told with the next, or when there is nothing else to be told.
    fn listen(self: &Arc<Self>, way: &SyncSender<Tell>, last: &Arc<Mutex<Signal>>) {
        let (way, last, room) = (way.clone(), Arc::downgrade(last), Arc::clone(self));
        self.desk.listen(Box::new(move |signal| {
            let Some(last) = last.upgrade() else {
                return false;
            };
            *lock(&last) = signal;
            let tell = Tell::Signal(signal, room.is_full.load(SeqCst));
            !matches!(way.try_send(tell), Err(TrySendError::Disconnected(_)))
        }));
    }

    fn hear(self: &Arc<Self>, mut hearing: Hearing, way: &SyncSender<Tell>) -> io::Result<()> {
        let waits = Waits {
            orders: self.orders.clone(),
            names: Arc::default(),
        };
        loop {
            match Ask::decode(&hearing.hear()?) {
                Some(Ask::Alive) => {}
                Some(Ask::Give(id, of, command)) => {
                    waits.wait(id, of, (way, &self.desk));
                    if let Err(error) = self.orders.give(self.ring, of, &command) {
                        waits.give_up(id);
                        let _ = way.try_send(Tell::Failed(id, error.into()));
                    }
                }
                Some(Ask::Await(id, of)) => waits.wait(id, of, (way, &self.desk)),
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }
}

/// Whoever waits, under which name: by the number of what was asked.
type Names = HashMap<u64, ((u64, u64), u64)>;

/// What one connection waits for. When that ends nobody does any more.
struct Waits {
    orders: Orders<Store>,
    names: Arc<Mutex<Names>>,
}

impl Waits {
    fn wait(&self, id: u64, of: (u64, u64), (way, desk): (&SyncSender<Tell>, &Arc<Desk>)) {
        let (way, desk, names) = (way.clone(), Arc::clone(desk), Arc::clone(&self.names));
        let back = way.clone();
        let then = move |answer: Result<Vec<u8>, CallError>| {
            lock(&names).remove(&id);
            tell(id, answer, way, &desk);
        };
        // It may be answered before its name is known; then the name stays until the connection ends, and names nobody.
        match self.orders.wait_for(of, then) {
            Some(name) => drop(lock(&self.names).insert(id, (of, name))),
            None => drop(back.try_send(Tell::Failed(id, Failed::Stopped))),
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

fn tell(id: u64, answer: Result<Vec<u8>, CallError>, way: SyncSender<Tell>, desk: &Desk) {
    let told = answer.map_err(Failed::from).and_then(|answer| {
        let answered = Answered::decode(&answer).ok_or(Failed::Stopped)?;
        Ok((answered.behind, answer))
    });
    match told {
        Ok((behind, answer)) => {
            let tell = Tell::Answer(id, Bytes::from(answer));
            desk.tell_when(behind, move || drop(way.try_send(tell)));
        }
        Err(why) => drop(way.try_send(Tell::Failed(id, why))),
    }
}
