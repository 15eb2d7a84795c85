//! The token that forms a ring (membership A1, A8).

use alloc::vec::Vec;
use bytes::Buf;

use super::electorates::{Counts, Electorate, TABLE_BYTES, read_electorates, write_electorates};
use super::join::{read_process, write_process};
use super::token::{RANGE_BYTES, read_ranges, write_ranges};
use rota_core::contract::{Burst, NodeId, Process, RingId, Seq};
use rota_core::wire::{
    DecodeError, HEADER_BYTES, Header, Kind, MAX_MEMBERS, MAX_SEAL_BYTES, RequestRange,
    expect_empty, read_incarnation,
};

/// The most ranges that one member lists of the packets it has above its aru. A member with more lists the lowest of
/// them and says so.
pub const MAX_HAVE_RANGES: usize = 64;

const FLAG_MORE: u8 = 1;
const FLAG_MORE_ELECTORATES: u8 = 2;

/// Bytes of a commit token without members: two counts and a table beside header and seal.
const FIXED_BYTES: usize = HEADER_BYTES + 2 + TABLE_BYTES + 2 + MAX_SEAL_BYTES;

/// Bytes of a member and of its words, without ranges.
const MEMBER_BYTES: usize = 10 + 18 + 3 * 8 + 16 + 8 + Settings::BYTES + Counts::BYTES + 1 + 2;

/// Ranges that each member of a ring of `members` may list, so that the words of all of them fit a datagram.
pub const fn have_ranges_for(members: usize) -> usize {
    let fixed = FIXED_BYTES + members * MEMBER_BYTES;
    let ranges = Burst::MAX_BYTES.saturating_sub(fixed) / RANGE_BYTES;
    match ranges.checked_div(members) {
        Some(each) if each < MAX_HAVE_RANGES => each,
        _ => MAX_HAVE_RANGES,
    }
}

/// The commit token, which goes round the members of a ring to be: in the first rotation each tells the state of its
/// old ring, in the second all read it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Commit {
    /// The cluster that the token belongs to.
    pub cluster: u32,
    /// The ring that is being formed.
    pub ring: RingId,
    /// The member that sent it.
    pub sender: NodeId,
    /// Grows by one with every hop.
    pub token_seq: u64,
    /// The members, by ascending id; the first is the representative.
    pub members: Vec<Process>,
    /// The different electorates of the members that have told, at most [`MOST_ELECTORATES`](super::MOST_ELECTORATES).
    pub electorates: Vec<Electorate>,
    /// The old rings of the first of the members, which have told; complete after the first rotation.
    pub told: Vec<OldRing>,
}

/// The settings of a member on which the members of a ring have to agree: with windows or time-outs of its own, a
/// member would wait for packets that others must not send, or give up a ring that others hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Settings {
    /// New packets that it may send in one visit.
    pub personal_window: u32,
    /// Packets that all together may send in one rotation.
    pub global_window: u32,
    /// The distance that `seq` may run ahead of the safe line, in packets.
    pub outstanding_window: u32,
    /// The time without a token after which the ring counts as broken, in microseconds.
    pub token_loss_us: u32,
}

impl Settings {
    const BYTES: usize = 4 * 4;

    /// The largest window that a member may tell, in packets.
    pub const MOST_OUTSTANDING: u32 = 1 << 20;

    /// The longest token loss that a member may tell, in microseconds: four times that of the slowest of the largest
    /// rings. A member that could make it longer would keep the others from noticing that the ring has broken.
    pub const MOST_TOKEN_LOSS_US: u32 = 60_000_000;

    fn read(body: &mut &[u8]) -> Result<Self, DecodeError> {
        let mut next = || body.try_get_u32_le().map_err(|_| DecodeError::Short);
        let settings = Self {
            personal_window: next()?,
            global_window: next()?,
            outstanding_window: next()?,
            token_loss_us: next()?,
        };
        let windows = 1..=Self::MOST_OUTSTANDING;
        let are_sound = windows.contains(&settings.outstanding_window)
            && (1..=settings.outstanding_window).contains(&settings.personal_window)
            && settings.global_window > 0
            && (1..=Self::MOST_TOKEN_LOSS_US).contains(&settings.token_loss_us);
        if are_sound {
            Ok(settings)
        } else {
            Err(DecodeError::Commit("no ring can have these settings"))
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        for value in [
            self.personal_window,
            self.global_window,
            self.outstanding_window,
            self.token_loss_us,
        ] {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// The state that a member tells of the ring it comes from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OldRing {
    /// The ring that it comes from.
    pub ring: RingId,
    /// The local aru of the member on it.
    pub aru: Seq,
    /// The highest packet it has.
    pub high: Seq,
    /// The safe line of the member on it.
    pub safe_line: Seq,
    /// The members whose messages it must deliver even behind a gap: bit `i` is member `i` of the old ring.
    pub obligations: u128,
    /// The first of its own messages that will be numbered on the new ring.
    pub next_message: u64,
    /// The settings of the member.
    pub settings: Settings,
    /// The electorates of the token that are its own, or that it has met.
    pub counts: Counts,
    /// The packets that it has above `aru`, ascending.
    pub have: Vec<RequestRange>,
    /// Whether it has more packets, above the last of those ranges.
    pub more: bool,
}

impl Commit {
    /// Whether every member has told its part.
    pub fn is_complete(&self) -> bool {
        self.told.len() == self.members.len()
    }

    pub(super) fn read(header: &Header, mut body: &[u8]) -> Result<Self, DecodeError> {
        let ring = header.ring()?;
        let members = read_members(&mut body, ring)?;
        // The token makes two rotations, and each member adds one in each.
        if header.seq > 2 * members.len() as u64 {
            return Err(DecodeError::Commit("a commit token goes round twice"));
        }
        let electorates = read_electorates(&mut body)?;
        let told_count = usize::from(body.try_get_u16_le().map_err(|_| DecodeError::Short)?);
        if told_count > members.len() {
            return Err(DecodeError::Commit("more have told than there are members"));
        }
        let mut told = Vec::new();
        for _ in 0..told_count {
            told.push(OldRing::read(&mut body, electorates.len())?);
        }
        expect_empty(body)?;
        Ok(Self {
            cluster: header.cluster,
            ring,
            sender: header.sender,
            token_seq: header.seq,
            members,
            electorates,
            told,
        })
    }

    pub(super) fn encode_into(&self, out: &mut Vec<u8>) {
        let mut header = Header::of_ring(Kind::Commit, self.cluster, self.ring, self.sender);
        header.seq = self.token_seq;
        header.write(out);
        let count = |len: usize| u16::try_from(len).expect("a ring has at most 128 members");
        out.extend_from_slice(&count(self.members.len()).to_le_bytes());
        for member in &self.members {
            write_process(*member, out);
        }
        write_electorates(&self.electorates, out);
        out.extend_from_slice(&count(self.told.len()).to_le_bytes());
        for old in &self.told {
            old.write(out);
        }
    }
}

fn read_members(body: &mut &[u8], ring: RingId) -> Result<Vec<Process>, DecodeError> {
    let count = usize::from(body.try_get_u16_le().map_err(|_| DecodeError::Short)?);
    if count == 0 || count > MAX_MEMBERS {
        return Err(DecodeError::Commit("a ring has 1 to 128 members"));
    }
    let mut members: Vec<Process> = Vec::new();
    for _ in 0..count {
        let member = read_process(body)?;
        if members.last().is_some_and(|last| last.node >= member.node) {
            return Err(DecodeError::MembersNotAscending);
        }
        members.push(member);
    }
    let rep = Process {
        node: ring.rep,
        incarnation: ring.incarnation,
    };
    if members[0] != rep {
        return Err(DecodeError::Commit(
            "a ring's first member is its representative",
        ));
    }
    Ok(members)
}

impl OldRing {
    fn read(body: &mut &[u8], electorates: usize) -> Result<Self, DecodeError> {
        let short = |_| DecodeError::Short;
        let ring_seq = body.try_get_u64_le().map_err(short)?;
        let incarnation = read_incarnation(body)?;
        let rep = body.try_get_u16_le().map_err(short)?;
        let rep = NodeId::new(rep).ok_or(DecodeError::ZeroNode)?;
        let aru = body.try_get_u64_le().map_err(short)?;
        let high = body.try_get_u64_le().map_err(short)?;
        let safe_line = body.try_get_u64_le().map_err(short)?;
        let obligations = body.try_get_u128_le().map_err(short)?;
        let next_message = body.try_get_u64_le().map_err(short)?;
        let settings = Settings::read(body)?;
        let flags = body.try_get_u8().map_err(short)?;
        let counts = Counts::read(body, electorates, flags & FLAG_MORE_ELECTORATES != 0)?;
        let count = usize::from(body.try_get_u16_le().map_err(short)?);
        let known_flags = FLAG_MORE | FLAG_MORE_ELECTORATES;
        if aru > high || safe_line > aru || flags & !known_flags != 0 || count > MAX_HAVE_RANGES {
            return Err(DecodeError::Commit(
                "what a member tells contradicts itself",
            ));
        }
        let have = read_ranges(body, count, aru, high)?;
        Ok(Self {
            ring: RingId {
                ring_seq,
                rep,
                incarnation,
            },
            aru,
            high,
            safe_line,
            obligations,
            next_message,
            settings,
            counts,
            have,
            more: flags & FLAG_MORE != 0,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.ring.ring_seq.to_le_bytes());
        out.extend_from_slice(&self.ring.incarnation.0.to_le_bytes());
        out.extend_from_slice(&self.ring.rep.get().to_le_bytes());
        for seq in [self.aru, self.high, self.safe_line] {
            out.extend_from_slice(&seq.to_le_bytes());
        }
        out.extend_from_slice(&self.obligations.to_le_bytes());
        out.extend_from_slice(&self.next_message.to_le_bytes());
        self.settings.write(out);
        let electorates = u8::from(self.counts.more) * FLAG_MORE_ELECTORATES;
        out.push(u8::from(self.more) * FLAG_MORE + electorates);
        self.counts.write(out);
        let count = u16::try_from(self.have.len()).expect("ranges are bounded");
        out.extend_from_slice(&count.to_le_bytes());
        write_ranges(&self.have, out);
    }
}
