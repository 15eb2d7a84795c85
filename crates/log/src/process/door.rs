//! Where the other processes get entries that they do not have.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rota_core::contract::{NodeId, Process};
use rota_net::{KeyRing, Talk};
use rota_storage::acceptor::FileDir;

use super::lock;
use super::source::{Ask, MOST_BYTES, Told};
use crate::machine::Position;
use crate::replicated::View;
use crate::store::{ReadError, Store};

/// How often it is looked whether somebody comes.
const LOOK: Duration = Duration::from_millis(20);
/// So many connections at most.
const MOST_GUESTS: usize = 64;
/// Whoever asks for nothing for so long has to come again.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is served.
pub(super) struct Room {
    pub(super) own: (Process, u32),
    pub(super) keys: Option<KeyRing>,
    /// Who may come.
    pub(super) others: BTreeSet<NodeId>,
    pub(super) store: Arc<Store<FileDir>>,
    /// The rings of this process.
    pub(super) rings: Vec<u16>,
    /// The logs, once the replica has begun.
    pub(super) view: View,
    pub(super) stop: AtomicBool,
}

type Guests = Arc<Mutex<HashMap<u64, TcpStream>>>;

/// See the module's page. Dropping it ends it.
pub(super) struct Door {
    room: Arc<Room>,
    guests: Guests,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    pub(super) fn open(address: SocketAddr, room: Room) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let (room, guests) = (Arc::new(room), Guests::default());
        let thread = thread::Builder::new().name("rota-log-door".to_owned());
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
            // It ends the thread of that connection.
            let _ = guest.shutdown(Shutdown::Both);
        }
    }
}

impl Room {
    fn wait(self: &Arc<Self>, listener: &TcpListener, guests: &Guests) {
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
            let serve = move || {
                if let Err(error) = room.serve(stream) {
                    tracing::debug!(%error, "another process is served no more");
                }
                lock(&of).remove(&number);
            };
            let thread = thread::Builder::new().name("rota-log-guest".to_owned());
            if thread.spawn(serve).is_err() {
                lock(guests).remove(&number);
            }
        }
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        let may = |node: NodeId| self.others.contains(&node);
        let mut talk = Talk::accept(stream, self.own, may, self.keys.as_ref(), PATIENCE)?;
        loop {
            let ask = Ask::decode(&talk.hear()?);
            let ask = ask.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
            talk.say(&self.told(&ask).encode())?;
        }
    }

    fn told(&self, ask: &Ask) -> Told {
        if *ask == Ask::CONFIGURATION {
            return Told::Configuration(self.rings.clone());
        }
        let most = ask.most.min(MOST_BYTES) as usize;
        match self.store.read(ask.log, ask.from, ask.to, most) {
            Ok(run) => Told::Run(run.into_bytes()),
            Err(ReadError::Trimmed { first }) => Told::Trimmed(first),
            // What was deleted is forgotten by the store after some states.
            Err(_) if self.view.look(|logs| logs.is_gone(ask.log)) => Told::Trimmed(Position::MAX),
            Err(_) => Told::Nothing,
        }
    }
}
