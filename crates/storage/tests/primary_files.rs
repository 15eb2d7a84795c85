//! Real files with records of primaries.

use std::fs;
use std::path::{Path, PathBuf};

use rota_core::contract::NodeId;
use rota_storage::{OnDamage, OpenError, Opening, PrimaryFile};

/// The offset of the second copy.
const SECOND: usize = 32 << 10;
/// Bytes of a copy of `RECORD` that are used.
const USED: usize = 28 + RECORD.len();
const RECORD: &[u8] = b"attempts";
const FIRST: &[u8] = b"founder";

fn id(node: u16) -> NodeId {
    NodeId::new(node).unwrap()
}

fn open_as(path: &Path, lived_before: bool, on_damage: OnDamage) -> Result<PrimaryFile, OpenError> {
    let opening = Opening {
        first: FIRST,
        lived_before,
        on_damage,
    };
    PrimaryFile::open(path.to_owned(), id(1), opening)
}

fn open(path: &Path) -> Result<PrimaryFile, OpenError> {
    open_as(path, false, OnDamage::Refuse)
}

/// A directory with a file that holds `RECORD`.
fn prepared() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node-1.primary");
    open(&path).unwrap().store(RECORD).unwrap();
    (directory, path)
}

#[test]
fn a_first_start_has_the_first_record_and_later_ones_the_last() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node-1.primary");
    assert_eq!(open(&path).unwrap().record(), FIRST);
    for record in [&b""[..], b"1", &[7; 5000]] {
        let mut file = open(&path).unwrap();
        file.store(record).unwrap();
        assert_eq!(file.record(), record);
        drop(file);
        let file = open(&path).unwrap();
        assert_eq!((file.record(), file.lost_a_copy()), (record, false));
    }
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_missing_file_of_a_node_that_has_lived_is_no_first_start() {
    let (_directory, path) = prepared();
    fs::remove_file(&path).unwrap();
    let error = open_as(&path, true, OnDamage::Refuse).unwrap_err();
    assert!(matches!(error, OpenError::Lost(_)), "{error}");
    assert!(error.to_string().contains("reset_primary"), "{error}");
    assert!(!path.exists());
    let file = open_as(&path, true, OnDamage::Reset).unwrap();
    assert_eq!(file.record(), FIRST);
}

#[test]
fn two_processes_cannot_use_one_file() {
    let (_directory, path) = prepared();
    let first = open(&path).unwrap();
    for on_damage in [OnDamage::Refuse, OnDamage::Reset] {
        let error = open_as(&path, false, on_damage).unwrap_err();
        assert!(matches!(error, OpenError::InUse(_)), "{error}");
    }
    drop(first);
    open(&path).unwrap();
}

#[test]
fn whichever_copy_is_damaged_the_promised_record_counts_and_both_are_whole_again() {
    for at in [0, SECOND] {
        // Some of the bits: each costs a few syncs.
        for bit in (0..USED * 8).step_by(13) {
            let (_directory, path) = prepared();
            let mut bytes = fs::read(&path).unwrap();
            bytes[at + bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, bytes).unwrap();
            let file = open(&path).unwrap();
            assert_eq!((file.record(), file.lost_a_copy()), (RECORD, true));
            drop(file);
            let file = open(&path).unwrap();
            assert_eq!((file.record(), file.lost_a_copy()), (RECORD, false));
        }
    }
}

#[test]
fn a_file_of_every_length_is_refused_or_read() {
    let (_directory, path) = prepared();
    let whole = fs::read(&path).unwrap();
    let near = |len: &usize| *len <= USED || len.abs_diff(SECOND + USED) <= USED;
    for len in (0..whole.len()).filter(near) {
        fs::write(&path, &whole[..len]).unwrap();
        match open(&path) {
            Err(error) => {
                assert!(len < USED, "{len} bytes: {error}");
                assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
                assert!(error.to_string().contains("reset_primary"), "{error}");
            }
            Ok(file) => {
                assert!(len >= USED, "{len} bytes");
                let found = (file.record(), file.lost_a_copy());
                assert_eq!(found, (RECORD, len < SECOND + USED), "{len} bytes");
            }
        }
    }
}

#[test]
fn two_different_records_of_one_generation_are_refused() {
    let (_directory, path) = prepared();
    let mut bytes = fs::read(&path).unwrap();
    bytes[SECOND + 24] ^= 1;
    let end = SECOND + USED - 4;
    let sum = crc_fast::crc32_iscsi(&bytes[SECOND..end]).to_le_bytes();
    bytes[end..end + 4].copy_from_slice(&sum);
    fs::write(&path, bytes).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[test]
fn a_reset_replaces_what_is_refused_and_keeps_what_is_good() {
    let (_directory, path) = prepared();
    let file = open_as(&path, false, OnDamage::Reset).unwrap();
    assert_eq!(file.record(), RECORD, "nothing is wrong with it");
    drop(file);
    fs::write(&path, [0xff; 100]).unwrap();
    assert!(matches!(open(&path), Err(OpenError::Damaged { .. })));
    let file = open_as(&path, false, OnDamage::Reset).unwrap();
    assert_eq!(file.record(), FIRST);
    drop(file);
    assert_eq!(open(&path).unwrap().record(), FIRST);
}

#[test]
fn another_nodes_file_and_a_later_versions_are_refused() {
    let (directory, path) = prepared();
    let other = directory.path().join("node-2.primary");
    fs::copy(&path, &other).unwrap();
    let opening = Opening {
        first: FIRST,
        lived_before: true,
        on_damage: OnDamage::Refuse,
    };
    let error = PrimaryFile::open(other, id(2), opening).unwrap_err();
    let is_wrong = matches!(error, OpenError::WrongNode { found: 1, .. });
    assert!(is_wrong, "{error}");
    let mut bytes = fs::read(&path).unwrap();
    bytes[SECOND + 8] = 2;
    let end = SECOND + USED - 4;
    let sum = crc_fast::crc32_iscsi(&bytes[SECOND..end]).to_le_bytes();
    bytes[end..end + 4].copy_from_slice(&sum);
    fs::write(&path, bytes).unwrap();
    let error = open(&path).unwrap_err();
    let is_later = matches!(error, OpenError::Version { found: 2, .. });
    assert!(is_later, "{error}");
}

#[test]
fn a_missing_directory_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let error = open(&missing.join("node-1.primary")).unwrap_err();
    assert!(matches!(error, OpenError::NoDirectory(_)), "{error}");
    assert!(!missing.exists());
}
