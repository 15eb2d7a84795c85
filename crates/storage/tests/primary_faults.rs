//! The file of the record of primaries, on a disk that fails where it is told to, and loses its power at every single
//! step.

mod fake;

use fake::{FakeDisk, Left, node};
use rota_storage::{OnDamage, OpenError, Opening, PrimaryFile, StoreError};

const FIRST: &[u8] = b"founder";
const OPENING: Opening<'static> = Opening {
    first: FIRST,
    lived_before: false,
    on_damage: OnDamage::Refuse,
};

fn open(disk: &FakeDisk) -> Result<PrimaryFile<FakeDisk>, OpenError> {
    PrimaryFile::open_on(disk.again(), node(), OPENING)
}

/// A record that can be told from others by its number, and has a length of its own.
fn record(number: u8) -> Vec<u8> {
    vec![number; 20 + usize::from(number)]
}

/// A disk whose file holds record 8.
fn prepared() -> FakeDisk {
    let disk = FakeDisk::default();
    let mut file = open(&disk).unwrap();
    assert_eq!(file.record(), FIRST);
    file.store(&record(4)).unwrap();
    file.store(&record(8)).unwrap();
    disk
}

/// Opens the file and stores records 12 and 16; says what was promised last, and what was tried.
fn a_life(disk: &FakeDisk) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let Ok(mut file) = open(disk) else {
        return (None, None);
    };
    let mut promised = file.record().to_vec();
    for number in [12, 16] {
        if file.store(&record(number)).is_err() {
            return (Some(promised), Some(record(number)));
        }
        promised = record(number);
    }
    (Some(promised), None)
}

/// Loses the power at each call of a life that starts with `start`, in every way.
fn power_loss_at_every_call(start: impl Fn() -> FakeDisk, before: &[u8]) {
    let whole = start();
    let from = whole.world().calls;
    a_life(&whole);
    let calls = whole.world().calls - from;
    assert!(calls > 12, "{:?}", whole.world().log);
    let torn = (0..=70).map(Left::Torn);
    for left in torn.chain([Left::Nothing, Left::All, Left::Names]) {
        for last in 1..=calls {
            let disk = start();
            disk.world().power_until = Some(from + last);
            let (promised, tried) = a_life(&disk);
            disk.world().lose_power(left);
            let file = open(&disk).unwrap_or_else(|error| panic!("{left:?} at {last}: {error}"));
            let found = file.record();
            let promised = promised.unwrap_or_else(|| before.to_vec());
            assert!(
                found == promised || tried.as_deref() == Some(found),
                "{left:?} at {last}: {found:?}, promised {promised:?}, tried {tried:?}"
            );
        }
    }
}

#[test]
fn no_loss_of_power_takes_a_record_back_that_was_promised() {
    power_loss_at_every_call(prepared, &record(8));
}

#[test]
fn no_loss_of_power_in_a_first_start_leaves_a_file_that_is_refused() {
    power_loss_at_every_call(FakeDisk::default, FIRST);
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
                let found = open(&disk).unwrap();
                let expected = open(&whole).unwrap();
                assert_eq!(found.record(), expected.record(), "{code} at {call}");
            }
        }
    }
}

#[test]
fn without_room_the_record_before_stays_and_a_later_try_works() {
    for code in [libc::ENOSPC, libc::EDQUOT] {
        // A write of either copy.
        for call in [1, 3] {
            let disk = prepared();
            let mut file = open(&disk).unwrap();
            disk.world().fail_in(call, code, 20);
            let error = file.store(&record(12)).unwrap_err();
            assert!(matches!(error, StoreError::NoSpace(_)), "{error}");
            assert_eq!(file.record(), record(8));
            let found = open(&disk).unwrap().record().to_vec();
            // Nobody was told; what is in one copy may count after a crash, or not.
            let possible = if call == 1 { record(8) } else { record(12) };
            assert_eq!(found, possible);
            file.store(&record(13)).unwrap();
            assert_eq!(open(&disk).unwrap().record(), record(13));
        }
    }
}

#[test]
fn a_file_whose_write_or_sync_failed_takes_nothing_more() {
    let cases = [
        (1, libc::EIO),
        (1, libc::EROFS),
        (2, libc::EIO),
        (2, libc::ENOSPC),
        (3, libc::EIO),
        (4, libc::EIO),
        (4, libc::ENOSPC),
    ];
    for (call, code) in cases {
        let disk = prepared();
        let mut file = open(&disk).unwrap();
        disk.world().fail_in(call, code, 20);
        let error = file.store(&record(12)).unwrap_err();
        assert!(matches!(error, StoreError::Io(_)), "{error}");
        assert!(matches!(file.store(&record(13)), Err(StoreError::Failed)));
        assert_eq!(file.record(), record(8));
    }
}

#[test]
fn what_a_failed_sync_left_in_the_cache_does_not_count_before_it_is_durable() {
    let disk = prepared();
    let mut file = open(&disk).unwrap();
    disk.world().fail_in(2, libc::EIO, 0);
    file.store(&record(12)).unwrap_err();
    // The cache says 12 and calls it clean; the disk says 8. To open the file makes 12 durable.
    assert_eq!(open(&disk).unwrap().record(), record(12));
    disk.world().lose_power(Left::Nothing);
    assert_eq!(open(&disk).unwrap().record(), record(12));
}

#[test]
fn a_record_that_is_too_long_is_refused_and_changes_nothing() {
    let disk = prepared();
    let mut file = open(&disk).unwrap();
    let error = file.store(&vec![1; 32 << 10]).unwrap_err();
    assert!(matches!(error, StoreError::TooLong(_)), "{error}");
    assert_eq!(file.record(), record(8));
    file.store(&vec![1; (32 << 10) - 28]).unwrap();
    assert_eq!(open(&disk).unwrap().record().len(), (32 << 10) - 28);
}
