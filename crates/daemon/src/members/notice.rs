//! The list of nodes for a node that is not on the ring: in notices, which any listed node hears under the cluster's key.
//! Decoding is total: there is an answer for all bytes.
//!
//! A notice begins with [`NOTICE`] (1), the format (1), the part's number (2), the cluster (4), the bytes of the whole list
//! (4), those of this part (2), and the checksum of the whole list (4); the rest of its header is zero. Then come the part,
//! and room for the seal.

use std::collections::BTreeMap;

use rota_core::bytes::Reader;
use rota_net::{MOST_NOTICE_BYTES, NOTICE, NOTICE_HEADER_BYTES};
use rota_node::MemberList;

const FORMAT: u8 = 1;

/// The list as notices, each with so many bytes at its end for a seal or checksum.
pub fn notices(list: &MemberList, cluster: u32, seal_bytes: usize) -> Vec<Vec<u8>> {
    let (whole, checksum) = (list.encode(), list.checksum());
    let part = |(index, part): (usize, &[u8])| {
        let mut bytes = vec![NOTICE, FORMAT];
        bytes.extend((index as u16).to_le_bytes());
        bytes.extend(cluster.to_le_bytes());
        bytes.extend((whole.len() as u32).to_le_bytes());
        bytes.extend((part.len() as u16).to_le_bytes());
        bytes.extend(checksum.to_le_bytes());
        bytes.resize(NOTICE_HEADER_BYTES, 0);
        bytes.extend(part);
        bytes.resize(bytes.len() + seal_bytes, 0);
        bytes
    };
    let parts = whole.chunks(MOST_NOTICE_BYTES);
    parts.enumerate().map(part).collect()
}

/// What tells one list from another: its bytes, and its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Whole {
    total: usize,
    checksum: u32,
}

/// Part `index` of a list.
#[derive(Debug)]
struct Part<'a> {
    index: usize,
    whole: Whole,
    bytes: &'a [u8],
}

impl<'a> Part<'a> {
    fn read(notice: &'a [u8], cluster: u32) -> Option<Self> {
        let (header, rest) = notice.split_at_checked(NOTICE_HEADER_BYTES)?;
        let mut reader = Reader(header);
        (reader.take()? == [NOTICE, FORMAT]).then_some(())?;
        let index = usize::from(reader.u16()?);
        (reader.u32()? == cluster).then_some(())?;
        let total = reader.u32()? as usize;
        let bytes = rest.get(..usize::from(reader.u16()?))?;
        let checksum = reader.u32()?;
        let left = total.checked_sub(index * MOST_NOTICE_BYTES)?;
        let fits = total <= MemberList::MOST_BYTES && bytes.len() == left.min(MOST_NOTICE_BYTES);
        (fits && !bytes.is_empty()).then_some(Self {
            index,
            whole: Whole { total, checksum },
            bytes,
        })
    }
}

/// The parts of a list that have come. One of another list begins anew: notices come again and again.
#[derive(Debug, Default)]
pub struct Parts {
    whole: Whole,
    parts: BTreeMap<usize, Vec<u8>>,
}

impl Parts {
    /// Takes a notice; the list, once all parts of it are there.
    ///
    /// # Errors
    /// [`Nonsense`].
    pub fn take(&mut self, notice: &[u8], cluster: u32) -> Result<Option<MemberList>, Nonsense> {
        let part = Part::read(notice, cluster).ok_or(Nonsense)?;
        if part.whole != self.whole {
            self.parts.clear();
            self.whole = part.whole;
        }
        self.parts.insert(part.index, part.bytes.to_vec());
        if self.parts.len() < self.whole.total.div_ceil(MOST_NOTICE_BYTES) {
            return Ok(None);
        }
        let bytes: Vec<u8> = std::mem::take(&mut self.parts)
            .into_values()
            .flatten()
            .collect();
        let list = MemberList::decode(&bytes).ok_or(Nonsense)?;
        match list.checksum() == self.whole.checksum {
            true => Ok(Some(list)),
            false => Err(Nonsense),
        }
    }
}

/// The notice, or the list of which it is the last part, makes no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nonsense;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use rota_net::NodeAddress;
    use rota_node::NodeConfig;

    use super::*;

    const CLUSTER: u32 = 77;

    fn list(nodes: u16) -> MemberList {
        let mut list = MemberList::of(&NodeConfig::loopback(1, 27_000));
        let named = |id: u16| {
            let host = format!("host-{id}.{}.example", "x".repeat(60));
            NodeAddress::at(id, &host, (7701, 7702))
        };
        list.nodes = (1..=nodes).map(named).collect();
        list
    }

    #[test]
    fn a_list_comes_whole_in_any_order_and_after_losses() {
        for nodes in [1, 3, 5, 100] {
            let list = list(nodes);
            let mut sent = notices(&list, CLUSTER, 4);
            assert!(sent.iter().all(|one| one.len() <= 512));
            let mut parts = Parts::default();
            sent.reverse();
            let last = sent.len() - 1;
            // One is lost at first.
            for notice in &sent[..last] {
                assert_eq!(parts.take(notice, CLUSTER), Ok(None));
            }
            let came: Vec<_> = sent.iter().map(|one| parts.take(one, CLUSTER)).collect();
            assert!(came.contains(&Ok(Some(list))), "{nodes} nodes");
        }
    }

    #[test]
    fn parts_of_two_lists_of_one_length_make_none() {
        let (one, mut other) = (list(10), list(10));
        other.nodes[0].data_port += 1;
        other.nodes[9].data_port += 1;
        let (one, other) = (notices(&one, CLUSTER, 4), notices(&other, CLUSTER, 4));
        let (ends, starts) = (&one[1..], &other[..1]);
        let mut parts = Parts::default();
        for notice in starts.iter().chain(ends) {
            assert_eq!(parts.take(notice, CLUSTER), Ok(None));
        }
        // A sender that is wrong about its list, or lies.
        let mut lies = [starts, ends].concat();
        let of_one: [u8; 4] = one[0][14..18].try_into().expect("four bytes");
        lies[0][14..18].copy_from_slice(&of_one);
        let last = lies.pop().expect("one");
        let mut parts = Parts::default();
        for notice in &lies {
            assert_eq!(parts.take(notice, CLUSTER), Ok(None));
        }
        assert_eq!(parts.take(&last, CLUSTER), Err(Nonsense));
    }

    #[test]
    fn notices_of_other_clusters_and_nonsense_are_told_apart() {
        let notice = &notices(&list(1), CLUSTER, 4)[0];
        let mut parts = Parts::default();
        assert_eq!(parts.take(notice, CLUSTER + 1), Err(Nonsense));
        for len in 0..notice.len() - 4 {
            assert_eq!(parts.take(&notice[..len], CLUSTER), Err(Nonsense));
        }
        assert_eq!(parts.take(notice, CLUSTER), Ok(Some(list(1))));
    }

    proptest! {
        #[test]
        fn there_is_an_answer_for_all_bytes(all in vec(vec(any::<u8>(), 0..100), 1..20)) {
            let mut parts = Parts::default();
            for mut bytes in all {
                prop_assert_eq!(parts.take(&bytes, CLUSTER), Err(Nonsense));
                // As far as the part itself.
                let header = [&[NOTICE, FORMAT, 0, 0], &CLUSTER.to_le_bytes()[..]].concat();
                let len = bytes.len().min(8);
                bytes[..len].copy_from_slice(&header[..len]);
                let _ = parts.take(&bytes, CLUSTER);
            }
        }
    }
}
