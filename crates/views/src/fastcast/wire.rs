//! The datagrams of FastCast: packets, and control datagrams about them (`docs/protocols/fastcast.md`).

use alloc::vec::Vec;
use bytes::{Buf, Bytes};

use crate::Load;
use rota_core::contract::{NodeId, RingId, Seq};
use rota_core::wire::{
    DecodeError, Frame, HEADER_BYTES, Header, Kind, MAX_MEMBERS, read_header, service_code,
};

/// A FastCast datagram, decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FastPacket {
    /// A packet to be ordered (FastCast fig. 2, `DATA`).
    Data(FastData),
    /// The packets that a member has, the places it knows, and its requests (fig. 2, `ACK`).
    Control(FastControl),
}

/// A packet to be ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FastData {
    /// The head: everything but the contents.
    pub head: FastHead,
    /// The contents; of messages a frame that [`Frame::parse`] has accepted.
    pub bytes: Bytes,
}

/// The head of a packet, before its contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastHead {
    /// The cluster that it belongs to.
    pub cluster: u32,
    /// The view that it belongs to.
    pub ring: RingId,
    /// The member that made it, also when another sends it again.
    pub sender: NodeId,
    /// Its place among the packets of that member, from 1.
    pub number: u64,
    /// The number of packets that follow it at once: an acknowledgement may wait for them.
    pub following: u16,
    /// The kind of its contents.
    pub load: Load,
    /// Its place and those of some before it, if its sender gives places (fig. 2 l. 19) and there is room for them.
    /// Only beside messages.
    pub places: Option<FastPlaces>,
}

/// Sequence numbers of the last packets of their sender, up to the one that carries them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastPlaces {
    /// The sequence number of the first of them.
    pub first: Seq,
    /// The number of packets; at least 1.
    pub count: u16,
}

impl FastPlaces {
    /// Size, in bytes.
    pub const BYTES: usize = 10;

    /// The last sequence number.
    pub const fn last(&self) -> Seq {
        self.first + (self.count as u64 - 1)
    }

    fn read(bytes: &mut Bytes) -> Result<Self, DecodeError> {
        if bytes.len() < Self::BYTES {
            return Err(DecodeError::Short);
        }
        let places = Self {
            first: bytes.get_u64_le(),
            count: bytes.get_u16_le(),
        };
        let above = places.first.checked_add(u64::from(places.count));
        if places.first == 0 || places.count == 0 || above.is_none() {
            return Err(CONTRADICTION);
        }
        Ok(places)
    }
}

/// The word of a member to the others: all of it is cumulative, so that one datagram that arrives makes up for all that
/// were lost before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FastControl {
    /// The cluster that it belongs to.
    pub cluster: u32,
    /// The view that it belongs to.
    pub ring: RingId,
    /// The member that says it.
    pub sender: NodeId,
    /// The member has all packets up to this sequence number, and knows that these are their places.
    pub acked: Seq,
    /// Its application has taken everything up to here; never above `acked`.
    pub delivered: Seq,
    /// The members that are asked to say the same of themselves soon: bit `i` is member `i`.
    pub ask: u128,
    /// For each member, the number up to which this one has that member's packets without a gap.
    pub have: Vec<u64>,
    /// The sequence number that the first of `runs` begins with.
    pub first: Seq,
    /// The senders of the packets with the sequence numbers from `first` on: the next ones of each.
    pub runs: Vec<FastRun>,
    /// The requests of the member.
    pub requests: Vec<FastRequest>,
    /// For each member, the last of its requests for bandwidth that was applied by this one (fig. 4 l. 14);
    /// or nothing.
    pub applied: Vec<u64>,
}

/// Sequence numbers that follow each other and belong to packets of one sender that do so, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastRun {
    /// The index of the sender.
    pub sender: u16,
    /// Their number; at least 1.
    pub count: u16,
}

/// Packets or places that a member requests of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastRequest {
    /// The index of the member that is asked.
    pub to: u16,
    /// The index of the packets' sender; `None` for the senders of the packets with these sequence numbers.
    pub of: Option<u16>,
    /// The first number wanted.
    pub first: u64,
    /// Their number; at least 1.
    pub count: u32,
}

impl FastRequest {
    /// The last number wanted.
    pub const fn last(&self) -> u64 {
        self.first + (self.count as u64 - 1)
    }
}

/// In `of` of a request: no member, but the order.
const ORDER: u16 = u16::MAX;

const CONTRADICTION: DecodeError = DecodeError::Control("a control datagram contradicts itself");

impl FastPacket {
    /// The cluster that it belongs to.
    pub const fn cluster(&self) -> u32 {
        match self {
            Self::Data(data) => data.head.cluster,
            Self::Control(control) => control.cluster,
        }
    }

    /// The view that it belongs to.
    pub const fn ring(&self) -> RingId {
        match self {
            Self::Data(data) => data.head.ring,
            Self::Control(control) => control.ring,
        }
    }

    /// Reads one datagram whose last `seal_bytes` bytes are for the owner of the sockets.
    ///
    /// # Errors
    /// Any bytes that are no FastCast datagram.
    pub fn decode(bytes: Bytes, seal_bytes: usize) -> Result<Self, DecodeError> {
        let (header, mut bytes) = read_header(bytes, seal_bytes)?;
        match header.kind {
            Kind::FastData => {
                let load = Load::Messages(header.service()?);
                let bytes = Frame::parse(bytes)?.into_bytes();
                FastData::read(&header, load, None, bytes)
            }
            Kind::FastPlaced => {
                let load = Load::Messages(header.service()?);
                let places = FastPlaces::read(&mut bytes)?;
                let bytes = Frame::parse(bytes)?.into_bytes();
                FastData::read(&header, load, Some(places), bytes)
            }
            Kind::FastOwn if header.service == 0 => FastData::read(&header, Load::Own, None, bytes),
            Kind::FastOwn => Err(DecodeError::Service(header.service)),
            Kind::FastControl => FastControl::read(&header, bytes).map(Self::Control),
            other => Err(DecodeError::Kind(other as u8)),
        }
    }
}

impl FastData {
    fn read(
        header: &Header,
        load: Load,
        places: Option<FastPlaces>,
        bytes: Bytes,
    ) -> Result<FastPacket, DecodeError> {
        if header.seq == 0 {
            return Err(DecodeError::ZeroSeq);
        }
        let head = FastHead {
            cluster: header.cluster,
            ring: header.ring()?,
            sender: header.sender,
            number: header.seq,
            following: header.round,
            load,
            places,
        };
        Ok(FastPacket::Data(Self { head, bytes }))
    }
}

impl FastHead {
    /// Appends the datagram with these contents to `out`, with `seal_bytes` at its end left 0.
    pub fn encode_into(&self, contents: &[u8], out: &mut Vec<u8>, seal_bytes: usize) {
        let (kind, service) = match (self.load, self.places) {
            (Load::Messages(service), None) => (Kind::FastData, service_code(service)),
            (Load::Messages(service), Some(_)) => (Kind::FastPlaced, service_code(service)),
            (Load::Own, _) => (Kind::FastOwn, 0),
        };
        let mut header = Header::of_ring(kind, self.cluster, self.ring, self.sender);
        header.service = service;
        header.round = self.following;
        header.seq = self.number;
        header.write(out);
        if let (Kind::FastPlaced, Some(places)) = (kind, self.places) {
            out.extend(places.first.to_le_bytes());
            out.extend(places.count.to_le_bytes());
        }
        out.extend_from_slice(contents);
        out.resize(out.len() + seal_bytes, 0);
    }

    /// Size of a datagram with `contents` bytes of contents, `seal_bytes` at its end included.
    pub const fn encoded_len(&self, contents: usize, seal_bytes: usize) -> usize {
        let places = match (self.load, self.places) {
            (Load::Messages(_), Some(_)) => FastPlaces::BYTES,
            _ => 0,
        };
        HEADER_BYTES + places + contents + seal_bytes
    }
}

impl FastControl {
    /// Bytes of a run.
    pub const RUN_BYTES: usize = 4;
    /// Bytes of a request.
    pub const REQUEST_BYTES: usize = 16;
    /// There is always room for this many runs.
    pub const RUNS: usize = 4;
    const FIXED_BYTES: usize = 8 + 16 + 8 + 2 + 2 + 2 + 1;

    /// Size of a datagram that has something of everything, in a view of `members`. It may be larger than data of a path with
    /// small packets: IP cuts it then.
    pub const fn least_len(members: usize, seal_bytes: usize) -> usize {
        let said = 8 * members + Self::RUNS * Self::RUN_BYTES + Self::REQUEST_BYTES;
        Self::bare_len(members, seal_bytes) + said
    }

    /// Size of the datagram without runs and requests, and without `applied`, in a view of `members`.
    pub const fn bare_len(members: usize, seal_bytes: usize) -> usize {
        HEADER_BYTES + Self::FIXED_BYTES + 8 * members + seal_bytes
    }

    /// Size of the datagram, `seal_bytes` at its end included.
    pub fn encoded_len(&self, seal_bytes: usize) -> usize {
        Self::bare_len(self.have.len(), seal_bytes)
            + Self::RUN_BYTES * self.runs.len()
            + Self::REQUEST_BYTES * self.requests.len()
            + 8 * self.applied.len()
    }

    /// The last sequence number that `runs` tell of.
    pub fn last(&self) -> Option<Seq> {
        let count: u64 = self.runs.iter().map(|run| u64::from(run.count)).sum();
        (count > 0).then(|| self.first + (count - 1))
    }

    /// Appends the datagram to `out`, with `seal_bytes` at its end left 0.
    pub fn encode_into(&self, out: &mut Vec<u8>, seal_bytes: usize) {
        let mut header = Header::of_ring(Kind::FastControl, self.cluster, self.ring, self.sender);
        header.seq = self.acked;
        header.write(out);
        out.extend_from_slice(&self.delivered.to_le_bytes());
        out.extend_from_slice(&self.ask.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        let count = |len: usize| u16::try_from(len).expect("lists are bounded").to_le_bytes();
        out.extend_from_slice(&count(self.have.len()));
        out.extend_from_slice(&count(self.runs.len()));
        out.extend_from_slice(&count(self.requests.len()));
        out.push(u8::from(!self.applied.is_empty()));
        for number in self.have.iter().chain(&self.applied) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for run in &self.runs {
            out.extend_from_slice(&run.sender.to_le_bytes());
            out.extend_from_slice(&run.count.to_le_bytes());
        }
        for request in &self.requests {
            out.extend_from_slice(&request.to.to_le_bytes());
            out.extend_from_slice(&request.of.unwrap_or(ORDER).to_le_bytes());
            out.extend_from_slice(&request.first.to_le_bytes());
            out.extend_from_slice(&request.count.to_le_bytes());
        }
        out.resize(out.len() + seal_bytes, 0);
    }

    fn read(header: &Header, mut body: Bytes) -> Result<Self, DecodeError> {
        if body.len() < Self::FIXED_BYTES {
            return Err(DecodeError::Short);
        }
        let delivered = body.get_u64_le();
        let ask = body.get_u128_le();
        let first = body.get_u64_le();
        let members = usize::from(body.get_u16_le());
        let runs = usize::from(body.get_u16_le());
        let requests = usize::from(body.get_u16_le());
        let applied = match body.get_u8() {
            0 => 0,
            1 => members,
            _ => return Err(CONTRADICTION),
        };
        if members == 0 || members > MAX_MEMBERS || delivered > header.seq {
            return Err(CONTRADICTION);
        }
        if members < MAX_MEMBERS && ask >> members != 0 {
            return Err(CONTRADICTION);
        }
        let numbers = 8 * (members + applied);
        let lists = numbers + Self::RUN_BYTES * runs + Self::REQUEST_BYTES * requests;
        match body.len().cmp(&lists) {
            core::cmp::Ordering::Less => return Err(DecodeError::Short),
            core::cmp::Ordering::Greater => return Err(DecodeError::Trailing),
            core::cmp::Ordering::Equal => {}
        }
        Ok(Self {
            cluster: header.cluster,
            ring: header.ring()?,
            sender: header.sender,
            acked: header.seq,
            delivered,
            ask,
            have: (0..members).map(|_| body.get_u64_le()).collect(),
            applied: (0..applied).map(|_| body.get_u64_le()).collect(),
            first,
            runs: read_runs(&mut body, runs, members, first)?,
            requests: read_requests(&mut body, requests, members)?,
        })
    }
}

/// The caller has seen that there are as many bytes as the lists need.
fn read_runs(
    body: &mut Bytes,
    count: usize,
    members: usize,
    first: Seq,
) -> Result<Vec<FastRun>, DecodeError> {
    let mut runs = Vec::with_capacity(count);
    // The sequence number behind the runs so far.
    let mut next = first;
    for _ in 0..count {
        let (sender, count) = (body.get_u16_le(), body.get_u16_le());
        let behind = next.checked_add(u64::from(count));
        match behind {
            Some(behind) if count > 0 && usize::from(sender) < members && first > 0 => {
                next = behind;
            }
            _ => return Err(CONTRADICTION),
        }
        runs.push(FastRun { sender, count });
    }
    debug_assert!(next >= first, "runs go on");
    Ok(runs)
}

fn read_requests(
    body: &mut Bytes,
    count: usize,
    members: usize,
) -> Result<Vec<FastRequest>, DecodeError> {
    let is_member = |index: u16| usize::from(index) < members;
    let mut requests = Vec::with_capacity(count);
    for _ in 0..count {
        let (to, of) = (body.get_u16_le(), body.get_u16_le());
        let (first, count) = (body.get_u64_le(), body.get_u32_le());
        let known = is_member(to) && (of == ORDER || is_member(of));
        if !known || first == 0 || count == 0 || first.checked_add(u64::from(count)).is_none() {
            return Err(CONTRADICTION);
        }
        let of = (of != ORDER).then_some(of);
        requests.push(FastRequest {
            to,
            of,
            first,
            count,
        });
    }
    Ok(requests)
}
