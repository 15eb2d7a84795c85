//! The token of a ring (thesis §3.1.1.2).

use alloc::vec::Vec;
use bytes::Buf;

use rota_core::contract::{NodeId, RingId, Seq};
use rota_core::wire::{DecodeError, HEADER_BYTES, Header, Kind, RequestRange};

/// The most ranges of requests in one token: as many as fit an Ethernet frame beside the other fields. Packets beyond
/// them are requested on a later visit.
pub const MAX_REQUEST_RANGES: usize = 110;

/// Bytes after the header of a token without requests.
const FIXED_BYTES: usize = 8 + 8 + 2 + 2 + 4 + 4 + 2;

pub(super) const RANGE_BYTES: usize = 8 + 4;

/// Ranges of requests that fit a token of at most `datagram_bytes`, the last `seal_bytes` of which are for the owner of
/// the sockets.
pub const fn request_ranges_in(datagram_bytes: usize, seal_bytes: usize) -> usize {
    let fixed = HEADER_BYTES + FIXED_BYTES + seal_bytes;
    let ranges = datagram_bytes.saturating_sub(fixed) / RANGE_BYTES;
    if ranges < MAX_REQUEST_RANGES {
        ranges
    } else {
        MAX_REQUEST_RANGES
    }
}

const FLAG_IDLE: u16 = 1;
const FLAG_RECOVERING: u16 = 2;

/// The token.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Token {
    /// The cluster that the token belongs to.
    pub cluster: u32,
    /// The ring that it orders.
    pub ring: RingId,
    /// The member that sent it.
    pub sender: NodeId,
    /// Grows by one with every hop: tells a new token from a repeated one.
    pub token_seq: u64,
    /// The last sequence number given to a packet.
    pub seq: Seq,
    /// All received up to: never above `seq`.
    pub aru: Seq,
    /// The member that lowered `aru` last, until `aru` has reached `seq` again.
    pub aru_id: Option<NodeId>,
    /// Packets multicast during the last rotation, retransmissions included.
    pub fcc: u32,
    /// Packets that all members together wanted to send in the last rotation.
    pub backlog: u32,
    /// Whether nothing happened in the last rotation: the receiver may hold the token, so it is not repeated soon.
    pub idle: bool,
    /// Whether some member still has packets of its old ring to send (Totem's `retrans_flg`, membership A8).
    pub recovering: bool,
    /// Packets to be sent again, ascending, none above `seq`; at most [`MAX_REQUEST_RANGES`].
    pub rtr: Vec<RequestRange>,
}

impl Token {
    pub(super) fn read(header: &Header, mut body: &[u8]) -> Result<Self, DecodeError> {
        if body.len() < FIXED_BYTES {
            return Err(DecodeError::Short);
        }
        let (seq, aru) = (body.get_u64_le(), body.get_u64_le());
        let aru_id = NodeId::new(body.get_u16_le());
        let flags = body.get_u16_le();
        let (fcc, backlog) = (body.get_u32_le(), body.get_u32_le());
        let count = usize::from(body.get_u16_le());
        if aru > seq {
            return Err(DecodeError::Token("a token's aru is above its seq"));
        }
        if flags & !(FLAG_IDLE | FLAG_RECOVERING) != 0 {
            return Err(DecodeError::Token("a token has unknown flags"));
        }
        let rtr = read_requests(body, count, seq)?;
        let (idle, recovering) = (flags & FLAG_IDLE != 0, flags & FLAG_RECOVERING != 0);
        let (cluster, ring, sender) = (header.cluster, header.ring()?, header.sender);
        Ok(Self {
            cluster,
            ring,
            sender,
            token_seq: header.seq,
            seq,
            aru,
            aru_id,
            fcc,
            backlog,
            idle,
            recovering,
            rtr,
        })
    }

    pub(super) fn encode_into(&self, out: &mut Vec<u8>) {
        let mut header = Header::of_ring(Kind::Token, self.cluster, self.ring, self.sender);
        header.seq = self.token_seq;
        header.write(out);
        out.extend_from_slice(&self.seq.to_le_bytes());
        out.extend_from_slice(&self.aru.to_le_bytes());
        out.extend_from_slice(&self.aru_id.map_or(0, NodeId::get).to_le_bytes());
        let idle = u16::from(self.idle) * FLAG_IDLE;
        let flags = idle | (u16::from(self.recovering) * FLAG_RECOVERING);
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&self.fcc.to_le_bytes());
        out.extend_from_slice(&self.backlog.to_le_bytes());
        let count = u16::try_from(self.rtr.len()).expect("requests are bounded");
        out.extend_from_slice(&count.to_le_bytes());
        write_ranges(&self.rtr, out);
    }
}

pub(super) fn write_ranges(ranges: &[RequestRange], out: &mut Vec<u8>) {
    for range in ranges {
        out.extend_from_slice(&range.first.to_le_bytes());
        out.extend_from_slice(&range.count.to_le_bytes());
    }
}

fn read_requests(
    mut body: &[u8],
    count: usize,
    seq: Seq,
) -> Result<Vec<RequestRange>, DecodeError> {
    if count > MAX_REQUEST_RANGES {
        return Err(DecodeError::Token("a token requests too many ranges"));
    }
    if body.len() != count * RANGE_BYTES {
        return Err(if body.len() < count * RANGE_BYTES {
            DecodeError::Short
        } else {
            DecodeError::Trailing
        });
    }
    read_ranges(&mut body, count, 0, seq)
}

/// Reads `count` ascending ranges, all above `above` and up to `most`.
pub(super) fn read_ranges(
    body: &mut &[u8],
    count: usize,
    mut above: Seq,
    most: Seq,
) -> Result<Vec<RequestRange>, DecodeError> {
    if body.len() < count * RANGE_BYTES {
        return Err(DecodeError::Short);
    }
    let mut ranges = Vec::with_capacity(count);
    for _ in 0..count {
        let (first, count) = (body.get_u64_le(), body.get_u32_le());
        let last = u64::from(count)
            .checked_sub(1)
            .and_then(|more| first.checked_add(more));
        match last {
            Some(last) if first > above && last <= most => above = last,
            _ => {
                return Err(DecodeError::Token("ranges are not ascending within bounds"));
            }
        }
        ranges.push(RequestRange { first, count });
    }
    debug_assert!(
        ranges.is_sorted_by(|one, next| one.last() < next.first),
        "ranges ascend, and have nothing in common"
    );
    Ok(ranges)
}
