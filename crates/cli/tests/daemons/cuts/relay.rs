//! Carries bytes between a client and its daemon, and cuts them off.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rota_client::protocol::{Inbox, MAX_REPLY_BYTES, Reply};
use rota_sim::rng::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;

use super::plan::{Cut, Plan, Transport, Way};
use crate::native::PATIENCE;

/// How often it looks whether it is time.
const TURN: Duration = Duration::from_millis(1);

/// What became of a connection.
#[derive(Debug, Default)]
pub struct Report {
    /// It was cut, and had not ended by itself before.
    pub cut: bool,
    /// Messages that have passed whole to the client, where that can be seen.
    pub told: Option<usize>,
    /// The client has had the end of the stream behind all that has passed, and no error.
    pub ended: bool,
}

/// Where clients connect.
pub enum Door {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener, SocketAddr),
}

/// One side's socket.
enum Side {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Door {
    pub fn unix(path: &Path, to: PathBuf) -> Self {
        let listener = UnixListener::bind(path).expect("a free path");
        Self::Unix(listener, to)
    }

    pub fn tcp(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self::Tcp(listener, to)
    }

    /// Of one by TCP.
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Tcp(listener, _) => listener.local_addr().expect("it is bound"),
            Self::Unix(..) => unreachable!("it has a path"),
        }
    }

    /// Carries the next connection to its end.
    pub fn carry(&self, plan: &Plan) -> Report {
        self.await_client();
        let (client, daemon) = match self {
            Self::Unix(listener, to) => {
                let (client, _) = listener.accept().expect("a client");
                let daemon = UnixStream::connect(to).expect("a daemon");
                (Side::Unix(client), Side::Unix(daemon))
            }
            Self::Tcp(listener, to) => {
                let (client, _) = listener.accept().expect("a client");
                let daemon = TcpStream::connect(to).expect("a daemon");
                for socket in [&client, &daemon] {
                    socket.set_nodelay(true).expect("a flag");
                }
                (Side::Tcp(client), Side::Tcp(daemon))
            }
        };
        Relay::new(client, daemon, *plan).run()
    }
}

impl Door {
    fn await_client(&self) {
        let fd = match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Tcp(listener, _) => listener.as_fd(),
        };
        let patience = Timespec::try_from(PATIENCE).ok();
        let ready = poll(
            &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
            patience.as_ref(),
        );
        assert_eq!(ready, Ok(1), "no client comes");
    }
}

impl AsFd for Side {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket) => socket.as_fd(),
            Self::Tcp(socket) => socket.as_fd(),
        }
    }
}

impl Side {
    /// Reads for a moment: `None` if there is nothing. A side that is gone has ended.
    fn read(&mut self, into: &mut [u8]) -> Option<(usize, Option<OwnedFd>)> {
        let got = match self {
            Self::Unix(socket) => rota_memory::receive(&*socket, into),
            Self::Tcp(socket) => socket.read(into).map(|bytes| (bytes, None)),
        };
        match got {
            Ok(got) => Some(got),
            Err(error) if is_early(&error) => None,
            Err(_) => Some((0, None)),
        }
    }

    /// Writes all; whether the side is still there.
    fn write(&mut self, mut bytes: &[u8], descriptor: Option<OwnedFd>) -> bool {
        if let (Self::Unix(socket), Some(descriptor)) = (&*self, descriptor) {
            match rota_memory::send(socket, bytes, descriptor.as_fd()) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(_) => return false,
            }
        }
        let written = match self {
            Self::Unix(socket) => socket.write_all(bytes),
            Self::Tcp(socket) => socket.write_all(bytes),
        };
        let hangs = written.as_ref().is_err_and(is_early);
        assert!(!hangs, "a side takes nothing any more");
        written.is_ok()
    }

    fn end(&self) {
        let _ = SockRef::from(self).shutdown(Shutdown::Write);
    }

    /// What it is sent behind this, or has sent and nobody has read, is lost.
    fn reset(self) {
        if matches!(self, Self::Tcp(_)) {
            let _ = SockRef::from(&self).set_linger(Some(Duration::ZERO));
        }
    }
}

fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

struct Relay {
    plan: Plan,
    rng: Rng,
    begun: Instant,
    client: Side,
    daemon: Side,
    /// By direction: bytes that have passed, and whether there may be more.
    passed: [u64; 2],
    open: [bool; 2],
    /// Nothing is handed on any more in this direction.
    shut: [bool; 2],
    /// The next piece in this direction comes twice.
    repeat: Option<Way>,
    due: bool,
    replies: Option<Inbox<Reply>>,
    report: Report,
}

impl Relay {
    fn new(client: Side, daemon: Side, plan: Plan) -> Self {
        for side in [&client, &daemon] {
            let socket = SockRef::from(side);
            socket.set_read_timeout(Some(TURN)).expect("not zero");
            socket.set_write_timeout(Some(PATIENCE)).expect("not zero");
        }
        let is_plain = matches!(plan.transport, Transport::Unix | Transport::Tcp);
        Self {
            rng: Rng::split(plan.seed, 1),
            begun: Instant::now(),
            client,
            daemon,
            passed: [0; 2],
            open: [true; 2],
            shut: [false; 2],
            repeat: None,
            due: true,
            replies: is_plain.then(|| Inbox::new(MAX_REPLY_BYTES)),
            report: Report {
                cut: false,
                told: is_plain.then_some(0),
                ended: true,
            },
            plan,
        }
    }

    fn run(mut self) -> Report {
        let mut buffer = vec![0; 1 << 16];
        while self.open != [false; 2] {
            assert!(self.begun.elapsed() < PATIENCE, "{:?} hangs", self.plan);
            if self.due && self.is_time() {
                self.report.cut = true;
                if let Some(over) = self.cut() {
                    let (client, daemon) = (self.client, self.daemon);
                    if over {
                        self.report.ended = false;
                        client.reset();
                        daemon.reset();
                    }
                    return self.report;
                }
            }
            for way in self.ready() {
                self.carry(way, &mut buffer);
            }
        }
        self.report
    }

    fn is_time(&self) -> bool {
        let is_there = self.passed[self.plan.way as usize] >= self.plan.at;
        is_there || self.begun.elapsed() >= self.plan.within
    }

    /// Which directions have something to carry.
    fn ready(&self) -> Vec<Way> {
        let ways = [Way::ToClient, Way::ToDaemon];
        let open: Vec<Way> = ways
            .into_iter()
            .filter(|way| self.open[*way as usize])
            .collect();
        let from = |way: &Way| match way {
            Way::ToClient => self.daemon.as_fd(),
            Way::ToDaemon => self.client.as_fd(),
        };
        let fds = open
            .iter()
            .map(|way| PollFd::from_borrowed_fd(from(way), PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = fds.collect();
        let turn = Timespec::try_from(TURN).ok();
        let _ = poll(&mut fds, turn.as_ref());
        let ready = open
            .iter()
            .zip(&fds)
            .filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|(way, _)| *way).collect()
    }

    /// What the plan says; whether that was the end, and both sides are to be reset.
    fn cut(&mut self) -> Option<bool> {
        self.due = false;
        let ways = match self.plan.cut {
            Cut::Repeat(way) => {
                self.repeat = Some(way);
                // Should nobody mind, it is cut all the same.
                self.plan.cut = Cut::Close;
                self.plan.at = u64::MAX;
                self.plan.within = self.begun.elapsed() + Duration::from_millis(50);
                self.due = true;
                return None;
            }
            Cut::Close => vec![Way::ToClient, Way::ToDaemon],
            Cut::Half(way) => vec![way],
            Cut::Reset => return Some(true),
            Cut::Stall => {
                thread::sleep(Duration::from_millis(self.rng.below(100)));
                return Some(true);
            }
        };
        for way in ways {
            self.shut(way);
        }
        None
    }

    /// What still comes in this direction is dropped.
    fn shut(&mut self, way: Way) {
        self.shut[way as usize] = true;
        match way {
            Way::ToClient => self.client.end(),
            Way::ToDaemon => self.daemon.end(),
        }
    }

    /// Hands one piece on.
    fn carry(&mut self, way: Way, buffer: &mut [u8]) {
        let at = way as usize;
        let mut most = 1 + self.rng.below(self.plan.piece as u64) as usize;
        if self.due && way == self.plan.way {
            most = most.min(self.plan.at.saturating_sub(self.passed[at]).max(1) as usize);
        }
        // What was queued before a cut may be megabytes: it passes at once, as in small pieces that are late it takes minutes.
        if self.shut[at] || !self.due {
            most = buffer.len();
        }
        let (from, to) = match way {
            Way::ToClient => (&mut self.daemon, &mut self.client),
            Way::ToDaemon => (&mut self.client, &mut self.daemon),
        };
        let Some((bytes, descriptor)) = from.read(&mut buffer[..most]) else {
            return;
        };
        if bytes == 0 {
            self.open[at] = false;
            if !self.shut[at] {
                self.shut(way);
            }
            return;
        }
        if self.shut[at] {
            return;
        }
        if self.due && self.rng.percent(self.plan.late) {
            thread::sleep(Duration::from_micros(self.rng.below(3000)));
        }
        let piece = &buffer[..bytes];
        let mut there = to.write(piece, descriptor);
        if self.repeat == Some(way) {
            there &= to.write(piece, None);
            self.repeat = None;
        }
        self.passed[at] += bytes as u64;
        // Who is gone is sent nothing more; what it has said still counts.
        self.shut[at] |= !there;
        if way == Way::ToClient {
            self.report.ended &= there;
            self.count(piece);
        }
    }

    fn count(&mut self, piece: &[u8]) {
        let (Some(replies), Some(told)) = (&mut self.replies, &mut self.report.told) else {
            return;
        };
        replies.feed(piece);
        while let Some(reply) = replies.pull().expect("the protocol") {
            *told += usize::from(matches!(reply, Reply::Message(_)));
        }
    }
}
