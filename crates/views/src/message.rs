//! The words that the members of a primary configuration tell each other before a view begins. Decoding is total.

use alloc::vec::Vec;
use bytes::Bytes;

use super::names::{names, put_names};
use super::path::{Held, Load, Packet, PacketId};
use super::watermarks::Watermarks;
use rota_core::bytes::{Reader, put_process, put_ring, service_byte};
use rota_core::contract::{Process, RingId, Seq, Service};
use rota_core::wire::Frame;

/// 1 had one packet in each PAYLOAD, and all places written out.
const VERSION: u8 = 2;
const RECOVER: u8 = 1;
const PAYLOAD: u8 = 2;
const END_RECOVERY: u8 = 3;
const PART: u8 = 4;

/// The largest message of the exchange, in bytes: packets, or a part of a longer word.
pub const WORD_BYTES: usize = 128 << 10;

/// The bytes of a longer word that one part carries.
const PART_BYTES: usize = WORD_BYTES - 64;

/// The bytes of the head of each word: version, kind, configuration.
const HEAD_BYTES: usize = 2 + 18;

/// The bytes of a packet in a word beside its own: its name, its load, its length.
const PACKET_HEAD_BYTES: usize = 2 + 8 + 1 + 4;

/// The load byte of a word of the data path; the others are services.
const OWN: u8 = 0;

/// One message of the exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// The knowledge of its sender.
    Recover(Recover),
    /// Packets that some member lacks; at least one.
    Payload(Vec<Packet>),
    /// Its sender has sent all that others lack.
    EndRecovery,
    /// The next bytes of a word that is longer than [`WORD_BYTES`].
    Part {
        /// Whether the word ends with this part.
        last: bool,
        bytes: Bytes,
    },
}

/// The knowledge of a process when a primary configuration begins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Recover {
    /// Whether its node has been on rings in an earlier life, and the process knows of no view that it installed.
    pub forgot: bool,
    /// The state of the process in the last view that it installed.
    pub installed: Option<ViewState>,
    /// Its states in tentative views, of which it does not know whether any member installed them; ascending.
    pub tentative: Vec<ViewState>,
    /// The note of its data path.
    pub note: Bytes,
}

impl Recover {
    /// Whether it tells of no view that it was in, or may have been.
    pub fn knows_no_view(&self) -> bool {
        self.installed.is_none() && self.tentative.is_empty()
    }
}

/// The state of a process in a view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ViewState {
    pub view: RingId,
    pub members: Vec<Process>,
    /// For each member, the number of its last packet that was delivered.
    pub delivered: Vec<u64>,
    /// The packets that it holds beyond those.
    pub held: Vec<Name>,
    pub watermarks: Watermarks,
    /// The position that the next delivery will have.
    pub position: Seq,
}

/// A packet without its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Name {
    pub id: PacketId,
    pub load: Load,
    /// The last message that ends in it or before it.
    pub last: u64,
    /// See [`Held::place`].
    pub place: Vec<u64>,
}

impl Name {
    /// `None` if the packet is none that a data path may hand out.
    pub fn of(held: &Held) -> Option<Self> {
        let Packet { id, load, bytes } = &held.packet;
        Some(Self {
            id: *id,
            load: *load,
            last: last_message(*load, bytes)?,
            place: held.place.clone(),
        })
    }

    /// Whether a packet matches this name.
    pub fn fits(&self, packet: &Packet) -> bool {
        self.id == packet.id
            && self.load == packet.load
            && last_message(packet.load, &packet.bytes) == Some(self.last)
    }
}

fn last_message(load: Load, bytes: &Bytes) -> Option<u64> {
    match load {
        Load::Own => Some(0),
        Load::Messages(_) => {
            let frame = Frame::parse(bytes.clone()).ok()?;
            Some(frame.end().counter - 1)
        }
    }
}

impl Word {
    /// Packets in as few words as take them, in their order: each of up to [`WORD_BYTES`], but for one that is
    /// larger by itself. Words fill the ring's datagrams, which packets of about half their size would not.
    pub fn payloads(packets: impl IntoIterator<Item = Packet>) -> Vec<Self> {
        let mut words: Vec<Vec<Packet>> = Vec::new();
        let mut room = 0;
        for packet in packets {
            let size = PACKET_HEAD_BYTES + packet.bytes.len();
            match words.last_mut() {
                Some(word) if size <= room => word.push(packet),
                _ => {
                    words.push(Vec::from([packet]));
                    room = WORD_BYTES - HEAD_BYTES;
                }
            }
            room = room.saturating_sub(size);
        }
        words.into_iter().map(Self::Payload).collect()
    }

    /// The bytes of the word as it is sent in the configuration that has this ring.
    pub fn encode(&self, ring: RingId) -> Vec<u8> {
        let kind = match self {
            Self::Recover(_) => RECOVER,
            Self::Payload(_) => PAYLOAD,
            Self::EndRecovery => END_RECOVERY,
            Self::Part { .. } => PART,
        };
        let mut bytes = Vec::from([VERSION, kind]);
        put_ring(&mut bytes, ring);
        match self {
            Self::Recover(recover) => put_recover(&mut bytes, recover),
            Self::Payload(packets) => {
                packets
                    .iter()
                    .for_each(|packet| put_packet(&mut bytes, packet));
            }
            Self::EndRecovery => {}
            Self::Part { last, bytes: part } => {
                bytes.push(u8::from(*last));
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }

    /// The bytes of the word as it is sent, in messages of up to [`WORD_BYTES`].
    pub fn encode_in_parts(&self, ring: RingId) -> Vec<Vec<u8>> {
        let whole = self.encode(ring);
        if whole.len() <= WORD_BYTES {
            return Vec::from([whole]);
        }
        let whole = Bytes::from(whole);
        let starts = (0..whole.len()).step_by(PART_BYTES);
        let part = |start: usize| {
            let end = whole.len().min(start + PART_BYTES);
            let (last, bytes) = (end == whole.len(), whole.slice(start..end));
            Self::Part { last, bytes }.encode(ring)
        };
        starts.map(part).collect()
    }

    /// The word in a message, and the configuration that it is for.
    pub fn decode(bytes: &Bytes) -> Option<(RingId, Self)> {
        let mut reader = Reader(bytes);
        (reader.byte()? == VERSION).then_some(())?;
        let kind = reader.byte()?;
        let ring = reader.ring()?;
        let word = match kind {
            RECOVER => Self::Recover(recover(&mut reader)?),
            PAYLOAD => Self::Payload(packets(bytes, &mut reader)?),
            END_RECOVERY => Self::EndRecovery,
            PART => Self::Part {
                last: reader.flag()?,
                bytes: rest(bytes, &mut reader),
            },
            _ => return None,
        };
        reader.0.is_empty().then_some((ring, word))
    }
}

/// The part of these bytes that their reader has not read.
fn rest(bytes: &Bytes, reader: &mut Reader<'_>) -> Bytes {
    let rest = bytes.slice(bytes.len() - reader.0.len()..);
    reader.0 = &[];
    rest
}

/// All packets that a reader of these bytes has not read.
fn packets(bytes: &Bytes, reader: &mut Reader<'_>) -> Option<Vec<Packet>> {
    let mut packets = Vec::new();
    while !reader.0.is_empty() || packets.is_empty() {
        let (id, load) = (id(reader)?, load_of(reader.byte()?)?);
        let len = usize::try_from(reader.u32()?).ok()?;
        let start = bytes.len() - reader.0.len();
        reader.0 = reader.0.get(len..)?;
        let bytes = bytes.slice(start..start + len);
        packets.push(Packet { id, load, bytes });
    }
    Some(packets)
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_recover(bytes: &mut Vec<u8>, recover: &Recover) {
    bytes.push(u8::from(recover.forgot));
    bytes.push(u8::from(recover.installed.is_some()));
    recover
        .installed
        .iter()
        .for_each(|standing| put_standing(bytes, standing));
    put_count(bytes, recover.tentative.len());
    recover
        .tentative
        .iter()
        .for_each(|standing| put_standing(bytes, standing));
    put_count(bytes, recover.note.len());
    bytes.extend_from_slice(&recover.note);
}

fn put_standing(bytes: &mut Vec<u8>, standing: &ViewState) {
    put_ring(bytes, standing.view);
    put_count(bytes, standing.members.len());
    for (member, delivered) in standing.members.iter().zip(&standing.delivered) {
        put_process(bytes, *member);
        bytes.extend(delivered.to_le_bytes());
    }
    put_names(bytes, &standing.held);
    put_count(bytes, standing.watermarks.iter().len());
    for (process, counter) in standing.watermarks.iter() {
        put_process(bytes, process);
        bytes.extend(counter.to_le_bytes());
    }
    bytes.extend(standing.position.to_le_bytes());
}

fn put_id(bytes: &mut Vec<u8>, id: PacketId) {
    bytes.extend(id.sender.to_le_bytes());
    bytes.extend(id.number.to_le_bytes());
}

fn put_packet(bytes: &mut Vec<u8>, packet: &Packet) {
    put_id(bytes, packet.id);
    bytes.push(load_byte(packet.load));
    put_count(bytes, packet.bytes.len());
    bytes.extend_from_slice(&packet.bytes);
}

pub(super) const fn load_byte(load: Load) -> u8 {
    match load {
        Load::Own => OWN,
        Load::Messages(service) => service_byte(service),
    }
}

pub(super) const fn load_of(byte: u8) -> Option<Load> {
    Some(match byte {
        OWN => Load::Own,
        1 => Load::Messages(Service::Reliable),
        2 => Load::Messages(Service::Fifo),
        3 => Load::Messages(Service::Causal),
        4 => Load::Messages(Service::Agreed),
        5 => Load::Messages(Service::Safe),
        _ => return None,
    })
}

/// A list: memory is taken as its items come in.
fn list<T>(reader: &mut Reader<'_>, item: impl Fn(&mut Reader<'_>) -> Option<T>) -> Option<Vec<T>> {
    let count = reader.u32()?;
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(item(reader)?);
    }
    Some(items)
}

fn recover(reader: &mut Reader<'_>) -> Option<Recover> {
    let forgot = reader.flag()?;
    let installed = if reader.flag()? {
        Some(standing(reader)?)
    } else {
        None
    };
    let tentative = list(reader, standing)?;
    let rings = installed.iter().chain(&tentative).map(|one| one.view);
    let note = list(reader, |reader| reader.byte())?;
    rings
        .is_sorted_by(|one, next| one < next)
        .then_some(Recover {
            forgot,
            installed,
            tentative,
            note: Bytes::from(note),
        })
}

fn standing(reader: &mut Reader<'_>) -> Option<ViewState> {
    let view = reader.ring()?;
    let members = list(reader, |reader| Some((reader.process()?, reader.u64()?)))?;
    let (members, delivered): (Vec<Process>, Vec<u64>) = members.into_iter().unzip();
    let held = names(reader)?;
    let mut watermarks = Watermarks::default();
    for (process, counter) in list(reader, |reader| Some((reader.process()?, reader.u64()?)))? {
        watermarks.raise(process, counter);
    }
    let position = reader.u64()?;
    let ascending = members.is_sorted_by(|one, next| one.node < next.node);
    let of_members = held
        .iter()
        .all(|name| usize::from(name.id.sender) < members.len());
    let sound = ascending && of_members && !members.is_empty() && position > 0;
    sound.then_some(ViewState {
        view,
        members,
        delivered,
        held,
        watermarks,
        position,
    })
}

fn id(reader: &mut Reader<'_>) -> Option<PacketId> {
    let (sender, number) = (reader.u16()?, reader.u64()?);
    (number > 0).then_some(PacketId { sender, number })
}
