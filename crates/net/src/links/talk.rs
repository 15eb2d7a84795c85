//! A connection between two processes of a cluster for large and rare messages: questions and answers, one after the
//! other, each sealed as one record. It waits, so it has a thread of its own. The handshake is that of links, with
//! another first word: the messages of one handshake are of no use for the other.

use rota_core::contract::{NodeId, Process, Session};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::cipher::Direction;
use super::draw_nonce;
use super::handshake::{
    Accepting, Agreed, CONFIRM_BYTES, Dialing, HELLO_BYTES, Own, Refusal, TALKS, WELCOME_BYTES,
};
use crate::keys::KeyRing;

const HEADER_BYTES: usize = 4;
/// The time that a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// See the module's page.
#[derive(Debug)]
pub struct RpcConnection {
    peer: Process,
    saying: Saying,
    hearing: Hearing,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Saying {
    stream: TcpStream,
    seals: Direction,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Hearing {
    stream: TcpStream,
    opens: Direction,
    patience: Duration,
}

impl RpcConnection {
    /// The size of one message, at most.
    pub const MOST_BYTES: usize = 4 << 20;

    /// Connects to the address at which node `to` waits. `patience`: for each message.
    ///
    /// # Errors
    /// The system's; `PermissionDenied`: it does not prove that it has the cluster's key.
    pub fn dial(
        (me, cluster): (Process, u32),
        (to, address): (NodeId, SocketAddr),
        keys: Option<&KeyRing>,
        patience: Duration,
    ) -> io::Result<Self> {
        let mut stream = TcpStream::connect_timeout(&address, HANDSHAKE)?;
        let until = Instant::now() + HANDSHAKE;
        let own = Own {
            me,
            cluster,
            magic: TALKS,
        };
        let begun = Dialing::begin(own, (to, Session(0)), keys, draw_nonce()?);
        let (dialing, hello) = begun.ok_or_else(|| refused(Refusal::UnknownKey))?;
        stream.write_all(&hello)?;
        let mut welcome = [0; WELCOME_BYTES];
        read_until(&mut stream, &mut welcome, until)?;
        let (agreed, confirm) = dialing.welcomed(&welcome).map_err(refused)?;
        stream.write_all(&confirm)?;
        Self::begin(stream, agreed, patience)
    }

    /// Takes a connection that was made to this process, if it comes from one of the nodes that may connect.
    ///
    /// # Errors
    /// As [`Self::dial`].
    pub fn accept(
        mut stream: TcpStream,
        (me, cluster): (Process, u32),
        may: impl Fn(NodeId) -> bool,
        keys: Option<&KeyRing>,
        patience: Duration,
    ) -> io::Result<Self> {
        let until = Instant::now() + HANDSHAKE;
        let own = Own {
            me,
            cluster,
            magic: TALKS,
        };
        let mut hello = [0; HELLO_BYTES];
        read_until(&mut stream, &mut hello, until)?;
        // Each connection is the first with that node: nothing of an earlier one goes on.
        let last = |node| may(node).then_some(Session(0));
        let begun = Accepting::begin(own, &hello, keys, draw_nonce()?, last);
        let (accepting, welcome) = begun.map_err(refused)?;
        stream.write_all(&welcome)?;
        let mut confirm = [0; CONFIRM_BYTES];
        read_until(&mut stream, &mut confirm, until)?;
        let agreed = accepting.confirmed(&confirm, Some(Session(0)));
        Self::begin(stream, agreed.map_err(refused)?, patience)
    }

    fn begin(stream: TcpStream, agreed: Agreed, patience: Duration) -> io::Result<Self> {
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        let saying = Saying {
            stream: stream.try_clone()?,
            seals: agreed.seals,
        };
        let hearing = Hearing {
            stream,
            opens: agreed.opens,
            patience,
        };
        Ok(Self {
            peer: agreed.peer,
            saying,
            hearing,
        })
    }

    /// Both halves, for a thread each. Either end of the connection ends the other.
    pub fn split(self) -> (Saying, Hearing) {
        (self.saying, self.hearing)
    }

    /// The process at the other end.
    pub const fn peer(&self) -> Process {
        self.peer
    }

    /// As [`Saying::say`].
    ///
    /// # Errors
    /// The same.
    pub fn say(&mut self, what: &[u8]) -> io::Result<()> {
        self.saying.say(what)
    }

    /// As [`Hearing::hear`].
    ///
    /// # Errors
    /// The same.
    pub fn hear(&mut self) -> io::Result<Vec<u8>> {
        self.hearing.hear()
    }
}

impl Saying {
    /// Sends a message of at most [`RpcConnection::MOST_BYTES`].
    ///
    /// # Errors
    /// The system's: the connection is of no use any more. `InvalidInput`: it is too long, and nothing was said.
    pub fn say(&mut self, what: &[u8]) -> io::Result<()> {
        if what.len() > RpcConnection::MOST_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let sealed = what.len() + self.seals.tag_bytes();
        let header = (sealed as u32).to_le_bytes();
        let mut record = Vec::with_capacity(HEADER_BYTES + sealed);
        record.extend_from_slice(&header);
        record.extend_from_slice(what);
        record.resize(HEADER_BYTES + sealed, 0);
        self.seals.seal(&header, &mut record[HEADER_BYTES..]);
        self.stream.write_all(&record)
    }
}

impl Drop for Saying {
    fn drop(&mut self) {
        // The receiving halves at both ends are to know.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Hearing {
    /// Receives the next message.
    ///
    /// # Errors
    /// The system's, `TimedOut` if it does not come whole in time, or `InvalidData` if it is not what the other end has said next: the connection is of
    /// no use any more.
    pub fn hear(&mut self) -> io::Result<Vec<u8>> {
        let until = Instant::now() + self.patience;
        let mut header = [0; HEADER_BYTES];
        read_until(&mut self.stream, &mut header, until)?;
        let length = u32::from_le_bytes(header) as usize;
        if length > RpcConnection::MOST_BYTES + self.opens.tag_bytes() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // Room is made as bytes come: a length alone costs nothing.
        let mut record = Vec::new();
        while record.len() < length {
            let from = record.len();
            record.resize(length.min(from + (64 << 10)), 0);
            read_until(&mut self.stream, &mut record[from..], until)?;
        }
        let body = self.opens.open(&header, &mut record);
        let body = body.ok_or(io::ErrorKind::InvalidData)?;
        record.truncate(body);
        Ok(record)
    }
}

/// Reads all of the bytes, though they may come one by one, until then.
fn read_until(stream: &mut TcpStream, mut into: &mut [u8], until: Instant) -> io::Result<()> {
    while !into.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(into) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => into = &mut into[read..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn refused(refusal: Refusal) -> io::Error {
    let why = match refusal {
        Refusal::Foreign => "it is of another cluster, or no replica",
        Refusal::Version => "it is an older or a newer program, of another version of links",
        Refusal::Stranger => "it is none that may connect here",
        Refusal::UnknownKey => "one of the two does not have the other's key",
        Refusal::Forged => "it does not prove that it has the cluster's key",
        Refusal::Stale => "its answer is an old one",
    };
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::Incarnation;
    use std::net::TcpListener;
    use std::thread;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn process(node: u16) -> Process {
        Process {
            node: NodeId::new(node).expect("not 0"),
            incarnation: Incarnation(u64::from(node)),
        }
    }

    /// A thread that waits for a connection, with these keys; `then` takes the result.
    fn waiting(
        keys: Option<KeyRing>,
        then: impl FnOnce(io::Result<RpcConnection>) + Send + 'static,
    ) -> (SocketAddr, thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let thread = thread::spawn(move || {
            let (stream, _) = listener.accept().expect("somebody comes");
            let own = (process(2), 7);
            let may = |node: NodeId| node.get() < 5;
            then(RpcConnection::accept(
                stream,
                own,
                may,
                keys.as_ref(),
                PATIENCE,
            ));
        });
        (address, thread)
    }

    fn dial(of: (u16, u32), to: SocketAddr, keys: Option<&KeyRing>) -> io::Result<RpcConnection> {
        let to = (process(2).node, to);
        RpcConnection::dial((process(of.0), of.1), to, keys, PATIENCE)
    }

    #[test]
    fn what_is_said_is_heard_sealed_or_not() {
        let key = KeyRing::generate().expect("a key");
        for keys in [None, Some(key)] {
            let (address, thread) = waiting(keys.clone(), |talk| {
                let mut talk = talk.expect("it has the key");
                assert_eq!(talk.peer(), process(1));
                while let Ok(heard) = talk.hear() {
                    talk.say(&heard).expect("it is heard");
                }
            });
            let mut talk = dial((1, 7), address, keys.as_ref()).expect("it has the key");
            for length in [0, 1, 100_000, RpcConnection::MOST_BYTES] {
                let what: Vec<u8> = (0..length).map(|at| at as u8).collect();
                talk.say(&what).expect("it is heard");
                assert!(talk.hear().expect("an answer") == what, "{length}");
            }
            let refused = talk.say(&vec![0; RpcConnection::MOST_BYTES + 1]);
            assert_eq!(
                refused.map_err(|e| e.kind()),
                Err(io::ErrorKind::InvalidInput)
            );
            drop(talk);
            thread.join().expect("it ends");
        }
    }

    #[test]
    fn who_has_no_key_or_no_place_is_refused() {
        let [key, other] = [0; 2].map(|_| KeyRing::generate().expect("a key"));
        for (of, with) in [
            ((1, 7), None),
            ((1, 7), Some(&other)),
            ((1, 8), Some(&key)),
            ((6, 7), Some(&key)),
        ] {
            let (address, thread) = waiting(Some(key.clone()), |talk| {
                assert!(talk.is_err(), "{talk:?}");
            });
            assert!(dial(of, address, with).is_err(), "{of:?}");
            thread.join().expect("it ends");
        }
    }

    /// A host between the two changes something.
    #[test]
    fn what_was_changed_on_the_way_is_refused() {
        let key = KeyRing::generate().expect("a key");
        let (address, thread) = waiting(Some(key.clone()), |talk| {
            let mut talk = talk.expect("it has the key");
            assert_eq!(talk.hear().expect("it was not changed"), b"one");
            let heard = talk.hear().map_err(|error| error.kind());
            assert_eq!(heard, Err(io::ErrorKind::InvalidData));
        });
        let mut talk = dial((1, 7), address, Some(&key)).expect("it has the key");
        talk.say(b"one").expect("it is heard");
        let mut record = vec![0; HEADER_BYTES + 3 + talk.saying.seals.tag_bytes()];
        record[..HEADER_BYTES].copy_from_slice(&19_u32.to_le_bytes());
        talk.saying.stream.write_all(&record).expect("it is sent");
        thread.join().expect("it ends");
    }

    /// A HELLO for a link is none for this.
    #[test]
    fn what_was_said_for_a_link_is_of_no_use() {
        let (address, thread) = waiting(None, |talk| {
            let kind = talk.map(|_| ()).map_err(|error| error.kind());
            assert_eq!(kind, Err(io::ErrorKind::PermissionDenied));
        });
        let own = Own {
            me: process(1),
            cluster: 7,
            magic: super::super::handshake::LINKS,
        };
        let to = (process(2).node, Session(0));
        let (_, hello) = Dialing::begin(own, to, None, [3; 32]).expect("a HELLO");
        let mut stream = TcpStream::connect(address).expect("it waits");
        stream.write_all(&hello).expect("it is sent");
        thread.join().expect("it ends");
    }
}
