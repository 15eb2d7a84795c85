//! A ring id's file on a disk that fails where it is told to, and loses its power at every single step.

mod fake;

use fake::{FakeDisk, Left, node};
use rota_storage::{OnDamage, OpenError, RingIdFile, StoreError};

fn open(disk: &FakeDisk) -> Result<RingIdFile<FakeDisk>, OpenError> {
    RingIdFile::open_on(disk.again(), node(), OnDamage::Refuse)
}

/// A disk whose file holds 4, and 8 in the other slot.
fn prepared() -> FakeDisk {
    let disk = FakeDisk::default();
    let mut file = open(&disk).unwrap();
    assert_eq!(file.value(), None);
    file.store(4).unwrap();
    file.store(8).unwrap();
    disk
}

/// Opens the file and stores 12 and 16; says what was promised last, and what was tried.
fn a_life(disk: &FakeDisk) -> (Option<u64>, Option<u64>) {
    let Ok(mut file) = open(disk) else {
        return (None, None);
    };
    let mut promised = file.value();
    for value in [12, 16] {
        if file.store(value).is_err() {
            return (promised, Some(value));
        }
        promised = Some(value);
    }
    (promised, None)
}

/// Loses the power at each call of a life that starts with `start`, in every way.
fn power_loss_at_every_call(start: impl Fn() -> FakeDisk, before: Option<u64>) {
    let whole = start();
    let from = whole.world().calls;
    a_life(&whole);
    let calls = whole.world().calls - from;
    assert!(calls > 6, "{:?}", whole.world().log);
    let torn = (0..=40).map(Left::Torn);
    for left in torn.chain([Left::Nothing, Left::All, Left::Names]) {
        for last in 1..=calls {
            let disk = start();
            disk.world().power_until = Some(from + last);
            let (promised, tried) = a_life(&disk);
            disk.world().lose_power(left);
            let file = open(&disk).unwrap_or_else(|error| panic!("{left:?} at {last}: {error}"));
            let found = file.value();
            let possible = [promised.or(before), tried];
            assert!(
                possible.contains(&found),
                "{left:?} at {last}: {found:?} of {possible:?}"
            );
        }
    }
}

#[test]
fn no_loss_of_power_takes_a_value_back_that_was_promised() {
    power_loss_at_every_call(prepared, Some(8));
}

#[test]
fn no_loss_of_power_in_a_first_start_leaves_a_file_that_is_refused() {
    power_loss_at_every_call(FakeDisk::default, None);
}

#[test]
fn every_error_while_opening_is_a_refusal_that_names_the_file() {
    for start in [FakeDisk::default, prepared] {
        let whole = start();
        let from = whole.world().calls;
        open(&whole).unwrap();
        let calls = whole.world().calls - from;
        for call in 1..=calls {
            for code in [libc::EIO, libc::ENOSPC, libc::EROFS, libc::EACCES] {
                let disk = start();
                disk.world().fail_in(call, code, 7);
                let error = open(&disk).unwrap_err();
                assert!(matches!(error, OpenError::Io { .. }), "{error}");
                assert!(error.to_string().contains("node-1"), "{error}");
                // The next start finds what was there before.
                let value = open(&disk).unwrap().value();
                assert_eq!(value, open(&whole).unwrap().value(), "{code} at {call}");
            }
        }
    }
}

#[test]
fn without_room_the_value_before_stays_and_a_later_try_works() {
    for code in [libc::ENOSPC, libc::EDQUOT] {
        let disk = prepared();
        let mut file = open(&disk).unwrap();
        disk.world().fail_in(1, code, 20);
        assert!(matches!(file.store(12), Err(StoreError::NoSpace(_))));
        assert_eq!(file.value(), Some(8));
        assert_eq!(open(&disk).unwrap().value(), Some(8));
        file.store(12).unwrap();
        assert_eq!(open(&disk).unwrap().value(), Some(12));
    }
}

#[test]
fn a_file_whose_write_or_sync_failed_takes_nothing_more() {
    let cases = [
        (1, libc::EIO),
        (1, libc::EROFS),
        (2, libc::EIO),
        // Room is sometimes found missing only when data is to leave the cache.
        (2, libc::ENOSPC),
    ];
    for (call, code) in cases {
        let disk = prepared();
        let mut file = open(&disk).unwrap();
        disk.world().fail_in(call, code, 20);
        let error = file.store(12).unwrap_err();
        assert!(matches!(error, StoreError::Io(_)), "{error}");
        assert!(matches!(file.store(13), Err(StoreError::Failed)));
        assert_eq!(file.value(), Some(8));
    }
}

#[test]
fn what_a_failed_sync_left_in_the_cache_is_not_trusted_by_the_next_process() {
    let disk = prepared();
    let mut file = open(&disk).unwrap();
    disk.world().fail_in(2, libc::EIO, 0);
    file.store(12).unwrap_err();
    // The cache says 12 and calls it clean; the disk says 8.
    let mut file = open(&disk).unwrap();
    assert_eq!(file.value(), Some(12));
    // While 16 goes to the other slot, 12 must be durable, or nothing is left of both.
    disk.world().fail_in(1, libc::EIO, 20);
    file.store(16).unwrap_err();
    disk.world().lose_power(Left::All);
    assert_eq!(open(&disk).unwrap().value(), Some(12));
    let disk = prepared();
    let mut file = open(&disk).unwrap();
    disk.world().fail_in(2, libc::EIO, 0);
    file.store(12).unwrap_err();
    open(&disk).unwrap();
    disk.world().lose_power(Left::Nothing);
    assert_eq!(open(&disk).unwrap().value(), Some(12));
}
