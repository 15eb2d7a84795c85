//! The manifest of a checkpoint: the bytes of its state, and what is to be known of it.

use sha2::{Digest as _, Sha256};

use super::error::Refused;

const MAGIC: &[u8; 8] = b"ROTACKPT";
const VERSION: u16 = 1;
/// The bytes before those that the replica says of the state.
const HEAD: usize = 80;
/// The bytes, at most, that a replica says of a state.
pub(super) const MOST_ABOUT: usize = 256 << 20;
/// The number of chunks, at most, of a state.
const MOST_CHUNKS: u64 = 1 << 22;

/// The owner of a state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Subject {
    /// The cluster's number.
    pub cluster: u64,
    /// The partition's.
    pub partition: u32,
}

/// The description of a state: its bytes, and what is to be known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The owner of the state.
    pub of: Subject,
    /// The store that has it: drawn with its directory.
    pub store: u64,
    /// Bytes of the state.
    pub bytes: u64,
    /// SHA-256 of the state.
    pub hash: [u8; 32],
    /// The words of the replica about the state, above all its point.
    pub about: Vec<u8>,
    /// The bytes of each chunk of the state; the last one may have fewer.
    pub chunk_bytes: u32,
    /// CRC-32C of each chunk.
    pub sums: Vec<u32>,
}

impl Manifest {
    /// Whether both are of the same state, wherever it is.
    pub fn is_same_state(&self, other: &Self) -> bool {
        let of = |manifest: &Self| (manifest.of, manifest.bytes, manifest.hash);
        let cut = |manifest: &Self| manifest.chunk_bytes;
        of(self) == of(other)
            && cut(self) == cut(other)
            && (&self.about, &self.sums) == (&other.about, &other.sums)
    }

    /// The place of a chunk, and its length. `None`: there is no such chunk.
    pub fn chunk(&self, index: usize) -> Option<(u64, usize)> {
        let at = (index as u64).checked_mul(u64::from(self.chunk_bytes))?;
        let left = self.bytes.checked_sub(at).filter(|left| *left > 0)?;
        let length = left.min(u64::from(self.chunk_bytes));
        Some((at, usize::try_from(length).ok()?))
    }

    /// As bytes, of a file or for a peer.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + self.about.len() + 4 * self.sums.len() + 4);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.of.partition.to_le_bytes());
        out.extend_from_slice(&self.of.cluster.to_le_bytes());
        out.extend_from_slice(&self.store.to_le_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.extend_from_slice(&self.hash);
        out.extend_from_slice(&self.chunk_bytes.to_le_bytes());
        // The caller has checked that it is not more than `MOST_ABOUT`.
        let about = u32::try_from(self.about.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&about.to_le_bytes());
        out.extend_from_slice(&self.about);
        for sum in &self.sums {
            out.extend_from_slice(&sum.to_le_bytes());
        }
        let sum = crc_fast::crc32_iscsi(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// Reads the bytes that [`Self::encode`] has made.
    ///
    /// # Errors
    /// The bytes are not whole, or `encode` cannot have made them.
    pub fn decode(bytes: &[u8]) -> Result<Self, Refused> {
        let (summed, sum) = bytes.split_last_chunk::<4>().ok_or(Refused::Cut)?;
        let head: &[u8; HEAD] = summed.first_chunk().ok_or(Refused::Cut)?;
        if &head[..8] != MAGIC {
            return Err(Refused::NoManifest);
        }
        if crc_fast::crc32_iscsi(summed).to_le_bytes() != *sum {
            return Err(Refused::Sum);
        }
        let mut fields = Fields(&head[8..]);
        let version = u16::from_le_bytes(fields.take());
        if version != VERSION {
            return Err(Refused::Version(version));
        }
        if fields.take() != [0; 2] {
            return Err(Refused::NoManifest);
        }
        let partition = u32::from_le_bytes(fields.take());
        let cluster = u64::from_le_bytes(fields.take());
        let (store, state) = (fields.number(), fields.number());
        let hash = fields.take();
        let chunk_bytes = u32::from_le_bytes(fields.take());
        let about = u32::from_le_bytes(fields.take()) as usize;
        let (about, sums) = summed[HEAD..]
            .split_at_checked(about)
            .filter(|(about, _)| about.len() <= MOST_ABOUT)
            .ok_or(Refused::Cut)?;
        let count = match chunk_bytes {
            0 => return Err(Refused::Chunks),
            bytes => state.div_ceil(u64::from(bytes)),
        };
        if count > MOST_CHUNKS || sums.len() as u64 != 4 * count {
            return Err(Refused::Chunks);
        }
        let (sums, _) = sums.as_chunks::<4>();
        Ok(Self {
            of: Subject { cluster, partition },
            store,
            bytes: state,
            hash,
            about: about.to_vec(),
            chunk_bytes,
            sums: sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect(),
        })
    }

    /// Whether these bytes are that chunk.
    pub fn has(&self, index: usize, chunk: &[u8]) -> bool {
        let sum = self.sums.get(index);
        let length = self.chunk(index).map(|(_, length)| length);
        length == Some(chunk.len()) && sum == Some(&crc_fast::crc32_iscsi(chunk))
    }
}

/// Numbers, one after the other. Lengths were looked at before.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; N],
        }
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// Sums over a state, as it comes.
#[derive(Clone, Default, Debug)]
pub(super) struct Sums {
    hash: Sha256,
    chunks: Vec<u32>,
    bytes: u64,
}

impl Sums {
    /// The next chunk.
    pub(super) fn add(&mut self, chunk: &[u8]) {
        self.hash.update(chunk);
        self.chunks.push(crc_fast::crc32_iscsi(chunk));
        self.bytes += chunk.len() as u64;
    }

    /// Bytes so far.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The hash of all of it.
    pub(super) fn hash(self) -> [u8; 32] {
        self.hash.finalize().into()
    }

    /// The manifest of all of it.
    pub(super) fn manifest(
        self,
        of: Subject,
        store: u64,
        about: Vec<u8>,
        chunk_bytes: u32,
    ) -> Manifest {
        Manifest {
            of,
            store,
            bytes: self.bytes,
            hash: self.hash.finalize().into(),
            about,
            chunk_bytes,
            sums: self.chunks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(state: &[u8], about: &[u8]) -> Manifest {
        let mut sums = Sums::default();
        state.chunks(7).for_each(|chunk| sums.add(chunk));
        let of = Subject {
            cluster: 9,
            partition: 4,
        };
        sums.manifest(of, 77, about.to_vec(), 7)
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        for (state, about) in [(&b""[..], &b""[..]), (b"1234567", b"x"), (b"12345678", b"")] {
            let manifest = manifest(state, about);
            assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
        }
    }

    #[test]
    fn no_other_byte_and_no_part_of_it_is_taken() {
        let whole = manifest(b"a state of some bytes", b"about it").encode();
        for at in 0..whole.len() {
            assert!(Manifest::decode(&whole[..at]).is_err(), "cut at {at}");
            let mut other = whole.clone();
            other[at] ^= 0x10;
            assert!(Manifest::decode(&other).is_err(), "byte {at}");
        }
    }

    /// A sender that sums as we do can say anything.
    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let whole = manifest(b"a state", b"about it");
        let with = |change: &dyn Fn(&mut Manifest)| {
            let mut other = whole.clone();
            change(&mut other);
            Manifest::decode(&other.encode())
        };
        assert_eq!(with(&|other| other.bytes = u64::MAX), Err(Refused::Chunks));
        assert_eq!(with(&|other| other.chunk_bytes = 0), Err(Refused::Chunks));
        assert_eq!(with(&|other| other.sums.push(1)), Err(Refused::Chunks));
        assert_eq!(with(&|other| other.sums.clear()), Err(Refused::Chunks));
    }

    #[test]
    fn chunks_are_what_they_say() {
        let manifest = manifest(b"12345678", b"");
        assert_eq!(manifest.chunk(0), Some((0, 7)));
        assert_eq!(manifest.chunk(1), Some((7, 1)));
        assert_eq!(manifest.chunk(2), None);
        assert_eq!(manifest.chunk(usize::MAX), None);
        assert!(manifest.has(1, b"8") && !manifest.has(1, b"9"));
        assert!(!manifest.has(0, b"8") && !manifest.has(2, b""));
    }
}
