//! The end of what may come while groups are joined again.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use rota_core::contract::Service;
use tempfile::TempDir;

use crate::protocol::{Inbox, Message, Reply, Request, Welcome, request_limit};
use crate::{AsyncReconnecting, Backoff, Builder, Event, Reconnecting};

/// Nothing takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A scripted daemon's side of one connection.
struct Connection {
    stream: UnixStream,
    inbox: Inbox<Request>,
}

impl Connection {
    fn welcomed(listener: &UnixListener) -> Self {
        let (stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        let mut connection = Self {
            stream,
            inbox: Inbox::new(request_limit(0)),
        };
        connection.next().expect("a hello");
        connection.tell(&Reply::Welcome(Welcome {
            version: 1,
            name: "#alice#n1".parse().expect("legal"),
            credit: 1000,
            largest_payload: 1000,
            memory: 0,
        }));
        connection
    }

    /// The next request, or the end.
    fn next(&mut self) -> Option<Request> {
        loop {
            if let Some(request) = self.inbox.pull().expect("requests") {
                return Some(request);
            }
            let mut buffer = [0; 1024];
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(bytes) => self.inbox.feed(&buffer[..bytes]),
            }
        }
    }

    fn tell(&mut self, reply: &Reply) {
        let mut bytes = Vec::new();
        reply.encode(&mut bytes).expect("it fits");
        // The client may have gone.
        let _ = self.stream.write_all(&bytes);
    }

    /// Answers a join, behind this number of messages.
    fn join(&mut self, messages: usize) {
        let Some(Request::Join { request, .. }) = self.next() else {
            panic!("no join");
        };
        for _ in 0..messages {
            self.tell(&Reply::Message(Message {
                sender: "#bob#n2".parse().expect("legal"),
                service: Service::Agreed,
                self_discard: false,
                kind: 0,
                to: ["orders".parse().expect("legal")].into(),
                payload: Bytes::from_static(&[1; 1000]),
            }));
        }
        self.tell(&Reply::Done { request });
    }
}

/// Loses its client, says too much to it before the join of its second connection is done, and nothing before that of the
/// third.
fn play(path: &Path) {
    let listener = UnixListener::bind(path).expect("a free path");
    thread::spawn(move || {
        Connection::welcomed(&listener).join(0);
        let mut second = Connection::welcomed(&listener);
        second.join(300);
        while second.next().is_some() {}
        let mut third = Connection::welcomed(&listener);
        third.join(0);
        while third.next().is_some() {}
    });
}

fn builder() -> Builder {
    let mut builder = Builder::new().unread_bytes(1000);
    builder.early_bytes = 5000;
    builder
}

const HASTY: Backoff = Backoff {
    first: Duration::from_millis(2),
    longest: Duration::from_millis(20),
};

#[test]
fn too_much_before_the_gap_ends_the_attempt() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("s");
    play(&path);
    let mut client = Reconnecting::connect(path, builder(), HASTY).expect("let in");
    client.join("orders").expect("done");
    let gap = client.recv_timeout(PATIENCE).expect("it may pass");
    assert!(matches!(gap, Some(Event::Reconnected(_))), "{gap:?}");
    let next = client.recv_timeout(Duration::from_millis(20));
    assert!(matches!(next, Ok(None)), "{next:?}");
}

#[tokio::test]
async fn too_much_before_the_gap_ends_the_attempt_of_a_task() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("s");
    play(&path);
    let client = AsyncReconnecting::connect(path, builder(), HASTY).await;
    let mut client = client.expect("let in");
    client.join("orders").await.expect("done");
    let gap = tokio::time::timeout(PATIENCE, client.recv()).await;
    assert!(matches!(gap, Ok(Ok(Event::Reconnected(_)))), "{gap:?}");
    let next = tokio::time::timeout(Duration::from_millis(20), client.recv()).await;
    assert!(next.is_err(), "{next:?}");
}
