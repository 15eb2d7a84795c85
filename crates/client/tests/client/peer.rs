//! A scripted daemon: the test decides every step.

use std::io::{IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use rota_client::protocol::{Hello, Inbox, Reply, Request, Send, Welcome, request_limit};
use rota_client::{Cause, Client, Message, Service, View};
use rota_core::contract::{Incarnation, NodeId, RingId};
use rota_core::groups::{GroupName, ViewId};
use rota_memory::Writer;
use tempfile::TempDir;

/// Nothing in these tests takes longer, unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const CREDIT: u32 = 1000;
pub const LARGEST: u32 = 5000;

/// A socket where a scripted daemon listens.
pub struct House {
    directory: TempDir,
}

impl House {
    pub fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        Self { directory }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("rota.sock")
    }

    /// Runs a script for the next connections.
    pub fn play(&self, script: impl FnOnce(&UnixListener) + std::marker::Send + 'static) -> Peer {
        let _ = std::fs::remove_file(self.path());
        let listener = UnixListener::bind(self.path()).expect("a free path");
        Peer(Some(thread::spawn(move || script(&listener))))
    }

    /// Runs a script for one client that is let in.
    pub fn host(&self, script: impl FnOnce(&mut Connection) + std::marker::Send + 'static) -> Peer {
        self.play(move |listener| script(&mut Connection::welcomed(listener)))
    }

    /// Lets a client in, says nothing more, and reads nothing, until it is told.
    pub fn host_half(&self, until: Receiver<()>) -> Peer {
        self.play(move |listener| {
            let mut connection = Connection::accept(listener);
            connection.hello();
            connection.tell(&[welcome(u32::MAX)]);
            connection.fall_silent();
            let _ = until.recv();
        })
    }

    pub fn client(&self) -> Client {
        Client::connect(self.path()).expect("it is let in")
    }
}

/// The thread of a script: its failures are the test's.
pub struct Peer(Option<JoinHandle<()>>);

impl Peer {
    pub fn end(mut self) {
        let thread = self.0.take().expect("it ends once");
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// One client, seen from the daemon.
pub struct Connection {
    stream: Stream,
    inbox: Inbox<Request>,
    /// Bytes of one read at most.
    pub sip: usize,
}

impl Connection {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            inbox: Inbox::new(request_limit(LARGEST as usize)),
            sip: 64 << 10,
        }
    }

    pub fn accept(listener: &UnixListener) -> Self {
        let (stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        Self::new(Stream::Unix(stream))
    }

    pub fn accept_tcp(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        Self::new(Stream::Tcp(stream))
    }

    pub fn welcomed(listener: &UnixListener) -> Self {
        let mut connection = Self::accept(listener);
        connection.welcome();
        connection
    }

    pub fn hello(&mut self) -> Hello {
        match self.next() {
            Some(Request::Hello(hello)) => hello,
            other => panic!("{other:?} is no hello"),
        }
    }

    pub fn welcome(&mut self) -> Hello {
        let hello = self.hello();
        self.tell(&[welcome(CREDIT)]);
        hello
    }

    fn read(&mut self) -> usize {
        let mut buffer = vec![0; self.sip];
        let read = match &mut self.stream {
            Stream::Unix(stream) => stream.read(&mut buffer),
            Stream::Tcp(stream) => stream.read(&mut buffer),
        };
        let bytes = read.expect("the client says something in time");
        self.inbox.feed(&buffer[..bytes]);
        bytes
    }

    /// The client's next request; `None` at the end of its stream.
    pub fn next(&mut self) -> Option<Request> {
        loop {
            match self.inbox.pull() {
                Ok(Some(request)) => return Some(request),
                Ok(None) if self.read() > 0 => {}
                Ok(None) => return None,
                Err(error) => panic!("not a request: {error}"),
            }
        }
    }

    pub fn next_send(&mut self) -> Send {
        match self.next() {
            Some(Request::Send(send)) => send,
            other => panic!("{other:?} is no message"),
        }
    }

    /// The number of the client's next request, which is one that has a number.
    pub fn next_number(&mut self) -> u32 {
        match self.next() {
            Some(
                Request::Join { request, .. }
                | Request::Leave { request, .. }
                | Request::List { request, .. },
            ) => request,
            other => panic!("{other:?} has no number"),
        }
    }

    /// Requests that have come with the next bytes, in one read.
    pub fn next_batch(&mut self) -> Vec<Request> {
        let mut batch = vec![self.next().expect("a request")];
        while let Some(request) = self.inbox.pull().expect("requests") {
            batch.push(request);
        }
        batch
    }

    /// Answers a join or leave of this group.
    pub fn expect_join(&mut self, expected: &str) {
        match self.next() {
            Some(Request::Join { request, group }) if group.as_str() == expected => {
                self.tell(&[Reply::Done { request }]);
            }
            other => panic!("{other:?} is no join of {expected}"),
        }
    }

    pub fn tell(&mut self, replies: &[Reply]) {
        let mut bytes = Vec::new();
        for reply in replies {
            reply.encode(&mut bytes).expect("it fits");
        }
        self.tell_bytes(&bytes);
    }

    pub fn tell_bytes(&mut self, bytes: &[u8]) {
        match &mut self.stream {
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tcp(stream) => stream.write_all(bytes),
        }
        .expect("the client listens");
    }

    /// Lets the client in; what it is told from then on goes through memory of this many bytes.
    pub fn welcome_to_memory(&mut self, bytes: u32) -> Writer {
        self.hello();
        let (writer, descriptor) = Writer::new(bytes as usize).expect("memory");
        let Reply::Welcome(mut plain) = welcome(CREDIT) else {
            panic!("it is one");
        };
        plain.memory = bytes;
        let mut welcome = Vec::new();
        let encoded = Reply::Welcome(plain).encode(&mut welcome);
        encoded.expect("it fits");
        let sent = rota_memory::send(self.unix(), &welcome, descriptor.as_fd());
        assert_eq!(sent.expect("the client listens"), welcome.len());
        writer
    }

    /// Tells all this with one record, so that whoever finds any of it finds all.
    pub fn tell_at_once(&mut self, writer: &mut Writer, replies: &[Reply]) {
        let mut bytes = Vec::new();
        for reply in replies {
            reply.encode(&mut bytes).expect("it fits");
        }
        let written = writer.write(&mut self.unix(), &[IoSlice::new(&bytes)]);
        assert_eq!(written.expect("the client listens"), bytes.len());
    }

    fn unix(&self) -> &UnixStream {
        match &self.stream {
            Stream::Unix(stream) => stream,
            Stream::Tcp(_) => panic!("only on this host"),
        }
    }

    /// Says nothing more, and does not go.
    pub fn fall_silent(&self) {
        match &self.stream {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
        }
        .expect("it is connected");
    }

    /// Says the same again and again until the client has gone.
    pub fn flood(&mut self, reply: &Reply) {
        let mut bytes = Vec::new();
        while bytes.len() < 64 << 10 {
            reply.encode(&mut bytes).expect("it fits");
        }
        let mut stream = self.unix();
        while stream.write_all(&bytes).is_ok() {}
    }

    /// Reads nothing more, so that no write of the client succeeds.
    pub fn stop_reading(&self) {
        let stopped = self.unix().shutdown(Shutdown::Read);
        stopped.expect("it is connected");
    }

    /// Waits until the client has gone.
    pub fn until_gone(&mut self) {
        while self.next().is_some() {}
    }
}

pub fn welcome(credit: u32) -> Reply {
    Reply::Welcome(Welcome {
        version: 1,
        name: "#alice#n1".parse().expect("legal"),
        credit,
        largest_payload: LARGEST,
        memory: 0,
    })
}

pub fn message(payload: &[u8]) -> Reply {
    Reply::Message(Message {
        sender: "#bob#n2".parse().expect("legal"),
        service: Service::Agreed,
        self_discard: false,
        kind: 0,
        to: ["orders".parse().expect("legal")].into(),
        payload: Bytes::copy_from_slice(payload),
    })
}

pub fn view(members: &[&str]) -> Reply {
    let members: Vec<_> = members
        .iter()
        .map(|name| name.parse().expect("legal"))
        .collect();
    Reply::View(Box::new(View {
        group: GroupName::new("orders").expect("legal"),
        id: ViewId {
            ring: RingId {
                ring_seq: 4,
                rep: NodeId::new(1).expect("not 0"),
                incarnation: Incarnation(5),
            },
            next: None,
            index: 1,
        },
        cause: Cause::Join(members[0]),
        members,
        own: 0,
    }))
}
