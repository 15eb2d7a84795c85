use super::*;
use std::os::unix::fs::PermissionsExt;

fn ids(ring: &KeyRing) -> Vec<u16> {
    ring.ids().map(KeyId::get).collect()
}

#[test]
fn a_key_file_is_its_owners_alone_and_never_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cluster.key");
    let ring = KeyRing::generate().unwrap();
    ring.create(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(KeyRing::load(&path).unwrap(), ring);
    let other = KeyRing::generate().unwrap();
    assert!(matches!(other.create(&path), Err(KeyError::Exists)));
    assert_eq!(KeyRing::load(&path).unwrap(), ring);
    other.replace(&path).unwrap();
    assert_eq!(KeyRing::load(&path).unwrap(), other);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_link_to_a_key_file_stays_one_and_what_was_left_beside_it_is_named() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("real"), directory.path().join("link"));
    KeyRing::generate().unwrap().create(&file).unwrap();
    symlink(&file, &link).unwrap();
    let other = KeyRing::generate().unwrap();
    other.replace(&link).unwrap();
    assert!(link.is_symlink());
    assert_eq!(KeyRing::load(&file).unwrap(), other);
    let beside = directory.path().join("real.new");
    std::fs::write(&beside, "half").unwrap();
    let error = other.replace(&link).unwrap_err().to_string();
    assert!(error.contains(beside.to_str().unwrap()), "{error}");
    assert!(beside.exists(), "it may be somebody else's");
}

#[test]
#[ignore = "needs root, for a file of another user"]
fn a_key_file_of_another_user_is_not_used_and_a_changed_one_still_belongs_to_whom_it_belonged() {
    use std::os::unix::fs::chown;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cluster.key");
    KeyRing::generate().unwrap().create(&path).unwrap();
    chown(&path, Some(12_345), Some(23_456)).unwrap();
    match KeyRing::load(&path) {
        Err(KeyError::Owner(12_345)) => {}
        other => panic!("somebody else could read and replace it: {other:?}"),
    }
    let mut ring = KeyRing::load_of_anybody(&path).unwrap();
    ring.add().unwrap();
    ring.replace(&path).unwrap();
    let metadata = std::fs::metadata(&path).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (12_345, 23_456));
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
}

#[test]
fn a_key_file_that_others_may_touch_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cluster.key");
    KeyRing::generate().unwrap().create(&path).unwrap();
    let load = |mode| {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        KeyRing::load(&path)
    };
    for mode in [0o604, 0o640, 0o602, 0o620, 0o601, 0o610, 0o666] {
        match load(mode) {
            Err(KeyError::Open(found)) => assert_eq!(found, mode),
            other => panic!("{mode:o}: {other:?}"),
        }
    }
    for mode in [0o600, 0o400, 0o700] {
        assert!(load(mode).is_ok(), "{mode:o}");
    }
    assert!(matches!(
        KeyRing::load(directory.path()),
        Err(KeyError::NotAFile)
    ));
}

#[test]
fn a_key_is_added_used_and_the_old_one_removed() {
    let mut ring = KeyRing::generate().unwrap();
    assert_eq!((ids(&ring), ring.sending().get()), (vec![1], 1));
    assert_eq!(ring.add().unwrap().get(), 2);
    assert_eq!((ids(&ring), ring.sending().get()), (vec![1, 2], 1));
    assert!(matches!(ring.remove(1), Err(KeyError::InUse(_))));
    assert!(matches!(ring.send_with(3), Err(KeyError::NoSuchKey(3))));
    ring.send_with(2).unwrap();
    ring.remove(1).unwrap();
    assert!(matches!(ring.remove(1), Err(KeyError::NoSuchKey(1))));
    assert_eq!((ids(&ring), ring.sending().get()), (vec![2], 2));
    assert_eq!(ring.add().unwrap().get(), 3);
    while ring.keys.len() < MOST_KEYS {
        ring.add().unwrap();
    }
    assert!(matches!(ring.add(), Err(KeyError::TooMany)));
}

#[test]
fn two_keys_are_never_the_same_and_none_is_shown() {
    let ring = KeyRing::generate().unwrap();
    let other = KeyRing::generate().unwrap();
    assert_ne!(ring, other);
    let hex = ring.keys[&ring.send].to_hex();
    assert_eq!(hex.len(), 64);
    assert!(!format!("{ring:?}").contains(&hex[..8]));
    let text = ring.to_toml().unwrap();
    assert!(text.contains(&hex));
    for damaged in [
        text.replace(&hex, &hex[1..]),
        text.replace(&hex, &format!("{hex}00")),
        text.replace(&hex[..1], "x"),
        text.replace("secret", "secrets"),
        text.replace('"', ""),
    ] {
        let error = KeyRing::from_toml(&damaged).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(&hex[8..16]), "{shown}");
    }
}

#[test]
fn every_mistake_in_a_key_file_has_a_word() {
    let key = |id: u16| format!("[[key]]\nid = {id}\nsecret = \"{}\"\n", "0f".repeat(32));
    let error = |text: &str| KeyRing::from_toml(text).unwrap_err().to_string();
    assert!(KeyRing::from_toml(&format!("send = 7\n{}", key(7))).is_ok());
    let cases = [
        (format!("send = 1\n{}", key(2)), "no key 1"),
        (
            format!("send = 2\n{0}{0}", key(2)),
            "two keys have the id 2",
        ),
        (format!("send = 0\n{}", key(0)), "start at 1"),
        (
            format!("send = 1\n{}", key(1).replace("0f", "0g")),
            "64 hex",
        ),
        ("send = 1\n".to_owned(), "no key file"),
        (format!("send = 1\n{}more = 3\n", key(1)), "line 5"),
    ];
    for (text, word) in cases {
        assert!(error(&text).contains(word), "{text}: {}", error(&text));
    }
}
