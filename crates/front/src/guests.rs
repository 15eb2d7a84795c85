//! The listeners for clients of Redis' protocol, and their counters.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rota_net::Complaints;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};

use crate::access::Users;
use crate::lock;
use crate::{Held, Roster, Sealer, Stream};

/// The time without requests after which the system probes whether a client's host is there.
const IDLE: Duration = Duration::from_secs(60);
/// The pause of a listener after an error.
const PAUSE: Duration = Duration::from_millis(20);

/// Counters since the process started.
#[derive(Debug, Default)]
pub struct Counted {
    /// Clients that are connected.
    pub clients: AtomicU64,
    /// Connections until now; the count is the number of the newest one.
    pub connections: AtomicU64,
    /// Commands that were read.
    pub commands: AtomicU64,
    /// Clients that were refused because there were too many.
    pub refused: AtomicU64,
    /// Requests that could not be read.
    pub protocol_errors: AtomicU64,
    /// Failed handshakes and logins, and clients that did not prove in time who they are.
    pub not_let_in: AtomicU64,
}

/// The state that all clients of a process share.
pub struct Guests {
    /// The users that may come.
    pub users: Roster,
    /// The certificates; none: clients speak no TLS.
    pub sealer: Option<Sealer>,
    /// The memory that is kept for clients.
    pub held: Held,
    /// The number of clients that may be connected.
    pub most_clients: u64,
    /// The start of the process.
    pub began: Instant,
    /// The counters.
    pub counted: Counted,
    complaints: Mutex<Complaints>,
}

impl Guests {
    /// The state of a process that begins.
    pub fn new(users: Users, sealer: Option<Sealer>, most_clients: u64) -> Self {
        Self {
            users: Roster::new(users),
            sealer,
            held: Held::default(),
            most_clients,
            began: Instant::now(),
            counted: Counted::default(),
            complaints: Mutex::default(),
        }
    }

    /// Counts a client that is not let in, and logs why.
    pub fn turn_away(&self, who: SocketAddr, what: &dyn Display) {
        self.counted.not_let_in.fetch_add(1, SeqCst);
        self.complain("a client is not let in", &who, what);
    }

    fn complain(&self, reason: &'static str, who: &dyn Display, what: &dyn Display) {
        lock(&self.complaints).say(reason, who, what);
    }

    /// Has a task of this thread serve each client that comes, for ever. `serve` gets the connection, the address of
    /// the client, and its number.
    pub async fn accept<F: Future<Output = io::Result<()>> + 'static>(
        self: Arc<Self>,
        listener: TcpListener,
        serve: impl Fn(Stream, SocketAddr, u64) -> F + 'static,
    ) {
        let serve = Rc::new(serve);
        loop {
            let (stream, who) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.complain("a client cannot be accepted", &"", &error);
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            if self.counted.clients.load(SeqCst) >= self.most_clients {
                self.counted.refused.fetch_add(1, SeqCst);
                // The text is Redis'. A client that cannot take it at once does not get it.
                let _ = stream.try_write(b"-ERR max number of clients reached\r\n");
                continue;
            }
            let _ = stream.set_nodelay(true);
            keep_alive(&stream);
            self.counted.clients.fetch_add(1, SeqCst);
            let (of, serve) = (Arc::clone(&self), Rc::clone(&serve));
            let seat = Seat(Arc::clone(&self));
            drop(tokio::task::spawn_local(async move {
                let _seat = seat;
                let ended = match Stream::of(stream, of.sealer.as_ref()).await {
                    Ok(stream) => {
                        let number = of.counted.connections.fetch_add(1, SeqCst) + 1;
                        serve(stream, who, number).await
                    }
                    Err(error) => {
                        of.turn_away(who, &error);
                        Err(error)
                    }
                };
                if let Err(error) = ended {
                    tracing::debug!(%error, "a client is gone");
                }
            }));
        }
    }
}

/// A client is counted until this is dropped, also where its task panics.
struct Seat(Arc<Guests>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.counted.clients.fetch_sub(1, SeqCst);
    }
}

/// Has the system end the connection of a client whose host is gone.
fn keep_alive(stream: &TcpStream) {
    let probes = TcpKeepalive::new().with_time(IDLE).with_interval(IDLE / 4);
    let _ = SockRef::from(stream).set_tcp_keepalive(&probes.with_retries(4));
}
