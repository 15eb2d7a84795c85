//! Keeps lists of nodes on disk, in a thread of its own: a disk may take its time, and the ring does not wait.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use rota_core::contract::NodeId;
use rota_node::members::Version;
use rota_node::{MemberFile, MemberList};

use crate::control::Control;

/// A list that was stored, or could not be.
pub(super) type Stored = (Version, Result<(), String>);

/// The thread; it stores what it was given before it ends.
#[derive(Debug)]
pub(super) struct Keeper {
    lists: Option<Sender<MemberList>>,
    stored: Receiver<Stored>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// For node `me`, whose file is `file`, or is made at `path` with the first list.
    pub fn start(
        path: PathBuf,
        me: NodeId,
        file: Option<MemberFile>,
        control: Control,
    ) -> io::Result<Self> {
        let (lists, given) = channel::<MemberList>();
        let (tell, stored) = channel();
        let keep = move || {
            let mut file = file;
            while let Ok(mut list) = given.recv() {
                // Only the newest counts.
                while let Ok(newer) = given.try_recv() {
                    list = newer;
                }
                let outcome = store(&mut file, &path, me, &list);
                if tell.send((list.version, outcome)).is_err() {
                    return;
                }
                control.look_at_members();
            }
        };
        let thread = thread::Builder::new().name("rota-members".to_owned());
        Ok(Self {
            lists: Some(lists),
            stored,
            thread: Some(thread.spawn(keep)?),
        })
    }

    /// Has a list stored.
    pub fn store(&self, list: MemberList) {
        if let Some(lists) = &self.lists {
            // The thread ends only after this.
            let _ = lists.send(list);
        }
    }

    /// What has come of the lists so far.
    pub fn outcomes(&self) -> impl Iterator<Item = Stored> {
        self.stored.try_iter()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.lists.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn store(
    slot: &mut Option<MemberFile>,
    path: &std::path::Path,
    me: NodeId,
    list: &MemberList,
) -> Result<(), String> {
    let mut file = match slot.take() {
        Some(file) => file,
        None => MemberFile::create(path.to_owned(), me, list).map_err(|error| error.to_string())?,
    };
    // One that was there already has an older list. After a failure the file is opened anew.
    file.store(list).map_err(|error| error.to_string())?;
    *slot = Some(file);
    Ok(())
}

#[cfg(test)]
mod tests {
    use rota_core::contract::{Incarnation, RingId};
    use rota_node::NodeConfig;

    use super::*;

    #[test]
    fn a_list_that_could_not_be_stored_can_be_once_the_disk_is_well() {
        let dir = tempfile::tempdir().expect("a directory");
        let me = NodeId::new(1).expect("not 0");
        let config = NodeConfig {
            state_dir: Some(dir.path().join("state")),
            ..NodeConfig::loopback(3, 27_000)
        };
        let path = MemberFile::path(&config, me).expect("it has a directory");
        let mut list = MemberList::of(&config);
        let mut file = None;
        store(&mut file, &path, me, &list).expect_err("there is no directory");
        std::fs::create_dir(dir.path().join("state")).expect("one");
        store(&mut file, &path, me, &list).expect("there is one now");
        // As after a failure: the file is there, with an older list.
        file = None;
        let made = RingId {
            ring_seq: 4,
            rep: me,
            incarnation: Incarnation(7),
        };
        list.version = Version {
            number: 1,
            made: Some(made),
        };
        store(&mut file, &path, me, &list).expect("it is opened anew");
        drop(file);
        let found = MemberFile::find(&config, me).expect("sound");
        assert_eq!(found.expect("it is there").1, list);
    }
}
