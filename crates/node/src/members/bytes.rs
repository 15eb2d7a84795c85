//! The list of nodes as bytes, on disk and between daemons. Decoding is total: there is an answer for all bytes.
//!
//! All numbers are little-endian. A version is the number (8), whether there is a ring (1), and the ring (18). A list is the
//! format (1), its version, the number of nodes (2), and the nodes by ascending id. A node is its id (2), the ports for data
//! and tokens (2, 2), its name and the name of its host, each behind its length (1), and the kind and bytes of its address:
//! 4 and 4, 6 and 16, or 0 and none where the host has a name.

use rota_core::bytes::{Reader, put_ring};
use rota_core::wire::MAX_MEMBERS;
use rota_net::NodeAddress;
use std::net::IpAddr;

use super::{MemberList, Version};

/// The layout of everything here.
const FORMAT: u8 = 1;

/// Appends a version.
pub fn put_version(bytes: &mut Vec<u8>, version: Version) {
    bytes.extend(version.number.to_le_bytes());
    bytes.push(u8::from(version.made.is_some()));
    if let Some(ring) = version.made {
        put_ring(bytes, ring);
    }
}

/// A version, as [`put_version`] writes it. `None` where there is none.
pub fn read_version(reader: &mut Reader<'_>) -> Option<Version> {
    let number = reader.u64()?;
    let made = match reader.flag()? {
        true => Some(reader.ring()?),
        false => None,
    };
    // The first list is the configuration's, and all others were ordered. A number this large never comes of counting.
    let is_sound = (number == 0) == made.is_none() && number < u64::MAX;
    is_sound.then_some(Version { number, made })
}

/// Appends a node.
pub fn put_node(bytes: &mut Vec<u8>, node: &NodeAddress) {
    for number in [node.id, node.data_port, node.token_port] {
        bytes.extend(number.to_le_bytes());
    }
    for text in [&node.name, &node.host] {
        let text = text.as_deref().unwrap_or_default().as_bytes();
        // Checked nodes have shorter names; what is cut off is refused by all who read it.
        let len = u8::try_from(text.len()).unwrap_or(u8::MAX);
        bytes.push(len);
        bytes.extend(&text[..usize::from(len)]);
    }
    match (&node.host, node.address) {
        (Some(_), _) => bytes.push(0),
        (None, IpAddr::V4(address)) => {
            bytes.push(4);
            bytes.extend(address.octets());
        }
        (None, IpAddr::V6(address)) => {
            bytes.push(6);
            bytes.extend(address.octets());
        }
    }
}

/// A node, as [`put_node`] writes it. `None` where there is none.
pub fn read_node(reader: &mut Reader<'_>) -> Option<NodeAddress> {
    let [id, data_port, token_port] = [reader.u16()?, reader.u16()?, reader.u16()?];
    let [name, host] = [text(reader)?, text(reader)?];
    let address = match (reader.byte()?, &host) {
        (0, Some(_)) => None,
        (4, None) => Some(IpAddr::from(reader.take::<4>()?)),
        (6, None) => Some(IpAddr::from(reader.take::<16>()?)),
        _ => return None,
    };
    let place = match (address, host) {
        (Some(address), _) => address.to_string(),
        (None, Some(host)) => host,
        (None, None) => return None,
    };
    let node = NodeAddress::at(id, &place, (data_port, token_port));
    // The name of a host that reads as an address is none.
    let is_sound = node.host.is_none() == address.is_some() && node.has_sound_host();
    (is_sound && id != 0).then_some(NodeAddress { name, ..node })
}

/// A text behind its length; an empty one is none.
fn text(reader: &mut Reader<'_>) -> Option<Option<String>> {
    let len = usize::from(reader.byte()?);
    let (text, rest) = reader.0.split_at_checked(len)?;
    reader.0 = rest;
    let text = str::from_utf8(text).ok()?;
    Some((!text.is_empty()).then(|| text.to_owned()))
}

impl MemberList {
    /// The list as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        put_version(&mut bytes, self.version);
        bytes.extend((self.nodes.len() as u16).to_le_bytes());
        for node in &self.nodes {
            put_node(&mut bytes, node);
        }
        bytes
    }

    /// A checksum of all that is in the list: tells apart what hosts with different files begin with.
    pub fn checksum(&self) -> u32 {
        crc_fast::crc32_iscsi(&self.encode())
    }

    /// A list from its bytes; `None` where they are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        (reader.byte()? == FORMAT && bytes.len() <= Self::MOST_BYTES).then_some(())?;
        let version = read_version(&mut reader)?;
        let count = usize::from(reader.u16()?);
        (1..=MAX_MEMBERS).contains(&count).then_some(())?;
        let nodes: Option<Vec<NodeAddress>> = (0..count).map(|_| read_node(&mut reader)).collect();
        let nodes = nodes?;
        let ascending = nodes.is_sorted_by(|one, next| one.id < next.id);
        (ascending && reader.0.is_empty()).then_some(Self { version, nodes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_core::contract::{Incarnation, NodeId, RingId};

    fn list() -> MemberList {
        let mut named = NodeAddress::at(2, "rota-2.example", (7701, 7702));
        named.name = Some("left".to_owned());
        let made = RingId {
            ring_seq: 1 << 40,
            rep: NodeId::new(2).unwrap(),
            incarnation: Incarnation(99),
        };
        MemberList {
            version: Version {
                number: 7,
                made: Some(made),
            },
            nodes: vec![
                NodeAddress::at(1, "10.0.0.1", (7701, 7702)),
                named,
                NodeAddress::at(70, "fe80::7", (1, 65_535)),
            ],
        }
    }

    #[test]
    fn a_list_is_read_as_it_was_written_and_no_part_of_it_is_one() {
        let list = list();
        let bytes = list.encode();
        assert_eq!(MemberList::decode(&bytes), Some(list));
        for len in 0..bytes.len() {
            assert_eq!(MemberList::decode(&bytes[..len]), None, "{len} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(MemberList::decode(&longer), None);
    }

    /// What is read is written as it was: no two texts of bytes are one list, and any flipped bit is another list or none.
    #[test]
    fn there_is_an_answer_for_flipped_bits() {
        let bytes = list().encode();
        let mut read = 0;
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Some(list) = MemberList::decode(&flipped) {
                assert_eq!(list.encode(), flipped, "bit {bit}");
                read += 1;
            }
        }
        assert!(read > 0, "numbers and texts may be others");
    }

    #[test]
    fn lists_that_nobody_writes_are_none() {
        let refused = |change: fn(&mut MemberList)| {
            let mut list = list();
            change(&mut list);
            assert_eq!(MemberList::decode(&list.encode()), None);
        };
        refused(|list| list.nodes.swap(0, 1));
        refused(|list| list.nodes.clear());
        refused(|list| list.nodes[0].id = 0);
        refused(|list| list.nodes[1].host = Some("no host".to_owned()));
        refused(|list| list.nodes[1].host = Some("10.0.0.2".to_owned()));
        refused(|list| list.version.made = None);
        refused(|list| list.version.number = 0);
        refused(|list| list.version.number = u64::MAX);
    }
}
