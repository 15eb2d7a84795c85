//! Checkpoints on a disk that fails at each call, loses its power at each call, and has each of its bytes changed.

mod sim;

use rota_storage::checkpoint::{
    CheckpointError, Checkpoints, Incoming, Manifest, Reading, Refused, Subject,
};
use sim::{Keep, Random, SimDir};

const OF: Subject = Subject {
    cluster: 7,
    partition: 3,
};
const STORE: u64 = 0x5707e;
const CHUNK: u32 = 64;

fn open(dir: &SimDir) -> Result<Checkpoints<SimDir>, CheckpointError> {
    Checkpoints::on(dir.clone(), OF, STORE, CHUNK)
}

/// The state of a number: that says which, in bytes that no other has.
fn state(number: u8) -> Vec<u8> {
    let length = 150 + usize::from(number);
    (0..length)
        .map(|at| (at as u8).wrapping_mul(7) ^ number)
        .collect()
}

fn write(checkpoints: &mut Checkpoints<SimDir>, number: u8) -> Result<(), CheckpointError> {
    let mut writing = checkpoints.begin()?;
    for part in state(number).chunks(50) {
        writing.write(part)?;
    }
    let written = writing.finish(vec![number])?;
    checkpoints.add(written);
    Ok(())
}

/// The whole state of a checkpoint, and which it says it is.
fn read(reading: &Reading<SimDir>) -> Result<(u8, Vec<u8>), CheckpointError> {
    let mut all = Vec::new();
    let mut index = 0;
    while let Some(chunk) = reading.chunk(index)? {
        all.extend(chunk);
        index += 1;
    }
    Ok((reading.manifest().about[0], all))
}

fn newest(checkpoints: &mut Checkpoints<SimDir>) -> Option<u8> {
    let sound = checkpoints.newest_sound().expect("the disk works");
    let (number, bytes) = read(&sound?).expect("it is sound");
    assert!(bytes == state(number), "{number} is another state");
    Some(number)
}

#[test]
fn the_newest_two_are_kept_and_what_is_being_read_stays() {
    let dir = SimDir::default();
    let mut checkpoints = open(&dir).expect("an empty directory");
    assert_eq!(newest(&mut checkpoints), None);
    write(&mut checkpoints, 1).expect("the disk works");
    let first = checkpoints.manifests().next().expect("it is there").clone();
    let reading = checkpoints.read(&first).expect("it is there");
    let reading = reading.expect("it is kept");
    for number in 2..=9 {
        write(&mut checkpoints, number).expect("the disk works");
        assert_eq!(newest(&mut checkpoints), Some(number));
    }
    let kept: Vec<u8> = checkpoints.manifests().map(|m| m.about[0]).collect();
    assert_eq!(kept, [8, 9]);
    assert_eq!(read(&reading).expect("it is open").1, state(1));
    assert!(checkpoints.read(&first).expect("it is gone").is_none());
    drop(checkpoints);
    let files: Vec<String> = dir.world().names.keys().cloned().collect();
    assert_eq!(files.len(), 5, "{files:?}");
    let mut again = open(&dir).expect("it is ours");
    assert_eq!((newest(&mut again), again.store()), (Some(9), STORE));
}

/// Writes three, and says how many nobody may lose: after the last that was finished.
fn write_three(dir: &SimDir) -> u8 {
    let mut finished = 0;
    if let Ok(mut checkpoints) = open(dir) {
        for number in 1..=3 {
            match write(&mut checkpoints, number) {
                Ok(()) => finished = number,
                Err(_) => break,
            }
        }
    }
    finished
}

/// The ways in which a disk may keep unsynced bytes, each with its seed.
fn ways() -> impl Iterator<Item = (Keep, u64)> {
    let some = (0..24).map(|seed| (Keep::Some, seed));
    [(Keep::Nothing, 0), (Keep::All, 0)].into_iter().chain(some)
}

#[test]
fn whenever_the_power_goes_what_was_finished_is_there_whole() {
    let all = SimDir::default();
    assert_eq!(write_three(&all), 3);
    let all = all.world().calls;
    let mut between = 0;
    for call in 1..=all {
        for (keep, seed) in ways() {
            let dir = SimDir::default();
            dir.world().power_until = Some(call);
            let finished = write_three(&dir);
            let mut random = Random(seed * 1000 + call as u64);
            dir.world().lose_power(&mut random, keep);
            let mut checkpoints = open(&dir).unwrap_or_else(|error| panic!("{call}: {error}"));
            assert_eq!(checkpoints.damaged(), [], "{call} {keep:?}");
            let newest = newest(&mut checkpoints).unwrap_or(0);
            assert!(
                newest == finished || newest == finished + 1,
                "{call} {keep:?} {seed}: {newest}, and {finished} was finished"
            );
            between += u32::from(newest > finished);
        }
    }
    assert!(between > 0, "none was durable before that was known");
}

#[test]
fn whatever_call_fails_the_others_stay() {
    let all = SimDir::default();
    write_three(&all);
    let all = all.world().calls;
    let mut failures = 0;
    for call in 1..=all {
        let dir = SimDir::default();
        dir.world().fail_in(call, libc::EIO, 5);
        let finished = write_three(&dir);
        failures += u32::from(finished < 3);
        // Files that could not be written are in nobody's way.
        dir.world().forget_what_is_clean();
        let mut checkpoints = open(&dir).unwrap_or_else(|error| panic!("{call}: {error}"));
        let now = newest(&mut checkpoints).unwrap_or(0);
        assert!(now >= finished, "{call}: {now} of {finished}");
        write(&mut checkpoints, 50).expect("the disk works again");
        assert_eq!(newest(&mut checkpoints), Some(50), "{call}");
    }
    assert!(failures > 10, "{failures}");
}

/// Each byte of each file: the checkpoint before it serves, or it is said what is wrong.
#[test]
fn damage_is_found_wherever_it_is() {
    let dir = SimDir::default();
    assert_eq!(write_three(&dir), 3);
    let files = dir.world().files();
    let mut served = [0; 4];
    for (name, bytes) in &files {
        for at in 0..bytes.len() {
            for cut in [false, true] {
                let mut damaged = files.clone();
                let bytes = damaged.get_mut(name).expect("it is there");
                match cut {
                    true => bytes.truncate(at),
                    false => bytes[at] ^= 0x40,
                }
                match open(&SimDir::with(&damaged)) {
                    Ok(mut checkpoints) => {
                        served[usize::from(newest(&mut checkpoints).unwrap_or(0))] += 1;
                    }
                    Err(error) => assert_eq!(name, "store", "{error}"),
                }
            }
        }
    }
    assert!(served[2] > 100 && served[3] > 100, "{served:?}");
    assert_eq!((served[0], served[1]), (0, 0), "one of two was whole");
    for name in files.keys().filter(|name| name.ends_with(".state")) {
        let mut without = files.clone();
        without.remove(name);
        let mut checkpoints = open(&SimDir::with(&without)).expect("the other one is there");
        assert!(matches!(checkpoints.damaged(), [(_, Refused::NoState)]));
        assert!(newest(&mut checkpoints).is_some());
    }
    let mut without = files;
    without.remove("store");
    let refused = open(&SimDir::with(&without));
    assert!(matches!(refused, Err(CheckpointError::NoStore(_))));
}

#[test]
fn nobody_takes_what_is_not_theirs() {
    let dir = SimDir::default();
    assert_eq!(write_three(&dir), 3);
    for of in [Subject { cluster: 8, ..OF }, Subject { partition: 4, ..OF }] {
        let refused = Checkpoints::on(dir.clone(), of, 1, CHUNK);
        let refused = refused.expect_err("it is another's");
        assert!(
            matches!(refused, CheckpointError::WrongOwner { .. }),
            "{refused}"
        );
        let mut theirs = Checkpoints::on(SimDir::default(), of, 1, CHUNK).expect("empty");
        let ours = open(&dir).expect("ours");
        let manifest = (**ours.manifests().next().expect("one")).clone();
        let refused = theirs.receive(manifest).expect_err("it is another's");
        assert!(refused.to_string().contains("partition 3"), "{refused}");
    }
}

fn manifest_of_three(dir: &SimDir) -> (Checkpoints<SimDir>, Manifest) {
    assert_eq!(write_three(dir), 3);
    let theirs = open(dir).expect("it is ours");
    let manifest = theirs.manifests().last().expect("three").as_ref().clone();
    (theirs, manifest)
}

fn chunk_of(theirs: &Checkpoints<SimDir>, manifest: &Manifest, index: usize) -> Vec<u8> {
    let reading = theirs.read(manifest).expect("the disk works");
    let chunk = reading.expect("it is kept").chunk(index);
    chunk.expect("the disk works").expect("there is one")
}

/// Takes what is missing, so many chunks at most.
fn take(
    incoming: &mut Incoming<SimDir>,
    (theirs, manifest): (&Checkpoints<SimDir>, &Manifest),
    most: usize,
) -> Result<usize, CheckpointError> {
    let missing: Vec<usize> = incoming.missing().take(most).collect();
    for index in &missing {
        incoming.put(*index, &chunk_of(theirs, manifest, *index))?;
    }
    Ok(missing.len())
}

#[test]
fn a_state_comes_from_a_peer_and_goes_on_where_it_was() {
    let (theirs, manifest) = manifest_of_three(&SimDir::default());
    let dir = SimDir::default();
    let mut ours = Checkpoints::on(dir.clone(), OF, 99, CHUNK).expect("empty");
    let mut incoming = ours.receive(manifest.clone()).expect("it is ours");
    let mut wrong = chunk_of(&theirs, &manifest, 1);
    wrong[3] ^= 1;
    for (index, chunk) in [
        (1, &wrong[..]),
        (1, &wrong[..9]),
        (77, &wrong),
        (usize::MAX, &[]),
    ] {
        let refused = incoming.put(index, chunk);
        assert!(
            matches!(refused, Err(CheckpointError::Chunk { .. })),
            "{index}"
        );
    }
    let took = take(&mut incoming, (&theirs, &manifest), 2);
    assert_eq!(took.expect("the disk works"), 2);
    let refused = incoming.finish().expect_err("one is missing");
    assert!(
        matches!(refused, CheckpointError::Incomplete(1)),
        "{refused}"
    );
    drop(ours);

    let mut ours = open(&dir).expect("it is ours");
    assert_eq!(ours.store(), 99, "it was drawn before");
    assert_eq!(newest(&mut ours), None, "it is not whole");
    let before = ours
        .incoming()
        .expect("the disk works")
        .expect("it was coming");
    assert!(before.is_same_state(&manifest));
    let mut incoming = ours.receive(manifest.clone()).expect("it is ours");
    assert_eq!(incoming.missing().collect::<Vec<_>>(), [2]);
    take(&mut incoming, (&theirs, &manifest), 9).expect("the disk works");
    let written = incoming.finish().expect("all came");
    assert_eq!(written.manifest().store, 99);
    ours.add(written);
    assert_eq!(newest(&mut ours), Some(3));
    assert!(ours.incoming().expect("the disk works").is_none());
    drop(ours);
    assert_eq!(newest(&mut open(&dir).expect("it is ours")), Some(3));
}

/// Chunks that fit a manifest, and a manifest that was made up.
#[test]
fn a_whole_that_is_not_what_was_said_is_no_checkpoint() {
    let (theirs, mut manifest) = manifest_of_three(&SimDir::default());
    let real = manifest.clone();
    manifest.hash[0] ^= 1;
    let dir = SimDir::default();
    let mut ours = open(&dir).expect("empty");
    let mut incoming = ours.receive(manifest).expect("it is ours");
    take(&mut incoming, (&theirs, &real), 9).expect("the disk works");
    let refused = incoming.finish().expect_err("it was made up");
    assert!(matches!(refused, CheckpointError::Hash(_)), "{refused}");
    assert!(ours.incoming().expect("the disk works").is_none());
    assert_eq!(newest(&mut open(&dir).expect("ours")), None);
}

/// Takes a state in two parts with a restart between, as far as the power allows.
fn come(dir: &SimDir, theirs: (&Checkpoints<SimDir>, &Manifest)) -> Result<(), CheckpointError> {
    for most in [2, 9] {
        let mut ours = open(dir)?;
        if ours.manifests().next().is_some() {
            return Ok(());
        }
        let mut incoming = ours.receive(theirs.1.clone())?;
        take(&mut incoming, theirs, most)?;
        if incoming.missing().next().is_none() {
            let written = incoming.finish()?;
            ours.add(written);
        }
    }
    Ok(())
}

#[test]
fn whenever_the_power_goes_a_state_that_comes_is_whole_or_none() {
    let (theirs, manifest) = manifest_of_three(&SimDir::default());
    let all = SimDir::default();
    come(&all, (&theirs, &manifest)).expect("the disk works");
    let all = all.world().calls;
    for call in 1..=all {
        for (keep, seed) in ways() {
            let dir = SimDir::default();
            dir.world().power_until = Some(call);
            let came = come(&dir, (&theirs, &manifest)).is_ok();
            let mut random = Random(seed * 10_000 + call as u64);
            dir.world().lose_power(&mut random, keep);
            let mut ours = open(&dir).unwrap_or_else(|error| panic!("{call}: {error}"));
            assert_eq!(ours.damaged(), [], "{call} {keep:?}");
            let newest = newest(&mut ours);
            assert!(
                newest == Some(3) || newest.is_none() && !came,
                "{call} {keep:?}"
            );
            drop(ours);
            come(&dir, (&theirs, &manifest)).unwrap_or_else(|error| panic!("{call}: {error}"));
        }
    }
}

#[test]
fn a_real_directory_is_used_by_one_process_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_owned();
    let mut checkpoints = Checkpoints::open(path.clone(), OF, 1).expect("empty");
    let mut writing = checkpoints.begin().expect("it can be written");
    let state = vec![5; (3 << 20) + 7];
    writing.write(&state).expect("there is room");
    let written = writing.finish(b"a point".to_vec()).expect("there is room");
    assert_eq!(checkpoints.add(written).sums.len(), 4);
    let refused = Checkpoints::open(path.clone(), OF, 2);
    assert!(matches!(refused, Err(CheckpointError::InUse(_))));
    drop(checkpoints);
    let mut checkpoints = Checkpoints::open(path.clone(), OF, 2).expect("it is free");
    let sound = checkpoints.newest_sound().expect("it can be read");
    assert!(checkpoints.damaged().is_empty() && sound.is_some());
    let missing = Checkpoints::open(path.join("missing"), OF, 2);
    assert!(matches!(missing, Err(CheckpointError::NoDirectory(_))));
}
