//! The conversation of the hosts.
//!
//! Each node asks each other one ten times a second, at the token ports, and sends a small datagram and a full one as data
//! as often. An answer says how much of that has arrived, and so each side learns what becomes of what it sends. What was sent
//! before the first answer does not count: the other side may not have been started then.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rota_core::contract::NodeId;
use rota_net::Transport;
use rota_node::NodeConfig;
use serde::Serialize;

use super::host::Pauses;
use super::sockets::Sockets;
use super::wire::{Answer, Body, Datagram, Question};

/// The time between two questions to a node.
const EVERY: Duration = Duration::from_millis(100);

/// After the last question: answers may still be on their way, and others may still ask.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Bytes of a small datagram.
const SMALL_BYTES: usize = 64;

/// The largest datagram of UDP.
const MOST_BYTES: usize = 65_536;

/// Another node, as it was seen from here.
#[derive(Clone, Debug, Serialize)]
pub struct Peer {
    /// Its number.
    pub node: u16,
    /// Where it is asked.
    pub address: SocketAddr,
    /// Data of it has arrived here, whether it answers or not.
    pub heard_data: bool,
    /// What its answers say; none if it has not answered.
    pub seen: Option<Seen>,
}

/// What the answers of a node say.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Seen {
    pub questions: u32,
    pub answers: u32,
    pub round_trip_ms: f64,
    /// How far its clock is ahead of this one.
    pub clock_offset_ms: f64,
    pub small_sent: u32,
    pub small_arrived: u32,
    pub full_sent: u32,
    pub full_arrived: u32,
    pub longest_pause_ms: f64,
    pub stolen_percent: f64,
}

/// A node, while this goes on.
#[derive(Clone, Debug)]
struct Talk {
    address: IpAddr,
    token: SocketAddr,
    data: SocketAddr,
    /// Data from it.
    small: u32,
    full: u32,
    first: Option<Answer>,
    last: Option<Answer>,
    questions: u32,
    answers: u32,
    /// The shortest round trip, and the offset of the clock by it, in nanoseconds.
    best: Option<(i64, i64)>,
}

struct Shared<'a> {
    cluster: u32,
    me: u16,
    peers: Mutex<BTreeMap<u16, Talk>>,
    pauses: &'a Pauses,
    over: AtomicBool,
}

/// Talks for so long, and says what was seen of each other node.
pub fn talk(
    config: &NodeConfig,
    me: NodeId,
    (sockets, size): (&Sockets, usize),
    (length, pauses): (Duration, &Pauses),
) -> Vec<Peer> {
    let others = config.nodes.iter().filter(|node| node.id != me.get());
    let peers = others.map(|node| {
        let talk = Talk {
            address: node.address,
            token: node.token(),
            data: node.data(),
            small: 0,
            full: 0,
            first: None,
            last: None,
            questions: 0,
            answers: 0,
            best: None,
        };
        (node.id, talk)
    });
    let shared = Shared {
        cluster: config.cluster,
        me: me.get(),
        peers: Mutex::new(peers.collect()),
        pauses,
        over: AtomicBool::new(false),
    };
    let group = match config.transport {
        Transport::Unicast => None,
        Transport::Multicast(group) => Some(group),
    };
    thread::scope(|scope| {
        scope.spawn(|| shared.listen(&sockets.token));
        scope.spawn(|| shared.listen(sockets.group.as_ref().unwrap_or(&sockets.data)));
        shared.ask(sockets, (group, size), length);
        thread::sleep(LAST_ANSWERS);
        shared.over.store(true, Ordering::Relaxed);
    });
    let peers = shared.peers.into_inner();
    let peers = peers.unwrap_or_else(PoisonError::into_inner);
    peers.iter().map(|(node, talk)| talk.peer(*node)).collect()
}

/// This host's clock, in nanoseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

impl Shared<'_> {
    fn peers(&self) -> MutexGuard<'_, BTreeMap<u16, Talk>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends data and questions until the time is over.
    fn ask(&self, sockets: &Sockets, (group, size): (Option<SocketAddr>, usize), length: Duration) {
        let until = Instant::now() + length;
        let mut sent = Question::default();
        while Instant::now() < until {
            for full in [false, true] {
                self.send_data(sockets, (group, size), full);
            }
            sent.small_sent += 1;
            sent.full_sent += 1;
            let targets: Vec<(u16, SocketAddr)> = {
                let mut peers = self.peers();
                let ask = |(node, talk): (&u16, &mut Talk)| {
                    // A question from before the first answer was perhaps put to nobody.
                    talk.questions += u32::from(talk.first.is_some());
                    (*node, talk.token)
                };
                peers.iter_mut().map(ask).collect()
            };
            for (to, token) in targets {
                sent.asked = now();
                // What cannot be sent is not answered.
                let _ = sockets
                    .token
                    .send_to(&self.datagram(to, Body::Question(sent)), token);
            }
            thread::sleep(EVERY);
        }
    }

    fn send_data(&self, sockets: &Sockets, (group, size): (Option<SocketAddr>, usize), full: bool) {
        let datagram = Datagram {
            cluster: self.cluster,
            from: self.me,
            to: 0,
            body: Body::Data { full },
        };
        let bytes = datagram.to_bytes(if full { size } else { SMALL_BYTES.min(size) });
        let targets = match group {
            Some(group) => vec![group],
            None => self.peers().values().map(|talk| talk.data).collect(),
        };
        for target in targets {
            // What cannot be sent does not arrive.
            let _ = sockets.data.send_to(&bytes, target);
        }
    }

    fn datagram(&self, to: u16, body: Body) -> Vec<u8> {
        let (cluster, from) = (self.cluster, self.me);
        let datagram = Datagram {
            cluster,
            from,
            to,
            body,
        };
        datagram.to_bytes(0)
    }

    /// Takes what comes, and answers questions, until it is over.
    fn listen(&self, socket: &UdpSocket) {
        let mut buffer = vec![0; MOST_BYTES];
        while !self.over.load(Ordering::Relaxed) {
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    let at = now();
                    if let Some(datagram) = Datagram::from_bytes(&buffer[..length]) {
                        self.take(socket, (&datagram, length), (from, at));
                    }
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                // Somebody's kernel has no such port, most often.
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn take(
        &self,
        socket: &UdpSocket,
        (datagram, length): (&Datagram, usize),
        (from, at): (SocketAddr, i64),
    ) {
        let is_for_me = datagram.to == self.me || datagram.to == 0;
        if datagram.cluster != self.cluster || !is_for_me || datagram.from == self.me {
            return;
        }
        let mut peers = self.peers();
        let Some(talk) = peers.get_mut(&datagram.from) else {
            return;
        };
        if talk.address != from.ip().to_canonical() {
            return;
        }
        match datagram.body {
            Body::Data { full: false } => talk.small = talk.small.saturating_add(1),
            Body::Data { full: true } => {
                // One that was cut short on the way has not arrived.
                talk.full = talk.full.saturating_add(u32::from(length > SMALL_BYTES));
            }
            Body::Question(question) => {
                let answer = Answer {
                    question,
                    heard: at,
                    small_arrived: talk.small,
                    full_arrived: talk.full,
                    pause_us: self.pauses.longest_us(),
                    stolen_permille: self.pauses.stolen_permille(),
                    told: now(),
                };
                drop(peers);
                let bytes = self.datagram(datagram.from, Body::Answer(answer));
                let _ = socket.send_to(&bytes, from);
            }
            Body::Answer(answer) => talk.answered(answer, at),
        }
    }
}

impl Talk {
    /// Takes an answer that came at this time.
    fn answered(&mut self, answer: Answer, at: i64) {
        if self.first.is_none() {
            // Questions are counted from here on.
            self.first = Some(answer);
        } else {
            self.answers += 1;
        }
        // Datagrams overtake each other.
        let newest = self.last.map_or(i64::MIN, |last| last.question.asked);
        if answer.question.asked >= newest {
            self.last = Some(answer);
        }
        let asked = answer.question.asked;
        let there = answer.told.saturating_sub(answer.heard);
        let round_trip = at.saturating_sub(asked).saturating_sub(there);
        let ahead = answer.heard.saturating_sub(asked) / 2 + answer.told.saturating_sub(at) / 2;
        if round_trip >= 0 && self.best.is_none_or(|(best, _)| round_trip < best) {
            self.best = Some((round_trip, ahead));
        }
    }

    fn peer(&self, node: u16) -> Peer {
        Peer {
            node,
            address: self.token,
            heard_data: self.small > 0 || self.full > 0,
            seen: self.first.zip(self.last).map(|both| self.seen(both)),
        }
    }

    fn seen(&self, (first, last): (Answer, Answer)) -> Seen {
        let (round_trip, ahead) = self.best.unwrap_or_default();
        let grown = |of: fn(&Answer) -> u32| of(&last).saturating_sub(of(&first));
        Seen {
            questions: self.questions,
            answers: self.answers.min(self.questions),
            round_trip_ms: round_trip as f64 / 1e6,
            clock_offset_ms: ahead as f64 / 1e6,
            small_sent: grown(|answer| answer.question.small_sent),
            small_arrived: grown(|answer| answer.small_arrived),
            full_sent: grown(|answer| answer.question.full_sent),
            full_arrived: grown(|answer| answer.full_arrived),
            longest_pause_ms: f64::from(last.pause_us) / 1e3,
            stolen_percent: f64::from(last.stolen_permille) / 10.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk() -> Talk {
        let at = |port| SocketAddr::from(([10, 0, 0, 2], port));
        Talk {
            address: at(0).ip(),
            token: at(7702),
            data: at(7701),
            small: 0,
            full: 0,
            first: None,
            last: None,
            questions: 0,
            answers: 0,
            best: None,
        }
    }

    /// An answer to a question that was asked at `asked`, of a node whose clock is a second ahead, after `way` each way.
    fn answer(asked: i64, sent: u32, arrived: u32, way: i64) -> (Answer, i64) {
        let heard = asked + way + 1_000_000_000;
        let answer = Answer {
            question: Question {
                asked,
                small_sent: sent,
                full_sent: sent,
            },
            heard,
            told: heard + 5_000,
            small_arrived: arrived,
            full_arrived: 0,
            pause_us: 1500,
            stolen_permille: 12,
        };
        (answer, asked + 2 * way + 5_000)
    }

    #[test]
    fn only_what_was_sent_since_the_first_answer_counts() {
        let mut talk = talk();
        assert!(talk.peer(2).seen.is_none());
        for (asked, sent, arrived, way) in [
            (0, 40, 3, 300_000),
            (100, 41, 4, 200_000),
            // An old answer that comes late changes no count.
            (50, 40, 3, 250_000),
            (200, 50, 12, 400_000),
        ] {
            talk.questions += u32::from(talk.first.is_some());
            let (answer, at) = answer(asked, sent, arrived, way);
            talk.answered(answer, at);
        }
        let seen = talk.peer(2).seen.expect("it has answered");
        let expected = Seen {
            questions: 3,
            answers: 3,
            round_trip_ms: 0.4,
            clock_offset_ms: 1000.0,
            small_sent: 10,
            small_arrived: 9,
            full_sent: 10,
            full_arrived: 0,
            longest_pause_ms: 1.5,
            stolen_percent: 1.2,
        };
        assert_eq!(seen, expected);
    }
}
