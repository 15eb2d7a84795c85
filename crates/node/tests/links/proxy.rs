//! A host on the path between two nodes, which sees and changes the bytes that pass. It works when it is pumped, in the
//! thread of the test.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use rota_node::NodeConfig;

/// The fate of the bytes from the dialer to the acceptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Pass,
    /// Nothing passes, in either direction, and nobody is told.
    Hold,
    /// One bit of what comes next is turned, once.
    Damage,
    /// So many bytes pass, then the connection ends for both.
    EndAfter(usize),
}

struct Pair {
    dialer: TcpStream,
    acceptor: TcpStream,
    there: Vec<u8>,
    back: Vec<u8>,
    /// All that the dialer has said.
    said: Vec<u8>,
}

pub struct Proxy {
    listener: TcpListener,
    target: SocketAddr,
    pairs: Vec<Pair>,
    pub mode: Mode,
}

impl Proxy {
    /// Before the acceptor `node`; the configuration leads its dialers here.
    pub fn before(config: &NodeConfig, node: u16) -> (Self, NodeConfig) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("non-blocking");
        let mut led = config.clone();
        let at = led.nodes.iter().position(|it| it.id == node);
        let place = &mut led.nodes[at.expect("a node")];
        let target = place.link();
        place.token_port = listener.local_addr().expect("an address").port();
        let proxy = Self {
            listener,
            target,
            pairs: Vec::new(),
            mode: Mode::Pass,
        };
        (proxy, led)
    }

    /// All that was said through the newest connection by who dialed.
    pub fn said(&self) -> Vec<u8> {
        self.pairs.last().expect("a connection").said.clone()
    }

    pub fn connections(&self) -> usize {
        self.pairs.len()
    }

    pub fn pump(&mut self) {
        while let Ok((dialer, _)) = self.listener.accept() {
            let Ok(acceptor) = TcpStream::connect(self.target) else {
                continue;
            };
            for stream in [&dialer, &acceptor] {
                stream.set_nonblocking(true).expect("non-blocking");
                stream.set_nodelay(true).expect("no delay");
            }
            self.pairs.push(Pair {
                dialer,
                acceptor,
                there: Vec::new(),
                back: Vec::new(),
                said: Vec::new(),
            });
        }
        if self.mode == Mode::Hold {
            return;
        }
        let mode = &mut self.mode;
        self.pairs.retain_mut(|pair| pair.pump(mode));
    }
}

impl Pair {
    /// Moves what there is; `false` once one of the ends has closed.
    fn pump(&mut self, mode: &mut Mode) -> bool {
        let before = self.there.len();
        let mut open = take(&mut self.dialer, &mut self.there);
        self.said.extend_from_slice(&self.there[before..]);
        open &= take(&mut self.acceptor, &mut self.back);
        if *mode == Mode::Damage && !self.there.is_empty() {
            let middle = self.there.len() / 2;
            self.there[middle] ^= 4;
            *mode = Mode::Pass;
        }
        if let Mode::EndAfter(left) = mode {
            let passes = self.there.len().min(*left);
            self.there.truncate(passes);
            *left -= passes;
            open &= *left > 0;
        }
        give(&mut self.acceptor, &mut self.there);
        give(&mut self.dialer, &mut self.back);
        if !open && matches!(mode, Mode::EndAfter(_)) {
            *mode = Mode::Pass;
        }
        open
    }
}

/// Reads what is there; `false` at its end.
fn take(from: &mut TcpStream, to: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 16 << 10];
    // Not without end: what the other side does not take stays where it is.
    while to.len() < 1 << 20 {
        match from.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) => to.extend_from_slice(&buffer[..count]),
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
    true
}

fn give(to: &mut TcpStream, bytes: &mut Vec<u8>) {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(count) => drop(bytes.drain(..count)),
            Err(_) => return,
        }
    }
}
