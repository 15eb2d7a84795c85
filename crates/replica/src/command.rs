//! The messages that replicas have ordered, as bytes.

use crate::sessions::{ClientId, Sequence};

const OPEN: u8 = 1;
const CLOSE: u8 = 2;
const APPLY: u8 = 3;
const ONCE: u8 = 4;
const RENEW: u8 = 5;

/// A message of a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ordered<'a> {
    /// A session begins.
    Open(ClientId),
    /// A session ends.
    Close(ClientId),
    /// A session is in use, though its commands go to other rings.
    Renew(ClientId),
    /// A command of a session.
    Apply(ClientId, Sequence, &'a [u8]),
    /// A command of no session, which is given once: the giver, and the giver's number for it.
    Once(ClientId, Sequence, &'a [u8]),
}

impl<'a> Ordered<'a> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Open(client) => head(OPEN, *client, 0),
            Self::Close(client) => head(CLOSE, *client, 0),
            Self::Renew(client) => head(RENEW, *client, 0),
            Self::Apply(client, sequence, bytes) => numbered(APPLY, (*client, *sequence), bytes),
            Self::Once(giver, number, bytes) => numbered(ONCE, (*giver, *number), bytes),
        }
    }

    /// `None`: the message is of another user of the ring.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (client, rest) = rest.split_first_chunk()?;
        let client = u64::from_le_bytes(*client);
        match *kind {
            OPEN if rest.is_empty() => Some(Self::Open(client)),
            CLOSE if rest.is_empty() => Some(Self::Close(client)),
            RENEW if rest.is_empty() => Some(Self::Renew(client)),
            kind @ (APPLY | ONCE) => {
                let (sequence, rest) = rest.split_first_chunk()?;
                let sequence = u64::from_le_bytes(*sequence);
                Some(match kind {
                    APPLY => Self::Apply(client, sequence, rest),
                    _ => Self::Once(client, sequence, rest),
                })
            }
            _ => None,
        }
    }
}

fn head(kind: u8, client: ClientId, room: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(17 + room);
    out.push(kind);
    out.extend_from_slice(&client.to_le_bytes());
    out
}

fn numbered(kind: u8, (client, sequence): (ClientId, Sequence), bytes: &[u8]) -> Vec<u8> {
    let mut out = head(kind, client, bytes.len());
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ordered_is_read_as_it_was_written() {
        for ordered in [
            Ordered::Open(5),
            Ordered::Close(u64::MAX),
            Ordered::Renew(6),
            Ordered::Apply(7, 9, b"set x"),
            Ordered::Apply(7, 9, b""),
            Ordered::Once(7, 9, b"set x"),
        ] {
            let bytes = ordered.encode();
            assert_eq!(Ordered::decode(&bytes), Some(ordered));
            for at in 0..bytes.len().min(16) {
                assert_eq!(Ordered::decode(&bytes[..at]), None, "{at}");
            }
        }
        assert_eq!(Ordered::decode(&[9; 40]), None);
    }
}
