//! The packets that a host without a key can send in the same network: of any source, with anything in them.

use std::collections::VecDeque;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use rota_node::NodeConfig;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// A host of the network that is no node.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
/// Datagrams of the nodes that are kept, to be sent again.
const KEPT: usize = 256;
const UDP: u8 = 17;
const TCP: u8 = 6;
const ICMP: u8 = 1;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// The kinds of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trick {
    /// Garbage of a host that is no node.
    Noise,
    /// The same, as if a node had sent it.
    NoiseOfNode,
    /// Datagrams that a node has sent, once more.
    Again,
    /// The same, to another port.
    Elsewhere,
    /// The same, with a bit changed, or without its end.
    Damaged,
    /// The word that no process listens, or a network or host is not there.
    Unreachable,
    /// The word that packets are too large.
    TooLarge,
    /// Other messages that networks send to hosts.
    OtherIcmp,
    /// The beginnings, ends and middles of connections.
    Tcp,
}

impl Trick {
    pub const ALL: [Self; 9] = [
        Self::Noise,
        Self::NoiseOfNode,
        Self::Again,
        Self::Elsewhere,
        Self::Damaged,
        Self::Unreachable,
        Self::TooLarge,
        Self::OtherIcmp,
        Self::Tcp,
    ];

    pub fn named(name: &str) -> Option<Self> {
        let is_it = |trick: &Self| format!("{trick:?}").eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(is_it)
    }
}

/// The sender of the tricks.
pub struct Outsider {
    raw: Socket,
    /// Hears what nodes send to each other.
    sniffer: Socket,
    heard: VecDeque<Heard>,
    ports: Vec<u16>,
    /// The targets of datagrams: addresses of nodes, and the group.
    targets: Vec<SocketAddrV4>,
    random: Random,
}

/// A datagram of a node.
#[derive(Clone)]
struct Heard {
    from: u16,
    to: SocketAddrV4,
    payload: Vec<u8>,
}

fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address}"),
    }
}

fn sum(bytes: &[u8]) -> [u8; 2] {
    let pairs = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = pairs.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

fn ip(protocol: u8, from: Ipv4Addr, to: Ipv4Addr, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + body.len()).expect("it is short");
    let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend(from.octets().into_iter().chain(to.octets()));
    let check = sum(&packet);
    packet[10..12].copy_from_slice(&check);
    packet.extend(body);
    packet
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).expect("it is short");
    let mut datagram = [from, to, length, 0].map(u16::to_be_bytes).concat();
    datagram.extend(payload);
    datagram
}

impl Outsider {
    pub fn new(config: &NodeConfig, seed: u64) -> Self {
        let open = |protocol| Socket::new(Domain::IPV4, Type::RAW, Some(protocol)).expect("root");
        let (raw, sniffer) = (open(Protocol::from(255)), open(Protocol::UDP));
        raw.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).expect("lo");
        sniffer.set_nonblocking(true).expect("a socket");
        let nodes = || {
            config
                .nodes
                .iter()
                .map(|node| (v4(node.data()), v4(node.token())))
        };
        let mut targets: Vec<SocketAddrV4> =
            nodes().flat_map(|(data, token)| [data, token]).collect();
        let ports = targets.iter().map(SocketAddrV4::port).collect();
        if let rota_net::Transport::Multicast(group) = config.transport {
            targets.push(v4(group));
        }
        Self {
            raw,
            sniffer,
            heard: VecDeque::new(),
            ports,
            targets,
            random: Random(seed),
        }
    }

    /// Takes down some of what nodes send to each other just now.
    pub fn listen(&mut self) {
        let mut buffer = vec![0; 66_000];
        for _ in 0..32 {
            let Ok(length) = self.sniffer.read(&mut buffer) else {
                return;
            };
            self.take_down(&buffer[..length]);
        }
    }

    fn take_down(&mut self, packet: &[u8]) {
        let header = 4 * usize::from(packet[0] & 15);
        let port = |at: usize| u16::from_be_bytes([packet[header + at], packet[header + at + 1]]);
        let octets: [u8; 4] = packet[16..20].try_into().expect("4 bytes");
        let (from, to) = (port(0), SocketAddrV4::new(octets.into(), port(2)));
        let of_node = packet[12..16] == Ipv4Addr::LOCALHOST.octets() && self.ports.contains(&from);
        if of_node && self.targets.contains(&to) && packet.len() < 10_000 {
            let payload = packet[header + 8..].to_vec();
            self.heard.push_back(Heard { from, to, payload });
            if self.heard.len() > KEPT {
                self.heard.pop_front();
            }
        }
    }

    fn send(&self, to: SocketAddrV4, packet: &[u8]) {
        // A queue may be full: then this one is lost.
        let _ = self.raw.send_to(packet, &SockAddr::from(to));
    }

    fn send_udp(&self, source: (Ipv4Addr, u16), to: SocketAddrV4, payload: &[u8]) {
        let datagram = udp(source.1, to.port(), payload);
        self.send(to, &ip(UDP, source.0, *to.ip(), &datagram));
    }

    /// A datagram to a port of which nobody takes care: it costs the machine the same.
    pub fn send_aside(&mut self, port: u16) {
        let length = 40 + self.random.below(400);
        let noise = self.random.bytes(length);
        self.send_udp(
            (STRANGER, 9999),
            SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
            &noise,
        );
    }

    /// A packet of this kind.
    pub fn send_one(&mut self, trick: Trick) {
        let to = self.random.pick(&self.targets);
        match trick {
            Trick::Noise | Trick::NoiseOfNode => {
                let length = self.random.below(440);
                let noise = self.random.bytes(length);
                let source = match trick {
                    Trick::Noise => (STRANGER, 9999),
                    _ => (Ipv4Addr::LOCALHOST, self.random.pick(&self.ports)),
                };
                self.send_udp(source, to, &noise);
            }
            Trick::Again | Trick::Elsewhere | Trick::Damaged => self.send_heard(trick, to),
            Trick::Unreachable => {
                let code = self.random.below(16) as u8;
                self.send_icmp((3, if code == 4 { 3 } else { code }), 0);
            }
            Trick::TooLarge => {
                let mtu = self.random.pick(&[68, 500, 552, 576, 1000, 1400]);
                self.send_icmp((3, 4), mtu);
            }
            Trick::OtherIcmp => {
                let kind = self
                    .random
                    .pick(&[(4, 0), (5, 0), (5, 1), (11, 0), (11, 1), (12, 0)]);
                self.send_icmp(kind, 0x7f00_0009);
            }
            Trick::Tcp => self.send_segment(),
        }
    }

    fn send_heard(&mut self, trick: Trick, elsewhere: SocketAddrV4) {
        if self.heard.is_empty() {
            return;
        }
        let at = self.random.below(self.heard.len());
        let Heard {
            from,
            to,
            mut payload,
        } = self.heard[at].clone();
        let to = match trick {
            Trick::Elsewhere => elsewhere,
            _ => to,
        };
        if trick == Trick::Damaged && !payload.is_empty() {
            let at = self.random.below(payload.len());
            match self.random.below(2) {
                0 => payload.truncate(at),
                _ => payload[at] ^= 1 << self.random.below(8),
            }
        }
        self.send_udp((Ipv4Addr::LOCALHOST, from), to, &payload);
    }

    fn sent_to_group(&mut self) -> Option<&Heard> {
        let at = self.random.below(self.heard.len().max(1));
        self.heard
            .get(at)
            .filter(|heard| heard.to.ip().is_multicast())
    }

    /// About a datagram, or a segment, between two ports of nodes: as much of it as an outsider can know.
    fn send_icmp(&mut self, (kind, code): (u8, u8), rest: u32) {
        let (from, to) = (self.random.pick(&self.ports), self.random.pick(&self.ports));
        let (host, length) = (Ipv4Addr::LOCALHOST, self.random.below(200));
        let about = match self.random.below(4) {
            0 => {
                let mut segment = [from, to].map(u16::to_be_bytes).concat();
                segment.extend(self.random.bytes(4));
                ip(TCP, host, host, &segment)
            }
            // A host that can read what goes from one node to another is believed (`docs/operations/security.md`); any
            // host can read what goes to a group.
            1 if let Some(heard) = self.sent_to_group() => {
                let datagram = udp(heard.from, heard.to.port(), &heard.payload);
                ip(UDP, host, *heard.to.ip(), &datagram)
            }
            _ => {
                let payload = vec![rota_core::wire::VERSION; length];
                ip(UDP, host, host, &udp(from, to, &payload))
            }
        };
        let mut message = vec![kind, code, 0, 0];
        message.extend(rest.to_be_bytes());
        message.extend(&about[..about.len().min(548)]);
        let check = sum(&message);
        message[2..4].copy_from_slice(&check);
        let source = self.random.pick(&[STRANGER, host]);
        self.send(
            SocketAddrV4::new(host, 0),
            &ip(ICMP, source, host, &message),
        );
    }

    /// Of a connection that is not there, or of one of which it does not know how far it is.
    fn send_segment(&mut self) {
        let (from, to) = (self.random.pick(&self.ports), self.random.pick(&self.ports));
        let host = Ipv4Addr::LOCALHOST;
        let flags = self.random.pick(&[2_u8, 4, 1, 16, 17, 18, 20, 24]);
        let (source, from) = self
            .random
            .pick(&[(STRANGER, 9999), (host, from), (host, 40_000)]);
        let mut segment = [from, to].map(u16::to_be_bytes).concat();
        segment.extend(self.random.bytes(8));
        segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        let mut summed = [source.octets(), host.octets()].concat();
        summed.extend([0, TCP, 0, segment.len() as u8]);
        summed.extend(&segment);
        let check = sum(&summed);
        segment[16..18].copy_from_slice(&check);
        self.send(SocketAddrV4::new(host, 0), &ip(TCP, source, host, &segment));
    }
}
