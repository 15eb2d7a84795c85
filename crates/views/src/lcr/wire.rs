//! The messages of neighbours over their link, as bytes. Reading is total.
//!
//! Numbers are little-endian, or of variable length (seven bits in a byte, the low ones first), marked v.
//! Every message begins with the same 24 bytes:
//!
//! | bytes | field |
//! |---|---|
//! | 0 | version, that of datagrams |
//! | 1 | kind: 1 hello, 2 batch |
//! | 2..4 | ring id of the view: representative |
//! | 4..8 | epoch: of a hello its number, of a batch that of the hello it answers |
//! | 8..16 | ring id: `ring_seq` |
//! | 16..24 | ring id: incarnation of the representative |
//!
//! A hello goes on with a count (one byte) and, for each member, the number up to which its sender has that member's
//! packets (v). A batch goes on with records, up to its end:
//!
//! | first byte | then |
//! |---|---|
//! | 0..4: a packet, its service | sender's index (v), number (v), as many entries of the clock as the index says, each less that of the sender's packet before (v), length (v), frame |
//! | 0x10: all hold | sender's index (v), number of the last packet (v) |
//! | 0x11: all behind its sender have delivered | sender's index (v), number of the last packet (v) |

use alloc::vec::Vec;
use bytes::{Buf, Bytes};

use rota_core::contract::{Incarnation, NodeId, RingId, Service};
use rota_core::wire::{
    DecodeError, Frame, MAX_MEMBERS, VERSION, put_varint, read_varint, service_code, service_of,
};

/// The head of a message, in bytes.
pub const HEAD_BYTES: usize = 24;
/// The most that a record of a packet adds to its frame, in bytes, if the sender's index is `index`.
pub const fn record_bytes(index: usize) -> usize {
    1 + 2 + 10 + 10 * index + 3
}
/// The most bytes of one record on packets that all hold or have delivered.
pub const WORD_BYTES: usize = 1 + 2 + 10;
/// The largest frame, in bytes: as large as in a datagram, as frames count their messages with 16 bits.
pub const MAX_FRAME_BYTES: usize = 65_507;

const HELLO: u8 = 1;
pub const BATCH: u8 = 2;
pub const STABLE: u8 = 0x10;
pub const DELIVERED: u8 = 0x11;

/// A message of a neighbour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// To the predecessor: from where on to send.
    Hello(Hello),
    /// To the successor.
    Batch(Batch),
}

/// The packets that a process has, told to its predecessor when their link comes up.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hello {
    /// The view it is in.
    pub ring: RingId,
    /// The number of the hello among those of the process in this view.
    pub epoch: u32,
    /// For each member, the number up to which the process has that member's packets.
    pub received: Vec<u64>,
}

/// Packets and acknowledgements, in the order of the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// The view they belong to.
    pub ring: RingId,
    /// The hello from which on they follow each other without gaps.
    pub epoch: u32,
    body: Bytes,
}

/// One record of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// A packet.
    Packet(Entry),
    /// All members hold the packets of member `.0` up to number `.1`.
    Stable(usize, u64),
    /// All members from the one behind member `.0` to the sender of the batch have delivered that member's
    /// packets up to number `.1`.
    Delivered(usize, u64),
}

/// A packet as it travels and is kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// Its sender's index.
    pub sender: u16,
    /// Its number.
    pub number: u64,
    /// The guarantee that its messages asked for.
    pub service: Service,
    /// Its record, as it came and goes on.
    record: Bytes,
    /// The offset of the clock in the record.
    clock_at: u8,
    /// The offset of the frame, which is checked and ends the record.
    frame_at: u16,
}

impl Entry {
    /// A packet of this process. `clock` is as in the record: each entry less that of the packet before.
    pub fn own(
        sender: usize,
        number: u64,
        service: Service,
        clock: impl Iterator<Item = u64>,
        frame: &[u8],
    ) -> Self {
        let mut record = Vec::with_capacity(record_bytes(sender) + frame.len());
        record.push(service_code(service));
        put_varint(&mut record, sender as u64);
        put_varint(&mut record, number);
        let clock_at = record.len() as u8;
        for entry in clock {
            put_varint(&mut record, entry);
        }
        put_varint(&mut record, frame.len() as u64);
        let frame_at = record.len() as u16;
        record.extend_from_slice(frame);
        Self {
            sender: sender as u16,
            number,
            service,
            record: record.into(),
            clock_at,
            frame_at,
        }
    }

    /// Its record, in bytes.
    pub fn size(&self) -> usize {
        self.record.len()
    }

    /// Its record.
    pub const fn record(&self) -> &Bytes {
        &self.record
    }

    /// Its frame.
    pub fn frame(&self) -> Bytes {
        self.record.slice(usize::from(self.frame_at)..)
    }

    /// The size of its frame, in bytes.
    pub fn frame_bytes(&self) -> usize {
        self.record.len() - usize::from(self.frame_at)
    }

    /// The gain of each entry of the clock since the sender's packet before.
    pub fn gains(&self) -> impl Iterator<Item = u64> {
        let mut rest = &self.record[usize::from(self.clock_at)..];
        (0..self.sender).map_while(move |_| {
            let (gain, size) = read_varint(rest).ok()?;
            rest = &rest[size..];
            Some(gain)
        })
    }
}

/// Reads a message of a neighbour.
pub fn decode(mut bytes: Bytes) -> Result<Said, DecodeError> {
    let head: [u8; HEAD_BYTES] = *bytes.first_chunk().ok_or(DecodeError::Short)?;
    if head[0] != VERSION {
        return Err(DecodeError::Version(head[0]));
    }
    bytes.advance(HEAD_BYTES);
    let mut rest = &head[2..];
    let rep = NodeId::new(rest.get_u16_le()).ok_or(DecodeError::ZeroNode)?;
    let epoch = rest.get_u32_le();
    let ring_seq = rest.get_u64_le();
    let incarnation = Incarnation(rest.get_u64_le());
    if incarnation.0 > Incarnation::MAX {
        return Err(DecodeError::Incarnation);
    }
    let ring = RingId {
        ring_seq,
        rep,
        incarnation,
    };
    match head[1] {
        HELLO => hello(ring, epoch, &bytes).map(Said::Hello),
        BATCH => Ok(Said::Batch(Batch {
            ring,
            epoch,
            body: bytes,
        })),
        kind => Err(DecodeError::Kind(kind)),
    }
}

fn hello(ring: RingId, epoch: u32, body: &[u8]) -> Result<Hello, DecodeError> {
    let (&count, mut rest) = body.split_first().ok_or(DecodeError::Short)?;
    if usize::from(count) > MAX_MEMBERS {
        return Err(DecodeError::Lcr("more members than a view can have"));
    }
    let mut received = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let (number, size) = read_varint(rest)?;
        received.push(number);
        rest = &rest[size..];
    }
    if !rest.is_empty() {
        return Err(DecodeError::Trailing);
    }
    Ok(Hello {
        ring,
        epoch,
        received,
    })
}

impl Hello {
    /// The bytes of the hello.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = head(HELLO, self.ring, self.epoch);
        out.push(self.received.len() as u8);
        for &number in &self.received {
            put_varint(&mut out, number);
        }
        out
    }
}

/// The head of every message.
pub fn head(kind: u8, ring: RingId, epoch: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + 40);
    out.extend([VERSION, kind]);
    out.extend(ring.rep.get().to_le_bytes());
    out.extend(epoch.to_le_bytes());
    out.extend(ring.ring_seq.to_le_bytes());
    out.extend(ring.incarnation.0.to_le_bytes());
    out
}

impl Batch {
    /// Its records, in a view of `members` members, up to the first that is none.
    pub fn records(self, members: usize) -> Records {
        Records {
            rest: self.body,
            members,
        }
    }
}

/// The records of a batch, in order. After an error there are no more.
#[derive(Debug)]
pub struct Records {
    rest: Bytes,
    members: usize,
}

impl Iterator for Records {
    type Item = Result<Record, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.rest.clear();
        }
        Some(record)
    }
}

impl Records {
    fn read(&mut self) -> Result<Record, DecodeError> {
        let tag = self.rest[0];
        let mut at = 1;
        let sender = self.varint(&mut at)?;
        let sender = usize::try_from(sender).unwrap_or(usize::MAX);
        if sender >= self.members {
            return Err(DecodeError::Lcr("a sender that is no member"));
        }
        let number = self.varint(&mut at)?;
        if number == 0 {
            return Err(DecodeError::ZeroSeq);
        }
        if tag != STABLE && tag != DELIVERED {
            let service = service_of(tag)?;
            return self.packet(service, sender, number, at);
        }
        self.rest.advance(at);
        Ok(match tag {
            STABLE => Record::Stable(sender, number),
            _ => Record::Delivered(sender, number),
        })
    }

    fn packet(
        &mut self,
        service: Service,
        sender: usize,
        number: u64,
        clock_at: usize,
    ) -> Result<Record, DecodeError> {
        let mut at = clock_at;
        for _ in 0..sender {
            self.varint(&mut at)?;
        }
        let size = usize::try_from(self.varint(&mut at)?).unwrap_or(usize::MAX);
        if size > MAX_FRAME_BYTES {
            return Err(DecodeError::Lcr("a frame that is too large"));
        }
        if self.rest.len() - at < size {
            return Err(DecodeError::Short);
        }
        let record = self.rest.split_to(at + size);
        Frame::parse(record.slice(at..))?;
        let entry = Entry {
            sender: sender as u16,
            number,
            service,
            record,
            clock_at: clock_at as u8,
            frame_at: at as u16,
        };
        debug_assert_eq!(
            entry.gains().count(),
            sender,
            "a clock has a number for each member before the sender"
        );
        Ok(Record::Packet(entry))
    }

    fn varint(&self, at: &mut usize) -> Result<u64, DecodeError> {
        let (number, size) = read_varint(&self.rest[*at..])?;
        *at += size;
        Ok(number)
    }
}
