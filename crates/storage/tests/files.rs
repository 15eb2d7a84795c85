//! Real files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rota_core::contract::NodeId;
use rota_storage::{OnDamage, OpenError, RingIdFile, StoreError};

/// The offset of the second slot.
const SECOND: usize = 4096;
/// Bytes of a slot that are used.
const USED: usize = 36;

fn id(node: u16) -> NodeId {
    NodeId::new(node).unwrap()
}

fn open(path: &Path) -> Result<RingIdFile, OpenError> {
    RingIdFile::open(path.to_owned(), id(1), OnDamage::Refuse)
}

fn reset(path: &Path) -> RingIdFile {
    RingIdFile::open(path.to_owned(), id(1), OnDamage::Reset).unwrap()
}

/// A directory with a file that holds 8, and 4 in its other slot.
fn prepared() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node-1.ring");
    let mut file = open(&path).unwrap();
    file.store(4).unwrap();
    file.store(8).unwrap();
    (directory, path)
}

#[test]
fn a_first_start_has_no_value_and_later_ones_have_the_last() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node-1.ring");
    assert_eq!(open(&path).unwrap().value(), None);
    assert_eq!(open(&path).unwrap().value(), None);
    for value in [0, 1, u64::from(u32::MAX) + 1, u64::MAX] {
        let mut file = open(&path).unwrap();
        file.store(value).unwrap();
        assert_eq!(file.value(), Some(value));
        drop(file);
        let file = open(&path).unwrap();
        assert_eq!((file.value(), file.lost_a_slot()), (Some(value), false));
    }
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn two_processes_cannot_use_one_file() {
    let (_directory, path) = prepared();
    let first = open(&path).unwrap();
    for on_damage in [OnDamage::Refuse, OnDamage::Reset] {
        let error = RingIdFile::open(path.clone(), id(1), on_damage).unwrap_err();
        assert!(matches!(error, OpenError::InUse(_)), "{error}");
    }
    drop(first);
    open(&path).unwrap();
}

#[test]
fn a_file_of_every_length_is_refused_or_read() {
    let (_directory, path) = prepared();
    let whole = fs::read(&path).unwrap();
    for len in 0..whole.len() {
        if len > USED && len < SECOND - 1 || len > SECOND + USED {
            continue;
        }
        fs::write(&path, &whole[..len]).unwrap();
        match open(&path) {
            Err(error) => {
                assert!(len < USED, "{len} bytes: {error}");
                assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
                let said = error.to_string();
                assert!(said.contains("node-1.ring"), "{said}");
                assert!(said.contains("reset_ring_id"), "{said}");
            }
            // The first slot has 8.
            Ok(file) => {
                assert!(len >= USED, "{len} bytes");
                assert_eq!(file.value(), Some(8), "{len} bytes");
                assert_eq!(file.lost_a_slot(), len < SECOND + USED, "{len} bytes");
            }
        }
    }
}

#[test]
fn with_one_slot_damaged_the_other_counts_and_the_next_write_repairs_it() {
    for (at, left) in [(0, 4), (SECOND, 8)] {
        // Some of the bits: each costs a few syncs.
        for bit in (0..USED * 8).step_by(13) {
            let (_directory, path) = prepared();
            let mut bytes = fs::read(&path).unwrap();
            bytes[at + bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, bytes).unwrap();
            let mut file = open(&path).unwrap();
            assert_eq!((file.value(), file.lost_a_slot()), (Some(left), true));
            file.store(left + 100).unwrap();
            drop(file);
            let file = open(&path).unwrap();
            assert_eq!(file.value(), Some(left + 100));
            assert!(!file.lost_a_slot());
        }
    }
}

#[test]
fn a_reset_replaces_what_is_refused_and_keeps_what_is_good() {
    let (_directory, path) = prepared();
    assert_eq!(reset(&path).value(), Some(8), "nothing is wrong with it");
    fs::write(&path, [0xff; 100]).unwrap();
    assert!(matches!(open(&path), Err(OpenError::Damaged { .. })));
    assert_eq!(reset(&path).value(), Some(0), "no ring has it");
    let mut file = open(&path).unwrap();
    assert_eq!(file.value(), Some(0));
    file.store(5).unwrap();
}

#[test]
fn another_nodes_file_is_refused_until_it_is_reset() {
    let (directory, path) = prepared();
    let other = directory.path().join("node-2.ring");
    fs::copy(&path, &other).unwrap();
    let error = RingIdFile::open(other.clone(), id(2), OnDamage::Refuse).unwrap_err();
    assert!(
        matches!(error, OpenError::WrongNode { found: 1, .. }),
        "{error}"
    );
    let file = RingIdFile::open(other, id(2), OnDamage::Reset).unwrap();
    assert_eq!(file.value(), Some(0));
}

#[test]
fn a_later_versions_file_is_refused_though_its_other_slot_is_good() {
    let (_directory, path) = prepared();
    let mut bytes = fs::read(&path).unwrap();
    bytes[SECOND + 8] = 2;
    let sum = crc_fast::crc32_iscsi(&bytes[SECOND..SECOND + 32]).to_le_bytes();
    bytes[SECOND + 32..SECOND + USED].copy_from_slice(&sum);
    fs::write(&path, bytes).unwrap();
    let error = open(&path).unwrap_err();
    assert!(
        matches!(error, OpenError::Version { found: 2, .. }),
        "{error}"
    );
}

#[test]
fn a_missing_directory_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let error = open(&missing.join("node-1.ring")).unwrap_err();
    assert!(matches!(error, OpenError::NoDirectory(_)), "{error}");
    assert!(error.to_string().contains("missing"), "{error}");
    assert!(!missing.exists());
}

#[test]
fn what_a_crashed_first_start_left_is_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node-1.ring");
    let half = directory.path().join("node-1.ring.new");
    for bytes in [&[][..], &[7; 20], &[7; 100_000]] {
        fs::write(&half, bytes).unwrap();
        assert_eq!(open(&path).unwrap().value(), None);
        assert!(!half.exists());
        assert_eq!(fs::metadata(&path).unwrap().len(), 2 * SECOND as u64);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_name_that_is_no_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node-1.ring");
    fs::create_dir(&path).unwrap();
    assert!(matches!(open(&path), Err(OpenError::Io { .. })));
}

/// A small file system that is gone afterwards.
struct Mount(tempfile::TempDir);

impl Mount {
    fn new(options: &str) -> Self {
        let mount = Self(tempfile::tempdir().unwrap());
        mount.run(&["-t", "tmpfs", "-o", options, "tmpfs"]);
        mount
    }

    fn run(&self, arguments: &[&str]) {
        let mut command = Command::new("mount");
        let status = command.args(arguments).arg(self.0.path()).status().unwrap();
        assert!(status.success(), "mount {arguments:?}");
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("node-1.ring")
    }

    /// Takes all the room there is.
    fn fill(&self) {
        let full = fs::write(self.0.path().join("rest"), vec![1; 1 << 20]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
#[ignore = "needs root, to mount a small file system"]
fn on_a_full_disk_a_node_does_not_start_and_a_running_one_goes_on() {
    let mount = Mount::new("size=64k");
    mount.fill();
    let error = open(&mount.file()).unwrap_err();
    assert!(
        matches!(&error, OpenError::Io { error, .. } if error.kind() == io::ErrorKind::StorageFull),
        "{error}"
    );
    fs::remove_file(mount.0.path().join("rest")).unwrap();
    let mut file = open(&mount.file()).unwrap();
    mount.fill();
    for value in 1..10 {
        file.store(value).unwrap();
    }
    drop(file);
    assert_eq!(open(&mount.file()).unwrap().value(), Some(9));
}

#[test]
#[ignore = "needs root, to mount a small file system"]
fn without_room_for_a_slot_that_was_cut_off_nothing_is_stored_until_there_is() {
    let mount = Mount::new("size=64k");
    let mut file = open(&mount.file()).unwrap();
    file.store(4).unwrap();
    file.store(8).unwrap();
    drop(file);
    let cut = fs::File::options().write(true).open(mount.file()).unwrap();
    cut.set_len(SECOND as u64).unwrap();
    mount.fill();
    let mut file = open(&mount.file()).unwrap();
    assert_eq!((file.value(), file.lost_a_slot()), (Some(8), true));
    assert!(matches!(file.store(12), Err(StoreError::NoSpace(_))));
    fs::remove_file(mount.0.path().join("rest")).unwrap();
    file.store(12).unwrap();
    assert_eq!(file.value(), Some(12));
}

#[test]
#[ignore = "needs root, to mount a small file system"]
fn on_a_read_only_file_system_a_node_does_not_start() {
    let mount = Mount::new("size=64k");
    drop(open(&mount.file()).unwrap());
    mount.run(&["-o", "remount,ro", "tmpfs"]);
    let error = open(&mount.file()).unwrap_err();
    assert!(
        matches!(&error, OpenError::Io { error, .. } if error.kind() == io::ErrorKind::ReadOnlyFilesystem),
        "{error}"
    );
}
