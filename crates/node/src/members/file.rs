//! The list of nodes on a node's disk: two copies of one record, as that of primaries is kept.

use rota_core::contract::NodeId;
use rota_storage::{OnDamage, OpenError, Opening, PrimaryFile, StoreError};
use std::fmt;
use std::path::PathBuf;

use super::MemberList;
use crate::config::{ConfigError, NodeConfig};

/// Why the list on disk cannot be used. The node must not start with another one.
#[derive(Debug)]
pub enum MemberFileError {
    /// The file cannot be opened.
    Open(OpenError),
    /// The file is damaged, another node's, or of a later version.
    Unusable(PathBuf, Option<OpenError>),
    /// This node is not in the list: it was removed.
    Removed(NodeId, PathBuf),
    /// The list does not go with the rest of the configuration.
    Nodes(PathBuf, ConfigError),
}

impl fmt::Display for MemberFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, error) = match self {
            Self::Open(error) => return error.fmt(f),
            Self::Removed(node, path) => {
                return write!(
                    f,
                    "node {node} was removed from the cluster, as {} says: to have it again, let `rota member add` add it at another \
                     node, list the nodes that there are in its configuration, and move that file away",
                    path.display()
                );
            }
            Self::Nodes(path, error) => {
                return write!(
                    f,
                    "{}: the list of nodes that is kept there: {error}",
                    path.display()
                );
            }
            Self::Unusable(path, error) => (path.display(), error),
        };
        write!(f, "{path}: the list of nodes that is kept there ")?;
        match error {
            Some(OpenError::WrongNode { found, wanted, .. }) => {
                write!(f, "is that of node {found}, and this is node {wanted}")
            }
            Some(OpenError::Version { .. }) => {
                f.write_str("was written by a later version of this program")
            }
            Some(_) => f.write_str("is damaged"),
            None => f.write_str("is of a later version, or damaged"),
        }?;
        f.write_str(
            ": move the file away; then this node begins with the nodes of its configuration, and learns the newest list from \
             any of them",
        )
    }
}

impl std::error::Error for MemberFileError {}

/// The file with a node's list of nodes.
#[derive(Debug)]
pub struct MemberFile(PrimaryFile);

impl MemberFile {
    /// The file of node `me`, which need not be there; `None` for a node that keeps nothing on disk.
    pub fn path(config: &NodeConfig, me: NodeId) -> Option<PathBuf> {
        let directory = config.state_dir.as_ref()?;
        Some(directory.join(format!("node-{me}.members")))
    }

    /// Opens the file of node `me`, if it is there, and reads the list in it.
    ///
    /// # Errors
    /// [`MemberFileError`].
    pub fn find(
        config: &NodeConfig,
        me: NodeId,
    ) -> Result<Option<(Self, MemberList)>, MemberFileError> {
        let Some(path) = Self::path(config, me).filter(|path| path.exists()) else {
            return Ok(None);
        };
        let file = Self::open(path.clone(), me, &[])?;
        let list = MemberList::decode(file.0.record());
        let list = list.ok_or(MemberFileError::Unusable(path, None))?;
        Ok(Some((file, list)))
    }

    /// Makes the file of node `me`, with this list.
    ///
    /// # Errors
    /// [`MemberFileError`].
    pub fn create(path: PathBuf, me: NodeId, list: &MemberList) -> Result<Self, MemberFileError> {
        Self::open(path, me, &list.encode())
    }

    fn open(path: PathBuf, me: NodeId, first: &[u8]) -> Result<Self, MemberFileError> {
        let opening = Opening {
            first,
            lived_before: false,
            on_damage: OnDamage::Refuse,
        };
        let opened = PrimaryFile::open(path.clone(), me, opening);
        opened.map(Self).map_err(|error| match error.reset_helps() {
            true => MemberFileError::Unusable(path, Some(error)),
            false => MemberFileError::Open(error),
        })
    }

    /// Makes a list durable.
    ///
    /// # Errors
    /// [`StoreError`]; after a crash the list is this one or the one before.
    pub fn store(&mut self, list: &MemberList) -> Result<(), StoreError> {
        self.0.store(&list.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::{Change, Version};
    use rota_core::contract::{Incarnation, RingId};
    use rota_net::NodeAddress;

    fn id(node: u16) -> NodeId {
        NodeId::new(node).unwrap()
    }

    fn next(list: &MemberList, config: &NodeConfig) -> MemberList {
        let made = RingId {
            ring_seq: 4,
            rep: id(1),
            incarnation: Incarnation(7),
        };
        let last = list.nodes.last().expect("a node").id;
        let node = NodeAddress::at(last + 1, "127.0.0.1", (9000 + 2 * last, 9001 + 2 * last));
        let list = list.with(&Change::Add(node), made, config);
        list.expect("a node more")
    }

    #[test]
    fn a_list_is_found_again_and_a_file_that_is_not_sound_is_refused_in_words() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut config = NodeConfig::loopback(3, 27_000);
        assert_eq!(MemberFile::path(&config, id(1)), None);
        config.state_dir = Some(dir.path().to_owned());
        assert!(MemberFile::find(&config, id(1)).expect("no file").is_none());
        let path = MemberFile::path(&config, id(1)).expect("it has a directory");
        let one = next(&MemberList::of(&config), &config);
        let two = next(&one, &config);
        let mut file = MemberFile::create(path.clone(), id(1), &one).expect("a new file");
        file.store(&two).expect("there is room");
        let busy = MemberFile::find(&config, id(1)).expect_err("another has it");
        assert!(busy.to_string().contains("in use"), "{busy}");
        drop(file);
        let (file, found) = MemberFile::find(&config, id(1))
            .expect("sound")
            .expect("there");
        assert_eq!(found, two);
        assert!(found.version > Version::FIRST);
        drop(file);

        let other = MemberFile::path(&config, id(2)).expect("it has a directory");
        std::fs::copy(&path, other).expect("a copy");
        let wrong = MemberFile::find(&config, id(2)).expect_err("another node's");
        assert!(wrong.to_string().contains("is that of node 1"), "{wrong}");
        std::fs::write(&path, b"nothing").expect("it is ours");
        let wrong = MemberFile::find(&config, id(1)).expect_err("damaged");
        assert!(
            wrong.to_string().contains("is damaged: move the file away"),
            "{wrong}"
        );
    }
}
