//! The charters of rings on a node's disk: two copies of one record, as that of primaries is kept.
//!
//! A node that is started again is on these rings from its beginning, also while the ring that has ordered their
//! charters is not there.

use bytes::{Buf as _, Bytes};
use rota_core::contract::NodeId;
use rota_multiring::charters::{Chartered, MOST_CHARTER, MOST_CHARTERS};
use rota_storage::{OnDamage, OpenError, Opening, PrimaryFile, StoreError};
use std::fmt;
use std::path::PathBuf;

use super::config::RingsConfig;
use super::error::RingsError;
use crate::config::VoteStorage;

const VERSION: u8 = 1;

/// The charters that a node keeps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct KeptCharters {
    /// The ring that has ordered them.
    pub control: u16,
    /// Its foundation; 0 if there is none.
    pub founded: u64,
    /// The rings' numbers, and their charters, in the order in which they were ordered.
    pub charters: Vec<(u16, Chartered)>,
}

impl KeptCharters {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::from([VERSION]);
        out.extend(self.control.to_le_bytes());
        out.extend(self.founded.to_le_bytes());
        out.extend((self.charters.len() as u16).to_le_bytes());
        for (ring, of) in &self.charters {
            out.extend(ring.to_le_bytes());
            out.extend(of.at.to_le_bytes());
            out.extend(of.from.to_le_bytes());
            out.extend((of.charter.len() as u16).to_le_bytes());
            out.extend_from_slice(&of.charter);
        }
        out
    }

    /// Reads the bytes of [`Self::encode`]; `None` for anything else.
    fn decode(mut bytes: Bytes) -> Option<Self> {
        let version = bytes.try_get_u8().ok()?;
        let control = bytes.try_get_u16_le().ok()?;
        let founded = bytes.try_get_u64_le().ok()?;
        let count = usize::from(bytes.try_get_u16_le().ok()?);
        let charters = (0..count).map(|_| charter(&mut bytes));
        let charters: Vec<(u16, Chartered)> = charters.collect::<Option<_>>()?;
        let is_sorted = charters.is_sorted_by_key(|(_, of)| of.at);
        let is_whole = version == VERSION && founded > 0 && bytes.is_empty();
        (is_whole && is_sorted && count <= MOST_CHARTERS).then_some(Self {
            control,
            founded,
            charters,
        })
    }
}

fn charter(bytes: &mut Bytes) -> Option<(u16, Chartered)> {
    let ring = bytes.try_get_u16_le().ok()?;
    let at = bytes.try_get_u64_le().ok()?;
    let from = bytes.try_get_u64_le().ok()?;
    let len = usize::from(bytes.try_get_u16_le().ok()?);
    let is_there = len <= MOST_CHARTER.min(bytes.len());
    let charter = is_there.then(|| bytes.split_to(len))?;
    Some((ring, Chartered { at, from, charter }))
}

/// Why the file with charters cannot be used. The node must not start without it: others are on these rings.
#[derive(Debug)]
pub enum CharterFileError {
    /// The file cannot be opened.
    Open(OpenError),
    /// The file is damaged, another node's, or of a later version.
    Unusable(PathBuf),
}

impl fmt::Display for CharterFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Unusable(path) => write!(
                f,
                "{}: the charters that are kept there are damaged, another node's, or of a later version of this program: move \
                 the file away; then this node is on these rings when it has heard of them again",
                path.display()
            ),
        }
    }
}

impl std::error::Error for CharterFileError {}

/// The file with the charters of a node.
#[derive(Debug)]
pub(super) struct CharterFile {
    path: PathBuf,
    me: NodeId,
    /// Open, if it is there.
    file: Option<PrimaryFile>,
}

impl CharterFile {
    /// The file of node `me`, and the charters in it; `None` for a node that keeps no votes of the control ring on disk:
    /// if all forget them, there are no such rings any more.
    pub(super) fn open(
        config: &RingsConfig,
        me: NodeId,
    ) -> Result<Option<(Self, KeptCharters)>, CharterFileError> {
        let Some(path) = path(config, me) else {
            return Ok(None);
        };
        let is_there = path.exists();
        let file = None;
        let mut of = Self { path, me, file };
        if !is_there {
            return Ok(Some((of, KeptCharters::default())));
        }
        let file = of.open_with(&[])?;
        let kept = KeptCharters::decode(Bytes::copy_from_slice(file.record()));
        of.file = Some(file);
        let kept = kept.ok_or_else(|| CharterFileError::Unusable(of.path.clone()))?;
        Ok(Some((of, kept)))
    }

    fn open_with(&self, first: &[u8]) -> Result<PrimaryFile, CharterFileError> {
        let opening = Opening {
            first,
            lived_before: false,
            on_damage: OnDamage::Refuse,
        };
        let opened = PrimaryFile::open(self.path.clone(), self.me, opening);
        opened.map_err(|error| match error.reset_helps() {
            true => CharterFileError::Unusable(self.path.clone()),
            false => CharterFileError::Open(error),
        })
    }

    /// Makes the charters durable.
    pub(super) fn store(&mut self, kept: &KeptCharters) -> Result<(), NotKept> {
        let bytes = kept.encode();
        match &mut self.file {
            Some(file) => file.store(&bytes).map_err(NotKept::Store),
            None => {
                self.file = Some(self.open_with(&bytes).map_err(NotKept::Create)?);
                Ok(())
            }
        }
    }
}

/// Why charters were not made durable.
#[derive(Debug)]
pub(super) enum NotKept {
    Create(CharterFileError),
    Store(StoreError),
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

fn path(config: &RingsConfig, me: NodeId) -> Option<PathBuf> {
    let control: Result<_, RingsError> = config.of_ring(config.control());
    let storage = control.ok()?.vote_storage();
    let directory = config.common.state_dir.as_ref();
    let directory = directory.filter(|_| storage != Some(VoteStorage::Memory))?;
    Some(directory.join(format!("node-{me}.charters")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rota_multiring::{Charter, Rank};

    fn id(node: u16) -> NodeId {
        NodeId::new(node).expect("not 0")
    }

    fn kept() -> KeptCharters {
        let of = |ring: u16, at| {
            let charter = Charter::new(Rank(ring), 40, [1, 2, 3].map(id)).encode();
            let from = 1 << 40;
            (ring, Chartered { at, from, charter })
        };
        KeptCharters {
            control: 3,
            founded: 77,
            charters: vec![of(9, 12), of(7, 15)],
        }
    }

    #[test]
    fn they_are_read_as_they_were_written_and_nothing_else_is() {
        let whole = kept().encode();
        assert_eq!(KeptCharters::decode(whole.clone().into()), Some(kept()));
        for end in 0..whole.len() {
            let part = Bytes::copy_from_slice(&whole[..end]);
            assert_eq!(KeptCharters::decode(part), None, "{end}");
        }
        let more = [&whole[..], &[0]].concat();
        assert_eq!(KeptCharters::decode(more.into()), None);
        let mut turned = kept();
        turned.charters.reverse();
        assert_eq!(KeptCharters::decode(turned.encode().into()), None);
    }

    #[test]
    fn as_many_as_there_may_be_fit_into_the_file() {
        let charter = Bytes::from(vec![1; MOST_CHARTER]);
        let of = |ring: u16| {
            let (at, charter) = (u64::from(ring) + 1, charter.clone());
            (
                ring,
                Chartered {
                    at,
                    from: 1,
                    charter,
                },
            )
        };
        let kept = KeptCharters {
            control: 1,
            founded: 1,
            charters: (0..MOST_CHARTERS as u16).map(of).collect(),
        };
        let (mut file, _, _dir) = new_file();
        file.store(&kept).expect("there is room");
    }

    fn new_file() -> (CharterFile, RingsConfig, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut config = RingsConfig::loopback(3, 1, 27_100);
        config.common.state_dir = Some(dir.path().to_owned());
        let (file, found) = CharterFile::open(&config, id(1))
            .expect("it is sound")
            .expect("it keeps votes");
        assert_eq!(found, KeptCharters::default());
        (file, config, dir)
    }

    #[test]
    fn they_are_found_again_and_a_file_that_is_not_sound_is_refused_in_words() {
        let (mut file, mut config, _dir) = new_file();
        file.store(&kept()).expect("there is room");
        let mut more = kept();
        more.charters.pop();
        file.store(&more).expect("there is room");
        let busy = CharterFile::open(&config, id(1)).expect_err("another has it");
        assert!(busy.to_string().contains("in use"), "{busy}");
        drop(file);
        let open = |config: &RingsConfig, node| CharterFile::open(config, id(node));
        let again = open(&config, 1).expect("sound").expect("it keeps votes");
        assert_eq!(again.1, more);
        drop(again);
        let path = path(&config, id(1)).expect("a directory");
        let other = path.with_file_name("node-2.charters");
        std::fs::copy(&path, other).expect("a copy");
        let wrong = open(&config, 2).expect_err("another node's");
        assert!(wrong.to_string().contains("move the file away"), "{wrong}");
        std::fs::write(&path, b"nothing").expect("it is ours");
        let wrong = open(&config, 1).expect_err("damaged");
        assert!(wrong.to_string().contains("are damaged"), "{wrong}");
        config.common.paxos = Some(crate::PaxosConfig {
            storage: VoteStorage::Memory,
            ..crate::PaxosConfig::default()
        });
        assert!(open(&config, 1).expect("no file").is_none());
    }
}
